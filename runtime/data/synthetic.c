/* Synthetic data as the official programs of TF 1.14 have it (specs/resnet.md 1.6, system B): one
 * fixed batch, pixels from a normal of mean 127 and stddev 60 (unless flags say otherwise) cut at
 * two stddev, labels uniform in 0 .. n_classes-2 (the last class is never drawn), repeated for
 * ever. */
#include "runtime/base/normal.h"
#include "runtime/data/data.h"

#include <stdlib.h>
#include <string.h>

/* An epoch is as long as that of the data set that it stands for, or of ImageNet. */
static void set_lengths(AmprtData *data, const AmprtOptions *options) {
  const AmprtSource *real = amprt_source_find(options->dataset);
  data->train.n = real ? real->train : 1281167;
  data->test.n = real ? real->test : 50000;
  if (options->synthetic_examples)
    data->train.n = data->test.n = options->synthetic_examples;
}

/* Draws the batch; its images are those of `like`, unless that is NULL. */
static AmprtStatus draw(AmprtDataset *set, const AmprtDataset *like, const AmprtProgram *program,
                        const AmprtOptions *options, AmprtError *error) {
  uint64_t seed = (uint64_t)options->seed;
  size_t batch = (size_t)program->batch_size;
  size_t size = (size_t)(program->height * program->width * program->channels) * batch;
  set->height = program->height;
  set->width = program->width;
  set->channels = program->channels;
  set->batch_image = malloc(size * sizeof *set->batch_image);
  set->batch_label = malloc(batch * sizeof *set->batch_label);
  if (!set->batch_image || !set->batch_label)
    return amprt_fail_memory(error, size * sizeof *set->batch_image, "the synthetic batch");
  if (like)
    memcpy(set->batch_image, like->batch_image, size * sizeof *set->batch_image);
  else
    amprt_truncated_normals(amprt_rng_key(seed, "synthetic.image"), 0, options->synthetic_mean,
                            options->synthetic_stddev, set->batch_image, size);
  AmprtKey key = amprt_rng_key(seed, "synthetic.label");
  uint32_t classes = program->n_classes > 1 ? (uint32_t)program->n_classes - 1 : 1;
  for (size_t i = 0; i < batch; i++)
    set->batch_label[i] = (int32_t)amprt_rng_below(amprt_rng_at(key, i, 0).v[0], classes);
  return AMPRT_OK;
}

AmprtStatus amprt_synthetic_open(AmprtData *data, const AmprtProgram *program,
                                 const AmprtOptions *options, AmprtError *error) {
  data->synthetic = true;
  set_lengths(data, options);
  AmprtStatus status = draw(&data->train, NULL, program, options, error);
  return status ? status : draw(&data->test, &data->train, program, options, error);
}
