/* Tests what the decoders make of every kind of image file, whole and in parts, and that they
 * refuse damaged and forged ones. The files are made here, by libjpeg and libpng. */
#include "runtime/image/photo.h"
#include "tests/image/pictures.h"

#include <math.h>
#include <png.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
/* clang-format off: cmocka.h needs the others before it */
#include <cmocka.h>
/* clang-format on */

static AmprtPhotoRoom *room;
static AmprtError error;
static unsigned char out[1 << 20];

static const JpegKind jpeg_kinds[] = {
    {.components = 1},
    {.components = 1, .h = 2, .v = 2},
    {.components = 1, .progressive = true},
    {.components = 3, .h = 1, .v = 1},
    {.components = 3, .h = 2, .v = 1},
    {.components = 3, .h = 2, .v = 2},
    {.components = 3, .h = 1, .v = 2},
    {.components = 3, .h = 4, .v = 1},
    {.components = 3, .h = 2, .v = 2, .restart = 1},
    {.components = 3, .h = 2, .v = 2, .progressive = true},
    {.components = 3, .h = 2, .v = 2, .progressive = true, .restart = 2},
};
enum { N_JPEG_KINDS = sizeof jpeg_kinds / sizeof *jpeg_kinds };

/* Reads a part of the image without changing its size. */
static AmprtStatus cut(const AmprtBytes *file, int channels, int64_t y, int64_t x, int64_t height,
                       int64_t width) {
  AmprtPhotoSpec spec = {height, width, channels, AMPRT_OFFICIAL};
  AmprtPhoto photo = {.bytes = file->data, .size = file->size};
  AmprtPhotoView view = {y, x, height, width, height, width};
  return amprt_photo_take(&spec, &photo, &view, room, out, &error);
}

static void assert_part(const AmprtBytes *whole, int channels, int64_t whole_width, int64_t y,
                        int64_t x, int64_t height, int64_t width) {
  for (int64_t row = 0; row < height; row++)
    for (int64_t i = 0; i < width * channels; i++) {
      int want = whole->data[((y + row) * whole_width + x) * channels + i];
      int got = out[row * width * channels + i];
      if (want != got)
        fail_msg("part %d,%d %dx%d: row %d byte %d is %d, not %d", (int)y, (int)x, (int)height,
                 (int)width, (int)row, (int)i, got, want);
    }
}

/* A part that is read by itself equals that part of the whole image to the bit. */
static void test_jpeg_parts(void **state) {
  (void)state;
  enum { HEIGHT = 83, WIDTH = 121 };
  for (int k = 0; k < N_JPEG_KINDS; k++)
    for (int channels = 1; channels <= 3; channels += 2) {
      AmprtBytes file = picture_jpeg(HEIGHT, WIDTH, jpeg_kinds[k]);
      AmprtBytes whole = decode_jpeg(&file, channels);
      AmprtKey key = amprt_rng_key(7, "parts");
      for (uint64_t i = 0; i < 150; i++) {
        AmprtWords w = amprt_rng_at(key, i, (uint64_t)k);
        int64_t height = 1 + amprt_rng_below(w.v[0], HEIGHT);
        int64_t width = 1 + amprt_rng_below(w.v[1], WIDTH);
        int64_t y = amprt_rng_below(w.v[2], (uint32_t)(HEIGHT - height + 1));
        int64_t x = amprt_rng_below(w.v[3], (uint32_t)(WIDTH - width + 1));
        if (cut(&file, channels, y, x, height, width))
          fail_msg("kind %d: %s", k, error.text);
        assert_part(&whole, channels, WIDTH, y, x, height, width);
      }
      free(file.data);
      free(whole.data);
    }
}

/* The 8 bits that a PNG sample of `bits` becomes: the upper half of 16 bits; fewer than 8 are
 * spread over the whole range. */
static int png_value(int64_t y, int64_t x, int c, int bits) {
  int value = picture_at(y, x, c);
  return bits >= 8 ? value : (value >> (8 - bits)) * 255 / ((1 << bits) - 1);
}

