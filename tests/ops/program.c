#include "tests/ops/program.h"

#include "codegen/program/build.h"
#include "tests/ops/bytes.h"
#include "tests/shell.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { GUARD = 64, PATTERN = 0xA5 };

struct Program {
  Arena *arena;
  const Module *module;
  const char *object;
  const char *text, *resource;
  pid_t compiler;
  struct Kernels *kernels; /* NULL: the text is compiled as a whole */
  const char *emulated;    /* the command that runs the program of another machine, or NULL */
  pid_t cross_compiler;
  struct Kernels *emulated_kernels;
  const char *cross_link;
  const AmprtProgram *code;
};

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

#ifdef __SANITIZE_ADDRESS__
/* By default GCC 13's AddressSanitizer keeps locals on stacks of its own, to find uses after
 * return. They are not aligned for vectors of 64 bytes, so kernels with AVX-512 would crash. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) {
  return "detect_stack_use_after_return=0";
}

/* Without optimisation everything compiles in less time, kernels in half of it, and sanitizers find
 * the same. They cannot see what an instruction of AMX reads and writes, so the kernels have these
 * written in C; a program takes them only if it is compiled with AMP_AMX_IN_C as well. Kernels
 * multiply pairs of bf16 only where the variable amp_pairs of the program says that this is faster
 * than f32. Here they read the constant program_pairs instead of that variable, so that the kernels
 * for pairs are tested on every CPU that has the instruction. */
#define LOOPS   "-O0"
#define KERNELS "-O0 -DAMP_AMX_IN_C -Damp_pairs=program_pairs"
#else
/* As build.c compiles the two. */
#define LOOPS   "-O1"
#define KERNELS "-O2"
#endif

static const char *host_compiler(void) {
  const char *compiler = getenv("CC");
  return compiler && *compiler ? compiler : "cc";
}

static const char *quoted(Arena *arena, const char *flags, const char *const *more) {
  for (; *more; more++)
    flags = arena_printf(arena, "%s '%s'", flags, *more);
  return flags;
}

/* The beginning of the command of either, sanitizers included, but for a shared object. */
static const char *host_command(Arena *arena, const char *march, const char *resource) {
  const char *flags = quoted(arena, quoted(arena, "", build_flags), sanitizer_flags);
  return arena_printf(arena, "%s %s -march=%s -fPIC '-I%s'", host_compiler(), flags, march,
                      resource);
}

/* Kernels that are the same in all programs (conv_calls.h), and most of the time to compile them:
 * each process asks for them once for each command, and of several processes that ask for the same
 * object the script `once` lets one compile it. */
typedef struct Kernels {
  char command[2000], object[1000];
  pid_t compiler;
  bool made;
} Kernels;

#define APART                                                                                      \
  "-DAMPCC_CODE=amp_whole -DAMPCC_APART "                                                          \
  "'-DAMPCC_TABLES=K(amp_whole,amp_own_kernels,amp_own_kernels)' "                                 \
  "'-DAMPCC_PARTS=P(amp_part_cpu)'"

/* `text` is that of any program with kernels of our own. */
static Kernels *kernels_begin(const char *command, const char *object, const char *text) {
  static Kernels all[16];
  static int n;
  for (int i = 0; i < n; i++)
    if (strcmp(all[i].command, command) == 0)
      return &all[i];
  CHECK(n < (int)(sizeof all / sizeof *all), "more kinds of kernels");
  Kernels *kernels = &all[n++];
  CHECK(strlen(command) < sizeof kernels->command && strlen(object) + 20 < sizeof kernels->object,
        "longer than there is room for: %s", command);
  snprintf(kernels->command, sizeof kernels->command, "%s", command);
  snprintf(kernels->object, sizeof kernels->object, "%s.kernels.o", object);
  Arena *arena = arena_new();
  kernels->compiler = shell_begin(
      arena_printf(arena, "'" ONCE "' '%s' '%s' %s " KERNELS " -DAMPCC_KERNELS=amp_own_kernels",
                   kernels->object, text, command));
  arena_free(arena);
  return kernels;
}

static const char *kernels_finish(Kernels *kernels) {
  if (!kernels)
    return "";
  kernels->made = kernels->made || shell_finish(kernels->compiler);
  CHECK(kernels->made, "cannot compile %s", kernels->object);
  return kernels->object;
}

