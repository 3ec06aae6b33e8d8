/* Shape and dtype rules of layers: convolution, pooling, normalisation, losses. */
#include "ir/infer.h"

enum { MAX_WINDOW = 1 << 16 };

/* Output size of a window op along one axis; -1 if it does not fit. */
static int64_t window_out(int64_t in, int64_t window, int64_t stride, int64_t before,
                          int64_t after) {
  int64_t room = in + before + after - window;
  return room < 0 ? -1 : room / stride + 1;
}

typedef struct Window {
  int64_t h, w, stride_h, stride_w, top, bottom, left, right;
} Window;

/* Reads stride and pad, which all window ops have, and checks their ranges. */
static bool read_strides(const Node *node, Window *win, const char **why) {
  const int64_t *stride = attr_ints(node, ATTR_STRIDE, 2), *pad = attr_ints(node, ATTR_PAD, 4);
  if (!stride || stride[0] < 1 || stride[1] < 1 || stride[0] > MAX_WINDOW || stride[1] > MAX_WINDOW)
    return refuse(why, "needs `stride=[h,w]`, both at least 1");
  if (!pad)
    return refuse(why, "needs `pad=[top,bottom,left,right]`");
  for (int i = 0; i < 4; i++)
    if (pad[i] < 0 || pad[i] > MAX_WINDOW)
      return refuse(why, "`pad` is out of range");
  win->stride_h = stride[0];
  win->stride_w = stride[1];
  win->top = pad[0];
  win->bottom = pad[1];
  win->left = pad[2];
  win->right = pad[3];
  return true;
}

static bool read_window(const Node *node, Window *win, const char **why) {
  const int64_t *window = attr_ints(node, ATTR_WINDOW, 2);
  if (!window || window[0] < 1 || window[1] < 1 || window[0] > MAX_WINDOW || window[1] > MAX_WINDOW)
    return refuse(why, "needs `window=[h,w]`, both at least 1");
  win->h = window[0];
  win->w = window[1];
  if (!read_strides(node, win, why))
    return false;
  /* a window that covers nothing but padding would have no value */
  if (win->top >= win->h || win->bottom >= win->h || win->left >= win->w || win->right >= win->w)
    return refuse(why, "`pad` must be smaller than `window`");
  return true;
}

/* The type of the image that a window makes as it slides over x; false if it does not fit once. */
static bool slide(TensorType x, const Window *win, int64_t channels, TensorType *out,
                  const char **why) {
  int64_t h = window_out(x.dim[1], win->h, win->stride_h, win->top, win->bottom);
  int64_t w = window_out(x.dim[2], win->w, win->stride_w, win->left, win->right);
  if (h < 1 || w < 1)
    return refuse(why, "the window is larger than the padded image");
  *out = type_of(x.dtype, 4, (int64_t[]){x.dim[0], h, w, channels});
  return true;
}

/* Reads attribute `shape` as a type of rank 4. */
static bool read_shape4(const Node *node, DType dtype, TensorType *out, const char **why) {
  const int64_t *shape = attr_ints(node, ATTR_SHAPE, 4);
  for (int i = 0; i < 4; i++)
    if (!shape || shape[i] < 1 || shape[i] > MAX_DIM)
      return refuse(why, "needs a `shape` of four positive dimensions");
  *out = type_of(dtype, 4, shape);
  return true;
}

/* ---- convolution ---- */

/* The type of the result of convolving x with filter w; on failure false, with *why set. */
static bool convolve(const Node *node, TensorType x, TensorType w, TensorType *out,
                     const char **why) {
  Window win = {.h = w.dim[1], .w = w.dim[2]};
  if (x.rank != 4 || w.rank != 4)
    return refuse(why, "image and filter must have rank 4");
  if (!is_float(x) || x.dtype != w.dtype)
    return refuse(why, "operands must have one float dtype");
  int64_t groups = attr_int(node, ATTR_GROUPS, 1);
  if (groups < 1 || w.dim[0] % groups || x.dim[3] % groups)
    return refuse(why, "`groups` must divide the channels of the image and of the result");
  if (x.dim[3] / groups != w.dim[3])
    return refuse(why, groups > 1 ? "the filter's channels are not those of a group of the image"
                                  : "the filter's channels are not the image's");
  if (w.dim[1] > MAX_WINDOW || w.dim[2] > MAX_WINDOW)
    return refuse(why, "the filter is too large");
  return read_strides(node, &win, why) && slide(x, &win, w.dim[0], out, why);
}

bool shape_conv2d(const Node *node, TensorType *out, const char **why) {
  return convolve(node, arg_type(node, 0), arg_type(node, 1), out, why);
}

bool shape_conv2d_dgrad(const Node *node, TensorType *out, const char **why) {
  TensorType dy = arg_type(node, 0), forward;
  if (!read_shape4(node, dy.dtype, out, why) ||
      !convolve(node, out[0], arg_type(node, 1), &forward, why))
    return false;
  return type_equal(forward, dy) ? true : refuse(why, "dy is not the result of this convolution");
}

