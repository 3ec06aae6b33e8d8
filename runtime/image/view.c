/* Chooses which part of a photograph becomes which pixels, as in specs/resnet.md 4.2, torchvision
 * and Keras. */
#include "runtime/image/photo.h"

#include <math.h>

/* All that the choice depends on. */
typedef struct Photograph {
  int64_t height, width;
  const AmprtBox *box;
  size_t n_boxes;
} Photograph;

/* A supply of random words for one example. */
typedef struct Words {
  AmprtPhotoDraw draw;
  uint64_t used;
  AmprtWords four;
} Words;

static uint32_t next(Words *words) {
  if (words->used % 4 == 0)
    words->four = amprt_rng_at(words->draw.key, words->draw.example | words->used / 4 << 40,
                               words->draw.epoch);
  return words->four.v[words->used++ % 4];
}

static double uniform(Words *words, double low, double high) {
  return low + (high - low) * amprt_rng_unit(next(words));
}

static AmprtPhotoView part(int64_t y, int64_t x, int64_t height, int64_t width) {
  return (AmprtPhotoView){.y = y, .x = x, .height = height, .width = width};
}

/* The part's whole area fills the result. */
static void fill(AmprtPhotoView *view, const AmprtPhotoSpec *spec) {
  view->resized_height = spec->height;
  view->resized_width = spec->width;
}

/* Half of what is left over on one axis, rounded as Python does, half to even. */
static int64_t half(int64_t resized, int64_t taken) {
  return (int64_t)nearbyint((double)(resized - taken) / 2);
}

/* The shorter side before the central crop: 256 for 224, in proportion for other sizes. */
static int64_t shorter_side(const AmprtPhotoSpec *spec) {
  int64_t larger = spec->height > spec->width ? spec->height : spec->width;
  return (int64_t)nearbyint((double)larger * 256 / 224);
}

static int64_t at_least(int64_t n, int64_t least) {
  return n < least ? least : n;
}

/* plain: the photograph as it is, with zeros around it. */
static void whole(const Photograph *photo, const AmprtPhotoSpec *spec, Words *words,
                  AmprtPhotoView *view) {
  (void)words;
  *view = part(0, 0, photo->height, photo->width);
  view->resized_height = photo->height;
  view->resized_width = photo->width;
  view->top = -((spec->height - photo->height) / 2);
  view->left = -((spec->width - photo->width) / 2);
}

/* official, evaluation: both sides are multiplied by a float and truncated. */
static void shorter_256(const Photograph *photo, const AmprtPhotoSpec *spec, Words *words,
                        AmprtPhotoView *view) {
  (void)words;
  *view = part(0, 0, photo->height, photo->width);
  float height = (float)photo->height, width = (float)photo->width;
  float ratio = (float)shorter_side(spec) / (height < width ? height : width);
  view->resized_height = at_least((int64_t)(height * ratio), spec->height);
  view->resized_width = at_least((int64_t)(width * ratio), spec->width);
  view->top = (view->resized_height - spec->height) / 2;
  view->left = (view->resized_width - spec->width) / 2;
}

/* torchvision, evaluation: Resize(256), CenterCrop(224). */
static void resize_256(const Photograph *photo, const AmprtPhotoSpec *spec, Words *words,
                       AmprtPhotoView *view) {
  (void)words;
  *view = part(0, 0, photo->height, photo->width);
  int64_t side = shorter_side(spec);
  bool wide = photo->height <= photo->width;
  view->resized_height = wide ? side : side * photo->height / photo->width;
  view->resized_width = wide ? side * photo->width / photo->height : side;
  view->top = half(view->resized_height, spec->height);
  view->left = half(view->resized_width, spec->width);
}

/* keras: tf.keras.preprocessing.image.smart_resize, the largest middle part that has the result's
 * aspect ratio. */
static void smart(const Photograph *photo, const AmprtPhotoSpec *spec, Words *words,
                  AmprtPhotoView *view) {
  (void)words;
  int64_t height = (int64_t)((float)(photo->width * spec->height) / (float)spec->width);
  int64_t width = (int64_t)((float)(photo->height * spec->width) / (float)spec->height);
  height = height < 1 ? 1 : height > photo->height ? photo->height : height;
  width = width < 1 ? 1 : width > photo->width ? photo->width : width;
  *view = part((photo->height - height) / 2, (photo->width - width) / 2, height, width);
  fill(view, spec);
}

/* torchvision, training: RandomResizedCrop. */
static void random_resized(const Photograph *photo, const AmprtPhotoSpec *spec, Words *words,
                           AmprtPhotoView *view) {
  double area = (double)photo->height * (double)photo->width;
  double low = log(3.0 / 4), high = log(4.0 / 3);
  for (int attempt = 0; attempt < 10; attempt++) {
    double wanted = area * uniform(words, 0.08, 1), ratio = exp(uniform(words, low, high));
    int64_t width = (int64_t)nearbyint(sqrt(wanted * ratio));
    int64_t height = (int64_t)nearbyint(sqrt(wanted / ratio));
    uint32_t down = next(words), right = next(words);
    if (width < 1 || width > photo->width || height < 1 || height > photo->height)
      continue;
    *view = part(amprt_rng_below(down, (uint32_t)(photo->height - height + 1)),
                 amprt_rng_below(right, (uint32_t)(photo->width - width + 1)), height, width);
    fill(view, spec);
    return;
  }
  double ratio = (double)photo->width / (double)photo->height;
  int64_t height = photo->height, width = photo->width;
  if (ratio < 3.0 / 4)
    height = (int64_t)nearbyint((double)width / (3.0 / 4));
  else if (ratio > 4.0 / 3)
    width = (int64_t)nearbyint((double)height * (4.0 / 3));
  *view = part((photo->height - height) / 2, (photo->width - width) / 2, height, width);
  fill(view, spec);
}