Program *program_begin(Arena *arena, const Module *module, const CodegenOptions *options,
                       const char *folder, const char *name) {
  return program_begin_with(arena, module, options, folder, name, "onednn", WINOGRAD_OFF,
                            "x86-64-v3");
}

Program *program_begin_with(Arena *arena, const Module *module, const CodegenOptions *options,
                            const char *folder, const char *name, const char *library,
                            Winograd winograd, const char *march) {
  Program *p = arena_new_of(arena, Program);
  p->arena = arena;
  p->module = module;
  p->object = arena_printf(arena, "%s/%s.so", folder, name);
  const char *text = arena_printf(arena, "%s/%s.c", folder, name);
  FILE *out = fopen(text, "w");
  CHECK(out, "cannot write %s", text);
  emit_c(&(ProgramPart){module, backend_cpu(&cpu_x86_64, library, winograd), NULL}, options, out,
         NULL);
  fclose(out);
  p->text = text;
  p->resource = options->resource;
  const char *command = host_command(arena, march, options->resource);
  if (strcmp(library, "own") == 0)
    p->kernels = kernels_begin(command, p->object, text);
  p->compiler = shell_begin(arena_printf(arena, "%s " LOOPS " %s -o '%s.o' '%s'", command,
                                         p->kernels ? APART : "", p->object, text));
  return p;
}

void program_emulate(Program *p, const Machine *machine, const char *source) {
  const char *flags = "", *program = arena_printf(p->arena, "%s.other", p->object);
  for (int i = 0; build_flags[i]; i++)
    if (strcmp(build_flags[i], "-c") != 0)
      flags = arena_printf(p->arena, "%s '%s'", flags, build_flags[i]);
  p->emulated = arena_printf(p->arena, "%s '%s'", machine->emulator, program);
  const char *command = arena_printf(p->arena, "%s %s -march=%s '-I%s' '-I%s'", machine->compiler,
                                     flags, machine->march, p->resource, source);
  p->emulated_kernels = kernels_begin(arena_printf(p->arena, "%s -c", command), program, p->text);
  p->cross_compiler = shell_begin(arena_printf(p->arena, "%s " LOOPS " -c " APART " -o '%s.o' '%s'",
                                               command, program, p->text));
  p->cross_link = arena_printf(
      p->arena,
      "%s -O2 -static -o '%s' '%s.o' '%s' '%s/tests/ops/emulated.c' '%s/runtime/base/threads.c' "
      "'%s/runtime/base/bf16.c' -lm -lpthread",
      command, program, program, p->emulated_kernels->object, source, source, source);
}

static bool shell(const char *command) {
  return shell_finish(shell_begin(command));
}

static void link_program(Program *p) {
  CHECK(shell_finish(p->compiler), "cannot compile %s", p->object);
  CHECK(shell(arena_printf(
            p->arena, "%s -shared -o '%s' '%s.o' %s '%s/libamprt_dnn.a' -fopenmp -ldnnl -lm",
            host_compiler(), p->object, p->object, kernels_finish(p->kernels), p->resource)),
        "cannot link %s", p->object);
  if (!p->emulated)
    return;
  kernels_finish(p->emulated_kernels);
  CHECK(shell_finish(p->cross_compiler) && shell(p->cross_link),
        "cannot compile %s for another machine", p->object);
}

/* The object finds these parts of the runtime in this process, whose linker shall not leave them
 * out. */
const AmprtThreads *const program_threads = &amprt_threads;
int (*const program_amx)(void) = amprt_amx;
const int program_pairs = 1; /* of sanitized kernels, see KERNELS */

/* The program's main calls this in place of the runtime's function. It keeps the tables. */
static const AmprtProgram *loaded;

int amprt_main(const AmprtPart *part, int n_parts, int argc, char **argv) {
  (void)argc, (void)argv;
  char why[200];
  CHECK(n_parts == 1 && part->fits(why, sizeof why) == 0, "%s", why);
  loaded = part->program;
  return 0;
}