bool shape_conv2d_wgrad(const Node *node, TensorType *out, const char **why) {
  TensorType x = arg_type(node, 0), dy = arg_type(node, 1), forward;
  if (!read_shape4(node, x.dtype, out, why) || !convolve(node, x, out[0], &forward, why))
    return false;
  return type_equal(forward, dy) ? true : refuse(why, "dy is not the result of this convolution");
}

bool shape_matmul(const Node *node, TensorType *out, const char **why) {
  TensorType a = arg_type(node, 0), b = arg_type(node, 1);
  bool ta = attr_int(node, ATTR_TRANS_A, 0) != 0, tb = attr_int(node, ATTR_TRANS_B, 0) != 0;
  if (a.rank != 2 || b.rank != 2)
    return refuse(why, "operands must have rank 2");
  if (!is_float(a) || a.dtype != b.dtype)
    return refuse(why, "operands must have one float dtype");
  if (a.dim[!ta] != b.dim[tb])
    return refuse(why, "inner dimensions differ");
  out[0] = type_of(a.dtype, 2, (int64_t[]){a.dim[ta], b.dim[!tb]});
  return true;
}

bool shape_bias_add(const Node *node, TensorType *out, const char **why) {
  out[0] = arg_type(node, 0);
  if (!is_float(out[0]) || !is_vector(arg_type(node, 1), out[0].dtype, last_dim(out[0])))
    return refuse(why, "the bias must be a vector of the last axis, of the same float dtype");
  return true;
}

bool shape_bias_grad(const Node *node, TensorType *out, const char **why) {
  TensorType dy = arg_type(node, 0);
  if (!is_float(dy) || dy.rank < 1)
    return refuse(why, "the operand must be of a float type with a last axis");
  out[0] = type_of(dy.dtype, 1, (int64_t[]){last_dim(dy)});
  return true;
}

/* ---- pooling ---- */

static bool pool(const Node *node, TensorType x, TensorType *out, const char **why) {
  Window win;
  if (x.rank != 4 || !is_float(x))
    return refuse(why, "the image must be of a float type and rank 4");
  return read_window(node, &win, why) && slide(x, &win, x.dim[3], out, why);
}

static DType index_dtype(const Node *node) {
  const int64_t *window = attr_ints(node, ATTR_WINDOW, 2);
  return window && window[0] * window[1] <= 256 ? DT_U8 : DT_I32;
}

bool shape_max_pool(const Node *node, TensorType *out, const char **why) {
  if (!pool(node, arg_type(node, 0), out, why))
    return false;
  out[1] = type_with(out[0], index_dtype(node));
  return true;
}

bool shape_avg_pool(const Node *node, TensorType *out, const char **why) {
  return pool(node, arg_type(node, 0), out, why);
}

static bool pool_grad(const Node *node, TensorType *out, const char **why) {
  TensorType dy = arg_type(node, 0), forward;
  if (!read_shape4(node, dy.dtype, out, why) || !pool(node, out[0], &forward, why))
    return false;
  return type_equal(forward, dy) ? true : refuse(why, "dy is not the result of this pooling");
}

bool shape_max_pool_grad(const Node *node, TensorType *out, const char **why) {
  if (!pool_grad(node, out, why))
    return false;
  TensorType want = type_with(arg_type(node, 0), index_dtype(node));
  return type_equal(want, arg_type(node, 1)) ? true
                                             : refuse(why, "index is not the one of this pooling");
}

bool shape_avg_pool_grad(const Node *node, TensorType *out, const char **why) {
  return pool_grad(node, out, why);
}

/* ---- normalisation ---- */

static bool vectors(const Node *node, int from, int to, int64_t n, const char **why) {
  for (int a = from; a < to; a++)
    if (!is_vector(arg_type(node, a), DT_F32, n))
      return refuse(why, "scale, shift and statistics must be f32 vectors of the last axis");
  return true;
}

/* Checks that operand 0 is a float tensor of rank 2 or more and that operands `from` up to but not
 * including `to` are f32 vectors over its last axis. */
static bool normed(const Node *node, int from, int to, TensorType *x, const char **why) {
  *x = arg_type(node, 0);
  if (!is_float(*x) || x->rank < 2)
    return refuse(why, "the operand must be of a float type and rank 2 or more");
  return vectors(node, from, to, last_dim(*x), why);
}

static TensorType f32_vector(int64_t n) {
  return type_of(DT_F32, 1, &n);
}

bool shape_batch_norm(const Node *node, TensorType *out, const char **why) {
  if (!normed(node, 1, 5, &out[0], why))
    return false;
  out[1] = out[2] = f32_vector(last_dim(out[0]));
  if (!attr_find(node, ATTR_EPSILON) || !attr_find(node, ATTR_MOMENTUM))
    return refuse(why, "needs `epsilon` and `momentum`");
  return true;
}

bool shape_batch_norm_infer(const Node *node, TensorType *out, const char **why) {
  if (!normed(node, 1, 5, &out[0], why))
    return false;
  return attr_find(node, ATTR_EPSILON) ? true : refuse(why, "needs `epsilon`");
}

