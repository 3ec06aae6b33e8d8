/* Reads any bytes as a photograph. The first two choose the preprocessing, training or evaluation,
 * channels, turning and the number of the example; the rest is the file. A file that is accepted
 * must fill the result, with the same bytes a second time. */
#include "runtime/image/photo.h"

#include <stdlib.h>
#include <string.h>

enum { SIDE = 24 };

static void prepare(const AmprtPhotoSpec *spec, const AmprtPhoto *photo, AmprtPhotoDraw draw,
                    AmprtPhotoRoom *room) {
  static unsigned char out[2][SIDE * SIDE * 3];
  AmprtError error;
  AmprtStatus status[2];
  for (int i = 0; i < 2; i++) {
    memset(out[i], i, sizeof out[i]);
    status[i] = amprt_photo_prepare(spec, photo, draw, room, out[i], &error);
  }
  if (status[0] != status[1])
    abort();
  if (!status[0] && memcmp(out[0], out[1], (size_t)(SIDE * SIDE * spec->channels)) != 0)
    abort();
}

static void shrink(const AmprtPhoto *photo, bool orientation, AmprtPhotoRoom *room) {
  AmprtBytes small, again;
  AmprtPhotoHead head;
  AmprtError error;
  if (amprt_photo_shrink(photo->bytes, photo->size, SIDE, 80, orientation, room, &small, &error))
    return;
  if (amprt_photo_head(small.data, small.size, room, &head, &error) ||
      amprt_photo_shrink(small.data, small.size, SIDE, 80, orientation, room, &again, &error))
    abort();
  free(again.data);
  free(small.data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static AmprtPhotoRoom *room; /* kept from file to file, to find files that spoil the next one */
  if (!room)
    room = amprt_photo_room_new();
  if (size < 2 || !room)
    return 0;
  const AmprtBox box = {0.25f, 0.25f, 0.5f, 0.75f};
  AmprtPhotoSpec spec = {.height = SIDE,
                         .width = SIDE,
                         .channels = data[0] & 4 ? 1 : 3,
                         .preprocessing = (AmprtPreprocessing)(data[0] % AMPRT_N_PREPROCESSING),
                         .training = data[0] >> 3 & 1,
                         .flip = true,
                         .fast = data[0] >> 7 & 1,
                         .orientation = data[0] >> 4 & 1};
  AmprtPhoto photo = {
      .bytes = data + 2, .size = size - 2, .box = &box, .n_boxes = data[0] >> 5 & 1};
  AmprtPhotoHead head;
  AmprtError error;
  /* larger photographs may be valid, but would take too long */
  if (!amprt_photo_head(photo.bytes, photo.size, room, &head, &error) &&
      head.height * head.width > 1 << 20)
    return 0;
  if (data[0] >> 6 & 1)
    shrink(&photo, spec.orientation, room);
  else
    prepare(&spec, &photo, (AmprtPhotoDraw){{{1, 2}}, 0, data[1]}, room);
  return 0;
}
