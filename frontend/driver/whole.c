#include "frontend/driver/whole.h"

#include "codegen/program/build.h"
#include "codegen/program/bytes.h"
#include "ir/base/exit.h"
#include "ir/base/list.h"
#include "ir/base/output.h"
#include "ir/base/reads.h"
#include "ir/base/text.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Options that decide neither what the program is nor what is said about it. All others of the
 * groups `output`, `passes` and `reports` ask for more than a program, which is then made anew; but
 * --figures is kept with it. */
static const OptionId no_matter[] = {OPT_output,
                                     OPT_emit,
                                     OPT_verbose,
                                     OPT_quiet,
                                     OPT_cache_dir,
                                     OPT_cache_mode,
                                     OPT_cache_shared,
                                     OPT_cache_size,
                                     OPT_all_errors,
                                     OPT_warn,
                                     OPT_color,
                                     OPT_diagnostics_format,
                                     OPT_diagnostics_file,
                                     OPT_MD,
                                     OPT_MF,
                                     OPT_MT,
                                     OPT_MP};
/* Options that name files, or lists of files, whose contents count. */
static const OptionId names_files[] = {OPT_precision_file, OPT_tuning_db};

/* What gcc, clang and GNU ld read from the environment, as their manuals list it, beside what
 * concerns messages and temporary files. */
static const char *const variable[] = {"CC",
                                       "CCC_OVERRIDE_OPTIONS",
                                       "COMPILER_PATH",
                                       "CPATH",
                                       "C_INCLUDE_PATH",
                                       "GCC_COMPARE_DEBUG",
                                       "GCC_EXEC_PREFIX",
                                       "GNUTARGET",
                                       "LDEMULATION",
                                       "LD_LIBRARY_PATH",
                                       "LD_RUN_PATH",
                                       "LIBRARY_PATH",
                                       "PATH",
                                       "SDKROOT",
                                       "SOURCE_DATE_EPOCH"};

static bool is_one_of(const OptionId *list, size_t n, int option) {
  for (size_t i = 0; i < n; i++)
    if ((int)list[i] == option)
      return true;
  return false;
}
#define one_of(list, option) is_one_of(list, sizeof(list) / sizeof *(list), option)

/* Does the command ask for a program and nothing else? What a processor is (--cpu=native) cannot be
 * told from files. */
static bool asks_for_program(const Options *options) {
  const char *cpu = options->text[OPT_cpu];
  bool reports = (cpu && strcmp(cpu, "native") == 0) ||
                 (options->emit != EMIT_EXE && options->emit != EMIT_OBJ);
  for (int i = 0; i < OPTION_COUNT; i++) {
    int group = option_info[i].group;
    if (options->text[i] && group != GROUP_PROGRAM && group != GROUP_TOOLS && i != OPT_figures &&
        !one_of(no_matter, i))
      reports = true;
  }
  return !reports;
}

/* The C compiler, if it is one word that names a program. What a script runs cannot be known. */
static const char *compiler(Arena *arena, const Options *options) {
  const char *const *word = compiler_words(arena, options->text[OPT_cc], options->targets.arch);
  char magic[4] = "";
  const char *path = word[1] ? NULL : program_path(arena, word[0]);
  FILE *file = path ? fopen(path, "rb") : NULL;
  bool good = file && fread(magic, 1, 4, file) == 4 && memcmp(magic, "\177ELF", 4) == 0;
  if (file)
    fclose(file);
  return good ? path : NULL;
}

/* Adds the content of a file to the key. False if it is no regular file: reading anything else
 * would take it away from who reads it next. */
static bool key_file(Arena *arena, Whole *whole, const char *path) {
  char *bytes;
  size_t size;
  used_add(&whole->named, path);
  reads_add(path);
  if (!bytes_read(arena, path, &bytes, &size))
    return false;
  cache_key_add(&whole->key, bytes, size);
  return true;
}

static void key_path(CacheKey *key, const char *path) {
  char *absolute = realpath(path, NULL);
  cache_key_text(key, absolute ? absolute : path);
  free(absolute);
}

static void key_options(CacheKey *key, const Options *options) {
  for (int i = 0; i < OPTION_COUNT; i++)
    if (options->text[i] && !one_of(no_matter, i)) {
      cache_key_text(key, option_info[i].flag);
      cache_key_text(key, i == OPT_figures ? "" : options->text[i]);
    }
  for (int i = 0; i < options->overrides.n; i++) {
    cache_key_text(key, options->overrides.at[i].field->flag);
    cache_key_text(key, options->overrides.at[i].text);
  }
  cache_key_int(key, options->emit);
  cache_key_add(key, &options->warn, sizeof options->warn);
  for (size_t i = 0; i < sizeof variable / sizeof *variable; i++) {
    const char *value = getenv(variable[i]);
    cache_key_text(key, value ? value : "");
    cache_key_int(key, value != NULL);
  }
}