void program_finish(Program *p) {
  link_program(p);
  void *handle = dlopen(p->object, RTLD_NOW | RTLD_LOCAL);
  CHECK(handle, "%s", dlerror());
  int (*program_main)(int, char **);
  void *symbol = dlsym(handle, "main");
  CHECK(symbol, "%s", dlerror());
  memcpy(&program_main, &symbol, sizeof symbol); /* ISO C has no such cast */
  loaded = NULL;
  program_main(0, (char *[]){NULL});
  CHECK(loaded && loaded->abi == AMPRT_ABI, "%s did not call amprt_main", p->object);
  p->code = loaded;
}

/* ---- run ---- */

/* Of a size that is a multiple of the alignment, as aligned_alloc wants it. */
static unsigned char *block(uint64_t bytes) {
  unsigned char *p = aligned_alloc(GUARD, (bytes + GUARD) / GUARD * GUARD);
  CHECK(p, "out of memory");
  return p;
}

static Blocks blocks_new(const Program *p, const AmprtGraph *graph) {
  return (Blocks){block(graph->arena_bytes), block(p->code->state_bytes)};
}

static void clear(unsigned char *arena, int64_t at, int64_t bytes) {
  if (at >= 0)
    memset(arena + at, PATTERN, (size_t)bytes);
}

/* Was a byte written where no value of the graph lies? Overwrites all values. */
static bool finds_stray(const Graph *graph, unsigned char *arena) {
  const size_t bytes = (size_t)graph->arena_bytes;
  for (int i = 0; i < graph->n_nodes; i++) {
    const Node *node = graph->node[i];
    const Attr *at = attr_find(node, ATTR_AT);
    const int64_t *space = attr_ints(node, ATTR_WORKSPACE, 2);
    for (int r = 0; node->op != OP_VARIABLE && at && r < node->n_results; r++)
      clear(arena, at->ints[r], type_bytes(node->result[r]->type));
    if (space)
      clear(arena, space[0], space[1]);
  }
  if (bytes == 0 || (arena[0] == PATTERN && memcmp(arena, arena + 1, bytes - 1) == 0))
    return false;
  size_t first = 0;
  while (arena[first] == PATTERN)
    first++;
  printf("FAIL @%s: byte %zu of the arena was written, but belongs to no value\n", graph->name,
         first);
  return true;
}

static AmprtRun run_of(Program *p, const Blocks *blocks) {
  return (AmprtRun){blocks->arena, blocks->state, p->code->threads, p->code->constant};
}

void blocks_free(Blocks *blocks) {
  free(blocks->arena);
  free(blocks->state);
  *blocks = (Blocks){0};
}

static void run_begin(Program *p, const AmprtGraph *graph, int threads, AmprtRun *run) {
  char error[256] = "";
  CHECK(run->threads->open(threads, error, sizeof error) == 0, "threads: %s", error);
  CHECK(!p->code->open || p->code->open(run, error, sizeof error) == 0, "open: %s", error);
  for (int i = 0; i < graph->n_kernels; i++)
    graph->run[i](run, graph->kernel[i].args);
}

static void run_end(Program *p, AmprtRun *run) {
  if (p->code->close)
    p->code->close();
  run->threads->close();
}

Blocks program_start(Program *p, int g, EvalEnv *env) {
  const AmprtGraph *graph = &p->code->graph[g];
  Blocks start = blocks_new(p, graph);
  memset(start.arena, PATTERN, graph->arena_bytes);
  memset(start.state, PATTERN, p->code->state_bytes);
  AmprtRun run = run_of(p, &start);
  blocks_load(p->code, graph, &run, env);
  return start;
}

/* Runs the graph on the blocks themselves. */
static void run_in(Program *p, int g, int threads, const Blocks *blocks) {
  AmprtRun run = run_of(p, blocks);
  run_begin(p, &p->code->graph[g], threads, &run);
  run_end(p, &run);
}

void program_run_on(Program *p, int g, int threads, const Blocks *start, Blocks *end) {
  const AmprtGraph *graph = &p->code->graph[g];
  if (!end->arena)
    *end = blocks_new(p, graph);
  memcpy(end->arena, start->arena, graph->arena_bytes);
  memcpy(end->state, start->state, p->code->state_bytes);
  run_in(p, g, threads, end);
}