static void png_expect(PngKind kind, int64_t y, int64_t x, int channels, unsigned char *want) {
  int rgb[3];
  if (kind.type == PNG_COLOR_TYPE_PALETTE) {
    int i = picture_at(y, x, 0) >> (8 - kind.bits);
    rgb[0] = i;
    rgb[1] = 255 - i;
    rgb[2] = i * 7 % 256;
  }
  for (int c = 0; c < 3 && kind.type != PNG_COLOR_TYPE_PALETTE; c++)
    rgb[c] = png_value(y, x, kind.type & PNG_COLOR_MASK_COLOR ? c : 0, kind.bits);
  for (int c = 0; c < 3 && channels == 3; c++)
    want[c] = (unsigned char)rgb[c];
  if (channels == 1) /* if red, green and blue are equal, they are the luminance */
    want[0] = (unsigned char)((19595 * rgb[0] + 38470 * rgb[1] + 7471 * rgb[2] + 32768) >> 16);
}

static void test_png(void **state) {
  (void)state;
  enum { HEIGHT = 23, WIDTH = 37, Y = 5, X = 9, H = 11, W = 20 };
  static const struct {
    int type, least, most;
  } types[] = {{PNG_COLOR_TYPE_GRAY, 1, 16},
               {PNG_COLOR_TYPE_RGB, 8, 16},
               {PNG_COLOR_TYPE_PALETTE, 1, 8},
               {PNG_COLOR_TYPE_GRAY_ALPHA, 8, 16},
               {PNG_COLOR_TYPE_RGB_ALPHA, 8, 16}};
  for (size_t t = 0; t < sizeof types / sizeof *types; t++)
    for (int bits = types[t].least; bits <= types[t].most; bits *= 2)
      for (int k = 0; k < 8; k++) {
        int channels = k & 1 ? 1 : 3;
        PngKind kind = {types[t].type, bits, k >> 1 & 1,
                        k >> 2 && !(types[t].type & PNG_COLOR_MASK_ALPHA)};
        AmprtBytes file = picture_png(HEIGHT, WIDTH, kind);
        if (cut(&file, channels, Y, X, H, W))
          fail_msg("type %d, %d bits: %s", kind.type, bits, error.text);
        for (int i = 0; i < H * W; i++) {
          unsigned char want[3];
          png_expect(kind, Y + i / W, X + i % W, channels, want);
          if (memcmp(want, out + i * channels, (size_t)channels) != 0)
            fail_msg("type %d, %d bits, interlaced %d, transparent %d: pixel %d is %d, not %d",
                     kind.type, bits, kind.interlaced, kind.transparent, i, out[i * channels],
                     want[0]);
        }
        free(file.data);
      }
}

/* Images of inks (CMYK), which Adobe's programs store inverted. The result is compared with the
 * picture itself, of which JPEG loses little. */
static void test_cmyk(void **state) {
  (void)state;
  enum { HEIGHT = 40, WIDTH = 52 };
  for (int adobe = 0; adobe < 2; adobe++)
    for (int channels = 1; channels <= 3; channels += 2) {
      AmprtBytes file = picture_jpeg(HEIGHT, WIDTH, (JpegKind){.components = 4, .adobe = adobe});
      assert_int_equal(cut(&file, channels, 0, 0, HEIGHT, WIDTH), 0);
      double sum = 0;
      for (int i = 0; i < HEIGHT * WIDTH; i++) {
        double rgb[3], key = picture_at(i / WIDTH, i % WIDTH, 3);
        for (int c = 0; c < 3; c++) {
          double ink = picture_at(i / WIDTH, i % WIDTH, c);
          rgb[c] = adobe ? ink * key / 255 : (255 - ink) * (255 - key) / 255;
          if (channels == 3)
            sum += fabs(rgb[c] - out[3 * i + c]) / 3;
        }
        if (channels == 1)
          sum += fabs(.299 * rgb[0] + .587 * rgb[1] + .114 * rgb[2] - out[i]);
      }
      if (!(sum / (HEIGHT * WIDTH) < 8)) /* Adobe's has half as many samples of colour */
        fail_msg("adobe %d, %d channels: differs by %g", adobe, channels, sum / (HEIGHT * WIDTH));
      free(file.data);
    }
}

/* Where pixel (y, x) of the upright picture is stored, by what the EXIF standard says of each
 * value: row 0 is the upright picture's 1 top, 2 top, 3 bottom, 4 bottom, 5 left, 6 right, 7
 * right, 8 left side, column 0 its 1 left, 2 right, 3 right, 4 left, 5 top, 6 top, 7 bottom, 8
 * bottom. */
