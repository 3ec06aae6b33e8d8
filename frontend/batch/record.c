/* What a batch remembers of each program that it has made: WORKPLACE/NAME.json, which is written
 * whole or not at all, when the program is in its place:
 *
 *   {"key": "...", "program_sha256": "...", "program_bytes": 579544, "model": ..., "parts": [...]}
 *
 * The key is the hash of all that the program is made of. */
#include "codegen/program/build.h"
#include "codegen/program/bytes.h"
#include "codegen/program/used.h"
#include "frontend/batch/batch.h"
#include "ir/base/list.h"
#include "ir/base/output.h"
#include "ir/base/sha256.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void add_text(Sha256 *sha, const char *text) {
  sha256_add(sha, text, strlen(text) + 1);
}

static const char *hex(Arena *arena, const Sha256 *sha) {
  unsigned char hash[SHA256_BYTES];
  sha256_get(sha, hash);
  char *text = arena_alloc(arena, SHA256_TEXT);
  sha256_hex(hash, text);
  return text;
}

/* Adds a file's bytes; false if it cannot be read. */
static bool add_file(Sha256 *sha, const char *path) {
  enum { PIECE = 1 << 16 };
  FILE *file = fopen(path, "rb");
  struct stat st;
  if (!file)
    return false;
  bool good = fstat(fileno(file), &st) == 0 && S_ISREG(st.st_mode);
  char *piece = malloc(PIECE);
  size_t n;
  while (good && piece && (n = fread(piece, 1, PIECE, file)) > 0)
    sha256_add(sha, piece, n);
  good = good && piece && !ferror(file);
  free(piece);
  fclose(file);
  return good;
}

/* NULL if it cannot be read. */
static const char *hash_of_file(Arena *arena, const char *path) {
  Sha256 sha = sha256_begin();
  return add_file(&sha, path) ? hex(arena, &sha) : NULL;
}

/* Adds the hash of a file to a key: so the end of one is never the beginning of the next. */
static bool key_file(Arena *arena, Sha256 *sha, const char *path) {
  const char *hash = hash_of_file(arena, path);
  if (hash)
    add_text(sha, hash);
  return hash != NULL;
}

/* ---- what makes programs ---- */

/* Adds the libraries and headers of the runtime. */
static bool add_runtime(Arena *arena, Sha256 *sha, const char *folder) {
  const char **name;
  int n, n_files = 0;
  if (!folder_names(arena, folder, &name, &n))
    return false;
  for (int i = 0; i < n; i++) {
    const char *dot = strrchr(name[i], '.');
    if (!dot || (strcmp(dot, ".a") && strcmp(dot, ".h")))
      continue;
    add_text(sha, name[i]);
    if (!key_file(arena, sha, arena_printf(arena, "%s/%s", folder, name[i])))
      return false;
    n_files++;
  }
  return n_files > 0;
}

/* Adds the C compiler's command, and the place, size and time of each word that names a program. */
static void add_compiler(Arena *arena, Sha256 *sha, const char *const *word) {
  for (; *word; word++) {
    const char *path = **word == '-' ? NULL : program_path(arena, *word);
    FileStamp stamp = path ? stamp_of(path) : (FileStamp){0};
    add_text(sha, *word);
    add_text(sha, arena_printf(arena, "%s %" PRId64 " %" PRId64 ".%09" PRId64, path ? path : "",
                               stamp.bytes, stamp.modified[0], stamp.modified[1]));
  }
}

/* The hash of this ampcc and its runtime; those of one folder are read once. NULL if there are
 * none. */
static const char *own_build(Batch *batch, const char *folder) {
  if (batch->build && !strcmp(batch->build_folder, folder))
    return batch->build;
  Sha256 sha = sha256_begin();
  add_text(&sha, AMPCC_VERSION);
  bool good =
      key_file(batch->arena, &sha, "/proc/self/exe") && add_runtime(batch->arena, &sha, folder);
  batch->build_folder = folder;
  batch->build = good ? hex(batch->arena, &sha) : NULL;
  return batch->build;
}

/* Is the program for GPUs? Then the toolkit's versions count, for the CPU alone they do not. */
static bool has_gpus(const char *targets) {
  return codegen_has_cuda && (!targets || strstr(targets, "cuda"));
}

