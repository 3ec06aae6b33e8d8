/* Data sets. A set is a reader that knows its records, and fetches one of them into the memory of
 * the thread that asks: nothing needs to fit in memory as a whole. Images are raw pixels or whole
 * JPEG and PNG files. Synthetic data has no records: it is one batch of floats. */
#ifndef AMPRT_DATA_H
#define AMPRT_DATA_H

#include "runtime/base/file.h"
#include "runtime/base/log.h"
#include "runtime/flags/options.h"
#include "runtime/image/photo.h"

/* Memory that grows to what a thread's records need. Free `data`. */
typedef struct AmprtRoom {
  unsigned char *data;
  size_t size;
} AmprtRoom;

/* One example. What it points to lasts until the next fetch with the same room. */
typedef struct AmprtRecord {
  const unsigned char *data; /* pixels [height, width, channels] of the set, or an image file */
  size_t size;               /* bytes of `data` */
  int32_t label;             /* 0 .. classes-1 of the set */
  const AmprtBox *box;
  int n_boxes;
} AmprtRecord;

typedef struct AmprtDataset AmprtDataset;

typedef struct AmprtReader {
  /* Fetches record `index` and checks what can be checked of it. Called by several threads, each
   * with its own room. AMPRT_INPUT: this record is bad, and the text says which, where and why; any
   * other failure ends the run. */
  AmprtStatus (*fetch)(const AmprtDataset *set, int64_t index, AmprtRoom *room, AmprtRecord *record,
                       AmprtError *error);
  /* Tells the operating system that record `index` will be wanted soon. May be NULL. */
  void (*ahead)(const AmprtDataset *set, int64_t index);
  /* Where record `index` lies, for messages: "FILE" or "FILE, byte N". */
  void (*place)(const AmprtDataset *set, int64_t index, char *out, size_t size);
  void (*close)(void *state);
} AmprtReader;

struct AmprtDataset {
  int64_t n, classes;              /* records; labels are below `classes` */
  int64_t height, width, channels; /* of raw pixels; all 0: records are image files */
  bool exact;                      /* `classes` is the set's own number, not the largest label */
  bool background;                 /* a program with one class more has class 0 for none of these */
  const AmprtReader *reader;       /* NULL: synthetic */
  void *state;                     /* the reader's */
  unsigned char *pixel, *label;    /* of a set in memory (amprt_memory_reader): n of them */
  const char *const *class_name;   /* classes of them, owned by `state`; NULL: they have no names */
  float *batch_image;              /* synthetic: the batch itself, [batch_size, h, w, channels] */
  int32_t *batch_label;
};

typedef struct AmprtData {
  AmprtDataset train, test;
  bool synthetic;
  int32_t first_label;  /* what the program calls class 0 of the set: 1 if it has a background */
  const char *name;     /* as --dataset says it */
  char dir[AMPRT_PATH]; /* the folder that was read; "" for synthetic data */
} AmprtData;

/* Opens the data set that the options name and checks that it fits the program: the channels and
 * the size of raw images, the number of classes. The test set stays empty where no evaluation is
 * wanted. */
AmprtStatus amprt_data_open(AmprtData *data, const AmprtProgram *program,
                            const AmprtOptions *options, AmprtError *error);
void amprt_data_close(AmprtData *data);
void amprt_dataset_free(AmprtDataset *set);
/* Checks one part ("training", "test") against the program. */
AmprtStatus amprt_dataset_check(const AmprtDataset *set, const AmprtProgram *program,
                                const char *part, AmprtError *error);
/* Labels are numbers: the names behind them must be the same in both parts. */
AmprtStatus amprt_data_check_names(const AmprtData *data, AmprtError *error);
/* Makes the room hold at least `size` bytes, and loses what it held. NULL after setting *error if
 * there is no memory. */
unsigned char *amprt_room(AmprtRoom *room, size_t size, AmprtError *error);

/* Reads set->pixel and set->label. */
extern const AmprtReader amprt_memory_reader;

/* A row of ir/recipe/datasets.def. A reader opens one part of the set, whose `files` are the words
 * of that row, in `set`, which is zeroed. */
typedef AmprtStatus AmprtOpenPart(const char *dir, const char *files, AmprtDataset *set,
                                  AmprtError *error);
typedef struct AmprtSource {
  const char *name, *home, *folder, *train_files, *test_files;
  int64_t train, test;
  AmprtOpenPart *open;
} AmprtSource;

#define DATASET(name, reader, ...) AmprtOpenPart amprt_open_##reader;
#include "ir/recipe/datasets.def"

const AmprtSource *amprt_source_find(const char *name); /* NULL: there is none */
/* The folder of its files: `data_dir`, or the one in it that the set's archive unpacks to; if
 * it is "", the set's home. */
AmprtStatus amprt_source_folder(const AmprtSource *from, const char *data_dir, char out[AMPRT_PATH],
                                AmprtError *error);
/* Finds the next word of a list with blanks in between, and moves *at past it; false at the end. */
bool amprt_next_word(const char **at, char *out, size_t size);

/* idx.c: one pair of idx files (gzip or not) in memory. Takes both over, also when it fails. */
AmprtStatus amprt_idx_parse(AmprtBytes *images, const char *images_path, AmprtBytes *labels,
                            const char *labels_path, AmprtDataset *set, AmprtError *error);

/* cifar.c: appends the records of one binary file to the set, with the labels that are wanted. */
typedef enum AmprtCifar { AMPRT_CIFAR10, AMPRT_CIFAR100, AMPRT_CIFAR100_COARSE } AmprtCifar;
AmprtStatus amprt_cifar_parse(AmprtCifar which, const AmprtBytes *file, const char *path,
                              AmprtDataset *set, AmprtError *error);

/* synthetic.c: the random images of specs/resnet.md 1.6, system B. */
AmprtStatus amprt_synthetic_open(AmprtData *data, const AmprtProgram *program,
                                 const AmprtOptions *options, AmprtError *error);

#endif