static void stored_at(int orientation, int64_t height, int64_t width, int64_t y, int64_t x,
                      int64_t *row, int64_t *column) {
  static const char row_side[] = " ttbblrrl", column_side[] = " lrrlttbb";
  const char side[2] = {row_side[orientation], column_side[orientation]};
  int64_t at[2];
  for (int i = 0; i < 2; i++)
    at[i] = side[i] == 't'   ? y
            : side[i] == 'b' ? height - 1 - y
            : side[i] == 'l' ? x
                             : width - 1 - x;
  *row = at[0];
  *column = at[1];
}

static void test_orientation(void **state) {
  (void)state;
  enum { HEIGHT = 45, WIDTH = 61, H = 21, W = 17, Y = 13, X = 11 };
  for (int k = 2; k < 18; k++) {
    int o = k / 2;
    JpegKind kind = {.components = 3, .h = 2, .v = 2, .orientation = o, .big_endian = k % 2};
    AmprtBytes file = picture_jpeg(HEIGHT, WIDTH, kind), whole = decode_jpeg(&file, 3);
    AmprtPhotoHead head;
    assert_int_equal(amprt_photo_head(file.data, file.size, room, &head, &error), 0);
    assert_int_equal(head.orientation, o);
    assert_int_equal(head.height, HEIGHT);
    int64_t height = o >= 5 ? WIDTH : HEIGHT, width = o >= 5 ? HEIGHT : WIDTH;
    AmprtPhotoSpec spec = {H, W, 3, AMPRT_OFFICIAL, .orientation = true};
    AmprtPhoto photo = {.bytes = file.data, .size = file.size};
    AmprtPhotoView view = {Y, X, H, W, H, W};
    assert_int_equal(amprt_photo_take(&spec, &photo, &view, room, out, &error), 0);
    for (int64_t i = 0; i < H * W; i++) {
      int64_t row, column;
      stored_at(o, height, width, Y + i / W, X + i % W, &row, &column);
      if (memcmp(out + 3 * i, whole.data + 3 * (row * WIDTH + column), 3) != 0)
        fail_msg("orientation %d: pixel %d", o, (int)i);
    }
    spec.orientation = false;
    assert_int_equal(amprt_photo_take(&spec, &photo, &view, room, out, &error), 0);
    assert_part(&whole, 3, WIDTH, Y, X, H, W);
    free(file.data);
    free(whole.data);
  }
}

static void assert_refused(const AmprtBytes *file, const char *says) {
  AmprtPhotoSpec spec = {64, 64, 3, AMPRT_OFFICIAL};
  AmprtPhoto photo = {.bytes = file->data, .size = file->size};
  AmprtStatus status = amprt_photo_prepare(&spec, &photo, (AmprtPhotoDraw){0}, room, out, &error);
  if (status != AMPRT_INPUT || !strstr(error.text, says))
    fail_msg("expected `%s`, got status %d `%s`", says, status, error.text);
}

/* A file that is cut off anywhere is refused, even if it still has the part that is asked for. A
 * file of one scan that lacks only its end marker counts as whole. */
static void test_cut_off(void **state) {
  (void)state;
  enum { SIDE = 40 };
  for (int k = 0; k < N_JPEG_KINDS + 2; k++) {
    bool png = k >= N_JPEG_KINDS;
    AmprtBytes file = png ? picture_png(SIDE, SIDE, (PngKind){PNG_COLOR_TYPE_RGB, 8, k % 2, false})
                          : picture_jpeg(SIDE, SIDE, jpeg_kinds[k]);
    assert_int_equal(cut(&file, 3, 0, 0, 8, 8), 0);
    unsigned char want[8 * 8 * 3];
    memcpy(want, out, sizeof want);
    size_t whole = png ? file.size - 12 : jpeg_kinds[k].progressive ? file.size : file.size - 2;
    for (size_t n = 0; n < file.size; n++) {
      unsigned char *bytes = malloc(n + 1); /* of its own, so that sanitizers see its end */
      assert_non_null(bytes);
      memcpy(bytes, file.data, n);
      AmprtBytes part = {bytes, n};
      AmprtStatus status = cut(&part, 3, 0, 0, 8, 8);
      if (n < whole - 1 ? status != AMPRT_INPUT : status && status != AMPRT_INPUT)
        fail_msg("kind %d, %zu of %zu bytes: status %d", k, n, file.size, status);
      if (!status && memcmp(want, out, sizeof want) != 0)
        fail_msg("kind %d, %zu of %zu bytes: another picture", k, n, file.size);
      free(bytes);
    }
    free(file.data);
  }
}

