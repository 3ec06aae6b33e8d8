/* Kernels of whole models one by one, each text with each shape once over all models: the
 * evaluator's numbers in, the results against the evaluator's. Usage: zoo RESOURCE_FOLDER
 * WORK_FOLDER DTYPE DEVICE FILE.amp... -- FILE.amp...; those after `--` are compiled only, and
 * must have no kernel that the others have not.
 *
 * A line for each model: its kernels, and those among them that no model before it has. */
#include "ir/kernel.h"
#include "ir/recipe/recipe.h"
#include "runtime/cuda/cuda_rt.h"
#include "tests/cuda/step/steps.h"
#include "tests/ops/step_values.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The bound for a single kernel: its sums are in f32 or double while the evaluator's are in double,
 * so that a few results are rounded differently. */
static const double tolerance[DT_COUNT] = {[DT_F32] = 1e-5, [DT_F16] = 1e-3, [DT_BF16] = 4e-3};

typedef struct Seen { /* a set of hashes */
  Arena *arena;
  uint64_t *hash;
  int n, cap;
} Seen;

static struct {
  Seen texts, cases;    /* texts of functions; texts and shapes of launches */
  const char *kernels;  /* the text of the model at hand */
  FILE *names;          /* names of its new kernels, without their numbers */
  int n_kernels, n_new; /* how many kernels the model has, and how many of them are new */
} zoo;

/* ---- what is new ---- */

static uint64_t hash_bytes(uint64_t h, const char *at, size_t n) {
  for (size_t i = 0; i < n; i++)
    h = (h ^ (unsigned char)at[i]) * UINT64_C(1099511628211);
  return h;
}

static bool is_known(const Seen *seen, uint64_t hash) {
  for (int i = 0; i < seen->n; i++)
    if (seen->hash[i] == hash)
      return true;
  return false;
}

/* Adds a hash. False if it was there already. */
static bool seen_add(Seen *seen, uint64_t hash) {
  bool is_new = !is_known(seen, hash);
  if (is_new)
    arena_push(seen->arena, seen->hash, seen->n, seen->cap, hash);
  return is_new;
}

/* The hash of the function whose name is at `at`, without the numbers of kernels in it, such as the
 * 7 of k_relu_7_args. */
static uint64_t hash_text(const char *at) {
  static const char args[] = "_args";
  const char *end = strstr(at, "\n}\n");
  uint64_t h = 1;
  CHECK(end, "a kernel without an end");
  for (at = strchr(at, '{'); at < end; at++) {
    size_t digits = strspn(at, "0123456789");
    at += strncmp(at + digits, args, strlen(args)) == 0 ? digits : 0;
    h = hash_bytes(h, at, 1);
  }
  return h;
}

static const char *next_kernel(const char *text) {
  static const char head[] = "\nAMP_KERNEL(";
  const char *found = strstr(text, head);
  return found ? found + strlen(head) : NULL;
}

static const char *kernel_named(const char *name) {
  size_t n = strlen(name);
  const char *at = zoo.kernels;
  while ((at = next_kernel(at)) != NULL)
    if (strncmp(at, name, n) == 0 && at[n] == ',')
      return at;
  BUG("no kernel %s", name);
}

/* Counts the model's kernels, and those that no model before had. */
static void count_kernels(void) {
  zoo.n_kernels = zoo.n_new = 0;
  for (const char *at = zoo.kernels; (at = next_kernel(at)) != NULL;) {
    zoo.n_kernels++;
    zoo.n_new += !is_known(&zoo.texts, hash_text(at));
  }
}

/* part_run_each also runs the launch that converts images from bytes. */
static void add_pixels(void) {
  for (const char *at = zoo.kernels; (at = next_kernel(at)) != NULL;)
    if (strncmp(at, "pixels_", strlen("pixels_")) == 0)
      seen_add(&zoo.texts, hash_text(at));
}

static uint64_t hash_type(uint64_t h, TensorType type) {
  h = hash_bytes(h, (const char *)&type.dtype, sizeof type.dtype);
  return hash_bytes(h, (const char *)type.dim, (size_t)type.rank * sizeof *type.dim);
}

static uint64_t hash_shapes(uint64_t h, const Group *group) {
  for (int i = 0; i < group->graph->n_nodes; i++) {
    const Node *node = group->graph->node[i];
    if (kernel_of(node) < group->first || kernel_of(node) >= group->past)
      continue;
    for (int k = 0; k < node->n_args; k++)
      h = hash_type(h, node->arg[k]->type);
    for (int r = 0; r < node->n_results; r++)
      h = hash_type(h, node->result[r]->type);
  }
  return h;
}

