#include "runtime/pack/image.h"

#include <math.h>
#include <png.h>
#include <stdlib.h>
#include <string.h>

/* Decodes the whole photograph, by asking for a single pixel that is the mean of all. */
static AmprtStatus check(const AmprtPhoto *photo, const AmprtPhotoHead *head, AmprtPhotoRoom *room,
                         AmprtError *error) {
  unsigned char pixel[3];
  AmprtPhotoSpec spec = {1, 1, 3, .preprocessing = AMPRT_TORCHVISION};
  AmprtPhotoView view = {0, 0, head->height, head->width, 1, 1, 0, 0, false};
  return amprt_photo_take(&spec, photo, &view, room, pixel, error);
}

static AmprtStatus encode_png(const AmprtPhotoSpec *spec, const unsigned char *pixel,
                              AmprtBytes *out, AmprtError *error) {
  png_image image = {.version = PNG_IMAGE_VERSION,
                     .width = (png_uint_32)spec->width,
                     .height = (png_uint_32)spec->height,
                     .format = spec->channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB};
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image);
  out->data = malloc(size);
  if (!out->data)
    return amprt_fail_memory(error, size, "an image");
  if (!png_image_write_to_memory(&image, out->data, &size, 0, pixel, 0, NULL)) {
    free(out->data);
    out->data = NULL;
    return amprt_fail(error, AMPRT_ENV, "writing a PNG: %s", image.message);
  }
  out->size = size;
  return AMPRT_OK;
}

/* The same pixels that amprt_photo_shrink writes as a JPEG. */
static AmprtStatus shrink_to_png(const AmprtPhoto *photo, const AmprtPhotoHead *head, int64_t side,
                                 AmprtPhotoRoom *room, AmprtBytes *out, AmprtError *error) {
  double shorter = (double)(head->height < head->width ? head->height : head->width);
  double scale = (double)side / shorter;
  AmprtPhotoSpec spec = {.height = (int64_t)nearbyint((double)head->height * scale),
                         .width = (int64_t)nearbyint((double)head->width * scale),
                         .channels = head->channels == 1 ? 1 : 3,
                         .preprocessing = AMPRT_TORCHVISION};
  AmprtPhotoView view = {0, 0, head->height, head->width, spec.height, spec.width, 0, 0, false};
  size_t size = (size_t)(spec.height * spec.width * spec.channels);
  unsigned char *pixel = malloc(size);
  if (!pixel)
    return amprt_fail_memory(error, size, "an image");
  AmprtStatus status = amprt_photo_take(&spec, photo, &view, room, pixel, error);
  if (!status)
    status = encode_png(&spec, pixel, out, error);
  free(pixel);
  return status;
}

/* Puts EXIF data behind the first two bytes of a JPEG that say nothing but its orientation: the
 * file was made without, and programs have a flag to heed it. */
static AmprtStatus keep_orientation(AmprtBytes *jpeg, int orientation, AmprtError *error) {
  enum { AT = 2, VALUE = 29 };
  unsigned char segment[] = {
      0xff, 0xe1, 0, 34, 'E', 'x', 'i', 'f', 0, 0,       /* APP1, its size */
      'M',  'M',  0, 42, 0,   0,   0,   8,   0, 1,       /* TIFF, with one entry at 8: */
      1,    18,   0, 3,  0,   0,   0,   1,   0, 1, 0, 0, /* tag 274, a short, one of them */
      0,    0,    0, 0};
  unsigned char *more = realloc(jpeg->data, jpeg->size + sizeof segment);
  if (!more)
    return amprt_fail_memory(error, jpeg->size + sizeof segment, "an image");
  segment[VALUE] = (unsigned char)orientation;
  memmove(more + AT + sizeof segment, more + AT, jpeg->size - AT);
  memcpy(more + AT, segment, sizeof segment);
  *jpeg = (AmprtBytes){more, jpeg->size + sizeof segment};
  return AMPRT_OK;
}

AmprtStatus pack_image(const unsigned char *bytes, size_t size, const PackOptions *options,
                       AmprtPhotoRoom *room, AmprtBytes *out, AmprtError *error) {
  AmprtPhoto photo = {.bytes = bytes, .size = size};
  AmprtPhotoHead head;
  *out = (AmprtBytes){0};
  AmprtStatus status = amprt_photo_head(bytes, size, room, &head, error);
  if (status)
    return status;
  int64_t shorter = head.height < head.width ? head.height : head.width;
  if (!options->resize || shorter <= options->resize)
    return options->check_images ? check(&photo, &head, room, error) : AMPRT_OK;
  if (options->lossless)
    return shrink_to_png(&photo, &head, options->resize, room, out, error);
  status = amprt_photo_shrink(bytes, size, options->resize, (int)options->quality, false, room, out,
                              error);
  if (!status && head.orientation != 1)
    status = keep_orientation(out, head.orientation, error);
  return status;
}
