#include "tests/ops/program.h"

#include "codegen/build.h"
#include "runtime/amprt.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { GUARD = 64, PATTERN = 0xA5 };

struct Program {
  Arena *arena;
  const Module *module;
  const char *object;
  pid_t compiler;
  const AmprtProgram *code;
};

/* ---- numbers and bytes ---- */

static uint64_t encode_float(double x, int fraction, int exponent_bits) {
  int bias = (1 << (exponent_bits - 1)) - 1, top = (1 << exponent_bits) - 1, exponent;
  uint64_t sign = signbit(x) ? UINT64_C(1) << (fraction + exponent_bits) : 0;
  if (isnan(x))
    return sign | (uint64_t)top << fraction | UINT64_C(1) << (fraction - 1);
  if (isinf(x))
    return sign | (uint64_t)top << fraction;
  frexp(x, &exponent);
  exponent += bias - 1;
  if (x == 0 || exponent < 1)
    return sign | (uint64_t)ldexp(fabs(x), bias - 1 + fraction);
  uint64_t rest = (uint64_t)ldexp(fabs(x), fraction + bias - exponent) - (UINT64_C(1) << fraction);
  return sign | (uint64_t)exponent << fraction | rest;
}

static double decode_float(uint64_t bits, int fraction, int exponent_bits) {
  int bias = (1 << (exponent_bits - 1)) - 1, top = (1 << exponent_bits) - 1;
  int exponent = (int)(bits >> fraction) & top;
  double rest = (double)(bits & ((UINT64_C(1) << fraction) - 1)), x;
  if (exponent == top)
    x = rest != 0 ? NAN : INFINITY;
  else if (exponent == 0)
    x = ldexp(rest, 1 - bias - fraction);
  else
    x = ldexp(rest + ldexp(1, fraction), exponent - bias - fraction);
  return bits >> (fraction + exponent_bits) & 1 ? -x : x;
}

static const struct {
  int fraction, exponent_bits;
} format[DT_COUNT] = {
    [DT_F32] = {23, 8}, [DT_F16] = {10, 5}, [DT_BF16] = {7, 8}, [DT_F64] = {52, 11}};

static void encode(const EvalTensor *t, unsigned char *to) {
  DType d = t->type.dtype;
  for (int64_t i = 0, n = type_count(t->type); i < n; i++, to += dtype_info[d].bytes) {
    uint64_t bits = dtype_info[d].is_float
                        ? encode_float(t->v[i], format[d].fraction, format[d].exponent_bits)
                        : (uint64_t)(int64_t)t->v[i];
    memcpy(to, &bits, (size_t)dtype_info[d].bytes); /* little-endian, as the CPU target is */
  }
}

static void decode(const unsigned char *from, EvalTensor *t) {
  DType d = t->type.dtype;
  int bytes = dtype_info[d].bytes;
  for (int64_t i = 0, n = type_count(t->type); i < n; i++, from += bytes) {
    uint64_t bits = 0;
    memcpy(&bits, from, (size_t)bytes);
    if (dtype_info[d].is_float)
      t->v[i] = decode_float(bits, format[d].fraction, format[d].exponent_bits);
    else if (d == DT_I32)
      t->v[i] = (int32_t)bits;
    else
      t->v[i] = (double)(int64_t)bits;
  }
}

/* ---- places ---- */

static int64_t place(int64_t *end, int64_t bytes) {
  int64_t at = *end + GUARD;
  *end = (at + bytes + GUARD - 1) / GUARD * GUARD;
  return at;
}

static void spread_node(Graph *graph, Node *node, int64_t *arena_end, int64_t *state_end) {
  const Attr *at = attr_find(node, ATTR_AT);
  const int64_t *space = attr_ints(node, ATTR_WORKSPACE, 2);
  int64_t new_at[MAX_RESULTS];
  for (int r = 0; at && r < node->n_results; r++) {
    int64_t *end = node->op == OP_VARIABLE ? state_end : arena_end;
    new_at[r] = at->ints[r] < 0 ? at->ints[r] : place(end, type_bytes(node->result[r]->type));
  }
  if (at)
    attr_set_ints(graph, node, ATTR_AT, new_at, node->n_results);
  if (space)
    attr_set_ints(graph, node, ATTR_WORKSPACE, (int64_t[]){place(arena_end, space[1]), space[1]},
                  2);
}