static void test_foreign(void **state) {
  (void)state;
  static const struct {
    const char *bytes, *says;
    size_t size;
  } cases[] = {
      {"", "empty", 0},
      {"\xff", "neither JPEG nor PNG", 1},
      {"\xff\xd8\xff", "JPEG: ", 3},
      {"GIF89a\1\0\1\0\0\0\0;", "neither JPEG nor PNG", 14},
      {"\x89PNG\r\n\x1a\n", "PNG: ", 8},
      {"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\x08\2\0\0\0abcd", "PNG: ", 33},
      {"<!DOCTYPE html>", "neither JPEG nor PNG", 15},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    unsigned char *bytes = malloc(cases[i].size + 1);
    assert_non_null(bytes);
    memcpy(bytes, cases[i].bytes, cases[i].size);
    assert_refused(&(AmprtBytes){bytes, cases[i].size}, cases[i].says);
    free(bytes);
  }
}

/* The place of a marker FF `code` in the file; what follows it there is its length. */
static unsigned char *marker(const AmprtBytes *file, int code) {
  for (size_t i = 2; i + 1 < file->size; i++)
    if (file->data[i] == 0xff && file->data[i + 1] == code)
      return file->data + i;
  fail_msg("no marker %x", (unsigned)code);
  return NULL;
}

static void set_size(const AmprtBytes *jpeg, int height, int width) {
  unsigned char *frame = marker(jpeg, 0xc0);
  const int value[4] = {height >> 8, height, width >> 8, width};
  for (int i = 0; i < 4; i++)
    frame[5 + i] = (unsigned char)value[i];
}

/* Forged headers: nothing is allocated for pixels that cannot be there. */
static void test_damaged(void **state) {
  (void)state;
  AmprtBytes file = picture_jpeg(40, 40, (JpegKind){.components = 3, .h = 2, .v = 2, .restart = 1});
  AmprtBytes copy = {malloc(file.size), file.size};
  assert_non_null(copy.data);
  memcpy(copy.data, file.data, file.size);
  set_size(&copy, 65500, 65500);
  assert_refused(&copy, "more than the 2^28");
  set_size(&copy, 10000, 10000);
  assert_refused(&copy, "cannot hold");
  set_size(&copy, 60, 40); /* more rows than there is data for */
  assert_refused(&copy, "JPEG: ");
  set_size(&copy, 0, 40);
  assert_refused(&copy, "JPEG: ");
  memcpy(copy.data, file.data, file.size);
  marker(&copy, 0xc0)[4] = 12;
  assert_refused(&copy, "precision");
  memcpy(copy.data, file.data, file.size);
  marker(&copy, 0xd0)[1] = 0xd3; /* a restart marker with the wrong number */
  assert_refused(&copy, "JPEG: ");
  free(file.data);
  free(copy.data);
  file = picture_jpeg(40, 40, (JpegKind){.components = 1, .two_scans = true});
  copy = (AmprtBytes){malloc(file.size + 8), file.size + 6};
  assert_non_null(copy.data);
  memcpy(copy.data, file.data, file.size - 2);
  memset(copy.data + file.size - 2, 0, 6); /* as all scans are read, these are too */
  memcpy(copy.data + file.size + 4, "\xff\xd9", 2);
  assert_int_equal(cut(&copy, 1, 0, 0, 40, 40), 0);
  free(copy.data);
  free(file.data);
  file = picture_jpeg(8, 8, (JpegKind){.components = 2});
  assert_refused(&file, "2 colour components");
  free(file.data);
}

/* A progressive file could repeat the same scan any number of times. */
static void test_many_scans(void **state) {
  (void)state;
  AmprtBytes file = picture_jpeg(16, 16, (JpegKind){.components = 1, .two_scans = true});
  unsigned char *last = NULL;
  for (size_t i = 2; i + 1 < file.size; i++)
    if (file.data[i] == 0xff && file.data[i + 1] == 0xda)
      last = file.data + i;
  assert_non_null(last);
  size_t scan = (size_t)(file.data + file.size - 2 - last), before = (size_t)(last - file.data);
  AmprtBytes many = {malloc(before + 600 * scan + 2), before + 600 * scan + 2};
  assert_non_null(many.data);
  memcpy(many.data, file.data, before);
  for (size_t i = 0; i < 600; i++)
    memcpy(many.data + before + i * scan, last, scan);
  memcpy(many.data + many.size - 2, "\xff\xd9", 2);
  assert_int_equal(cut(&many, 1, 0, 0, 8, 8), AMPRT_INPUT);
  assert_non_null(strstr(error.text, "more than 500 scans"));
  free(many.data);
  free(file.data);
}

