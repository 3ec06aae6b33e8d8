/* Tests programs on machines that lack libjpeg or libpng, or have one that lacks a function. */
#include "runtime/system/system.h"

#include <stdio.h>
#include <string.h>

static void *fake_open(const char *file, bool global, char *why, size_t size);
static void *fake_symbol(void *library, const char *name);
#define amprt_library_open   fake_open
#define amprt_library_symbol fake_symbol
#include "runtime/image/libraries.c"
#undef amprt_library_open
#undef amprt_library_symbol

#include "runtime/image/photo.h"

#include <setjmp.h>
#include <stdarg.h>
/* clang-format off: cmocka.h needs the others before it */
#include <cmocka.h>
/* clang-format on */

static int n_opened;

static void *fake_open(const char *file, bool global, char *why, size_t size) {
  n_opened++;
  if (strstr(file, "png"))
    return amprt_library_open(file, global, why, size);
  snprintf(why, size, "no such file");
  return NULL;
}

static void *fake_symbol(void *library, const char *name) {
  return strcmp(name, "png_read_row") == 0 ? NULL : amprt_library_symbol(library, name);
}

static void assert_missing(const char *bytes, size_t size, const char *first, const char *second) {
  AmprtError error;
  AmprtPhotoHead head;
  AmprtPhotoRoom *room = amprt_photo_room_new();
  for (int i = 0; i < 2; i++) { /* the second time the answer is remembered */
    AmprtStatus status = amprt_photo_head((const unsigned char *)bytes, size, room, &head, &error);
    assert_int_equal(status, AMPRT_ENV);
    if (!strstr(error.text, first) || !strstr(error.text, second))
      fail_msg("expected `%s` and `%s`, got `%s`", first, second, error.text);
  }
  amprt_photo_room_free(room);
}

static void test_missing(void **state) {
  (void)state;
  assert_missing("\xff\xd8\xff", 3, AMPRT_JPEG_FILE " (package libjpeg62-turbo on Debian",
                 "no such file");
  assert_missing("\x89PNG\r\n\x1a\n", 8, "libpng16.so.16 (package libpng16-16",
                 "has no png_read_row");
  assert_int_equal(n_opened, 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_missing)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
