/* Data sets in memory. Images are bytes, [n, height, width, channels]; synthetic data is one batch
 * of floats. */
#ifndef AMPRT_DATA_H
#define AMPRT_DATA_H

#include "runtime/base/file.h"
#include "runtime/core/options.h"

typedef struct AmprtDataset {
  int64_t n, height, width, channels;
  unsigned char *pixel; /* NULL: synthetic */
  unsigned char *label; /* n of them, each below n_classes */
  float *batch_image;   /* synthetic: the batch itself, [batch_size, height, width, channels] */
  int32_t *batch_label;
} AmprtDataset;

typedef struct AmprtData {
  AmprtDataset train, test;
  bool synthetic;
  const char *name;     /* as --dataset says it */
  char dir[AMPRT_PATH]; /* the folder that was read; "" for synthetic data */
} AmprtData;

/* Loads the data set that the options name, checks all of it, and fits it to the program's image:
 * smaller images get zeros around, larger ones are an error, as are other channels and labels >=
 * n_classes. */
AmprtStatus amprt_data_open(AmprtData *data, const AmprtProgram *program,
                            const AmprtOptions *options, AmprtError *error);
void amprt_data_close(AmprtData *data);
void amprt_dataset_free(AmprtDataset *set);
/* Checks one part ("training", "test") against the program and pads its images to the program's
 * size. */
AmprtStatus amprt_dataset_fit(AmprtDataset *set, const AmprtProgram *program, const char *part,
                              AmprtError *error);

/* A row of ir/recipe/datasets.def. A reader appends the images of one file of the set to `set`. */
typedef AmprtStatus AmprtReader(const char *dir, const char *file, AmprtDataset *set,
                                AmprtError *error);
typedef struct AmprtSource {
  const char *name, *home, *folder, *train_files, *test_files;
  int64_t classes, train, test;
  AmprtReader *read;
} AmprtSource;

#define DATASET(name, reader, ...) AmprtReader amprt_read_##reader;
#include "ir/recipe/datasets.def"

const AmprtSource *amprt_source_find(const char *name); /* NULL: there is none */

/* idx.c: one pair of idx files (gzip or not) in memory. Takes both over, also when it fails. */
AmprtStatus amprt_idx_parse(AmprtBytes *images, const char *images_path, AmprtBytes *labels,
                            const char *labels_path, AmprtDataset *set, AmprtError *error);

/* cifar.c: appends the records of one CIFAR-10 binary file to the set. */
AmprtStatus amprt_cifar_parse(const AmprtBytes *file, const char *path, AmprtDataset *set,
                              AmprtError *error);

/* synthetic.c: specs/resnet.md 1.6, system B. */
AmprtStatus amprt_synthetic_open(AmprtData *data, const AmprtProgram *program,
                                 const AmprtOptions *options, AmprtError *error);

#endif
