#include "runtime/data/data.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void amprt_dataset_free(AmprtDataset *set) {
  free(set->pixel);
  free(set->label);
  free(set->batch_image);
  free(set->batch_label);
  *set = (AmprtDataset){0};
}

void amprt_data_close(AmprtData *data) {
  amprt_dataset_free(&data->train);
  amprt_dataset_free(&data->test);
}

static AmprtStatus check(const AmprtDataset *set, const AmprtProgram *program, const char *part,
                         AmprtError *error) {
  if (set->channels != program->channels)
    return amprt_fail(error, AMPRT_INPUT,
                      "the %s images have %lld channels, the model wants %lld: another data set or "
                      "another model",
                      part, (long long)set->channels, (long long)program->channels);
  if (set->height > program->height || set->width > program->width)
    return amprt_fail(error, AMPRT_INPUT,
                      "the %s images are %lldx%lld, larger than the model's %lldx%lld", part,
                      (long long)set->height, (long long)set->width, (long long)program->height,
                      (long long)program->width);
  for (int64_t i = 0; i < set->n; i++)
    if (set->label[i] >= program->n_classes)
      return amprt_fail(error, AMPRT_INPUT,
                        "%s image %lld has label %d, the model has %lld classes", part,
                        (long long)i, set->label[i], (long long)program->n_classes);
  return AMPRT_OK;
}

/* Zeros all round, the odd one below and to the right. */
static AmprtStatus grow_images(AmprtDataset *set, const AmprtProgram *program, AmprtError *error) {
  if (set->height == program->height && set->width == program->width)
    return AMPRT_OK;
  size_t c = (size_t)set->channels, n = (size_t)set->n;
  size_t h = (size_t)set->height, w = (size_t)set->width * c;
  size_t to_h = (size_t)program->height, to_w = (size_t)program->width * c;
  size_t top = (to_h - h) / 2, left = (size_t)(program->width - set->width) / 2 * c, size;
  unsigned char *wide = NULL;
  if (!__builtin_mul_overflow(to_h * to_w, n, &size))
    wide = calloc(size, 1);
  if (!wide)
    return amprt_fail_memory(error, size, "the padded data set");
  for (size_t i = 0; i < n; i++)
    for (size_t y = 0; y < h; y++)
      memcpy(wide + (i * to_h + top + y) * to_w + left, set->pixel + (i * h + y) * w, w);
  free(set->pixel);
  set->pixel = wide;
  set->height = program->height;
  set->width = program->width;
  return AMPRT_OK;
}

AmprtStatus amprt_dataset_fit(AmprtDataset *set, const AmprtProgram *program, const char *part,
                              AmprtError *error) {
  AmprtStatus status = check(set, program, part, error);
  return status ? status : grow_images(set, program, error);
}

/* ---- the data set that --dataset names ---- */

static const AmprtSource source[] = {
#define DATASET(name, reader, classes, train, test, home, folder, train_files, test_files)         \
  {#name, home, folder, train_files, test_files, classes, train, test, amprt_read_##reader},
#include "ir/recipe/datasets.def"
};

const AmprtSource *amprt_source_find(const char *name) {
  for (size_t i = 0; i < sizeof source / sizeof *source; i++)
    if (!strcmp(source[i].name, name))
      return &source[i];
  return NULL;
}

/* Sets data->dir: --data-dir, or the folder in it that the set's archive unpacks to. */
static AmprtStatus find_folder(AmprtData *data, const AmprtSource *from, const char *data_dir,
                               AmprtError *error) {
  char inner[AMPRT_PATH];
  const char *dir = *data_dir ? data_dir : from->home;
  if (!*dir)
    return amprt_fail(error, AMPRT_USAGE, "%s needs --data-dir=DIR, the folder with %s and %s",
                      from->name, from->train_files, from->test_files);
  if (snprintf(data->dir, sizeof data->dir, "%s", dir) >= (int)sizeof data->dir)
    return amprt_fail(error, AMPRT_INPUT, "%.80s...: the path is too long", dir);
  AmprtStatus status = amprt_path(inner, dir, from->folder, error);
  if (!status && *from->folder && access(inner, F_OK) == 0)
    memcpy(data->dir, inner, sizeof inner);
  return status;
}

static AmprtStatus read_part(const AmprtSource *from, const char *dir, const char *files,
                             AmprtDataset *set, AmprtError *error) {
  AmprtStatus status = AMPRT_OK;
  for (const char *at = files; *at && !status;) {
    char name[128];
    int n = (int)strcspn(at, " ");
    snprintf(name, sizeof name, "%.*s", n, at);
    status = from->read(dir, name, set, error);
    at += n + (at[n] == ' ');
  }
  return status;
}

static AmprtStatus open_source(AmprtData *data, const AmprtSource *from,
                               const AmprtProgram *program, const char *data_dir,
                               AmprtError *error) {
  AmprtStatus status = find_folder(data, from, data_dir, error);
  if (!status && from->classes && from->classes != program->n_classes)
    status = amprt_fail(error, AMPRT_INPUT,
                        "%s has %lld classes, this program's model %lld: another data set, or a "
                        "model with %lld classes (ampcc-zoo NAME --classes=%lld)",
                        from->name, (long long)from->classes, (long long)program->n_classes,
                        (long long)from->classes, (long long)from->classes);
  if (!status)
    status = read_part(from, data->dir, from->train_files, &data->train, error);
  if (!status)
    status = read_part(from, data->dir, from->test_files, &data->test, error);
  if (!status)
    status = amprt_dataset_fit(&data->train, program, "training", error);
  return status ? status : amprt_dataset_fit(&data->test, program, "test", error);
}

AmprtStatus amprt_data_open(AmprtData *data, const AmprtProgram *program,
                            const AmprtOptions *options, AmprtError *error) {
  *data = (AmprtData){.name = options->use_synthetic_data ? "synthetic" : options->dataset};
  char names[512] = "";
  if (!strcmp(data->name, "synthetic"))
    return amprt_synthetic_open(data, program, options, error);
  const AmprtSource *from = amprt_source_find(data->name);
  if (from)
    return open_source(data, from, program, options->data_dir, error);
  for (size_t i = 0, used = 0; i < sizeof source / sizeof *source && used < sizeof names; i++)
    used +=
        (size_t)snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", source[i].name);
  return amprt_fail(error, AMPRT_USAGE,
                    "no data set%s%.80s: give --dataset=NAME (%s) with --data-dir=DIR, or "
                    "--use-synthetic-data for one batch of random images",
                    *data->name ? " " : " is named by the model or the command line", data->name,
                    names);
}
