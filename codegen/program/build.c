/* C text -> objects -> executable. Texts and objects are made in a temporary folder, the executable
 * beside its final path under a temporary name. One rename puts it there, so it appears whole or
 * not at all. */
#include "codegen/program/build.h"

#include "codegen/backend.h"
#include "codegen/program/bytes.h"
#include "codegen/program/objects.h"
#include "codegen/program/used.h"
#include "ir/base/clock.h"
#include "ir/base/exit.h"
#include "ir/base/list.h"
#include "ir/base/output.h"
#include "ir/base/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_ARGS = 96 };
static const char scratch_prefix[] = "ampcc";
static const char shipped_folder[] = "kernels"; /* within the resource folder */

typedef struct PartBuild {
  const ProgramPart *part;
  const char *text; /* path of the part's C text */
  Unit unit[MAX_UNITS];
  const char *object[MAX_UNITS + 1]; /* one for each unit, then that of `image` or NULL */
  int n_units;
  /* only for targets that compile their kernels themselves; else NULL */
  char *kernels; /* the text of the kernels, in memory */
  size_t kernels_size;
  const char *code, *image; /* paths of their machine code, and of its bytes as a C array */
} PartBuild;

typedef struct Build {
  Arena *arena;
  const CodegenOptions *options;
  const char *folder;    /* temporary */
  const CpuArch *arch;   /* the same of all parts */
  const char *resource;  /* folder of the runtime's headers, */
  const char *libraries; /* and of its libraries */
  Output output;
  const char *program; /* the path that the linker writes to */
  PartBuild *part;
  int n_parts;
  const char **made; /* paths of all files in the temporary folder */
  int n_made, cap_made;
} Build;

static bool fail(const char *what, const char *name) {
  text_say("ampcc: cannot %s %s: %s\n", what, name, strerror(errno));
  return false;
}

/* The path of a file in the temporary folder, which is removed at the end. */
static const char *scratch_file(Build *b, const char *name) {
  const char *path = arena_printf(b->arena, "%s/%s", b->folder, name);
  arena_push(b->arena, b->made, b->n_made, b->cap_made, path);
  return path;
}

static const char *file_of(Build *b, const char *name) {
  if (b->options->save_temps)
    return arena_printf(b->arena, "%s.%s", b->options->save_temps, name);
  return scratch_file(b, name);
}

static bool close_file(FILE *out, const char *path) {
  bool good = fflush(out) == 0 && !ferror(out);
  if (!good)
    fail("write", path);
  return (fclose(out) == 0 || fail("write", path)) && good;
}

/* Names what is made of a part before its objects. */
static void name_files(Build *b, PartBuild *p) {
  const char *ident = p->part->backend->ident;
  p->text = file_of(b, arena_printf(b->arena, "%s.c", ident));
  if (!p->part->backend->compile_kernels)
    return;
  p->code = file_of(b, arena_printf(b->arena, "%s.cubin", ident));
  p->image = file_of(b, arena_printf(b->arena, "%s_image.c", ident));
}

