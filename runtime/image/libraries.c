#include "runtime/image/libraries.h"

#include "runtime/system/system.h"

#include <pthread.h>
#include <string.h>

typedef struct Entry {
  const char *name;
  size_t at; /* offset of its pointer in the struct, in bytes */
} Entry;

typedef struct Library {
  const char *file, *package;
  const Entry *entry;
  size_t n;
  char why[300]; /* it could not be opened; "" */
} Library;

static AmprtJpegApi jpeg_api;
static AmprtPngApi png_api;

static const Entry jpeg_entry[] = {
#define JPEG(result, name, arguments) {#name, offsetof(AmprtJpegApi, name)},
#include "runtime/image/jpeg_api.def"
};
static const Entry png_entry[] = {
#define PNG(result, name, arguments) {#name, offsetof(AmprtPngApi, name)},
#include "runtime/image/png_api.def"
};

static Library jpeg = {AMPRT_JPEG_FILE, "libjpeg62-turbo on Debian, libjpeg-turbo8 on Ubuntu",
                       jpeg_entry, sizeof jpeg_entry / sizeof *jpeg_entry, ""};
static Library png = {AMPRT_PNG_FILE, "libpng16-16", png_entry,
                      sizeof png_entry / sizeof *png_entry, ""};

/* A pointer to a function does not convert from void * in C, but POSIX lets its bytes be copied. */
static void open_library(Library *library, void *api) {
  void *opened = amprt_library_open(library->file, false, library->why, sizeof library->why);
  if (!opened)
    return;
  for (size_t i = 0; i < library->n; i++) {
    void *found = amprt_library_symbol(opened, library->entry[i].name);
    if (!found)
      snprintf(library->why, sizeof library->why, "it has no %s", library->entry[i].name);
    memcpy((char *)api + library->entry[i].at, &found, sizeof found);
  }
}

static void open_jpeg(void) {
  open_library(&jpeg, &jpeg_api);
}

static void open_png(void) {
  open_library(&png, &png_api);
}

static AmprtStatus opened(const Library *library, const char *kind, AmprtError *error) {
  if (!*library->why)
    return AMPRT_OK;
  return amprt_fail(error, AMPRT_ENV, "%s files need %s (package %s): %s", kind, library->file,
                    library->package, library->why);
}

AmprtStatus amprt_image_jpeg(const AmprtJpegApi **api, AmprtError *error) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, open_jpeg);
  *api = &jpeg_api;
  return opened(&jpeg, "JPEG", error);
}

AmprtStatus amprt_image_png(const AmprtPngApi **api, AmprtError *error) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, open_png);
  *api = &png_api;
  return opened(&png, "PNG", error);
}
