/* The op table, and the shape and dtype rules of all ops but those of layers: one small function
 * per rule named in ir/ops.def. */
#include "ir/infer.h"

#include "ir/recipe/lr_schedule.def"
#include "ir/recipe/opt.h"

#include <string.h>

#define A(key) | (UINT64_C(1) << ATTR_##key)
const OpInfo op_info[OP_COUNT] = {
#define OP(id, name, lo, hi, rlo, rhi, shape, eval, grad, amp, operands, results, rounds, space,   \
           gen, flags, first, last, attrs)                                                         \
  [OP_##id] = {name,          lo,        hi,       rlo,           rhi,                             \
               shape_##shape, AMP_##amp, operands, results,       ROUNDS_##rounds,                 \
               space,         GEN_##gen, flags,    STAGE_##first, STAGE_##last,                    \
               0 attrs},
#include "ir/ops.def"
};
_Static_assert(ATTR_END <= 64, "OpInfo.attrs is a 64-bit set");

int op_lookup(const char *name) {
  for (int op = 0; op < OP_COUNT; op++)
    if (strcmp(op_info[op].name, name) == 0)
      return op;
  return -1;
}

TensorType arg_type(const Node *node, int i) {
  return value_resolve(node->arg[i])->type;
}

bool is_float(TensorType type) {
  return dtype_info[type.dtype].is_float;
}

bool is_scalar(TensorType type, DType dtype) {
  return type.dtype == dtype && type.rank == 0;
}

bool is_vector(TensorType type, DType dtype, int64_t n) {
  return type.dtype == dtype && type.rank == 1 && type.dim[0] == n;
}

int64_t last_dim(TensorType type) {
  return type.rank ? type.dim[type.rank - 1] : -1;
}

/* Every dimension in 1..MAX_DIM and the whole within MAX_TENSOR_BYTES. */
static bool fits(TensorType type) {
  int64_t bytes = dtype_info[type.dtype].bytes;
  for (int i = 0; i < type.rank; i++)
    if (type.dim[i] < 1 || type.dim[i] > MAX_DIM ||
        __builtin_mul_overflow(bytes, type.dim[i], &bytes) || bytes > MAX_TENSOR_BYTES)
      return false;
  return true;
}

bool node_infer(const Node *node, TensorType *out, const char **why) {
  const OpInfo *info = &op_info[node->op];
  if (node->n_args < info->min_args || (info->max_args >= 0 && node->n_args > info->max_args))
    return refuse(why, "wrong number of operands");
  if (node->n_results < info->min_results || node->n_results > info->max_results)
    return refuse(why, "wrong number of results");
  memset(out, 0, MAX_RESULTS * sizeof *out);
  if (!info->shape(node, out, why))
    return false;
  for (int r = 0; r < node->n_results; r++)
    if (!fits(out[r]))
      return refuse(why, "a result is empty or larger than ampcc handles");
  return true;
}

/* ---- state ---- */

bool shape_written(const Node *node, TensorType *out, const char **why) {
  (void)why;
  out[0] = node->result[0]->type;
  return true;
}

bool shape_const(const Node *node, TensorType *out, const char **why) {
  const Attr *data = attr_find(node, ATTR_DATA), *value = attr_find(node, ATTR_VALUE);
  out[0] = node->result[0]->type;
  if (!data == !value)
    return refuse(why, "needs either `value` or `data`");
  if (data && data->n != type_count(out[0]))
    return refuse(why, "`data` does not have one number per element");
  return true;
}

bool shape_output(const Node *node, TensorType *out, const char **why) {
  (void)out;
  return attr_find(node, ATTR_NAME) ? true : refuse(why, "needs a `name`");
}

bool shape_update(const Node *node, TensorType *out, const char **why) {
  (void)out;
  if (value_resolve(node->arg[0])->node->op != OP_VARIABLE)
    return refuse(why, "the first operand must be a variable");
  if (!type_equal(arg_type(node, 0), arg_type(node, 1)))
    return refuse(why, "the new value's type is not the variable's");
  if (node->n_args == 3 && !is_scalar(arg_type(node, 2), DT_BOOL))
    return refuse(why, "the predicate must be bool[]");
  return true;
}

/* ---- elementwise ---- */

bool shape_unary(const Node *node, TensorType *out, const char **why) {
  out[0] = arg_type(node, 0);
  if (!is_float(out[0]) && node->op != OP_IDENTITY)
    return refuse(why, "the operand must be of a float type");
  return true;
}