/* Sizes of TensorFlow's sampler, in float as it computes them: a height between those that the
 * range of areas gives for this aspect ratio, and the width that follows. False: the try has
 * failed. */
static bool sampled_size(const Photograph *photo, float ratio, uint32_t word, int64_t *out_height,
                         int64_t *out_width) {
  const float most_width = (float)photo->width, most_height = (float)photo->height;
  const float low = 0.05f * most_width * most_height, high = 1.0f * most_width * most_height;
  int64_t height = lrintf(sqrtf(low / ratio)), most = lrintf(sqrtf(high / ratio));
  if (lrintf((float)most * ratio) > photo->width) {
    most = (int64_t)((most_width + 0.5 - 1e-7f) / ratio);
    if (lrintf((float)most * ratio) > photo->width)
      most--;
  }
  most = most > photo->height ? photo->height : most;
  height = height > most ? most : height;
  height += amprt_rng_below(word, (uint32_t)(most - height + 1));
  int64_t width = lrintf((float)height * ratio);
  float area = (float)(width * height); /* a pixel more or less may still make it fit */
  if (area < low) {
    width = lrintf((float)++height * ratio);
    area = (float)(width * height);
  }
  if (area > high) {
    width = lrintf((float)--height * ratio);
    area = (float)(width * height);
  }
  *out_height = height;
  *out_width = width;
  return area >= low && area <= high && width > 0 && width <= photo->width && height > 0 &&
         height <= photo->height;
}

/* Is at least a tenth of one of the objects visible? Objects without a pixel do not count. */
static bool shows_object(const Photograph *photo, const AmprtPhotoView *view) {
  for (size_t b = 0; b < photo->n_boxes; b++) {
    const AmprtBox *box = &photo->box[b];
    int64_t y0 = (int64_t)(box->ymin * (float)photo->height);
    int64_t x0 = (int64_t)(box->xmin * (float)photo->width);
    int64_t y1 = (int64_t)(box->ymax * (float)photo->height);
    int64_t x1 = (int64_t)(box->xmax * (float)photo->width);
    float object = (float)((x1 - x0) * (y1 - y0));
    if (!(object >= 1))
      continue;
    y0 = y0 > view->y ? y0 : view->y;
    x0 = x0 > view->x ? x0 : view->x;
    y1 = y1 < view->y + view->height ? y1 : view->y + view->height;
    x1 = x1 < view->x + view->width ? x1 : view->x + view->width;
    float seen = y1 > y0 && x1 > x0 ? (float)((x1 - x0) * (y1 - y0)) : 0;
    if (seen / object >= 0.1f)
      return true;
  }
  return false;
}

/* official, training: tf.image.sample_distorted_bounding_box with min_object_covered .1, aspect
 * ratios .75 to 1.33, areas .05 to 1, 100 tries. The last row and column are never the first of a
 * part, as there. */
static void distorted(const Photograph *photo, const AmprtPhotoSpec *spec, Words *words,
                      AmprtPhotoView *view) {
  static const AmprtBox everything = {0, 0, 1, 1};
  Photograph sought = *photo;
  if (!sought.n_boxes) {
    sought.box = &everything;
    sought.n_boxes = 1;
  }
  bool found = false;
  for (int attempt = 0; attempt < 100 && !found; attempt++) {
    float ratio = (float)amprt_rng_unit(next(words)) * (1.33f - 0.75f) + 0.75f;
    int64_t height, width;
    uint32_t size = next(words), down = next(words), right = next(words);
    if (!sampled_size(photo, ratio, size, &height, &width))
      continue;
    uint32_t below = (uint32_t)(photo->height - height), beside = (uint32_t)(photo->width - width);
    *view = part(below ? amprt_rng_below(down, below) : 0,
                 beside ? amprt_rng_below(right, beside) : 0, height, width);
    found = shows_object(&sought, view);
  }
  if (!found)
    *view = part(0, 0, photo->height, photo->width);
  fill(view, spec);
}

AmprtStatus amprt_photo_view(const AmprtPhotoSpec *spec, const AmprtPhoto *photo, int64_t height,
                             int64_t width, AmprtPhotoDraw draw, AmprtPhotoView *view,
                             AmprtError *error) {
  typedef void Choice(const Photograph *, const AmprtPhotoSpec *, Words *, AmprtPhotoView *);
  static Choice *const choice[][2] = {
#define PREPROCESSING(id, name, grid, training, evaluation, ...) {evaluation, training},
#include "ir/recipe/preprocessing.def"
  };
  for (size_t b = 0; b < photo->n_boxes; b++) {
    const AmprtBox *box = &photo->box[b];
    const float edge[] = {box->ymin, box->xmin, box->ymax, box->xmax};
    for (int i = 0; i < 4; i++)
      if (!(edge[i] >= 0 && edge[i] <= 1))
        return amprt_fail(error, AMPRT_INPUT, "box %zu has the edge %g, outside of 0 to 1", b,
                          (double)edge[i]);
  }
  if (spec->preprocessing == AMPRT_PLAIN && (height > spec->height || width > spec->width))
    return amprt_fail(error, AMPRT_INPUT,
                      "the image has %lld x %lld pixels, more than the %lld x %lld of the model "
                      "(height x width): another --preprocessing resizes it",
                      (long long)height, (long long)width, (long long)spec->height,
                      (long long)spec->width);
  Photograph size = {height, width, photo->box, photo->n_boxes};
  Words words = {.draw = draw};
  bool mirrored = next(&words) >> 31 && spec->flip && spec->training;
  choice[spec->preprocessing][spec->training](&size, spec, &words, view);
  view->mirrored = mirrored;
  return AMPRT_OK;
}
