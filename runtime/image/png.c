/* PNG through libpng: whatever a file holds becomes 8 bits, without alpha, palette and grey levels
 * of fewer bits. libpng's errors come back by longjmp; its warnings are about what changes no
 * pixel. */
#include "runtime/image/codec.h"
#include "runtime/image/libraries.h"
#include "runtime/image/room.h"

#include <setjmp.h>
#include <string.h>

enum { MOST_PIXELS_A_BYTE = 8 * 1032 }; /* of one bit each; deflate packs 1032 to 1 at best */

typedef struct Png {
  png_structp lib;
  png_infop info;
  const AmprtPngApi *api;
  jmp_buf back;
  AmprtError *error;
  const unsigned char *next; /* of the file */
  size_t left;
  bool no_end; /* the file has no end chunk: read all rows to see what is missing */
  int64_t height, width, y, lanes;
  int passes;                    /* of an interlaced file: it is decoded as a whole */
  bool grey;                     /* rows of colour are to become luminance */
  unsigned char *spare, *pixels; /* a row, all rows, as libpng makes them */
  size_t spare_size, pixels_size;
} Png;

/* Callbacks of libpng, which is open when it calls them. */
static Png *owner(png_structp lib) {
  const AmprtPngApi *api;
  AmprtError ignored;
  amprt_image_png(&api, &ignored);
  return api->png_get_error_ptr(lib);
}

static void fail(png_structp lib, png_const_charp text) {
  Png *png = owner(lib);
  amprt_fail(png->error, strstr(text, "memory") ? AMPRT_ENV : AMPRT_INPUT, "PNG: %s", text);
  longjmp(png->back, 1);
}

static void warn(png_structp lib, png_const_charp text) {
  (void)lib;
  (void)text;
}

static void read_bytes(png_structp lib, png_bytep out, size_t n) {
  Png *png = owner(lib);
  if (n > png->left)
    fail(lib, "the file is cut off");
  memcpy(out, png->next, n);
  png->next += n;
  png->left -= n;
}

static void *png_make(AmprtError *error) {
  const AmprtPngApi *api;
  if (amprt_image_png(&api, error))
    return NULL;
  Png *png = calloc(1, sizeof *png);
  if (!png)
    amprt_fail_memory(error, sizeof *png, "a PNG decoder");
  else
    png->api = api;
  return png;
}

static void png_drop(void *decoder) {
  Png *png = decoder;
  free(png->spare);
  free(png->pixels);
  free(png);
}

static AmprtStatus png_open(void *decoder, const unsigned char *bytes, size_t size,
                            bool orientation, AmprtPhotoHead *head, AmprtError *error) {
  Png *png = decoder;
  const AmprtPngApi *api = png->api;
  (void)orientation;
  png->error = error;
  png->next = bytes;
  png->left = size;
  png->no_end = !amprt_photo_ends(bytes, size, "IEND\xae\x42\x60\x82", 8);
  png->lib = api->png_create_read_struct(PNG_LIBPNG_VER_STRING, png, fail, warn);
  png->info = png->lib ? api->png_create_info_struct(png->lib) : NULL;
  if (!png->info)
    return amprt_fail(error, AMPRT_ENV, "libpng cannot start: no memory, or not version %s",
                      PNG_LIBPNG_VER_STRING);
  if (setjmp(png->back))
    return error->status;
  api->png_set_read_fn(png->lib, png, read_bytes);
  api->png_set_user_limits(png->lib, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
  api->png_read_info(png->lib, png->info);
  png->height = api->png_get_image_height(png->lib, png->info);
  png->width = api->png_get_image_width(png->lib, png->info);
  png->y = 0;
  bool colour = api->png_get_color_type(png->lib, png->info) & PNG_COLOR_MASK_COLOR;
  *head = (AmprtPhotoHead){.kind = "PNG",
                           .height = png->height,
                           .width = png->width,
                           .channels = colour ? 3 : 1,
                           .orientation = 1};
  return amprt_photo_check_size("PNG", (uint64_t)png->height, (uint64_t)png->width, size,
                                MOST_PIXELS_A_BYTE, error);
}

/* The whole of an interlaced file, as its rows come in several passes. */
static void read_passes(Png *png, size_t row) {
  for (int pass = 0; pass < png->passes; pass++)
    for (int64_t y = 0; y < png->height; y++)
      png->api->png_read_row(png->lib, png->pixels + (size_t)y * row, NULL);
}

static AmprtStatus png_start(void *decoder, AmprtRegion *region, AmprtError *error) {
  Png *png = decoder;
  const AmprtPngApi *api = png->api;
  bool colour = api->png_get_color_type(png->lib, png->info) & PNG_COLOR_MASK_COLOR;
  uint64_t lanes = colour || region->lanes == 4 ? 4 : 1, row = (uint64_t)png->width * lanes;
  png->error = error;
  png->lanes = (int64_t)lanes;
  png->grey = colour && region->lanes == 1;
  region->x = 0;
  region->width = png->width;
  AmprtStatus status = amprt_room_grow((void **)&png->spare, &png->spare_size, row, error);
  if (!status && api->png_get_interlace_type(png->lib, png->info) != PNG_INTERLACE_NONE)
    status = amprt_room_grow((void **)&png->pixels, &png->pixels_size, row * (uint64_t)png->height,
                             error);
  if (status)
    return status;
  if (setjmp(png->back))
    return error->status;
  api->png_set_expand(png->lib);
  api->png_set_strip_16(png->lib);
  api->png_set_strip_alpha(png->lib);
  if (lanes == 4) {
    api->png_set_gray_to_rgb(png->lib);
    api->png_set_filler(png->lib, 0xff, PNG_FILLER_AFTER);
  }
  png->passes = api->png_set_interlace_handling(png->lib);
  api->png_read_update_info(png->lib, png->info);
  if (api->png_get_rowbytes(png->lib, png->info) != row)
    fail(png->lib, "libpng makes rows of another size than was asked for");
  if (png->passes > 1)
    read_passes(png, row);
  while (png->passes == 1 && png->y < region->y) {
    api->png_read_row(png->lib, png->spare, NULL);
    png->y++;
  }
  png->y = region->y;
  return AMPRT_OK;
}

static AmprtStatus png_row(void *decoder, unsigned char *out, AmprtError *error) {
  Png *png = decoder;
  size_t row = (size_t)(png->width * png->lanes);
  unsigned char *to = png->grey ? png->spare : out;
  png->error = error;
  if (setjmp(png->back))
    return error->status;
  if (png->passes > 1)
    memcpy(to, png->pixels + (size_t)png->y * row, row);
  else
    png->api->png_read_row(png->lib, to, NULL);
  if (png->grey)
    amprt_photo_grey(to, out, (size_t)png->width);
  png->y++;
  return AMPRT_OK;
}

static AmprtStatus png_finish(void *decoder, AmprtError *error) {
  Png *png = decoder;
  png->error = error;
  if (setjmp(png->back))
    return error->status;
  for (; png->no_end && png->passes == 1 && png->y < png->height; png->y++)
    png->api->png_read_row(png->lib, png->spare, NULL);
  return AMPRT_OK;
}

static void png_close(void *decoder) {
  Png *png = decoder;
  png->api->png_destroy_read_struct(&png->lib, &png->info, NULL);
}

const AmprtCodec amprt_png_codec = {
    "PNG",    "\x89PNG\r\n\x1a\n", 8,       false,      png_make, png_drop,
    png_open, png_start,           png_row, png_finish, png_close};
