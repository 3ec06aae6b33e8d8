/* input_rates ROUNDS FILE...: images a second on one core, of every way from the photographs to u8
 * [224, 224, 3], against libjpeg-turbo decoding them whole. In each round every contestant makes
 * all photographs once, in an order that turns; ratios are taken within a round. Prints a line per
 * contestant: median, least and most of its ratio, and the median rate. */
#include "runtime/image/photo.h"

#include <jpeglib.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST = 4096, SIZE = 224, MOST_ROUNDS = 99 };

typedef struct Contestant {
  const char *name;
  AmprtPreprocessing preprocessing;
  bool training, packed;
  double seconds[MOST_ROUNDS];
} Contestant;

static AmprtBytes photo[MOST], packed[MOST];
static int n;
static AmprtPhotoRoom *room;
static AmprtError error;

static Contestant contestant[] = {
    {.name = "libjpeg-turbo, the whole image"},
    {"official, training", AMPRT_OFFICIAL, true, false},
    {"torchvision, training", AMPRT_TORCHVISION, true, false},
    {"keras, training", AMPRT_KERAS, true, false},
    {"official, evaluation", AMPRT_OFFICIAL, false, false},
    {"torchvision, evaluation", AMPRT_TORCHVISION, false, false},
    {"packed at 256, official, training", AMPRT_OFFICIAL, true, true},
    {"packed at 256, torchvision, training", AMPRT_TORCHVISION, true, true},
    {"packed at 256, official, evaluation", AMPRT_OFFICIAL, false, true},
};
enum { CONTESTANTS = sizeof contestant / sizeof *contestant };

static void add(const char *path) {
  if (n == MOST)
    return;
  if (amprt_read_file(path, 1 << 28, &photo[n], &error) ||
      amprt_photo_shrink(photo[n].data, photo[n].size, 256, 95, false, room, &packed[n], &error)) {
    amprt_print(stderr, "%s: %s\n", path, error.text);
    exit(1);
  }
  n++;
}

static void decode_whole(const AmprtBytes *file) {
  static unsigned char out[1 << 26];
  struct jpeg_decompress_struct jpeg;
  struct jpeg_error_mgr errors;
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_decompress(&jpeg);
  jpeg_mem_src(&jpeg, file->data, file->size);
  jpeg_read_header(&jpeg, TRUE);
  jpeg.out_color_space = JCS_RGB;
  jpeg_start_decompress(&jpeg);
  while (jpeg.output_scanline < jpeg.output_height) {
    JSAMPROW row = out + (size_t)jpeg.output_scanline * jpeg.output_width * 3 % (sizeof out / 2);
    jpeg_read_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_decompress(&jpeg);
  jpeg_destroy_decompress(&jpeg);
}

static void make(const Contestant *c, int i, int round) {
  static unsigned char out[SIZE * SIZE * 3];
  AmprtPhotoSpec spec = {SIZE, SIZE, 3, c->preprocessing, c->training, .flip = true};
  AmprtPhotoDraw draw = {amprt_rng_key(1, "bench"), (uint64_t)round, (uint64_t)i};
  const AmprtBytes *file = c->packed ? &packed[i] : &photo[i];
  AmprtPhoto encoded = {.bytes = file->data, .size = file->size};
  if (amprt_photo_prepare(&spec, &encoded, draw, room, out, &error)) {
    amprt_print(stderr, "%s\n", error.text);
    exit(1);
  }
}

static double seconds(void) {
  struct timespec t; /* the processor time of this thread, which depends less on what others do */
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_size(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void print(const Contestant *c, int rounds) {
  double ratio[MOST_ROUNDS], rate[MOST_ROUNDS];
  for (int r = 0; r < rounds; r++) {
    ratio[r] = contestant[0].seconds[r] / c->seconds[r];
    rate[r] = n / c->seconds[r];
  }
  qsort(ratio, (size_t)rounds, sizeof *ratio, by_size);
  qsort(rate, (size_t)rounds, sizeof *rate, by_size);
  printf("%-38s %5.2f [%.2f..%.2f] %7.0f images/s\n", c->name, ratio[rounds / 2], ratio[0],
         ratio[rounds - 1], rate[rounds / 2]);
}

int main(int argc, char **argv) {
  int rounds = argc > 2 ? atoi(argv[1]) : 0;
  if (rounds < 1 || rounds > MOST_ROUNDS)
    return fprintf(stderr, "usage: input_rates ROUNDS FILE...\n"), 2;
  room = amprt_photo_room_new();
  for (int i = 2; i < argc; i++)
    add(argv[i]);
  for (int r = 0; r < rounds; r++)
    for (int i = 0; i < n; i++)
      for (int k = 0; k < CONTESTANTS; k++) {
        Contestant *c = &contestant[(k + i + r) % CONTESTANTS];
        double begin = seconds();
        if (c == contestant)
          decode_whole(&photo[i]);
        else
          make(c, i, r);
        c->seconds[r] += seconds() - begin;
      }
  printf("%d photographs, %d rounds\n", n, rounds);
  for (int k = 0; k < CONTESTANTS; k++)
    print(&contestant[k], rounds);
  return 0;
}