/* Images with sides of 1 and of 20,000 pixels go through every preprocessing. */
static void test_sizes(void **state) {
  (void)state;
  static const int64_t sizes[][2] = {{1, 1}, {1, 20000}, {20000, 1},
                                     {3, 2}, {20000, 9}, {7, 65500}};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    for (int k = 0; k < 2 * AMPRT_N_PREPROCESSING * 2; k++) {
      int64_t height = sizes[i][0], width = sizes[i][1];
      AmprtPhotoSpec spec = {.height = 32,
                             .width = 48,
                             .channels = k % 2 ? 1 : 3,
                             .preprocessing = (AmprtPreprocessing)(k / 4),
                             .training = k / 2 % 2,
                             .flip = true};
      AmprtBytes file =
          k % 3 ? picture_jpeg(height, width, (JpegKind){.components = 3, .h = 2, .v = 2})
                : picture_png(height, width, (PngKind){PNG_COLOR_TYPE_RGB, 8, k % 2, false});
      AmprtPhoto photo = {.bytes = file.data, .size = file.size};
      AmprtPhotoDraw draw = {amprt_rng_key(1, "sizes"), 0, i};
      AmprtStatus status = amprt_photo_prepare(&spec, &photo, draw, room, out, &error);
      bool too_large = spec.preprocessing == AMPRT_PLAIN && (height > 32 || width > 48);
      if (status != (too_large ? AMPRT_INPUT : AMPRT_OK))
        fail_msg("%dx%d, %s: %s", (int)height, (int)width,
                 amprt_preprocessing_name(spec.preprocessing), error.text);
      if (too_large)
        assert_non_null(strstr(error.text, "another --preprocessing"));
      free(file.data);
    }
}

/* plain: the photograph is in the middle, with zeros around it. */
static void test_plain(void **state) {
  (void)state;
  AmprtBytes file = picture_png(5, 8, (PngKind){PNG_COLOR_TYPE_RGB, 8, false, false});
  AmprtPhotoSpec spec = {8, 10, 3, AMPRT_PLAIN};
  AmprtPhoto photo = {.bytes = file.data, .size = file.size};
  memset(out, 77, 8 * 10 * 3);
  assert_int_equal(amprt_photo_prepare(&spec, &photo, (AmprtPhotoDraw){0}, room, out, &error), 0);
  for (int y = 0; y < 8; y++)
    for (int x = 0; x < 10; x++)
      for (int c = 0; c < 3; c++) {
        bool inside = y >= 1 && y < 6 && x >= 1 && x < 9;
        assert_int_equal(out[(y * 10 + x) * 3 + c], inside ? picture_at(y - 1, x - 1, c) : 0);
      }
  free(file.data);
}

/* Large photographs, decoded at a half to an eighth of their size: straight lines stay where they
 * are, to less than a pixel of the photograph, which is 1 of 255. */
