#include "runtime/image/libraries.h"
#include "runtime/image/photo.h"

#include <math.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

typedef struct Encoder {
  struct jpeg_compress_struct lib; /* the first member, as libjpeg hands out its address */
  struct jpeg_error_mgr errors;
  jmp_buf back;
  AmprtError *error;
  unsigned char *out;
  unsigned long size;
} Encoder;

static void fail(j_common_ptr lib) {
  Encoder *encoder = (Encoder *)lib;
  char text[JMSG_LENGTH_MAX];
  lib->err->format_message(lib, text);
  amprt_fail(encoder->error, AMPRT_ENV, "writing a JPEG: %s", text);
  longjmp(encoder->back, 1);
}

/* Sets encoder->out, also when it fails. */
static AmprtStatus encode(Encoder *encoder, const AmprtPhotoSpec *spec, const unsigned char *pixel,
                          int quality, AmprtError *error) {
  const AmprtJpegApi *api;
  if (amprt_image_jpeg(&api, error))
    return error->status;
  struct jpeg_compress_struct *lib = &encoder->lib;
  lib->err = api->jpeg_std_error(&encoder->errors);
  encoder->errors.error_exit = fail;
  encoder->error = error;
  if (setjmp(encoder->back)) {
    api->jpeg_destroy_compress(lib);
    return error->status;
  }
  api->jpeg_CreateCompress(lib, JPEG_LIB_VERSION, sizeof *lib);
  api->jpeg_mem_dest(lib, &encoder->out, &encoder->size);
  lib->image_height = (JDIMENSION)spec->height;
  lib->image_width = (JDIMENSION)spec->width;
  lib->input_components = (int)spec->channels;
  lib->in_color_space = spec->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  api->jpeg_set_defaults(lib);
  api->jpeg_set_quality(lib, quality, TRUE);
  lib->optimize_coding = TRUE; /* smaller, for as many reads as there will be */
  api->jpeg_start_compress(lib, TRUE);
  for (int64_t y = 0; y < spec->height; y++) {
    JSAMPROW row = (JSAMPROW)(uintptr_t)(pixel + y * spec->width * spec->channels);
    api->jpeg_write_scanlines(lib, &row, 1);
  }
  api->jpeg_finish_compress(lib);
  api->jpeg_destroy_compress(lib);
  return AMPRT_OK;
}

static AmprtStatus copy(const unsigned char *bytes, size_t size, AmprtBytes *out,
                        AmprtError *error) {
  out->data = malloc(size);
  out->size = size;
  if (!out->data)
    return amprt_fail_memory(error, size, "an image");
  memcpy(out->data, bytes, size);
  return AMPRT_OK;
}

AmprtStatus amprt_photo_shrink(const unsigned char *bytes, size_t size, int64_t side, int quality,
                               bool orientation, AmprtPhotoRoom *room, AmprtBytes *out,
                               AmprtError *error) {
  AmprtPhotoHead head;
  *out = (AmprtBytes){0};
  AmprtStatus status = amprt_photo_head(bytes, size, room, &head, error);
  if (status)
    return status;
  int turn = orientation ? head.orientation : 1;
  int64_t height = turn >= 5 ? head.width : head.height,
          width = turn >= 5 ? head.height : head.width;
  int64_t shorter = height < width ? height : width;
  if (shorter <= side && turn == 1 && strcmp(head.kind, "JPEG") == 0)
    return copy(bytes, size, out, error);
  double scale = shorter > side ? (double)side / (double)shorter : 1;
  AmprtPhotoSpec spec = {.height = (int64_t)nearbyint((double)height * scale),
                         .width = (int64_t)nearbyint((double)width * scale),
                         .channels = head.channels == 1 ? 1 : 3,
                         .preprocessing = AMPRT_TORCHVISION,
                         .orientation = orientation};
  AmprtPhotoView view = {
      .height = height, .width = width, .resized_height = spec.height, .resized_width = spec.width};
  AmprtPhoto photo = {.bytes = bytes, .size = size};
  size_t n = (size_t)(spec.height * spec.width * spec.channels);
  unsigned char *pixel = malloc(n);
  if (!pixel)
    return amprt_fail_memory(error, n, "an image");
  Encoder encoder = {.out = NULL};
  status = amprt_photo_take(&spec, &photo, &view, room, pixel, error);
  if (!status)
    status = encode(&encoder, &spec, pixel, quality, error);
  free(pixel);
  if (status)
    free(encoder.out);
  else
    *out = (AmprtBytes){encoder.out, encoder.size};
  return status;
}