bool program_same(Program *p, int g, const Blocks *a, const Blocks *b) {
  const AmprtGraph *graph = &p->code->graph[g];
  bool same = memcmp(a->state, b->state, p->code->state_bytes) == 0;
  for (int i = 0; i < graph->n_outputs && same; i++) {
    const AmprtPort *port = &graph->output[i];
    same =
        port->in_state || memcmp(a->arena + port->at, b->arena + port->at, port_bytes(port)) == 0;
  }
  return same;
}

void program_results(Program *p, int g, const Blocks *end, EvalEnv *env) {
  AmprtRun run = run_of(p, end);
  blocks_store(p->arena, p->code, &p->code->graph[g], &run, env);
}

int program_strays(Program *p, int g, const Blocks *end) {
  return finds_stray(p->module->graph[g], end->arena);
}

static int end_run(Program *p, int g, Blocks *blocks, EvalEnv *env) {
  program_results(p, g, blocks, env);
  const int strays = program_strays(p, g, blocks);
  blocks_free(blocks);
  return strays;
}

int program_run(Program *p, int g, int threads, EvalEnv *env) {
  Blocks blocks = program_start(p, g, env);
  run_in(p, g, threads, &blocks);
  return end_run(p, g, &blocks, env);
}

/* Writes the blocks to a file, or reads them. */
static void move_blocks(const char *path, const Program *p, const AmprtGraph *graph,
                        const AmprtRun *run, bool write) {
  size_t arena = graph->arena_bytes, state = p->code->state_bytes;
  FILE *file = fopen(path, write ? "wb" : "rb");
  CHECK(file, "cannot open %s", path);
  bool good = write ? fwrite(run->arena, 1, arena, file) == arena &&
                          fwrite(run->state, 1, state, file) == state
                    : fread(run->arena, 1, arena, file) == arena &&
                          fread(run->state, 1, state, file) == state;
  CHECK(fclose(file) == 0 && good, "cannot read or write %s", path);
}

int program_run_emulated(Program *p, int g, int threads, EvalEnv *env) {
  const AmprtGraph *graph = &p->code->graph[g];
  const char *file = arena_printf(p->arena, "%s.blocks", p->object);
  Blocks blocks = program_start(p, g, env);
  AmprtRun run = run_of(p, &blocks);
  move_blocks(file, p, graph, &run, true);
  const char *command = arena_printf(p->arena, "%s %d %d '%s'", p->emulated, g, threads, file);
  CHECK(shell(command), "%s failed", command);
  move_blocks(file, p, graph, &run, false);
  remove(file);
  return end_run(p, g, &blocks, env);
}

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Runs the kernel again and again. Returns how often `result` had other bits than the first
 * time. */
static int count_changes(const AmprtGraph *graph, int64_t kernel, const AmprtRun *run,
                         const Value *result) {
  size_t bytes = (size_t)type_bytes(result->type);
  unsigned char *at = run->arena + attr_ints(result->node, ATTR_AT, 1)[0], *first = malloc(bytes);
  CHECK(first, "out of memory");
  memcpy(first, at, bytes);
  int changes = 0;
  double end = seconds() + 0.01;
  for (int i = 0; i < 1000 && seconds() < end; i++) {
    graph->run[kernel](run, graph->kernel[kernel].args);
    changes += memcmp(first, at, bytes) != 0;
  }
  free(first);
  return changes;
}

int program_repeat(Program *p, int g, int threads, EvalEnv *env) {
  const AmprtGraph *graph = &p->code->graph[g];
  const Graph *ir = p->module->graph[g];
  Blocks blocks = program_start(p, g, env);
  AmprtRun run = run_of(p, &blocks);
  run_begin(p, graph, threads, &run);
  int failed = 0;
  for (int i = 0; i < ir->n_nodes; i++) {
    const Node *node = ir->node[i];
    GenClass gen = op_info[node->op].gen;
    if (gen != GEN_CONV && gen != GEN_MATMUL)
      continue;
    int changes = count_changes(graph, attr_int(node, ATTR_KERNEL, 0), &run, node->result[0]);
    if (changes)
      printf("FAIL %%%s: the kernel gave other bits in %d runs\n", node->result[0]->name, changes);
    failed += changes != 0;
  }
  run_end(p, &run);
  blocks_free(&blocks);
  return failed;
}
