/* vectors VECTORS TAR [--dump FILE]: the photographs of a tar archive through every
 * preprocessing, against what Pillow and numpy made of them (tests/oracle/photographs.py says
 * how VECTORS is written). Views of the evaluation must be equal; stored pixels and means may
 * differ by 0.35 of 255 in the mean, for each photograph and each way: Pillow rounds twice, and
 * all is stored as bytes. Ends with 77 if there is no archive. --dump writes the whole results
 * instead of comparing. */
#include "runtime/image/photo.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SIZE = 224, PIXELS = 64, BLOCKS = 4, WAYS = 6, VIEW = 9, RESULT = SIZE * SIZE * 3 };

static const AmprtPreprocessing preprocessing[WAYS / 2] = {AMPRT_OFFICIAL, AMPRT_KERAS,
                                                           AMPRT_TORCHVISION};
static AmprtError error;
static AmprtBytes vectors, archive;
static size_t at; /* in the vectors */
static AmprtPhotoRoom *room;
static unsigned char result[RESULT];

static int32_t next_int(void) {
  int32_t value = 0;
  if (at + 4 <= vectors.size)
    memcpy(&value, vectors.data + at, 4);
  at += 4;
  return value;
}

/* A member of the archive (POSIX ustar: blocks of 512 bytes, sizes in octal). */
static AmprtBytes member(const char *name) {
  for (size_t block = 0; block + 512 <= archive.size && archive.data[block];) {
    const char *header = (const char *)archive.data + block;
    size_t size = strtoul(header + 124, NULL, 8);
    const char *path = strncmp(header, "./", 2) == 0 ? header + 2 : header;
    if (strncmp(path, name, 98) == 0 && block + 512 + size <= archive.size)
      return (AmprtBytes){archive.data + block + 512, size};
    block += 512 + (size + 511) / 512 * 512;
  }
  fprintf(stderr, "%s is not in the archive\n", name);
  exit(1);
}

static AmprtPhotoView next_view(void) {
  int64_t n[VIEW];
  for (int i = 0; i < VIEW; i++)
    n[i] = next_int();
  return (AmprtPhotoView){n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8]};
}

static bool same_view(const AmprtPhotoView *a, const AmprtPhotoView *b) {
  return a->y == b->y && a->x == b->x && a->height == b->height && a->width == b->width &&
         a->resized_height == b->resized_height && a->resized_width == b->resized_width &&
         a->top == b->top && a->left == b->left && a->mirrored == b->mirrored;
}

/* Makes the result of way k. The view of an evaluation is the one that the program chooses. */
static void make(const char *path, const AmprtPhoto *photo, int k, const AmprtPhotoView *want) {
  AmprtPhotoSpec spec = {SIZE, SIZE, 3, preprocessing[k / 2]};
  AmprtPhotoView view = *want;
  AmprtPhotoHead head;
  AmprtStatus status = amprt_photo_head(photo->bytes, photo->size, room, &head, &error);
  if (!status && k % 2 == 0)
    status =
        amprt_photo_view(&spec, photo, head.height, head.width, (AmprtPhotoDraw){0}, &view, &error);
  if (!status && !same_view(&view, want))
    status = amprt_fail(&error, AMPRT_INPUT, "another view in the evaluation");
  if (!status)
    status = amprt_photo_take(&spec, photo, &view, room, result, &error);
  if (status) {
    fprintf(stderr, "%s, way %d: %s\n", path, k, error.text);
    exit(1);
  }
}

/* Mean absolute difference of the stored pixels and means; moves on in the vectors. */
static double difference(int photograph) {
  const unsigned char *want = vectors.data + at;
  double sum = 0;
  for (int p = 0; p < PIXELS; p++) {
    uint32_t h = (uint32_t)(photograph * PIXELS + p) * 2654435761u >> 8;
    for (int c = 0; c < 3; c++)
      sum += abs(result[(h % SIZE * SIZE + h / SIZE % SIZE) * 3 + (uint32_t)c] - *want++);
  }
  for (int b = 0; b < BLOCKS * BLOCKS; b++)
    for (int c = 0; c < 3; c++) {
      double block = 0;
      int side = SIZE / BLOCKS, top = b / BLOCKS * side, left = b % BLOCKS * side;
      for (int i = 0; i < side * side; i++)
        block += result[((top + i / side) * SIZE + left + i % side) * 3 + c];
      sum += fabs(block / (side * side) - *want++);
    }
  at += PIXELS * 3 + BLOCKS * BLOCKS * 3;
  return sum / (PIXELS * 3 + BLOCKS * BLOCKS * 3);
}

static bool all_photographs(FILE *dump) {
  double mean[WAYS] = {0}, worst[WAYS] = {0};
  int n = next_int();
  for (int i = 0; i < n; i++) {
    char path[100] = "";
    size_t length = (size_t)next_int();
    if (at + length > vectors.size || length >= sizeof path)
      return fprintf(stderr, "the vectors are damaged\n"), false;
    memcpy(path, vectors.data + at, length);
    at += length;
    AmprtBytes file = member(path);
    AmprtPhoto photo = {.bytes = file.data, .size = file.size};
    for (int k = 0; k < WAYS; k++) {
      AmprtPhotoView want = next_view();
      make(path, &photo, k, &want);
      if (dump)
        fwrite(result, 1, RESULT, dump);
      double differs = difference(i);
      mean[k] += differs / n;
      worst[k] = fmax(worst[k], differs);
    }
  }
  bool good = n > 0 && at == vectors.size;
  for (int k = 0; k < WAYS; k++) {
    good = good && worst[k] < 0.35;
    printf("%s, %s: mean difference %.3f, worst photograph %.3f of 255\n",
           amprt_preprocessing_name(preprocessing[k / 2]), k % 2 ? "training" : "evaluation",
           mean[k], worst[k]);
  }
  return good;
}

int main(int argc, char **argv) {
  if (argc < 3)
    return 2;
  if (!amprt_is_file(argv[2]))
    return printf("skipped: no %s\n", argv[2]), 77;
  if (amprt_read_file(argv[1], 1 << 20, &vectors, &error) ||
      amprt_read_file(argv[2], 1 << 30, &archive, &error))
    return fprintf(stderr, "%s\n", error.text), 1;
  if (vectors.size < 12 || memcmp(vectors.data, "PHOTOS1\n", 8) != 0)
    return fprintf(stderr, "%s holds no vectors\n", argv[1]), 1;
  at = 8;
  room = amprt_photo_room_new();
  FILE *dump = argc == 5 ? fopen(argv[4], "wb") : NULL;
  bool good = all_photographs(dump);
  if (dump)
    fclose(dump);
  amprt_photo_room_free(room);
  free(vectors.data);
  free(archive.data);
  return good ? 0 : 1;
}
