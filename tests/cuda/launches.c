#include "launches.h"

#include "codegen/cuda/cuda.h"
#include "codegen/loop/loop.h"
#include "shim/kernels.h"
#include "tests/ops/bytes.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGN = 256 };

/* The kernels of one call of cuda_emit_loops, and the launches that it made of them. */
typedef struct Group {
  const Kernel *kernel;
  int n, launch, n_launches;
} Group;

typedef struct GraphLaunches {
  const Graph *graph;
  Group *group;
  int n, cap;
} GraphLaunches;

struct Launches {
  Arena *arena;
  const Module *module;
  GraphLaunches graph[MAX_GRAPHS];
  LaunchList list;
  Bytes constants;
  const char *stem;
  Kernels *kernels;
  const ShimApi *api;
  void *tables;
  const CudaLaunch *launch;
};

/* ---- the target ---- */

static int64_t workspace(const Target *target, const Kernel *kernel) {
  (void)target;
  return cuda_loop_workspace(kernel);
}

const Target target_launches = {
    .name = "launches", .align = ALIGN, .activations = LAYOUT_NHWC, .workspace = workspace};

/* ---- texts ---- */

static void emit_graph(Launches *l, Emitter *emit, int g) {
  GraphLaunches *to = &l->graph[g];
  to->graph = emit->graph = l->module->graph[g];
  KernelList kernels = kernels_of(l->arena, to->graph);
  for (int i = 0; i < kernels.n;) {
    const Kernel *kernel = &kernels.kernel[i];
    Group group = {kernel, cuda_loops_joined(kernel, kernels.n - i), l->list.n, 0};
    cuda_emit_loops(emit, kernel, group.n, &l->list);
    group.n_launches = l->list.n - group.launch;
    arena_push(l->arena, to->group, to->n, to->cap, group);
    i += group.n;
  }
}

static FILE *open_text(Launches *l, const char *end) {
  const char *path = arena_printf(l->arena, "%s%s", l->stem, end);
  FILE *out = fopen(path, "w");
  CHECK(out, "cannot write %s", path);
  return out;
}

static void write_launches(const Launches *l, FILE *out) {
  fputs("const CudaLaunch launches[] = {\n", out);
  for (int i = 0; i < l->list.n; i++) {
    const Launch *at = &l->list.launch[i];
    fprintf(out,
            "  {.function = \"%s\", .args = &%s, .args_bytes = sizeof %s,"
            " .grid = {%lld, %lld, %lld}, .block = {%d, %d, %d}, .shared = %lld},\n",
            at->function, at->args, at->args, (long long)at->grid[0], (long long)at->grid[1],
            (long long)at->grid[2], at->block[0], at->block[1], at->block[2],
            (long long)at->shared);
  }
  fputs("};\n", out);
}

/* Types, functions and tables of all kernels, to be freed. */
static void emit_texts(Launches *l, char *text[3]) {
  size_t size[3];
  FILE *part[3];
  for (int i = 0; i < 3; i++)
    part[i] = open_memstream(&text[i], &size[i]);
  Emitter emit = {.arena = l->arena,
                  .module = l->module,
                  .types = part[0],
                  .functions = part[1],
                  .tables = part[2],
                  .constants = &l->constants,
                  .cache = function_cache_new(l->arena)};
  for (int g = 0; g < l->module->n_graphs; g++)
    emit_graph(l, &emit, g);
  for (int i = 0; i < 3; i++)
    fclose(part[i]);
}

static void write_texts(Launches *l) {
  char *text[3];
  emit_texts(l, text);
  FILE *kernels = open_text(l, ".cu"), *tables = open_text(l, "_tables.c");
  cuda_emit_prelude(kernels);
  fprintf(kernels, "%s%s", text[0], text[1]);
  fprintf(tables,
          "#include \"runtime/cuda/cuda_rt.h\"\n#include \"codegen/text/common/args.h\"\n%s%s",
          text[0], text[2]);
  write_launches(l, tables);
  fclose(kernels);
  fclose(tables);
  for (int i = 0; i < 3; i++)
    free(text[i]);
}

const char *launches_text(Arena *arena, const Module *planned) {
  Launches l = {.arena = arena, .module = planned};
  char *text[3], *whole;
  size_t size;
  emit_texts(&l, text);
  FILE *out = open_memstream(&whole, &size);
  cuda_emit_prelude(out);
  fprintf(out, "%s%s", text[0], text[1]);
  fclose(out);
  const char *copy = arena_strdup(arena, whole, size);
  for (int i = 0; i < 3; i++)
    free(text[i]);
  free(whole);
  return copy;
}