static bool wants(void *user, const Group *group, const CudaLaunch *launch, int n) {
  uint64_t h = hash_shapes(1, group);
  (void)user;
  for (int i = 0; i < n; i++) {
    uint64_t text = hash_text(kernel_named(launch[i].function));
    if (seen_add(&zoo.texts, text))
      fprintf(zoo.names, " %.*s", (int)(strrchr(launch[i].function, '_') - launch[i].function),
              launch[i].function);
    h = hash_bytes(h, (const char *)&text, sizeof text);
  }
  return seen_add(&zoo.cases, h);
}

/* ---- a model ---- */

/* Weights are as small as initialisers make them, and the loss scale is small too, so that the
 * numbers of deep nets stay finite. */
static EvalEnv *fill(Arena *arena, const Graph *graph) {
  EvalEnv *env = step_fill(arena, graph);
  for (int i = 0; i < graph->n_nodes; i++) {
    const Node *node = graph->node[i];
    VariableKind kind = variable_kind(node);
    EvalTensor *t = node->op == OP_VARIABLE ? eval_env_get(env, node->result[0]->name) : NULL;
    bool is_weight = kind == VARIABLE_PARAM || kind == VARIABLE_COPY;
    if (t && kind == VARIABLE_SCALE)
      t->v[0] = 8;
    if (!t || !is_weight || t->type.rank < 2)
      continue;
    double factor = sqrt(2 * (double)t->type.dim[0] / (double)type_count(t->type));
    for (int64_t k = 0; k < type_count(t->type); k++)
      t->v[k] = eval_round((double)(float)(t->v[k] * factor), t->type.dtype);
  }
  return env;
}

static int check_graph(const Step *s, int g) {
  const Graph *graph = s->module->graph[g];
  EvalEnv *after = fill(s->arena, graph), *trace = eval_env_new(s->arena);
  eval_graph(graph, after, EVAL_TYPED, trace);
  PartEach each = {
      .wants = wants, .truth = {trace, after}, .tolerance = tolerance[s->compile.dtype]};
  return part_run_each(s->part, g, 1, fill(s->arena, graph), &each);
}

static const char *kernels_text(const Step *s) {
  char *text = NULL, *tables = NULL;
  size_t size, tables_size;
  FILE *out = open_memstream(&text, &size), *rest = open_memstream(&tables, &tables_size);
  CHECK(out && rest, "out of memory");
  emit_c(&(ProgramPart){s->module, s->backend, NULL}, &s->codegen, rest, out);
  fclose(out);
  fclose(rest);
  const char *copy = arena_strdup(s->arena, text, size);
  free(text);
  free(tables);
  return copy;
}

/* Compiles a model and counts its kernels and those of them that are new. */
static void open_model(Step *s, const char *path, char **argv) {
  step_compile(s, path, step_dtype(argv[3]), argv[4], argv[1]);
  zoo.kernels = kernels_text(s);
  count_kernels();
}

static int run_model(const char *path, char **argv) {
  Step s;
  char *names = NULL;
  size_t size;
  int failed = 0, cases = zoo.cases.n;
  open_model(&s, path, argv);
  zoo.names = open_memstream(&names, &size);
  CHECK(zoo.names, "out of memory");
  if (zoo.n_new) {
    step_build(&s, NULL, argv[2], "zoo");
    part_finish(s.part);
    for (int g = 0; g < s.module->n_graphs; g++)
      failed += check_graph(&s, g);
    add_pixels();
  }
  fclose(zoo.names);
  printf("%s: %d kernels, %d new, %d launches compared:%s\n", s.module->recipe->name, zoo.n_kernels,
         zoo.n_new, zoo.cases.n - cases, names);
  free(names);
  step_free(&s);
  return failed;
}

/* Prints the kernels of the model that were not run for other models, and returns how many. */
static int look_through(const char *path, char **argv) {
  Step s;
  open_model(&s, path, argv);
  int n_new = zoo.n_new;
  printf("%s%s: %d kernels, %d new", n_new ? "FAIL " : "", s.module->recipe->name, zoo.n_kernels,
         n_new);
  for (const char *at = zoo.kernels; (at = next_kernel(at)) != NULL;)
    if (!is_known(&zoo.texts, hash_text(at)))
      printf(" %.*s", (int)strcspn(at, ","), at);
  printf("\n");
  step_free(&s);
  return n_new;
}

int main(int argc, char **argv) {
  CHECK(argc > 5, "usage: zoo RESOURCE_FOLDER WORK_FOLDER DTYPE DEVICE FILE.amp... -- FILE...");
  int failed = 0, i = 5;
  zoo.texts.arena = zoo.cases.arena = arena_new();
  printf("%s, %s\n", argv[3], argv[4]);
  for (; i < argc && strcmp(argv[i], "--"); i++)
    failed += run_model(argv[i], argv);
  printf("%d models, %d kernels in %d shapes, %d results compared, %d failures\n", i - 5,
         zoo.texts.n, zoo.cases.n, step_compared, failed);
  for (i++; i < argc; i++)
    failed += look_through(argv[i], argv);
  arena_free(zoo.texts.arena);
  return failed != 0;
}
