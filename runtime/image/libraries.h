/* libjpeg-turbo and libpng, opened when the first photograph is met, through structs of pointers to
 * their functions. The structs that libjpeg shares with its callers are those of the header that
 * libamprt was built with; its version is in the name of the library that is opened. */
#ifndef AMPRT_IMAGE_LIBRARIES_H
#define AMPRT_IMAGE_LIBRARIES_H

#include "runtime/base/status.h"

#include <jpeglib.h>
#include <png.h>
#include <stdio.h> /* jpeglib.h needs it */

/* libjpeg-turbo can be built with the structs of libjpeg 6b, 7 and 8: Debian has the first, Ubuntu
 * the last. */
#if JPEG_LIB_VERSION >= 80
#define AMPRT_JPEG_FILE "libjpeg.so.8"
#elif JPEG_LIB_VERSION >= 70
#define AMPRT_JPEG_FILE "libjpeg.so.7"
#else
#define AMPRT_JPEG_FILE "libjpeg.so.62"
#endif
#define AMPRT_PNG_FILE "libpng16.so.16"

typedef struct AmprtJpegApi {
#define JPEG(result, name, arguments) result(*name) arguments;
#include "runtime/image/jpeg_api.def"
} AmprtJpegApi;

typedef struct AmprtPngApi {
#define PNG(result, name, arguments) result(*name) arguments;
#include "runtime/image/png_api.def"
} AmprtPngApi;

/* AMPRT_ENV, with the package that has the library, if it cannot be had. */
AmprtStatus amprt_image_jpeg(const AmprtJpegApi **api, AmprtError *error);
AmprtStatus amprt_image_png(const AmprtPngApi **api, AmprtError *error);

#endif