/* Writes the part's C text, and makes the text of its kernels if the target compiles them. */
static bool write_text(Build *b, PartBuild *p) {
  const char *ident = p->part->backend->ident;
  bool apart = p->part->backend->compile_kernels != NULL;
  FILE *out = fopen(p->text, "w");
  if (!out)
    return fail("write", p->text);
  FILE *kernels = apart ? open_memstream(&p->kernels, &p->kernels_size) : NULL;
  CHECK(kernels || !apart, "out of memory");
  emit_c(p->part, b->options, out, kernels);
  if (kernels)
    fclose(kernels);
  if (!close_file(out, p->text))
    return false;
  if (!apart || !b->options->save_temps)
    return true;
  const char *path = file_of(b, arena_printf(b->arena, "%s.cu", ident));
  FILE *kept = fopen(path, "w");
  if (!kept)
    return fail("write", path);
  fputs(p->kernels, kept);
  return close_file(kept, path);
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

const char *const *compiler_words(Arena *arena, const char *cc, const CpuArch *arch) {
  ArgList *list = arena_new_of(arena, ArgList);
  const char *rest = cc ? cc : arch->compiler ? arch->compiler : getenv("CC");
  for (const char *word; (word = list_word(arena, &rest, ' ')) != NULL;)
    args(list, word);
  if (list->n == 0)
    args(list, "cc");
  return list->arg;
}

static void args_compiler(const Build *b, ArgList *list) {
  args_add(list, compiler_words(b->arena, b->options->cc, b->arch));
}

const char *const build_flags[] = {
    "-c", "-std=gnu11", "-fopenmp-simd", "-w",
    /* Tables of pointers then need no relocations, which are 150 KB in a ResNet-50. */
    "-fno-pie",
    /* No product and sum become a fused multiply-add, so the bits follow from the text. */
    "-ffp-contract=off",
    /* sqrtf can be computed in vectors, and so can both sides of a select. */
    "-fno-math-errno", "-fno-trapping-math",
    /* The program does not name the compiler that made it. */
    "-fno-ident",
    /* Tables that C does not need. */
    "-fno-asynchronous-unwind-tables", NULL};

const char *const sanitizer_flags[] = {
#ifdef AMPCC_SANITIZE /* a sanitized libamprt links only with sanitized programs */
    "-fsanitize=" AMPCC_SANITIZE,
    /* Sanitizers print calls by these tables. */
    "-fasynchronous-unwind-tables",
#endif
    NULL};

/* How every C text is compiled, up to its own macros. */
static void args_object(Build *b, ArgList *list, const Unit *unit) {
  args_compiler(b, list);
  args_add(list, build_flags);
  /* Kernels are compiled without sanitizers even if ampcc is built with them. They work inside one
   * block of memory, where sanitizers see little, and with them a test that trains a whole program
   * takes minutes. The kernels are then the same as those of any other ampcc, and are found in its
   * cache. The tests of tests/ops compile the kernels with sanitizers. */
  if (!unit->kernels)
    args_add(list, sanitizer_flags);
  args(list, unit->level, arena_printf(b->arena, "-march=%s", unit->march));
  if (b->arch->flag)
    args(list, b->arch->flag);
  if (unit->feature)
    args(list, unit->feature);
  if (unit->is_common) /* a program links only those of its functions that it calls */
    args(list, "-ffunction-sections", "-fdata-sections");
}

/* Ends the arguments with the text and the object NAME.o, whose path becomes *object. */
static Command object_command(Build *b, ArgList *list, const char *name, const char **object,
                              const char *text) {
  *object = file_of(b, arena_printf(b->arena, "%s.o", name));
  args(list, "-I", b->resource, "-o", *object, text);
  return (Command){.argv = list->arg,
                   .makes = *object,
                   .log = scratch_file(b, arena_printf(b->arena, "%s.log", name))};
}

static Command unit_command(Build *b, PartBuild *p, int u) {
  ArgList *list = arena_new_of(b->arena, ArgList);
  args_object(b, list, &p->unit[u]);
  args_add(list, p->unit[u].define);
  if (p == b->part && u == p->n_units - 1) {
    /* `main` lies with the tables of the first part: -DAMPCC_PARTS=P(amp_part_cpu) ... lists all
     * parts in their order. */
    const char *parts = "-DAMPCC_PARTS=";
    for (int i = 0; i < b->n_parts; i++)
      parts = arena_printf(b->arena, "%s%sP(amp_part_%s)", parts, i ? " " : "",
                           b->part[i].part->backend->ident);
    args(list, parts);
  }
  return object_command(b, list, p->unit[u].name, &p->object[u], p->text);
}

/* Runs the compiler of a command up to its preprocessor. */
static Object object_probe(Build *b, Command *compile, const char *name, const char *source) {
  ArgList *list = arena_new_of(b->arena, ArgList), words = {0};
  /* What -v prints, which is part of the key, depends on whether the output is named like the
   * source. This name differs from that of every source. */
  const char *text = scratch_file(b, arena_printf(b->arena, "%s.probe.i", name));
  const char *rule = scratch_file(b, arena_printf(b->arena, "%s.d", name));
  for (const char *const *arg = compile->argv; *arg; arg++)
    if (strcmp(*arg, "-c") == 0)
      args(list, "-E", "-P", "-v", "-MD", "-MF", rule);
    else
      args(list, *arg == compile->makes ? text : *arg);
  args_compiler(b, &words);
  return (Object){
      .compile = compile,
      .text = source,
      .rule = rule,
      .n_words = words.n,
      .assembler = b->arch->assembler,
      .probe = {.argv = list->arg,
                .makes = text,
                .log = scratch_file(b, arena_printf(b->arena, "%s.i.log", name))},
  };
}

/* The file that ampcc may come with for a unit which is common to all programs. */
static const char *shipped_file(const Build *b, const Unit *unit) {
  if (!unit->is_common)
    return NULL;
  return arena_printf(b->arena, "%s/%s/%s.%s", b->resource, shipped_folder, b->arch->any,
                      unit->name);
}

static bool make_image(void *user) {
  const PartBuild *p = user;
  return p->part->backend->compile_kernels(p->part->backend, p->kernels, p->code, p->image);
}

/* Compiles the kernels, in a process of its own, and then the C array of their machine code. */
static Command image_command(Build *b, PartBuild *p) {
  ArgList *list = arena_new_of(b->arena, ArgList);
  const Unit *unit = &p->unit[p->n_units - 1];
  args_object(b, list, unit);
  Command command = object_command(b, list, arena_printf(b->arena, "%s_image", unit->name),
                                   &p->object[p->n_units], p->image);
  command.before = make_image;
  command.user = p;
  return command;
}

/* Notes what the probes have read, and which compiler they were. */
static void note_used(const Build *b, const Object *object, int n) {
  UsedList *used = b->options->used;
  for (int i = 0; i < n && used; i++) {
    used_add_rule(used, object[i].rule, b->folder);
    used_add_driver(used, object[i].probe.log);
  }
  for (int i = 0; i < b->n_parts && used; i++) {
    const char *const *file = b->part[i].part->backend->files;
    for (; file && *file; file++)
      used_add(used, *file);
  }
}

/* Prints commands as a shell reads them. */
static bool print_commands(const Command *command, int n) {
  for (int i = 0; i < n; i++)
    for (const char *const *arg = command[i].argv; *arg; arg++) {
      bool plain =
          **arg && !(*arg)[strspn(*arg, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                        "0123456789-_=+./,:@%")];
      fputs(plain ? "" : "'", stdout);
      for (const char *c = *arg; *c; c++)
        fputs(*c == '\'' ? "'\\''" : (const char[]){*c, '\0'}, stdout);
      printf("%s%s", plain ? "" : "'", arg[1] ? " " : "\n");
    }
  return true;
}

/* Compiles everything at once that the cache does not have. What takes longest, the kernels, is
 * started first; they have entries of their own in the cache. */
static bool compile(Build *b) {
  size_t most = (size_t)b->n_parts * (MAX_UNITS + 1);
  Command *command = arena_alloc(b->arena, most * sizeof *command);
  PartBuild **owner = arena_alloc(b->arena, most * sizeof *owner);
  Object *object = arena_alloc(b->arena, most * sizeof *object);
  const char *cache = b->options->cache, *paths[] = {b->folder, b->resource, NULL};
  int n = 0, n_objects = 0;
  for (int i = 0; i < b->n_parts; i++)
    if (b->part[i].image) {
      owner[n] = &b->part[i];
      command[n++] = image_command(b, &b->part[i]);
    }
  for (int i = 0; i < b->n_parts; i++)
    for (int u = 0; u < b->part[i].n_units; u++) {
      owner[n] = &b->part[i];
      command[n] = unit_command(b, &b->part[i], u);
      object[n_objects] = object_probe(b, &command[n], b->part[i].unit[u].name, b->part[i].text);
      object[n_objects++].shipped = shipped_file(b, &b->part[i].unit[u]);
      n++;
    }
  if (b->options->dry_run)
    return print_commands(command, n);
  if (cache)
    objects_find(b->arena, cache, object, n_objects, paths, b->options->verbose);
  note_used(b, object, n_objects);
  bool good = commands_run(command, n, "compiling the generated C", b->options->verbose);
  if (good && cache)
    objects_keep(b->arena, cache, object, n_objects, b->options->cache_bytes);
  if (cache)
    objects_unlock(cache, object, n_objects);
  for (int i = 0; i < n; i++)
    if (owner[i]->part->figures)
      owner[i]->part->figures->seconds += command[i].seconds;
  for (int i = 0; i < b->n_parts && good; i++) {
    const ProgramPart *part = b->part[i].part;
    PartFigures unused = {0}, *figures = part->figures ? part->figures : &unused;
    if (b->part[i].code)
      good = part->backend->check_kernels(part->backend, b->part[i].code, figures);
  }
  return good;
}

/* Adds a library, but only once if several parts name it. */
static void args_library(const Build *b, ArgList *list, const char *name) {
  if (!strchr(name, '/') && text_ends_in(name, ".a"))
    name = arena_printf(b->arena, "%s/%s", b->libraries, name);
  for (int i = 0; i < list->n; i++)
    if (strcmp(list->arg[i], name) == 0)
      return;
  args(list, name);
}

static bool link_program(Build *b) {
  ArgList list = {0};
  args_compiler(b, &list);
  if (b->options->object)
    args(&list, "-r", "-nostdlib", "-Wl,--discard-all"); /* see objects.h */
  else
    args(&list, "-s", b->options->is_static ? "-static" : "-no-pie", "-Wl,--as-needed",
         "-Wl,--gc-sections", "-Wl,-z,noseparate-code");
  args(&list, "-Wl,--build-id=none", "-o", b->program);
  if (b->options->used)
    args(&list, "-Wl,--trace");
#ifdef AMPCC_SANITIZE
  if (!b->options->object)
    args(&list, "-fsanitize=" AMPCC_SANITIZE);
#endif
  for (int i = 0; i < b->n_parts; i++)
    for (int u = 0; u <= MAX_UNITS && b->part[i].object[u]; u++)
      args(&list, b->part[i].object[u]);
  if (!b->options->object) {
    for (int i = 0; i < b->n_parts; i++)
      for (const char *const *name = b->part[i].part->backend->libraries; *name; name++)
        args_library(b, &list, *name);
    if (b->options->is_static) {
      args(&list, "-Wl,--whole-archive");
      args_library(b, &list, "libamprt_static.a");
      args(&list, "-Wl,--no-whole-archive");
    }
    args_library(b, &list, "libamprt.a");
    args_library(b, &list, "libprotobuf-c.a");
#ifdef AMPCC_STATIC_IMAGES
    if (b->options->is_static) {
      args_library(b, &list, "libjpeg.a");
      args_library(b, &list, "libpng16.a");
    }
#endif
    args_library(b, &list, b->arch->zlib);
    args(&list, "-lm", "-lpthread");
  }
  Command command = {.argv = list.arg, .makes = b->program, .log = scratch_file(b, "link.log")};
  if (b->options->dry_run)
    return print_commands(&command, 1);
  bool good = commands_run(&command, 1, "linking the program", b->options->verbose);
  if (good && b->options->used)
    used_add_trace(b->options->used, command.log, b->folder);
  return good;
}

/* Removes everything temporary, after a success and after a failure. */
static void clean(Build *b) {
  if (b->output.file)
    output_drop(&b->output);
  for (int i = 0; i < b->n_made; i++)
    unlink(b->made[i]);
  for (int i = 0; i < b->n_parts; i++)
    free(b->part[i].kernels);
  if (b->folder)
    rmdir(b->folder);
}

/* Prints what would run. No temporary folder is made; the commands name it by its pattern. */
static bool dry_run(Build *b) {
  b->folder = scratch_pattern(b->arena, scratch_prefix);
  b->program = b->options->output;
  for (int i = 0; i < b->n_parts; i++)
    name_files(b, &b->part[i]);
  bool good = compile(b) && link_program(b);
  b->folder = NULL;
  b->n_made = 0;
  return good;
}

static bool build(Build *b, const ProgramPart *part) {
  b->arch = part->backend->arch;
  b->resource = resource_find(b->arena, b->options->resource);
  b->libraries = b->resource ? resource_libraries(b->arena, b->resource, b->arch->folder) : NULL;
  if (!b->libraries)
    return false;
  for (int i = 0; i < b->n_parts; i++) {
    PartBuild *p = &b->part[i];
    p->part = &part[i];
    CHECK(part[i].backend->arch == b->arch, "parts for different CPUs");
    if (!resource_has(b->arena, b->libraries, part[i].backend))
      return false;
    resource_note(b->arena, b->resource, part[i].backend);
    p->n_units =
        part[i].backend->units(part[i].backend, b->arena, part[i].module, b->options, p->unit);
    if (!p->n_units)
      return false;
  }
  if (b->options->dry_run)
    return dry_run(b);
  b->folder = scratch_folder(b->arena, scratch_prefix);
  if (!b->folder || !output_open(b->arena, b->options->output, &b->output))
    return false;
  b->output.mode = 0777;
  b->program = b->output.temporary;
  if (!b->program) /* the output is /dev/null, which linkers do not write to */
    b->program = scratch_file(b, "program");

  double start = clock_seconds(), time[3];
  for (int i = 0; i < b->n_parts; i++) {
    name_files(b, &b->part[i]);
    if (!write_text(b, &b->part[i]))
      return false;
  }
  time[0] = clock_seconds() - start;
  if (!compile(b))
    return false;
  time[1] = clock_seconds() - start - time[0];
  if (!link_program(b))
    return false;
  Output output = b->output;
  b->output.file = NULL; /* output_close ends it, whatever becomes of it */
  if (!output_close(&output))
    return false;
  time[2] = clock_seconds() - start - time[0] - time[1];
  static const char *const name[] = {"emit", "cc", "ld"};
  for (int i = 0; b->options->time_report && i < 3; i++)
    text_say("%9.4f s  %s\n", time[i], name[i]);
  return true;
}

/* ---- what ampcc comes with ---- */

/* Compiles the unit called `name` and works out the key of its object. Where the output file is an
 * entry of that key already, its object is taken instead. False after a failure, without a line. */
static bool make_common(Build *b, const char *name, Object *object, Command *command) {
  PartBuild *p = b->part;
  const Backend *backend = p->part->backend;
  const char *paths[] = {b->folder, b->resource, NULL};
  int u = 0;
  p->n_units = backend->units(backend, b->arena, NULL, b->options, p->unit);
  while (u < p->n_units && !(p->unit[u].is_common && strcmp(p->unit[u].name, name) == 0))
    u++;
  CHECK(u < p->n_units, "no unit %s is common to all programs", name);
  name_files(b, p);
  FILE *out = fopen(p->text, "w");
  if (!out)
    return fail("write", p->text);
  emit_common(b->arena, backend, out);
  if (!close_file(out, p->text))
    return false;
  *command = unit_command(b, p, u);
  *object = object_probe(b, command, name, p->text);
  object->shipped = b->options->output;
  objects_find(b->arena, NULL, object, 1, paths, b->options->verbose);
  return object->is_known && commands_run(command, 1, NULL, b->options->verbose);
}

void build_print_shipped(Arena *arena, const char *resource, FILE *out) {
  resource = resource_folder(arena, resource);
  if (resource)
    cache_print_shipped(arena_printf(arena, "%s/%s", resource, shipped_folder), out);
}

int build_common(const Backend *backend, const char *name, const CodegenOptions *options) {
  Arena *arena = arena_new();
  PartBuild part = {.part = &(ProgramPart){.backend = backend}};
  Build b = {.arena = arena,
             .options = options,
             .arch = backend->arch,
             .resource = options->resource,
             .part = &part,
             .n_parts = 1};
  Object object;
  Command command;
  char *bytes, *entry = "";
  size_t size, n = 0;
  spawn_begin();
  b.folder = scratch_folder(arena, scratch_prefix);
  if (b.folder && make_common(&b, name, &object, &command) &&
      bytes_read(arena, command.makes, &bytes, &size))
    entry = cache_entry(arena, &object.key, bytes, size, &n);
  else
    text_say("ampcc: %s is not made, and each user's first compile will take longer: `%s` does not "
             "compile it\n",
             options->output, compiler_words(arena, options->cc, backend->arch)[0]);
  clean(&b);
  spawn_end();
  bool good = output_write(arena, options->output, 0666, entry, n);
  arena_free(arena);
  return good ? 0 : EXIT_ENVIRONMENT;
}

/* ---- programs ---- */

int build_program(const ProgramPart *part, int n_parts, const CodegenOptions *options) {
  Build b = {.arena = arena_new(), .options = options, .n_parts = n_parts};
  b.part = arena_alloc(b.arena, (size_t)n_parts * sizeof *b.part);
  spawn_begin();
  bool good = build(&b, part);
  clean(&b);
  spawn_end();
  arena_free(b.arena);
  return good ? 0 : EXIT_ENVIRONMENT;
}