static bool find_key(Arena *arena, const Options *options, const PartList *parts, Whole *whole) {
  const char *cc = compiler(arena, options);
  const char *resource = resource_folder(arena, options->text[OPT_resource_dir]);
  const char *slash = strrchr(options->model, '/');
  if (!cc || !resource)
    return false;
  for (int i = 0; i < parts->n; i++)
    resource_note(arena, resource, parts->part[i].backend);
  whole->key = cache_key_begin("file list");
  key_options(&whole->key, options);
  for (int i = 0; i < parts->n; i++)
    used_key_target(parts->part[i].backend, &whole->key);
  key_path(&whole->key, "/proc/self/exe");
  key_path(&whole->key, resource);
  key_path(&whole->key, cc);
  cache_key_text(&whole->key, slash ? slash + 1 : options->model); /* the manifest has it */
  bool good = strcmp(options->model, "-") != 0 && key_file(arena, whole, options->model);
  for (size_t i = 0; i < sizeof names_files / sizeof *names_files; i++) {
    const char *list = options->text[names_files[i]], *path;
    while ((path = list_word(arena, &list, ',')) != NULL)
      good = key_file(arena, whole, path) && good;
  }
  const char *const tool[] = {options->targets.arch->assembler, options->targets.arch->linker};
  for (int i = 0; i < 2; i++) {
    const char *path = program_path(arena, tool[i]);
    if (path)
      used_add(&whole->used, path);
  }
  used_add(&whole->used, cc);
  used_add(&whole->used, resource);
  return good;
}

/* The key of the program. */
static CacheKey program_key(const Whole *whole, const UsedList *used) {
  CacheKey key = whole->key;
  key.kind = "program";
  cache_key_text(&key, key.kind);
  used_key(used, &key);
  return key;
}

/* An entry is this and then the three. */
typedef struct Lengths {
  uint64_t summary, figures, program;
} Lengths;

static bool write_entry(Arena *arena, const Options *options, const char *entry) {
  Lengths length;
  memcpy(&length, entry, sizeof length);
  const char *summary = entry + sizeof length, *figures = summary + length.summary;
  const char *program = figures + length.figures, *to = options->text[OPT_figures];
  if ((to && !output_write(arena, to, 0666, figures, (size_t)length.figures)) ||
      !output_write(arena, options->output, 0777, program, (size_t)length.program))
    return false;
  if (options->silent)
    return true;
  text_say("ampcc: %s: ", options->output);
  fwrite(summary, 1, (size_t)length.summary, stderr);
  return true;
}

/* Finds the program in a folder, or in the one behind it. */
static bool find_program(Arena *arena, const Options *options, const char *folder,
                         const Whole *whole, char **entry) {
  size_t size;
  char *data;
  UsedList known;
  if (!cache_get(folder, &whole->key, arena, &data, &size) ||
      !used_decode(arena, data, size, &known))
    return false;
  int renewed = used_renew(&known);
  if (renewed < 0)
    return false;
  if (renewed > 0) { /* so that the next time these files need not be read */
    data = used_encode(&known, &size);
    cache_put(options->cache, &whole->key, data, size);
  }
  CacheKey key = program_key(whole, &known);
  return cache_get(folder, &key, arena, entry, &size);
}

bool whole_find(Arena *arena, const Options *options, const PartList *parts, Whole *out,
                int *status) {
  *out = (Whole){.used = {.arena = arena}, .named = {.arena = arena}};
  clock_gettime(CLOCK_REALTIME, &out->start);
  out->wanted = options->cache && asks_for_program(options) && find_key(arena, options, parts, out);
  char *entry;
  /* Our own list of files may be of older ones than those that the shared program was made of. */
  bool found = out->wanted &&
               (find_program(arena, options, options->cache, out, &entry) ||
                (cache_shared() && find_program(arena, options, cache_shared(), out, &entry)));
  if (!found)
    return false;
  if (options->text[OPT_verbose])
    text_say("ampcc: from the cache: the whole program\n");
  *status = write_entry(arena, options, entry) ? 0 : EXIT_ENVIRONMENT;
  return true;
}

/* Did all files of the list stay as they were since the start? Also renews their stamps. */
static bool is_settled(UsedList *list, struct timespec start) {
  if (list->incomplete || used_renew(list) < 0)
    return false;
  for (int i = 0; i < list->n; i++) {
    FileStamp now = stamp_of(list->file[i].path);
    if (!now.inode || stamp_is_newer(&now, start))
      return false;
  }
  return true;
}

void whole_keep(Whole *whole, const Options *options, const char *summary, size_t length) {
  Arena *arena = whole->used.arena;
  const char *from = options->text[OPT_figures];
  char *program, *figures = "", *data;
  size_t size, n_figures = 0, n;
  if (!whole->wanted || !bytes_read(arena, options->output, &program, &size) ||
      (from && !bytes_read(arena, from, &figures, &n_figures)))
    return;
  used_add_self(&whole->used);
  if (!is_settled(&whole->named, whole->start) || !is_settled(&whole->used, whole->start))
    return;
  Lengths lengths = {length, n_figures, size};
  n = sizeof lengths + length + n_figures + size;
  char *entry = arena_alloc(arena, n), *to = entry;
  memcpy(to, &lengths, sizeof lengths);
  memcpy(to += sizeof lengths, summary, length);
  memcpy(to += length, figures, n_figures);
  memcpy(to + n_figures, program, size);
  CacheKey key = program_key(whole, &whole->used);
  cache_put(options->cache, &key, entry, n);
  data = used_encode(&whole->used, &n);
  cache_put(options->cache, &whole->key, data, n);
  cache_trim(options->cache, options->cache_bytes);
}
