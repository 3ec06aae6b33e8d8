#include "runtime/data/data.h"

#include <stdlib.h>
#include <string.h>

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

AmprtStatus amprt_data_open(AmprtData *data, const AmprtProgram *program,
                            const AmprtOptions *options, AmprtError *error) {
  *data = (AmprtData){.name = options->use_synthetic_data ? "synthetic" : options->dataset};
  const char *name = data->name;
  AmprtStatus status;
  if (!*name)
    return amprt_fail(error, AMPRT_USAGE,
                      "no data set: neither the model nor the command line names one; give "
                      "--dataset=fashion_mnist or cifar10 with --data-dir=DIR, or "
                      "--use-synthetic-data for one batch of random images");
  if (!strcmp(name, "synthetic"))
    return amprt_synthetic_open(data, program, options, error);
  bool fashion = !strcmp(name, "fashion_mnist");
  const char *dir = fashion && !*options->data_dir ? AMPRT_FASHION_DIR : options->data_dir;
  if (snprintf(data->dir, sizeof data->dir, "%s", dir) >= (int)sizeof data->dir)
    return amprt_fail(error, AMPRT_INPUT, "%.80s...: the path is too long", dir);
  if (fashion)
    status = amprt_idx_open(data, error);
  else if (!strcmp(name, "cifar10"))
    status = amprt_cifar_open(data, error);
  else
    status = amprt_fail(error, AMPRT_USAGE, "--dataset: there is no reader for `%.80s`", name);
  if (!status)
    status = amprt_dataset_fit(&data->train, program, "training", error);
  return status ? status : amprt_dataset_fit(&data->test, program, "test", error);
}
