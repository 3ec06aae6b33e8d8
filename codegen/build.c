/* C text -> objects -> executable. Everything is made in a folder of its own and beside the target
 * under a temporary name; the target appears by one rename, whole or not at all. */
#include "codegen/build.h"

#include "codegen/codegen.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MAX_ARGS = 64, MAX_PARTS = 3, FAILED = 3 };

typedef struct Variant { /* one way to compile the text */
  const char *symbol, *march;
} Variant;

static const Variant portable[] = {{"amp_v4", "x86-64-v4"}, {"amp_v3", "x86-64-v3"}};

typedef struct Build {
  Arena *arena;
  const CodegenOptions *options;
  const char *folder, *resource; /* temporary; of the runtime */
  char *output;                  /* temporary name beside the target */
  Variant variant[2];
  int n_variants;
  const char *object[MAX_PARTS];
} Build;

static bool fail(const char *what, const char *name) {
  fprintf(stderr, "ampcc: cannot %s %s: %s\n", what, name, strerror(errno));
  return false;
}

static const char *file_of(const Build *b, const char *name) {
  if (b->options->save_temps)
    return arena_printf(b->arena, "%s.%s", b->options->save_temps, name);
  return arena_printf(b->arena, "%s/%s", b->folder, name);
}

static const char *log_of(const Build *b, int i) {
  return arena_printf(b->arena, "%s/log%d", b->folder, i);
}

static bool choose_variants(Build *b) {
  const char *cpu = b->options->cpu ? b->options->cpu : "x86-64-v3";
  for (const char *c = cpu; *c; c++)
    if (!isalnum((unsigned char)*c) && *c != '-' && *c != '_' && *c != '.') {
      fprintf(stderr, "ampcc: --cpu=%s is no name of a CPU\n", cpu);
      return false;
    }
  if (strcmp(cpu, "x86-64-v3") == 0) {
    memcpy(b->variant, portable, sizeof portable);
    b->n_variants = 2;
  } else {
    b->variant[0] = (Variant){"amp_only", cpu};
    b->n_variants = 1;
  }
  return true;
}

static bool open_places(Build *b) {
  const char *tmp = getenv("TMPDIR");
  char *folder = arena_printf(b->arena, "%s/ampcc-XXXXXX", tmp && *tmp ? tmp : "/tmp");
  if (!mkdtemp(folder))
    return fail("make a temporary folder", folder);
  b->folder = folder;
  struct stat st;
  const char *output = b->options->output;
  if (stat(output, &st) == 0 && !S_ISREG(st.st_mode)) {
    fprintf(stderr, "ampcc: cannot write %s: it exists and is no regular file\n", output);
    return false;
  }
  char *temporary = arena_printf(b->arena, "%s.XXXXXX", output);
  int fd = mkstemp(temporary);
  if (fd < 0)
    return fail("write", output);
  close(fd);
  b->output = temporary;
  return true;
}

static bool write_text(const Build *b, const Module *module, const char *path) {
  FILE *out = fopen(path, "w");
  if (!out)
    return fail("write", path);
  emit_c(module, b->options, out);
  bool good = fflush(out) == 0 && !ferror(out);
  if (!good)
    fail("write", path);
  return (fclose(out) == 0 || fail("write", path)) && good;
}

typedef struct ArgList {
  const char *arg[MAX_ARGS];
  int n;
} ArgList;

static void args_add(ArgList *list, const char *const *arg) {
  for (; *arg; arg++) {
    CHECK(list->n < MAX_ARGS - 1, "too many arguments");
    list->arg[list->n++] = *arg;
  }
}

#define args(list, ...) args_add(list, (const char *const[]){__VA_ARGS__, NULL})

/* The compiler may be given with arguments of its own, as in CC="ccache gcc". */
static void args_compiler(const Build *b, ArgList *list) {
  const char *cc = b->options->cc ? b->options->cc : getenv("CC");
  char *text = arena_printf(b->arena, "%s", cc && *cc ? cc : "cc"), *rest = text;
  for (char *word; (word = strtok_r(rest, " ", &rest)) != NULL;)
    args(list, word);
  if (list->n == 0)
    args(list, "cc");
}