static void test_large(void **state) {
  (void)state;
  enum { HEIGHT = 1607, WIDTH = 1951, SIDE = 64 };
  static const int64_t down[] = {2, 4, 7, 8, 13, 24};
  AmprtBytes file =
      picture_jpeg(HEIGHT, WIDTH, (JpegKind){.components = 3, .h = 2, .v = 2, .smooth = true});
  AmprtPhoto photo = {.bytes = file.data, .size = file.size};
  for (size_t d = 0; d < sizeof down / sizeof *down; d++)
    for (int k = 0; k < 6; k++) {
      AmprtPreprocessing way = k / 2 == 0   ? AMPRT_OFFICIAL
                               : k / 2 == 1 ? AMPRT_KERAS
                                            : AMPRT_TORCHVISION;
      AmprtPhotoSpec spec = {SIDE, SIDE, 3, way, .fast = true};
      int64_t size = SIDE * down[d];
      AmprtPhotoView view = {37, 211, size, size, SIDE, SIDE, .mirrored = k % 2};
      assert_int_equal(amprt_photo_take(&spec, &photo, &view, room, out, &error), 0);
      double shift = way == AMPRT_OFFICIAL ? 0 : (double)down[d] / 2 - .5;
      int n = 0;
      for (int i = 0; i < SIDE * SIDE; i++) {
        double y = (double)(i / SIDE * down[d]) + shift, x = (double)(i % SIDE * down[d]) + shift;
        x = view.mirrored ? (double)size - 1 - x : x;
        double along = fmod(211 + x + (37 + y) / 2, 240), near = (double)down[d];
        bool straight = along > 3 * near && along < 240 - 3 * near;
        bool inside = x >= near && x < (double)size - near && y >= near && y < (double)size - near;
        if (!straight || !inside)
          continue;
        n++;
        if (!(fabs(out[3 * i] - smooth_at(37 + y, 211 + x)) < 1.6))
          fail_msg("way %d, 1 of %d: pixel %d is %d, not %g", k, (int)down[d], i, out[3 * i],
                   smooth_at(37 + y, 211 + x));
      }
      assert_true(n > SIDE * SIDE / 5);
    }
  free(file.data);
}

/* A grey photograph gives the same bytes with one channel and with three. */
static void test_grey(void **state) {
  (void)state;
  enum { SIDE = 56, N = SIDE * SIDE };
  AmprtBytes file = picture_jpeg(101, 130, (JpegKind){.components = 1});
  AmprtPhoto photo = {.bytes = file.data, .size = file.size};
  for (int k = 0; k < AMPRT_N_PREPROCESSING * 2; k++) {
    AmprtPhotoSpec spec = {SIDE,        SIDE, 1, (AmprtPreprocessing)(k / 2), .training = k % 2,
                           .flip = true};
    AmprtPhotoDraw draw = {amprt_rng_key(1, "grey"), 0, (uint64_t)k};
    if (spec.preprocessing == AMPRT_PLAIN)
      continue;
    assert_int_equal(amprt_photo_prepare(&spec, &photo, draw, room, out, &error), 0);
    spec.channels = 3;
    assert_int_equal(amprt_photo_prepare(&spec, &photo, draw, room, out + N, &error), 0);
    for (int i = 0; i < N * 3; i++)
      assert_int_equal(out[N + i], out[i / 3]);
  }
  free(file.data);
}

static void test_shrink(void **state) {
  (void)state;
  AmprtBytes file = picture_jpeg(90, 120, (JpegKind){.components = 3, .orientation = 6}), small,
             same;
  AmprtPhotoHead head;
  assert_int_equal(amprt_photo_shrink(file.data, file.size, 30, 90, false, room, &small, &error),
                   0);
  assert_int_equal(amprt_photo_head(small.data, small.size, room, &head, &error), 0);
  assert_int_equal(head.height, 30);
  assert_int_equal(head.width, 40);
  assert_int_equal(head.channels, 3);
  free(small.data);
  assert_int_equal(amprt_photo_shrink(file.data, file.size, 90, 90, false, room, &same, &error), 0);
  assert_int_equal(same.size, file.size);
  assert_memory_equal(same.data, file.data, file.size);
  free(same.data);
  assert_int_equal(amprt_photo_shrink(file.data, file.size, 90, 90, true, room, &small, &error), 0);
  assert_int_equal(amprt_photo_head(small.data, small.size, room, &head, &error), 0);
  assert_int_equal(head.height, 120);
  assert_int_equal(head.width, 90);
  assert_int_equal(head.orientation, 1);
  free(small.data);
  assert_int_equal(
      amprt_photo_shrink(file.data, file.size - 200, 30, 90, false, room, &small, &error),
      AMPRT_INPUT);
  assert_null(small.data);
  free(file.data);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_jpeg_parts), cmocka_unit_test(test_png),
      cmocka_unit_test(test_cmyk),       cmocka_unit_test(test_orientation),
      cmocka_unit_test(test_cut_off),    cmocka_unit_test(test_foreign),
      cmocka_unit_test(test_damaged),    cmocka_unit_test(test_many_scans),
      cmocka_unit_test(test_sizes),      cmocka_unit_test(test_plain),
      cmocka_unit_test(test_large),      cmocka_unit_test(test_grey),
      cmocka_unit_test(test_shrink)};
  room = amprt_photo_room_new();
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  amprt_photo_room_free(room);
  return failed;
}