void program_spread(Module *module) {
  int64_t state_end = 0;
  for (int g = 0; g < module->n_graphs; g++) {
    Graph *graph = module->graph[g];
    int64_t arena_end = 0;
    for (int i = 0; i < graph->n_nodes; i++)
      spread_node(graph, graph->node[i], &arena_end, &state_end);
    graph->arena_bytes = arena_end + GUARD;
  }
  module->state_bytes = state_end + GUARD;
}

/* ---- compile and load ---- */

/* Compiled as build.c does for an AVX2 machine, but into a shared object. */
static const char *command(Arena *arena, const char *text, const char *object,
                           const char *resource) {
  const char *compiler = getenv("CC"), *flags = "";
  compiler = compiler && *compiler ? compiler : "cc";
  for (int i = 0; build_flags[i]; i++)
    flags = arena_printf(arena, "%s '%s'", flags, build_flags[i]);
  return arena_printf(arena,
                      "%s %s -O2 -march=x86-64-v3 -fPIC '-I%s' -o '%s.o' '%s' && "
                      "%s -shared -o '%s' '%s.o' '%s/libamprt_dnn.a' -fopenmp -ldnnl -lm",
                      compiler, flags, resource, object, text, compiler, object, object, resource);
}

static pid_t compile(const char *shell) {
  pid_t pid = fork();
  CHECK(pid >= 0, "fork failed");
  if (pid == 0) {
    execl("/bin/sh", "sh", "-c", shell, (char *)NULL);
    _exit(127);
  }
  return pid;
}

Program *program_begin(Arena *arena, const Module *module, const CodegenOptions *options,
                       const char *folder, const char *name) {
  Program *p = arena_new_of(arena, Program);
  p->arena = arena;
  p->module = module;
  p->object = arena_printf(arena, "%s/%s.so", folder, name);
  const char *text = arena_printf(arena, "%s/%s.c", folder, name);
  FILE *out = fopen(text, "w");
  CHECK(out, "cannot write %s", text);
  emit_c(&(ProgramPart){module, &backend_cpu, NULL}, options, out, NULL);
  fclose(out);
  p->compiler = compile(command(arena, text, p->object, options->resource));
  return p;
}

/* What the program's main calls in place of the runtime's: keeps the tables. */
static const AmprtProgram *loaded;

int amprt_main_parts(const AmprtPart *part, int n_parts, int argc, char **argv) {
  (void)argc, (void)argv;
  char why[200];
  CHECK(n_parts == 1 && part->fits(why, sizeof why) == 0, "%s", why);
  loaded = part->program;
  return 0;
}

void program_finish(Program *p) {
  int status;
  CHECK(waitpid(p->compiler, &status, 0) == p->compiler && status == 0, "cannot compile %s",
        p->object);
  void *handle = dlopen(p->object, RTLD_NOW | RTLD_LOCAL);
  CHECK(handle, "%s", dlerror());
  int (*program_main)(int, char **);
  void *symbol = dlsym(handle, "main");
  CHECK(symbol, "%s", dlerror());
  memcpy(&program_main, &symbol, sizeof symbol); /* ISO C has no such cast */
  loaded = NULL;
  program_main(0, (char *[]){NULL});
  CHECK(loaded && loaded->abi == AMPRT_ABI, "%s did not call amprt_main_parts", p->object);
  p->code = loaded;
}

/* ---- run ---- */

static TensorType port_type(const AmprtPort *port) {
  return type_of((DType)port->dtype, port->rank, port->dim);
}

static void load(const Program *p, const AmprtGraph *graph, const AmprtRun *run, EvalEnv *env) {
  for (int i = 0; i < graph->n_inputs; i++) {
    const AmprtPort *port = &graph->input[i];
    encode(eval_env_get(env, port->name), run->arena + port->at);
  }
  for (int i = 0; i < p->code->n_variables; i++) {
    const EvalTensor *t = eval_env_get(env, p->code->variable[i].name);
    if (t) /* else a variable of another graph */
      encode(t, run->state + p->code->variable[i].at);
  }
}

static void store(const Program *p, const AmprtGraph *graph, const AmprtRun *run, EvalEnv *env) {
  for (int i = 0; i < graph->n_outputs; i++) {
    const AmprtPort *port = &graph->output[i];
    const char *name = arena_printf(p->arena, "output:%s", port->name);
    decode((port->in_state ? run->state : run->arena) + port->at,
           eval_env_set(env, name, port_type(port)));
  }
  for (int i = 0; i < p->code->n_variables; i++) {
    EvalTensor *t = eval_env_get(env, p->code->variable[i].name);
    if (t)
      decode(run->state + p->code->variable[i].at, t);
  }
}