const char *const build_flags[] = {
    "-c",
    "-std=gnu11",
    "-fopenmp",
    "-w",
    "-fno-pie",          /* tables of pointers need no relocation then: 150 KB less for ResNet-50 */
    "-ffp-contract=off", /* the same sums whatever the compiler could fuse */
    "-fno-math-errno",   /* sqrtf in vectors */
    "-fno-trapping-math", /* both sides of a select in vectors */
    "-fno-ident",         /* the compiler's name is no part of the program */
#ifdef AMPCC_SANITIZE     /* a sanitized libamprt links only with programs that are so too */
    "-fsanitize=" AMPCC_SANITIZE,
#endif
    NULL};

static void object_command(Build *b, int i, const char *text, ArgList *list, Command *command) {
  *list = (ArgList){0};
  args_compiler(b, list);
  args_add(list, build_flags);
  if (i < b->n_variants) {
    args(list, "-O2", arena_printf(b->arena, "-march=%s", b->variant[i].march),
         arena_printf(b->arena, "-DAMPCC_CODE=%s", b->variant[i].symbol));
  } else { /* main must run on every CPU, if only to say that this one will not do */
    const char *all = "";
    for (int v = 0; v < b->n_variants; v++)
      all = arena_printf(b->arena, "%s V(%s)", all, b->variant[v].symbol);
    args(list, "-O1", "-march=x86-64", arena_printf(b->arena, "-DAMPCC_MAIN=%s", all + 1));
  }
  b->object[i] =
      file_of(b, arena_printf(b->arena, "%s.o", i < b->n_variants ? b->variant[i].symbol : "main"));
  args(list, "-I", b->resource, "-o", b->object[i], text);
  *command = (Command){list->arg, log_of(b, i), 0};
}

static bool compile(Build *b, const char *text) {
  static ArgList list[MAX_PARTS];
  Command command[MAX_PARTS];
  int n = b->n_variants + 1;
  for (int i = 0; i < n; i++)
    object_command(b, i, text, &list[i], &command[i]);
  return commands_run(command, n, "compiling the generated C", b->options->verbose);
}

static bool link_program(Build *b) {
  ArgList list = {0};
  args_compiler(b, &list);
  args(&list, "-s", "-no-pie", "-Wl,--as-needed", "-Wl,--build-id=none", "-Wl,--gc-sections", "-o",
       b->output);
#ifdef AMPCC_SANITIZE
  args(&list, "-fsanitize=" AMPCC_SANITIZE);
#endif
  for (int i = 0; i <= b->n_variants; i++)
    args(&list, b->object[i]);
  args(&list, arena_printf(b->arena, "%s/libamprt_dnn.a", b->resource),
       arena_printf(b->arena, "%s/libamprt.a", b->resource), "-fopenmp", "-ldnnl", "-lz", "-lm",
       "-lpthread");
  Command command = {list.arg, log_of(b, 0), 0};
  return commands_run(&command, 1, "linking the program", b->options->verbose);
}

static bool publish(Build *b) {
  mode_t mask = umask(0);
  umask(mask);
  if (chmod(b->output, 0777 & ~mask) != 0 || rename(b->output, b->options->output) != 0)
    return fail("write", b->options->output);
  b->output = NULL;
  return true;
}

static void clean(const Build *b) {
  static const char *const made[] = {"program.c", "amp_v3.o", "amp_v4.o", "amp_only.o",
                                     "main.o",    "log0",     "log1",     "log2"};
  if (b->output)
    unlink(b->output);
  for (size_t i = 0; b->folder && i < sizeof made / sizeof *made; i++)
    unlink(arena_printf(b->arena, "%s/%s", b->folder, made[i]));
  if (b->folder)
    rmdir(b->folder);
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool run_steps(Build *b, const Module *module) {
  const char *text = file_of(b, "program.c");
  double start = now(), time[3];
  if (!write_text(b, module, text))
    return false;
  time[0] = now() - start;
  if (!compile(b, text))
    return false;
  time[1] = now() - start - time[0];
  if (!link_program(b) || !publish(b))
    return false;
  time[2] = now() - start - time[0] - time[1];
  static const char *const name[] = {"emit", "cc", "ld"};
  for (int i = 0; b->options->time_report && i < 3; i++)
    fprintf(stderr, "%9.4f s  %s\n", time[i], name[i]);
  return true;
}

int build_program(const Module *module, const CodegenOptions *options) {
  Build b = {.arena = arena_new(), .options = options};
  b.resource = resource_find(b.arena, options->resource);
  spawn_begin();
  bool good = b.resource && choose_variants(&b) && open_places(&b) && run_steps(&b, module);
  clean(&b);
  spawn_end();
  arena_free(b.arena);
  return good ? 0 : FAILED;
}
