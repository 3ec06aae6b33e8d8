#include "conv.h"

#include <stdlib.h>
#include <string.h>

static void add_scaled(float *restrict to, const float *restrict from, float by, int64_t n) {
  for (int64_t i = 0; i < n; i++)
    to[i] += by * from[i];
}

/* Calls for each pair of pixels that a tap of the filter joins. `tap`: r * s. */
typedef void Join(const FakeConv *c, const float *x, const float *y, int64_t tap, float *to_x,
                  float *to_y, float *filter);

/* Here the filter is [r,s,c,k/groups]: each channel of x has those of y that are of its group. */
static void join_fprop(const FakeConv *c, const float *x, const float *y, int64_t tap, float *to_x,
                       float *to_y, float *filter) {
  const int64_t of_x = c->c / c->groups, of_y = c->k / c->groups;
  (void)y, (void)to_x;
  for (int64_t i = 0; i < c->c; i++)
    add_scaled(to_y + i / of_x * of_y, filter + (tap * c->c + i) * of_y, x[i], of_y);
}

/* Here, and in the next, it is [r,s,k,c/groups]. */
static void join_dgrad(const FakeConv *c, const float *x, const float *y, int64_t tap, float *to_x,
                       float *to_y, float *filter) {
  const int64_t of_x = c->c / c->groups, of_y = c->k / c->groups;
  (void)x, (void)to_y;
  for (int64_t i = 0; i < c->k; i++)
    add_scaled(to_x + i / of_y * of_x, filter + (tap * c->k + i) * of_x, y[i], of_x);
}

static void join_wgrad(const FakeConv *c, const float *x, const float *y, int64_t tap, float *to_x,
                       float *to_y, float *filter) {
  const int64_t of_x = c->c / c->groups, of_y = c->k / c->groups;
  (void)to_x, (void)to_y;
  for (int64_t i = 0; i < c->k; i++)
    add_scaled(filter + (tap * c->k + i) * of_x, x + i / of_y * of_x, y[i], of_x);
}

static void join_row(const FakeConv *c, Join *join, int64_t n, int64_t p, float *x, float *y,
                     float *filter) {
  for (int64_t q = 0; q < c->wo; q++)
    for (int64_t tap = 0; tap < c->r * c->s; tap++) {
      int64_t i = p * c->stride[0] - c->pad[0] + tap / c->s;
      int64_t j = q * c->stride[1] - c->pad[1] + tap % c->s;
      float *pixel = x + ((n * c->h + i) * c->w + j) * c->c;
      float *to = y + ((n * c->ho + p) * c->wo + q) * c->k;
      if (i >= 0 && i < c->h && j >= 0 && j < c->w)
        join(c, pixel, to, tap, pixel, to, filter);
    }
}

/* [k,rs,c/groups] <-> [rs,c,k/groups] or [rs,k,c/groups] */
static void turn_filter(const FakeConv *conv, float *plain, float *turned, int by_k, int back) {
  const int64_t taps = conv->r * conv->s, C = conv->c, K = conv->k;
  const int64_t of_x = C / conv->groups, of_y = K / conv->groups;
  for (int64_t k = 0; k < K; k++)
    for (int64_t t = 0; t < taps; t++)
      for (int64_t c = 0; c < of_x; c++) {
        float *a = plain + (k * taps + t) * of_x + c;
        float *b = turned + (by_k ? (t * C + k / of_y * of_x + c) * of_y + k % of_y
                                  : (t * K + k) * of_x + c);
        *(back ? a : b) = *(back ? b : a);
      }
}

/* Sums over all images. Each image is summed in f32 and the images in double, because an f32 sum
 * over a whole batch would be less exact than that of any library. */
static void add_image(double *sums, float *image, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    sums[i] += image[i];
    image[i] = 0;
  }
}

static void *zeros(int64_t n, size_t size) {
  void *p = calloc((size_t)n + 1, size);
  if (!p)
    abort();
  return p;
}

void fake_conv(const FakeConv *c, float *x, float *filter, float *y) {
  static Join *const join[] = {join_fprop, join_dgrad, join_wgrad};
  int64_t n_x = c->n * c->h * c->w * c->c, n_y = c->n * c->ho * c->wo * c->k;
  int64_t n_f = c->k * c->r * c->s * (c->c / c->groups);
  float *turned = zeros(n_f, sizeof *turned);
  double *sums = zeros(c->form == FAKE_WGRAD ? n_f : 0, sizeof *sums);
  if (c->form != FAKE_WGRAD)
    turn_filter(c, filter, turned, c->form == FAKE_FPROP, 0);
  if (c->form == FAKE_FPROP)
    memset(y, 0, (size_t)n_y * sizeof *y);
  if (c->form == FAKE_DGRAD)
    memset(x, 0, (size_t)n_x * sizeof *x);
  for (int64_t n = 0; n < c->n; n++) {
    for (int64_t p = 0; p < c->ho; p++)
      join_row(c, join[c->form], n, p, x, y, turned);
    if (c->form == FAKE_WGRAD)
      add_image(sums, turned, n_f);
  }
  for (int64_t i = 0; c->form == FAKE_WGRAD && i < n_f; i++)
    turned[i] = (float)sums[i];
  if (c->form == FAKE_WGRAD)
    turn_filter(c, filter, turned, 0, 1);
  free(turned), free(sums);
}