Launches *launches_begin(Arena *arena, const Module *planned, const char *folder, const char *name,
                         bool is_checked) {
  Launches *l = arena_new_of(arena, Launches);
  l->arena = arena;
  l->module = planned;
  l->stem = arena_printf(arena, "%s/%s", folder, name);
  write_texts(l);
  l->kernels = kernels_begin(l->stem, is_checked);
  return l;
}

bool launches_finish(Launches *l) {
  const char *command = arena_printf(
      l->arena,
      "cc -std=c11 -w -shared -fPIC -I'%s' -I'%s/runtime' -o '%s_tables.so' '%s_tables.c'",
      SOURCE_FOLDER, SOURCE_FOLDER, l->stem, l->stem);
  bool ok = system(command) == 0;
  l->api = kernels_finish(l->kernels);
  l->tables = ok ? dlopen(arena_printf(l->arena, "%s_tables.so", l->stem), RTLD_NOW) : NULL;
  l->launch = l->tables ? dlsym(l->tables, "launches") : NULL;
  return l->api && l->launch;
}

int launches_count(const Launches *l) {
  return l->list.n;
}

void launches_free(Launches *l) {
  kernels_free(l->kernels);
  if (l->tables)
    dlclose(l->tables);
}

/* ---- what a group may touch ---- */

typedef struct Extent {
  int64_t at, bytes;
  ShimMark mark; /* while the group runs */
} Extent;

typedef struct Extents {
  Arena *arena;
  Extent *extent;
  int n, cap;
} Extents;

static void add_extent(Extents *to, int64_t at, int64_t bytes, ShimMark mark) {
  Extent extent = {at, bytes, mark};
  if (at >= 0)
    arena_push(to->arena, to->extent, to->n, to->cap, extent);
}

static bool meets(const Extents *all, Extent e) {
  for (int i = 0; i < all->n; i++)
    if (e.at < all->extent[i].at + all->extent[i].bytes && all->extent[i].at < e.at + e.bytes)
      return true;
  return false;
}

static bool makes(const Group *group, const Node *node) {
  for (int k = 0; k < group->n; k++)
    for (int i = 0; i < group->kernel[k].n_nodes; i++)
      if (group->kernel[k].node[i] == node)
        return true;
  return false;
}

/* Memory of operands that is not written counts as constant, that of results that is not read as
 * undefined; a result may take the place of an operand. */
static void add_all(Extents *to, const Extents *all, const Extents *others) {
  for (int i = 0; i < all->n; i++) {
    Extent e = all->extent[i];
    add_extent(to, e.at, e.bytes, meets(others, e) ? SHIM_DEFINED : e.mark);
  }
}

static Extents extents_of(const Group *group, Arena *arena) {
  Extents reads = {arena}, writes = {arena}, touched = {arena};
  for (int k = 0; k < group->n; k++)
    for (int i = 0; i < group->kernel[k].n_nodes; i++) {
      const Node *node = group->kernel[k].node[i];
      const int64_t *at = attr_ints(node, ATTR_AT, node->n_results);
      const int64_t *space = attr_ints(node, ATTR_WORKSPACE, 2);
      for (int a = 0; a < node->n_args; a++) {
        const Value *from = value_storage(node->arg[a]);
        bool elsewhere = from->node->op == OP_CONST || value_in_state(from);
        if (!elsewhere && !makes(group, from->node))
          add_extent(&reads, value_at(from), type_bytes(from->type), SHIM_CONSTANT);
      }
      for (int r = 0; at && r < node->n_results; r++)
        add_extent(&writes, at[r], type_bytes(node->result[r]->type), SHIM_UNDEFINED);
      if (space)
        add_extent(&touched, space[0], space[1], SHIM_UNDEFINED);
    }
  add_all(&touched, &writes, &reads);
  add_all(&touched, &reads, &writes);
  return touched;
}

/* Allows what the group may touch of an arena that is forbidden, or forbids it again. Marking the
 * whole arena for each group took most of the test's time. */
