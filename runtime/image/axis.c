#include "runtime/image/axis.h"

#include "runtime/image/room.h"

#include <math.h>

/* The pixels around one place of the source, and their weights, of which `taps` are filled. */
static int64_t two_pixels(double place, int64_t size, int64_t taps, float *weight) {
  double below = floor(place);
  float share = (float)(place - below);
  int64_t first = below < 0 ? 0 : (int64_t)below;
  bool edge = place < 0 || first + 1 >= size; /* both neighbours are the same pixel */
  int64_t start = first + taps > size ? size - taps : first;
  for (int64_t t = 0; t < taps; t++)
    weight[t] = 0;
  weight[first - start] = edge ? 1 : 1 - share;
  if (!edge)
    weight[first - start + 1] = share;
  return start;
}

/* The same for a triangle whose half width is `support`: Pillow's Resample.c computes the pixels
 * and their weights so, in double. */
static int64_t triangle(double centre, double support, int64_t size, int64_t taps, float *weight) {
  int64_t first = (int64_t)(centre - support + 0.5), end = (int64_t)(centre + support + 0.5);
  first = first < 0 ? 0 : first;
  end = end > size ? size : end;
  int64_t start = first + taps > size ? size - taps : first;
  double sum = 0;
  for (int64_t i = first; i < end; i++)
    sum += fmax(0, 1 - fabs((double)i - centre + 0.5) / support);
  for (int64_t t = 0; t < taps; t++) {
    int64_t i = start + t;
    double height = fmax(0, 1 - fabs((double)i - centre + 0.5) / support);
    weight[t] = i >= first && i < end ? (float)(height / sum) : 0;
  }
  return start;
}

/* The place of result pixel `at` in the part, counted from its first pixel; a float, as TensorFlow
 * computes it, where TensorFlow is followed. */
static double place_of(AmprtGrid grid, int64_t at, int64_t size, int64_t resized) {
  float scale = (float)size / (float)resized;
  if (grid == AMPRT_GRID_LEGACY)
    return (float)at * scale;
  if (grid == AMPRT_GRID_HALF_PIXEL)
    return ((float)at + 0.5f) * scale - 0.5f;
  return ((double)at + 0.5) * ((double)size / (double)resized) - 0.5;
}

AmprtStatus amprt_axis_make(AmprtAxis *axis, AmprtGrid grid, AmprtSpan span, int64_t first,
                            int64_t n, AmprtError *error) {
  /* pixels that the decoder makes: from .. from + size - 1 have something of the part */
  double shrink = (double)span.shrink, scale = (double)span.size / (double)span.resized / shrink;
  int64_t from = span.from / span.shrink;
  int64_t size = (span.from + span.size + span.shrink - 1) / span.shrink - from;
  double support = fmax(scale, 1);
  int64_t taps = grid == AMPRT_GRID_ANTIALIASED ? (int64_t)ceil(2 * support) : 2;
  taps = taps > size ? size : taps;
  axis->n = n;
  axis->taps = taps;
  axis->begin = first < 0 ? -first : 0;
  axis->end = first + n > span.resized ? span.resized - first : n;
  AmprtStatus status = amprt_room_grow((void **)&axis->start, &axis->room[0],
                                       (uint64_t)n * sizeof *axis->start, error);
  if (!status)
    status = amprt_room_grow((void **)&axis->weight, &axis->room[1],
                             (uint64_t)n * (uint64_t)taps * sizeof *axis->weight, error);
  if (status)
    return status;
  axis->low = INT64_MAX;
  axis->high = 0;
  for (int64_t i = axis->begin; i < axis->end; i++) {
    double place = place_of(grid, first + i, span.size, span.resized);
    if (span.mirrored)
      place = (double)(span.size - 1) - place;
    place = ((double)span.from + place + 0.5) / shrink - 0.5 - (double)from;
    float *weight = axis->weight + i * taps;
    axis->start[i] =
        from + (grid == AMPRT_GRID_ANTIALIASED ? triangle(place + 0.5, support, size, taps, weight)
                                               : two_pixels(place, size, taps, weight));
    axis->low = axis->start[i] < axis->low ? axis->start[i] : axis->low;
    axis->high = axis->start[i] + taps > axis->high ? axis->start[i] + taps : axis->high;
  }
  return AMPRT_OK;
}

void amprt_axis_free(AmprtAxis *axis) {
  free(axis->start);
  free(axis->weight);
}