static unsigned char *block(uint64_t bytes) {
  uint64_t size = (bytes + GUARD) / GUARD * GUARD; /* aligned_alloc wants a multiple */
  unsigned char *p = aligned_alloc(GUARD, size);
  CHECK(p, "out of memory");
  memset(p, PATTERN, size);
  return p;
}

static void mark(unsigned char *used, int64_t at, int64_t bytes) {
  if (at >= 0)
    memset(used + at, 1, (size_t)bytes);
}

/* Bytes written though no value of the graph lives there. */
static int count_strays(const Graph *graph, const unsigned char *arena) {
  unsigned char *used = calloc(1, (size_t)graph->arena_bytes + 1);
  for (int i = 0; i < graph->n_nodes; i++) {
    const Node *node = graph->node[i];
    const Attr *at = attr_find(node, ATTR_AT);
    const int64_t *space = attr_ints(node, ATTR_WORKSPACE, 2);
    for (int r = 0; node->op != OP_VARIABLE && at && r < node->n_results; r++)
      mark(used, at->ints[r], type_bytes(node->result[r]->type));
    if (space)
      mark(used, space[0], space[1]);
  }
  int strays = 0;
  for (int64_t i = 0; i < graph->arena_bytes; i++)
    if (!used[i] && arena[i] != PATTERN && !strays++)
      printf("FAIL @%s: byte %lld of the arena was written, but belongs to no value\n", graph->name,
             (long long)i);
  free(used);
  return strays;
}

static void run_begin(Program *p, const AmprtGraph *graph, int threads, EvalEnv *env,
                      AmprtRun *run) {
  char error[256] = "";
  *run = (AmprtRun){block(graph->arena_bytes), block(p->code->state_bytes)};
  load(p, graph, run, env);
  p->code->set_threads(threads);
  CHECK(!p->code->open || p->code->open(run, error, sizeof error) == 0, "open: %s", error);
  for (int i = 0; i < graph->n_kernels; i++)
    graph->kernel[i].run(run, graph->kernel[i].args);
}

static void run_end(Program *p, AmprtRun *run) {
  if (p->code->close)
    p->code->close();
  free(run->arena);
  free(run->state);
}

int program_run(Program *p, int g, int threads, EvalEnv *env) {
  AmprtRun run;
  run_begin(p, &p->code->graph[g], threads, env, &run);
  store(p, &p->code->graph[g], &run, env);
  int strays = count_strays(p->module->graph[g], run.arena);
  run_end(p, &run);
  return strays;
}

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* How often the kernel gave other bits in `result` than the first time. */
static int count_changes(const AmprtKernel *kernel, const AmprtRun *run, const Value *result) {
  size_t bytes = (size_t)type_bytes(result->type);
  unsigned char *at = run->arena + attr_ints(result->node, ATTR_AT, 1)[0], *first = malloc(bytes);
  CHECK(first, "out of memory");
  memcpy(first, at, bytes);
  int changes = 0;
  double end = seconds() + 0.03;
  for (int i = 0; i < 1000 && seconds() < end; i++) {
    kernel->run(run, kernel->args);
    changes += memcmp(first, at, bytes) != 0;
  }
  free(first);
  return changes;
}

int program_repeat(Program *p, int g, int threads, EvalEnv *env) {
  const AmprtGraph *graph = &p->code->graph[g];
  const Graph *ir = p->module->graph[g];
  AmprtRun run;
  run_begin(p, graph, threads, env, &run);
  int failed = 0;
  for (int i = 0; i < ir->n_nodes; i++) {
    const Node *node = ir->node[i];
    GenClass gen = op_info[node->op].gen;
    if (gen != GEN_CONV && gen != GEN_MATMUL)
      continue;
    int changes =
        count_changes(&graph->kernel[attr_int(node, ATTR_KERNEL, 0)], &run, node->result[0]);
    if (changes)
      printf("FAIL %%%s: the kernel gave other bits in %d runs\n", node->result[0]->name, changes);
    failed += changes != 0;
  }
  run_end(p, &run);
  return failed;
}