static void mark_group(const Launches *l, const Extents *touched, unsigned char *arena,
                       bool allow) {
  for (int i = 0; i < touched->n; i++)
    l->api->mark(arena + touched->extent[i].at, (size_t)touched->extent[i].bytes,
                 allow ? touched->extent[i].mark : SHIM_FORBIDDEN);
}

/* ---- run ---- */

static unsigned char *block_new(const Launches *l, const char *name, int64_t bytes, size_t *size) {
  *size = (size_t)(bytes / ALIGN + 1) * ALIGN;
  unsigned char *at = aligned_alloc(ALIGN, *size);
  CHECK(at, "out of memory");
  memset(at, 0, *size);
  l->api->add(name, at, *size);
  l->api->mark(at, *size, SHIM_DEFINED);
  return at;
}

static unsigned char *place_of(const Value *value, CudaRun run) {
  return (value_in_state(value) ? run.state : run.arena) + value_at(value);
}

static void load(const Graph *graph, CudaRun run, EvalEnv *env) {
  for (int i = 0; i < graph->n_nodes; i++) {
    const Node *node = graph->node[i];
    if (node->op == OP_INPUT || node->op == OP_VARIABLE)
      tensor_encode(eval_env_get(env, node->result[0]->name), place_of(node->result[0], run));
  }
}

/* Reads a value into env under `name`. */
static void read_value(const Value *value, CudaRun run, const char *name, EvalEnv *env) {
  const Node *source = value_storage((Value *)value)->node;
  EvalTensor *t = eval_env_set(env, name, value->type);
  if (source->op != OP_CONST)
    tensor_decode(place_of(value, run), t);
  else
    for (int64_t i = 0, n = type_count(value->type); i < n; i++)
      t->v[i] = attr_find(source, ATTR_DATA) ? attr_find(source, ATTR_DATA)->floats[i]
                                             : attr_float(source, ATTR_VALUE, 0);
}

static void store(const Launches *l, const Graph *graph, CudaRun run, EvalEnv *env) {
  for (int i = 0; i < graph->n_nodes; i++) {
    const Node *node = graph->node[i];
    if (node->op == OP_OUTPUT)
      read_value(node->arg[0], run,
                 arena_printf(l->arena, "output:%s", attr_str(node, ATTR_NAME, "")), env);
    else if (node->op == OP_VARIABLE)
      read_value(node->result[0], run, node->result[0]->name, env);
  }
}

static int run_groups(Launches *l, const GraphLaunches *of, CudaRun run, size_t arena_bytes,
                      uint64_t seed) {
  int failed = 0;
  l->api->mark(run.arena, arena_bytes, SHIM_FORBIDDEN);
  for (int i = 0; i < of->n; i++) {
    const Group *group = &of->group[i];
    Arena *arena = arena_new();
    const Extents touched = extents_of(group, arena);
    mark_group(l, &touched, run.arena, true);
    for (int k = 0; k < group->n_launches; k++) {
      const char *error = kernels_launch(l->kernels, &l->launch[group->launch + k], run, seed);
      if (!error)
        continue;
      printf("FAIL %s (%%%s): %s\n", l->list.launch[group->launch + k].name,
             group->kernel->node[0]->n_results ? group->kernel->node[0]->result[0]->name : "",
             error);
      failed++;
      break;
    }
    mark_group(l, &touched, run.arena, false);
    arena_free(arena);
  }
  return failed;
}

int launches_run(Launches *l, int g, uint64_t seed, EvalEnv *env) {
  const GraphLaunches *of = &l->graph[g];
  size_t arena_size, state_size, constant_size;
  CudaRun run = {block_new(l, "the arena", of->graph->arena_bytes, &arena_size),
                 block_new(l, "the state", l->module->state_bytes, &state_size), NULL};
  unsigned char *constant = block_new(l, "the constants", (int64_t)l->constants.n, &constant_size);
  if (l->constants.n)
    memcpy(constant, l->constants.byte, l->constants.n);
  l->api->mark(constant, constant_size, SHIM_CONSTANT);
  run.constant = constant;
  load(of->graph, run, env);
  int failed = run_groups(l, of, run, arena_size, seed);
  l->api->mark(run.arena, arena_size, SHIM_DEFINED);
  store(l, of->graph, run, env);
  unsigned char *block[] = {run.arena, run.state, constant};
  for (int i = 0; i < 3; i++) {
    l->api->drop(block[i]);
    free(block[i]);
  }
  return failed;
}