/* Does the option change neither the program nor whether there is one? */
static bool is_silent(int option) {
  static const OptionId silent[] = {OPT_quiet,        OPT_verbose,   OPT_all_errors,
                                    OPT_time_report,  OPT_cache_dir, OPT_cache_mode,
                                    OPT_cache_shared, OPT_cache_size};
  for (size_t i = 0; i < sizeof silent / sizeof *silent; i++)
    if (option == (int)silent[i])
      return true;
  return false;
}

const char *record_key(Batch *batch, const BatchProgram *program) {
  static const OptionId with_files[] = {OPT_precision_file, OPT_tuning_db};
  Arena *arena = batch->arena;
  const char *cpu = batch_text(batch, program, OPT_cpu),
             *folder = resource_find(arena, batch_text(batch, program, OPT_resource_dir)),
             *build = folder ? own_build(batch, folder) : NULL;
  /* What this machine's processor is would be part of such a program. */
  bool native = cpu && !strcmp(cpu, "native");
  const CpuArch *arch = targets_cpu(arena, batch_text(batch, program, OPT_target));
  Sha256 sha = sha256_begin();
  if (!build || native || !key_file(arena, &sha, program->model))
    return NULL;
  const char *dot = strrchr(program->model, '.'); /* says which form it has */
  add_text(&sha, dot ? dot : "");
  add_text(&sha, build);
  if (arch->folder && !add_runtime(arena, &sha, arena_printf(arena, "%s/%s", folder, arch->folder)))
    return NULL;
  add_compiler(arena, &sha, compiler_words(arena, batch_text(batch, program, OPT_cc), arch));
  for (int i = 0; i < program->n_words; i++)
    if (!is_silent(program->word[i].option))
      add_text(&sha, program->word[i].text);
  for (size_t i = 0; i < sizeof with_files / sizeof *with_files; i++) {
    const char *list = batch_text(batch, program, with_files[i]), *path;
    while ((path = list_word(arena, &list, ',')) != NULL)
      if (!key_file(arena, &sha, path))
        return NULL;
  }
  if (has_gpus(batch_text(batch, program, OPT_target)))
    add_text(&sha, codegen_cuda_versions(arena, batch_text(batch, program, OPT_cuda_path)));
  return hex(arena, &sha);
}

/* ---- records ---- */

static bool same(const char *a, const char *b) {
  return a && b && !strcmp(a, b);
}

bool record_holds(Batch *batch, BatchProgram *program) {
  struct stat st;
  const char *place = batch_place(batch, program), *sha256 = NULL;
  json_t *record = json_load_file(batch_file(batch, program, "json"), 0, NULL);
  bool good = program->key &&
              same(json_string_value(json_object_get(record, "key")), program->key) &&
              figures_read(batch->arena, record, &program->figures) && lstat(place, &st) == 0 &&
              S_ISREG(st.st_mode) && (sha256 = hash_of_file(batch->arena, place)) != NULL &&
              same(json_string_value(json_object_get(record, "program_sha256")), sha256);
  if (good) {
    program->bytes = st.st_size;
    program->sha256 = sha256;
  } else {
    program->figures = (Figures){0};
  }
  json_decref(record);
  return good;
}

bool record_keep(Batch *batch, BatchProgram *program) {
  program->sha256 = hash_of_file(batch->arena, batch_place(batch, program));
  if (!program->key || !program->sha256)
    return true; /* it will be made again */
  Output out;
  if (!output_open(batch->arena, batch_file(batch, program, "json"), &out))
    return false;
  json_t *record = json_object();
  json_object_set_new(record, "key", json_string(program->key));
  json_object_set_new(record, "program_sha256", json_string(program->sha256));
  json_object_set_new(record, "program_bytes", json_integer(program->bytes));
  figures_add(batch->arena, &program->figures, record);
  json_dumpf(record, out.file, JSON_INDENT(1));
  json_decref(record);
  fputc('\n', out.file);
  return output_close(&out);
}

void record_forget(Batch *batch, const BatchProgram *program) {
  struct stat st;
  const char *place = batch_place(batch, program);
  if (unlink(batch_file(batch, program, "json")) == 0 && lstat(place, &st) == 0 &&
      S_ISREG(st.st_mode))
    unlink(place);
}