/* Sums travel as f32 whatever the parts were computed in. */
bool shape_all_reduce(const Node *node, TensorType *out, const char **why) {
  out[0] = arg_type(node, 0);
  return out[0].dtype == DT_F32 ? true : refuse(why, "the operand must be f32");
}

bool shape_pair(const Node *node, TensorType *out, const char **why) {
  out[0] = arg_type(node, 0);
  if (!is_float(out[0]) || !type_equal(out[0], arg_type(node, 1)))
    return refuse(why, "operands must have one float type");
  return true;
}

bool shape_binary(const Node *node, TensorType *out, const char **why) {
  TensorType a = arg_type(node, 0), b = arg_type(node, 1);
  bool scalar = b.rank == 0 && (b.dtype == a.dtype || (b.dtype == DT_F32 && is_float(a)));
  out[0] = a;
  if (a.dtype == DT_BOOL || (!type_equal(a, b) && !scalar))
    return refuse(why, "operands must have one type, or the second be a scalar");
  return true;
}

bool shape_cast(const Node *node, TensorType *out, const char **why) {
  (void)why;
  out[0] = type_with(arg_type(node, 0), node->result[0]->type.dtype); /* the dtype is written */
  return true;
}

bool shape_select(const Node *node, TensorType *out, const char **why) {
  out[0] = arg_type(node, 1);
  if (!is_scalar(arg_type(node, 0), DT_BOOL))
    return refuse(why, "the predicate must be bool[]");
  if (!type_equal(out[0], arg_type(node, 2)))
    return refuse(why, "both choices must have one type");
  return true;
}

bool shape_increment(const Node *node, TensorType *out, const char **why) {
  out[0] = arg_type(node, 0);
  return is_scalar(out[0], DT_I64) ? true : refuse(why, "the operand must be i64[]");
}

/* ---- shapes ---- */

/* Reads attribute `shape` into the dims of `out`; false if it is missing, too long or out of range.
 */
static bool written_shape(const Node *node, TensorType *out) {
  const Attr *shape = attr_find(node, ATTR_SHAPE);
  if (!shape || shape->n > MAX_RANK)
    return false;
  out->rank = shape->n;
  for (int i = 0; i < shape->n; i++) {
    out->dim[i] = shape->ints[i];
    if (out->dim[i] < 1 || out->dim[i] > MAX_DIM)
      return false;
  }
  return fits(*out);
}

bool shape_reshape(const Node *node, TensorType *out, const char **why) {
  out[0].dtype = arg_type(node, 0).dtype;
  if (!written_shape(node, out))
    return refuse(why, "needs a `shape` of positive dimensions");
  if (type_count(out[0]) != type_count(arg_type(node, 0)))
    return refuse(why, "`shape` has another number of elements");
  return true;
}

/* Reads `axes`: ascending, within rank. Returns their number, or -1. */
static int read_axes(const Node *node, int rank, bool *is_axis) {
  const Attr *axes = attr_find(node, ATTR_AXES);
  memset(is_axis, 0, MAX_RANK);
  if (!axes)
    return -1;
  for (int i = 0; i < axes->n; i++) {
    if (axes->ints[i] < 0 || axes->ints[i] >= rank || (i && axes->ints[i] <= axes->ints[i - 1]))
      return -1;
    is_axis[axes->ints[i]] = true;
  }
  return axes->n;
}

bool shape_broadcast(const Node *node, TensorType *out, const char **why) {
  TensorType x = arg_type(node, 0);
  bool is_axis[MAX_RANK];
  int kept = 0;
  out[0].dtype = x.dtype;
  if (!written_shape(node, out))
    return refuse(why, "needs a `shape` of positive dimensions");
  if (read_axes(node, out[0].rank, is_axis) < 0)
    return refuse(why, "needs ascending `axes` within `shape`");
  for (int i = 0; i < out[0].rank; i++)
    if (!is_axis[i] && (kept >= x.rank || x.dim[kept++] != out[0].dim[i]))
      return refuse(why, "`shape` without `axes` is not the operand's shape");
  return kept == x.rank ? true : refuse(why, "`shape` without `axes` is not the operand's shape");
}

bool shape_reverse(const Node *node, TensorType *out, const char **why) {
  bool is_axis[MAX_RANK];
  out[0] = arg_type(node, 0);
  if (read_axes(node, out[0].rank, is_axis) < 0)
    return refuse(why, "needs ascending `axes` within the operand's rank");
  return true;
}

