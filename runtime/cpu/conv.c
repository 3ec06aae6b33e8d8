/* A convolution or one of its gradients. Each operand passes through up to three forms: as stored
 * (16 bit or f32), as f32, and in the layout that the primitive wants:
 *
 *   inputs   stored -> widen -> reorder -> primitive
 *   result   primitive -> (sum over chunks, filters only) -> reorder -> round -> stored
 *
 * A form that equals the one before costs nothing. */
#include "runtime/cpu/plan.h"

typedef struct Operand {
  Place stored;
  Md md;         /* layout as stored */
  int64_t count; /* elements of one chunk */
  When when;     /* in which chunks it is read or written */
  bool is_result;
} Operand;

static bool is_low(const DnnOp *op) {
  return op->dtype != AMPRT_F32 && !(op->dtype == AMPRT_BF16 && dnn_bf16_is_native());
}

static dnnl_data_type_t compute_type(const DnnOp *op) {
  return op->dtype == AMPRT_F32 || is_low(op) ? dnnl_f32 : dnnl_bf16;
}

static int64_t stored_bytes(const DnnOp *op) {
  return op->dtype == AMPRT_F32 ? 4 : 2;
}

/* How the operands a, b, out are called as x, w, y. */
static const int place_of[3][3] = {
    [DNN_CONV] = {0, 1, 2}, [DNN_DGRAD] = {2, 1, 0}, [DNN_WGRAD] = {0, 2, 1}};

static bool operands_make(Builder *b, const DnnOp *part, dnnl_data_type_t type,
                          Operand operand[3]) {
  const DnnOp *op = b->op;
  const DnnRef ref[3] = {op->a, op->b, op->out};
  const dnnl_dims_t dim[3] = {{part->n, op->c, op->h, op->w},
                              {op->k, op->c, op->r, op->s},
                              {part->n, op->k, op->ho, op->wo}};
  for (int i = 0; i < 3; i++) {
    Operand *o = &operand[i];
    o->count = dim[i][0] * dim[i][1] * dim[i][2] * dim[i][3];
    o->is_result = place_of[op->kind][i] == 2;
    o->when = i != 1 ? EACH : o->is_result ? LAST : FIRST;
    o->stored =
        dnn_place_operand(b, ref[place_of[op->kind][i]], i == 1 ? 0 : o->count * stored_bytes(op));
    if (!dnn_md_make(&o->md, 4, dim[i], type, i == 1 ? dnnl_ohwi : dnnl_nhwc))
      return false;
  }
  return true;
}

/* What the primitive is asked to take: its own choice of filter layout, and of activations if
 * blocked. */
static bool wanted_make(const DnnOp *part, dnnl_data_type_t type, Md want[3]) {
  const dnnl_dims_t dim[3] = {{part->n, part->c, part->h, part->w},
                              {part->k, part->c, part->r, part->s},
                              {part->n, part->k, part->ho, part->wo}};
  for (int i = 0; i < 3; i++) {
    bool any = i == 1 || part->method == DNN_BLOCK;
    if (!dnn_md_make(&want[i], 4, dim[i], type, any ? dnnl_format_tag_any : dnnl_nhwc))
      return false;
  }
  return true;
}

/* Where the f32 form of an operand lies, with the step that makes it from the stored form. */
static Place operand_widened(Builder *b, const Operand *o, bool low, bool *good) {
  if (!low)
    return o->stored;
  Place wide = dnn_place_scratch(b, o->count * (int64_t)sizeof(float), 0);
  if (!o->is_result)
    *good &= dnn_step_widen(b, o->when, o->stored, wide, o->count);
  return wide;
}

static Place operand_reordered(Builder *b, const Operand *o, Place wide, const Md *md, bool *good) {
  if (dnn_md_same(md_ref(o->md), md_ref(*md)))
    return wide;
  Place place = dnn_place_scratch(b, dnn_md_bytes(md_ref(*md)), 0);
  if (!o->is_result)
    *good &= dnn_step_reorder(b, o->when, md_ref(o->md), wide, md_ref(*md), place);
  return place;
}

/* From what the primitive wrote to what the user reads. */
static bool result_finish(Builder *b, const Operand *o, Place wide, Place place, const Md *md,
                          bool low) {
  bool good = true;
  if (!dnn_md_same(md_ref(o->md), md_ref(*md)))
    good = dnn_step_reorder(b, o->when, md_ref(*md), place, md_ref(o->md), wide);
  return good && (!low || dnn_step_round(b, o->when, wide, o->stored, o->count));
}

static bool steps_make(Builder *b, const_dnnl_primitive_desc_t pd, Operand operand[3], bool low) {
  Place wide[3], place[3], total = {0};
  Md md[3];
  int result = 0;
  bool good = dnn_conv_md(pd, b->op->kind, md);
  for (int i = 0; good && i < 3; i++) {
    wide[i] = operand_widened(b, &operand[i], low, &good);
    place[i] = operand_reordered(b, &operand[i], wide[i], &md[i], &good);
    if (operand[i].is_result)
      result = i;
  }
  bool summed =
      result == 1 && b->plan->n_chunks > 1; /* filter gradients overwrite, chunks must add */
  if (good && summed) {
    total = place[1];
    place[1] = dnn_place_scratch(b, dnn_md_bytes(md_ref(md[1])), 0);
  }
  good = good && dnn_step_conv(b, pd, md, place);
  if (good && summed) {
    good = dnn_step_sum(b, place[1], total, dnn_md_bytes(md_ref(md[1])) / (int64_t)sizeof(float));
    place[1] = total;
  }
  good = good && result_finish(b, &operand[result], wide[result], place[result], &md[result], low);
  for (int i = 0; i < 3; i++)
    dnn_md_drop(&md[i]);
  return good;
}

bool dnn_build_conv(Builder *b) {
  const DnnOp *op = b->op;
  bool low = is_low(op);
  dnnl_data_type_t type = compute_type(op);
  DnnOp part = *op;
  if (type == dnnl_f32)
    part.n = op->chunk; /* bf16 filter gradients must be summed inside the primitive */
  b->plan->n_chunks = op->n / part.n;
  Operand operand[3];
  Md want[3];
  dnnl_primitive_desc_t pd;
  if (!operands_make(b, &part, type, operand) || !wanted_make(&part, type, want) ||
      !dnn_pd_conv(&pd, &part, md_ref(want[0]), md_ref(want[1]), md_ref(want[2])))
    return false;
  bool good = steps_make(b, pd, operand, low);
  dnnl_primitive_desc_destroy(pd);
  for (int i = 0; i < 3; i++) {
    dnn_md_drop(&want[i]);
    dnn_md_drop(&operand[i].md);
  }
  return good;
}