bool shape_batch_norm_grad(const Node *node, TensorType *out, const char **why) {
  if (!normed(node, 2, 5, &out[0], why))
    return false;
  if (!type_equal(out[0], arg_type(node, 1)))
    return refuse(why, "dy and x must have one type");
  out[1] = out[2] = f32_vector(last_dim(out[0]));
  return attr_find(node, ATTR_EPSILON) ? true : refuse(why, "needs `epsilon`");
}

bool shape_bn_stats(const Node *node, TensorType *out, const char **why) {
  TensorType x;
  if (!normed(node, 1, 1, &x, why))
    return false;
  out[0] = out[1] = f32_vector(last_dim(x));
  return true;
}

/* Checks that all operands are f32[C] with one C, which is the type of the n results. */
static bool all_vectors(const Node *node, int n, TensorType *out, const char **why) {
  if (!vectors(node, 0, node->n_args, last_dim(arg_type(node, 0)), why))
    return false;
  for (int r = 0; r < n; r++)
    out[r] = arg_type(node, 0);
  return true;
}

static bool has_epsilon(const Node *node, const char **why) {
  return attr_find(node, ATTR_EPSILON) ? true : refuse(why, "needs `epsilon`");
}

static bool has_count(const Node *node, const char **why) {
  return attr_int(node, ATTR_COUNT, 0) >= 1 ? true : refuse(why, "needs a `count` of at least 1");
}

bool shape_bn_moments(const Node *node, TensorType *out, const char **why) {
  return has_count(node, why) && all_vectors(node, 2, out, why);
}

bool shape_bn_fold(const Node *node, TensorType *out, const char **why) {
  return all_vectors(node, 2, out, why) && has_epsilon(node, why);
}

bool shape_bn_grad_fold(const Node *node, TensorType *out, const char **why) {
  return has_count(node, why) && all_vectors(node, 5, out, why) && has_epsilon(node, why);
}

/* Scale and shift are f32, or both of the operand's type, or both of a low type beside an f32
 * operand. */
bool shape_affine(const Node *node, TensorType *out, const char **why) {
  TensorType x = arg_type(node, 0), s = arg_type(node, 1), t = arg_type(node, 2);
  bool fits = s.dtype == x.dtype || x.dtype == DT_F32;
  if (is_float(x) && x.rank >= 2 && fits && is_float(s) && is_vector(s, s.dtype, last_dim(x)) &&
      type_equal(s, t)) {
    out[0] = x;
    return true;
  }
  return normed(node, 1, 3, &out[0], why);
}

bool shape_bn_grad_stats(const Node *node, TensorType *out, const char **why) {
  TensorType x;
  if (!normed(node, 2, 3, &x, why))
    return false;
  if (!type_equal(x, arg_type(node, 1)))
    return refuse(why, "dy and x must have one type");
  out[0] = out[1] = f32_vector(last_dim(x));
  return true;
}

bool shape_affine2(const Node *node, TensorType *out, const char **why) {
  if (!normed(node, 2, 5, &out[0], why))
    return false;
  return type_equal(out[0], arg_type(node, 1)) ? true : refuse(why, "dy and x must have one type");
}

bool shape_ema(const Node *node, TensorType *out, const char **why) {
  out[0] = arg_type(node, 0);
  if (out[0].dtype != DT_F32 || out[0].rank != 1 || !type_equal(out[0], arg_type(node, 1)))
    return refuse(why, "old and batch value must be f32 vectors of one length");
  return is_scalar(arg_type(node, 2), DT_F32) ? true : refuse(why, "the momentum must be f32[]");
}

/* ---- losses and metrics ---- */

bool shape_softmax(const Node *node, TensorType *out, const char **why) {
  out[0] = arg_type(node, 0);
  if (!is_float(out[0]) || out[0].rank < 1)
    return refuse(why, "the operand must be of a float type with a last axis");
  return true;
}

static bool logits_and_label(const Node *node, TensorType *logits, const char **why) {
  *logits = arg_type(node, 0);
  if (!is_float(*logits) || logits->rank != 2)
    return refuse(why, "logits must be of a float type and rank 2");
  if (!is_vector(arg_type(node, 1), DT_I32, logits->dim[0]))
    return refuse(why, "label must be i32[N]");
  return true;
}

static bool per_example(const Node *node, TensorType *out, const char **why) {
  TensorType logits;
  if (!logits_and_label(node, &logits, why))
    return false;
  out[0] = type_of(DT_F32, 1, logits.dim);
  return true;
}

bool shape_xent(const Node *node, TensorType *out, const char **why) {
  return per_example(node, out, why);
}

bool shape_in_top_k(const Node *node, TensorType *out, const char **why) {
  if (attr_int(node, ATTR_K, 0) < 1)
    return refuse(why, "needs a `k` of at least 1");
  return per_example(node, out, why);
}

bool shape_xent_grad(const Node *node, TensorType *out, const char **why) {
  if (!logits_and_label(node, out, why))
    return false;
  return is_vector(arg_type(node, 2), DT_F32, out[0].dim[0]) ? true
                                                             : refuse(why, "dloss must be f32[N]");
}