bool shape_reduce(const Node *node, TensorType *out, const char **why) {
  TensorType x = arg_type(node, 0);
  bool is_axis[MAX_RANK];
  if (!is_float(x))
    return refuse(why, "the operand must be of a float type");
  if (read_axes(node, x.rank, is_axis) < 0)
    return refuse(why, "needs ascending `axes` within the operand's rank");
  out[0].dtype = x.dtype;
  for (int i = 0; i < x.rank; i++)
    if (!is_axis[i])
      out[0].dim[out[0].rank++] = x.dim[i];
  return true;
}

/* ---- training ---- */

bool shape_lr_schedule(const Node *node, TensorType *out, const char **why) {
  TensorType s = arg_type(node, 1);
  out[0] = type_scalar(DT_F32);
  if (!is_scalar(arg_type(node, 0), DT_I64))
    return refuse(why, "the step must be i64[]");
  if (s.dtype != DT_F32 || s.rank != 1 || s.dim[0] < AMP_LR_LIST + 1)
    return refuse(why, "the schedule must be f32[S] with S at least 11");
  return true;
}

bool shape_all_finite(const Node *node, TensorType *out, const char **why) {
  out[0] = type_scalar(DT_BOOL);
  for (int a = 0; a < node->n_args; a++)
    if (!is_float(arg_type(node, a)))
      return refuse(why, "operands must be of float types");
  return true;
}

bool shape_clip_norm(const Node *node, TensorType *out, const char **why) {
  const Attr *clip = attr_find(node, ATTR_CLIP);
  out[0] = out[1] = type_scalar(DT_F32);
  if (!is_scalar(arg_type(node, 0), DT_F32))
    return refuse(why, "the inverse loss scale must be f32[]");
  for (int a = 1; a < node->n_args; a++)
    if (!is_float(arg_type(node, a)))
      return refuse(why, "gradients must be of float types");
  return clip && clip->f > 0 ? true : refuse(why, "needs `clip` above 0");
}

/* Has the node all attributes of the set `wanted` that its op knows? */
static bool complete(const Node *node, uint64_t wanted) {
  uint64_t need = op_info[node->op].attrs & wanted;
  for (int i = 0; i < node->n_attrs; i++)
    need &= ~(UINT64_C(1) << node->attr[i].key);
  return !need;
}

bool shape_loss_scale_update(const Node *node, TensorType *out, const char **why) {
  out[0] = type_scalar(DT_F32);
  out[1] = type_scalar(DT_I32);
  if (!is_scalar(arg_type(node, 0), DT_F32) || !is_scalar(arg_type(node, 1), DT_I32) ||
      !is_scalar(arg_type(node, 2), DT_BOOL))
    return refuse(why, "operands must be f32[], i32[], bool[]");
  return complete(node, UINT64_MAX)
             ? true
             : refuse(why, "needs `growth`, `backoff`, `interval`, `min`, `max`");
}

/* Operands: w, slots, g, lr, inv [, step]. Results: w, slots [, the low copy of w]. */
bool shape_opt(const Node *node, TensorType *out, const char **why) {
  const OpInfo *info = &op_info[node->op];
  int n_slots = info->min_results - 1;
  TensorType w = arg_type(node, 0), g = arg_type(node, 1 + n_slots);
  if (w.dtype != DT_F32)
    return refuse(why, "the parameter must be f32");
  for (int s = 0; s <= n_slots; s++) {
    out[s] = w;
    if (!type_equal(w, arg_type(node, s)))
      return refuse(why, "a slot's type is not the parameter's");
  }
  if (!is_float(g) || g.dtype == DT_F64 || !type_equal(w, type_with(g, DT_F32)))
    return refuse(why, "the gradient's shape is not the parameter's");
  for (int a = 2 + n_slots; a < 4 + n_slots; a++)
    if (!is_scalar(arg_type(node, a), DT_F32))
      return refuse(why, "learning rate and inverse loss scale must be f32[]");
  if (node->n_args > 4 + n_slots && !is_scalar(arg_type(node, 4 + n_slots), DT_I64))
    return refuse(why, "the step must be i64[]");
  if (node->n_results == info->max_results) {
    DType low = node->result[n_slots + 1]->type.dtype;
    if (!dtype_info[low].low)
      return refuse(why, "the copy must be of a 16-bit float type");
    out[n_slots + 1] = type_with(w, low);
  }
  if (!complete(node, opt_coefficients))
    return refuse(why, "lacks a coefficient that its row of the op table names");
  return true;
}
