#include "runtime/data/example.h"

#include <stdlib.h>
#include <string.h>

AmprtStatus amprt_example_spec(const AmprtProgram *program, const AmprtOptions *options,
                               bool training, AmprtExampleSpec *spec, AmprtError *error) {
  bool augment = training && !options->no_augment;
  *spec = (AmprtExampleSpec){
      .image = {program->height, program->width, program->channels,
                .pad = augment ? options->pad : 0, .flip = augment && options->flip,
                .standardize = options->standardize != 0},
      .photo = {program->height, program->width, program->channels, .training = augment,
                .flip = augment && options->flip, .fast = options->fast_decode,
                .orientation = options->exif_orientation},
      .erase = augment ? options->random_erasing : 0,
  };
  if (!amprt_preprocessing_find(options->preprocessing, &spec->photo.preprocessing))
    return amprt_fail(error, AMPRT_USAGE, "--preprocessing: there is no `%.80s`",
                      options->preprocessing);
  return AMPRT_OK;
}

void amprt_example_room_free(AmprtExampleRoom *room) {
  free(room->record.data);
  free(room->plain.data);
  amprt_photo_room_free(room->photo);
  *room = (AmprtExampleRoom){0};
}

/* Treats an image file like raw pixels: decodes all of it, then pads, crops and flips it. */
static AmprtStatus prepare_plain(const AmprtExampleSpec *spec, const AmprtPhoto *photo,
                                 AmprtWords random, AmprtExampleRoom *room, unsigned char *pixel,
                                 AmprtScaling *scaling, AmprtError *error) {
  AmprtPhotoHead head;
  AmprtPhotoSpec whole = spec->photo;
  AmprtStatus status = amprt_photo_head(photo->bytes, photo->size, room->photo, &head, error);
  if (status)
    return status;
  bool turned = whole.orientation && head.orientation > 4;
  whole.height = turned ? head.width : head.height;
  whole.width = turned ? head.height : head.width;
  whole.training = whole.flip = false;
  if (whole.height > spec->image.height || whole.width > spec->image.width)
    return amprt_fail(error, AMPRT_INPUT,
                      "is %lldx%lld, larger than the model's %lldx%lld; --preprocessing=official, "
                      "keras or torchvision crops and resizes",
                      (long long)whole.height, (long long)whole.width,
                      (long long)spec->image.height, (long long)spec->image.width);
  size_t size = (size_t)(whole.height * whole.width * whole.channels);
  unsigned char *decoded = amprt_room(&room->plain, size, error);
  if (!decoded)
    return error->status;
  status = amprt_photo_prepare(&whole, photo, (AmprtPhotoDraw){{{0}}, 0, 0}, room->photo, decoded,
                               error);
  if (!status)
    *scaling = amprt_image_prepare(&spec->image, decoded, whole.height, whole.width, random, pixel);
  return status;
}

AmprtStatus amprt_example_prepare(const AmprtExampleSpec *spec, const AmprtDataset *set,
                                  AmprtExampleDraw draw, AmprtExampleRoom *room,
                                  unsigned char *pixel, AmprtScaling *scaling, int32_t *label,
                                  AmprtError *error) {
  AmprtRecord record;
  AmprtStatus status = set->reader->fetch(set, draw.index, &room->record, &record, error);
  if (status)
    return status;
  *label = record.label;
  int64_t channels = spec->image.channels;
  bool plain = set->height || spec->photo.preprocessing == AMPRT_PLAIN;
  AmprtWords random = amprt_rng_at(draw.key, draw.index, draw.epoch);
  AmprtPhoto photo = {record.data, record.size, record.box, (size_t)record.n_boxes};
  if (!set->height && !room->photo && !(room->photo = amprt_photo_room_new()))
    return amprt_fail_memory(error, 0, "an image");
  if (set->height)
    *scaling =
        amprt_image_prepare(&spec->image, record.data, set->height, set->width, random, pixel);
  else if (plain)
    status = prepare_plain(spec, &photo, random, room, pixel, scaling, error);
  else
    status = amprt_photo_prepare(&spec->photo, &photo,
                                 (AmprtPhotoDraw){draw.key, draw.epoch, draw.index}, room->photo,
                                 pixel, error);
  if (status == AMPRT_INPUT) {
    char place[AMPRT_PATH + 64], reason[sizeof error->text];
    set->reader->place(set, draw.index, place, sizeof place);
    snprintf(reason, sizeof reason, "%s", error->text);
    return amprt_fail(error, AMPRT_INPUT, "%.1500s: %.500s", place, reason);
  }
  AmprtPhotoScaling all = amprt_photo_scaling(&spec->photo);
  for (int64_t c = 0; c < channels; c++)
    scaling[c] = plain ? *scaling : (AmprtScaling){all.offset[c], all.scale[c]};
  if (!status)
    amprt_image_erase(&spec->image, spec->erase, draw.erase_key, draw.epoch, draw.index, scaling,
                      pixel);
  return status;
}
