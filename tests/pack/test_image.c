/* Tests what packing makes of one image: its size, its pixels, and what else of it is kept. */
#include "runtime/pack/image.h"
#include "tests/image/pictures.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
/* clang-format off: cmocka.h needs the others before it */
#include <cmocka.h>
/* clang-format on */

static AmprtError error;
static AmprtPhotoRoom *room;

/* The head of what packing makes of a file; *out is {0} if it stays as it is. */
static AmprtPhotoHead packed(const AmprtBytes *file, PackOptions options, AmprtBytes *out) {
  AmprtPhotoHead head;
  if (pack_image(file->data, file->size, &options, room, out, &error))
    fail_msg("%s", error.text);
  const AmprtBytes *now = out->data ? out : file;
  assert_int_equal(amprt_photo_head(now->data, now->size, room, &head, &error), 0);
  return head;
}

static void test_sizes(void **state) {
  (void)state;
  static const struct {
    int64_t height, width, side, to_height, to_width; /* to_height 0: stays as it is */
  } row[] = {
      {60, 90, 30, 30, 45}, {90, 60, 30, 45, 30},   {90, 61, 30, 44, 30},
      {61, 90, 30, 30, 44}, {300, 31, 30, 290, 30}, {60, 90, 60, 0, 0},
      {60, 90, 61, 0, 0},   {60, 90, 0, 0, 0},      {60, 90, 1, 1, 2},
  };
  for (size_t i = 0; i < sizeof row / sizeof *row; i++)
    for (int form = 0; form < 4; form++) {
      AmprtBytes out,
          file = form & 1
                     ? picture_png(row[i].height, row[i].width, (PngKind){.type = 2, .bits = 8})
                     : picture_jpeg(row[i].height, row[i].width, (JpegKind){.components = 3});
      PackOptions options = {.resize = row[i].side, .quality = 95, .lossless = form & 2};
      AmprtPhotoHead head = packed(&file, options, &out);
      assert_int_equal(out.data != NULL, row[i].to_height != 0);
      if (out.data) {
        assert_string_equal(head.kind, form & 2 ? "PNG" : "JPEG");
        assert_int_equal(head.height, row[i].to_height);
        assert_int_equal(head.width, row[i].to_width);
      }
      free(out.data);
      free(file.data);
    }
}

/* A grey image stays grey, one of inks (CMYK) becomes colour, and the orientation is kept in
 * EXIF. */
static void test_kept(void **state) {
  (void)state;
  PackOptions options = {.resize = 30, .quality = 95};
  for (int components = 1; components <= 4; components += components == 1 ? 2 : 1)
    for (int orientation = 0; orientation <= 8; orientation++) {
      AmprtBytes out, file = picture_jpeg(60, 90,
                                          (JpegKind){.components = components,
                                                     .orientation = orientation,
                                                     .big_endian = orientation % 2});
      AmprtPhotoHead head = packed(&file, options, &out);
      assert_non_null(out.data);
      assert_int_equal(head.channels, components == 1 ? 1 : 3);
      assert_int_equal(head.orientation, orientation ? orientation : 1);
      assert_int_equal(head.height, 30);
      assert_int_equal(head.width, 45);
      free(out.data);
      free(file.data);
    }
}

static void take(const AmprtBytes *file, int64_t height, int64_t width, int64_t to_height,
                 int64_t to_width, int64_t channels, unsigned char *pixel) {
  AmprtPhotoSpec spec = {to_height, to_width, channels, .preprocessing = AMPRT_TORCHVISION};
  AmprtPhoto photo = {.bytes = file->data, .size = file->size};
  AmprtPhotoView view = {0, 0, height, width, to_height, to_width, 0, 0, false};
  assert_int_equal(amprt_photo_take(&spec, &photo, &view, room, pixel, &error), 0);
}

/* A PNG has exactly the pixels of torchvision's resize; the luminance of a JPEG differs less, the
 * higher its quality is. */
static void test_pixels(void **state) {
  (void)state;
  enum { H = 40, W = 60, N = H * W * 3 };
  static unsigned char want[N], got[N];
  AmprtBytes out, file = picture_jpeg(120, 180, (JpegKind){.components = 3});
  take(&file, 120, 180, H, W, 3, want);
  packed(&file, (PackOptions){.resize = H, .lossless = true}, &out);
  take(&out, H, W, H, W, 3, got);
  assert_memory_equal(want, got, N);
  free(out.data);
  take(&file, 120, 180, H, W, 1, want);
  double before = 256;
  for (int quality = 10; quality <= 100; quality += 30) {
    double sum = 0;
    packed(&file, (PackOptions){.resize = H, .quality = quality}, &out);
    take(&out, H, W, H, W, 1, got);
    for (int i = 0; i < H * W; i++)
      sum += abs(want[i] - got[i]);
    assert_true(sum / (H * W) < before);
    before = sum / (H * W);
    free(out.data);
  }
  assert_true(before < 1);
  free(file.data);
}

static void assert_bad(const AmprtBytes *file, PackOptions options, const char *says) {
  AmprtBytes out;
  assert_int_equal(pack_image(file->data, file->size, &options, room, &out, &error), AMPRT_INPUT);
  assert_null(out.data);
  if (!strstr(error.text, says))
    fail_msg("expected `%s`, got `%s`", says, error.text);
}

/* A file that was cut is found when it is decoded; a file that is no image is found always. */
static void test_damaged(void **state) {
  (void)state;
  AmprtBytes out, jpeg = picture_jpeg(60, 90, (JpegKind){.components = 3});
  AmprtBytes png = picture_png(60, 90, (PngKind){.type = 2, .bits = 8});
  AmprtBytes text = {(unsigned char *)(uintptr_t) "no image", 8};
  assert_bad(&text, (PackOptions){0}, "neither JPEG nor PNG");
  PackOptions check = {.check_images = true}, resize = {.resize = 30, .quality = 95};
  packed(&jpeg, check, &out);
  assert_null(out.data);
  packed(&png, check, &out);
  assert_null(out.data);
  jpeg.size = jpeg.size * 3 / 4;
  png.size = png.size * 3 / 4;
  packed(&jpeg, (PackOptions){0}, &out);
  assert_null(out.data);
  assert_bad(&jpeg, check, "JPEG: ");
  assert_bad(&png, check, "PNG: ");
  assert_bad(&jpeg, resize, "JPEG: ");
  assert_bad(&png, resize, "PNG: ");
  resize.lossless = true;
  assert_bad(&jpeg, resize, "JPEG: ");
  free(jpeg.data);
  free(png.data);
}

int main(void) {
  const struct CMUnitTest test[] = {
      cmocka_unit_test(test_sizes),
      cmocka_unit_test(test_kept),
      cmocka_unit_test(test_pixels),
      cmocka_unit_test(test_damaged),
  };
  room = amprt_photo_room_new();
  int failed = room ? cmocka_run_group_tests(test, NULL, NULL) : 1;
  amprt_photo_room_free(room);
  return failed;
}
