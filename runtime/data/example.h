/* One example of a data set, from the record to the bytes that a step reads. */
#ifndef AMPRT_EXAMPLE_H
#define AMPRT_EXAMPLE_H

#include "runtime/data/augment.h"
#include "runtime/data/data.h"
#include "runtime/image/photo.h"

/* `image` is for raw pixels, and for image files with the preprocessing `plain`; `photo` is for all
 * image files. Both have the program's size. */
typedef struct AmprtExampleSpec {
  AmprtImageSpec image;
  AmprtPhotoSpec photo;
  double erase; /* the probability that a rectangle is erased */
} AmprtExampleSpec;

/* Fills the specification from the program and the options, for training or for evaluation. */
AmprtStatus amprt_example_spec(const AmprtProgram *program, const AmprtOptions *options,
                               bool training, AmprtExampleSpec *spec, AmprtError *error);

/* Names an example, and all that its random numbers depend on. */
typedef struct AmprtExampleDraw {
  AmprtKey key, erase_key;
  uint64_t epoch;
  uint32_t index;
} AmprtExampleDraw;

/* The memory of one thread; all zeros at first. Free with amprt_example_room_free. */
typedef struct AmprtExampleRoom {
  AmprtRoom record, plain;
  AmprtPhotoRoom *photo;
} AmprtExampleRoom;
void amprt_example_room_free(AmprtExampleRoom *room);

/* Writes height * width * channels bytes, the scaling of each channel and the set's own label.
 * AMPRT_INPUT: this example cannot be read, and the text says where it lies and why. */
AmprtStatus amprt_example_prepare(const AmprtExampleSpec *spec, const AmprtDataset *set,
                                  AmprtExampleDraw draw, AmprtExampleRoom *room,
                                  unsigned char *pixel, AmprtScaling *scaling, int32_t *label,
                                  AmprtError *error);

#endif
