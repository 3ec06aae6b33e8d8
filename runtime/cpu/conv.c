/* A convolution or one of its gradients. Each operand has up to three forms: as it is stored (in 16
 * bits or f32), as f32, and in the layout that oneDNN's primitive wants. The steps between them are
 *
 *   inputs   stored -> widen -> reorder -> primitive
 *   result   primitive -> (sum over chunks, filter gradients only) -> reorder -> round -> stored
 *
 * Where two forms are equal there is no step. */
#include "runtime/cpu/plan.h"

typedef struct Operand {
  Place stored;
  Md md;         /* layout as stored */
  int64_t count; /* elements of one chunk */
  When when;     /* the chunks in which it is read or written */
  bool is_result;
} Operand;

/* Is the op stored in 16 bits and computed in f32? */
static bool is_low(const DnnOp *op) {
  return op->dtype != AMPRT_F32 && !(op->dtype == AMPRT_BF16 && dnn_bf16_is_native());
}

/* Which of the operands a, b and out (0, 1 and 2) are x, w and y, or the gradients of these. */
static const int place_of[3][3] = {
    [DNN_CONV] = {0, 1, 2}, [DNN_DGRAD] = {2, 1, 0}, [DNN_WGRAD] = {0, 2, 1}};

/* Describes the filter. One for several groups has a dimension more in oneDNN, but in memory its
 * outputs follow each other in the same way: those of group 0, of group 1, and so on. */
static bool filter_make(Md *md, const DnnOp *op, dnnl_data_type_t type, bool any) {
  const int64_t c = dnn_filter_c(op), groups = op->groups;
  if (groups > 1)
    return dnn_md_make(md, 5, (dnnl_dims_t){groups, op->k / groups, c, op->r, op->s}, type,
                       any ? dnnl_format_tag_any : dnnl_gohwi);
  return dnn_md_make(md, 4, (dnnl_dims_t){op->k, c, op->r, op->s}, type,
                     any ? dnnl_format_tag_any : dnnl_ohwi);
}

/* Describes x, w and y as they are stored; `part` is the op for one chunk. */
static bool operands_make(Builder *b, const DnnOp *part, dnnl_data_type_t type,
                          Operand operand[3]) {
  const DnnOp *op = b->op;
  const DnnRef ref[3] = {op->a, op->b, op->out};
  const dnnl_dims_t dim[3] = {{part->n, op->c, op->h, op->w},
                              {op->k, dnn_filter_c(op), op->r, op->s},
                              {part->n, op->k, op->ho, op->wo}};
  for (int i = 0; i < 3; i++) {
    Operand *o = &operand[i];
    o->count = dim[i][0] * dim[i][1] * dim[i][2] * dim[i][3];
    o->is_result = place_of[op->kind][i] == 2;
    o->when = i != 1 ? EACH : o->is_result ? LAST : FIRST;
    int64_t bytes = o->count * (op->dtype == AMPRT_F32 ? 4 : 2);
    o->stored = dnn_place_operand(b, ref[place_of[op->kind][i]], i == 1 ? 0 : bytes);
    if (!(i == 1 ? filter_make(&o->md, op, type, false)
                 : dnn_md_make(&o->md, 4, dim[i], type, dnnl_nhwc)))
      return false;
  }
  return true;
}

/* The layouts that the primitive is asked for. It chooses that of the filter itself, and with
 * DNN_BLOCK those of the activations as well. */
static bool wanted_make(const DnnOp *part, dnnl_data_type_t type, Md want[3]) {
  const dnnl_dims_t x = {part->n, part->c, part->h, part->w};
  const dnnl_dims_t y = {part->n, part->k, part->ho, part->wo};
  dnnl_format_tag_t tag = part->method == DNN_BLOCK ? dnnl_format_tag_any : dnnl_nhwc;
  return dnn_md_make(&want[0], 4, x, type, tag) && filter_make(&want[1], part, type, true) &&
         dnn_md_make(&want[2], 4, y, type, tag);
}

/* Adds all steps of the op; `low` as in is_low. */
static bool steps_make(Builder *b, const_dnnl_primitive_desc_t pd, Operand operand[3], bool low) {
  Place wide[3], place[3],
      total = {0}; /* of each operand: its f32 form, and that of the primitive */
  Md md[3];        /* layouts of the primitive */
  bool moves[3];   /* is its layout another than that in memory? */
  int result = 0;
  bool good = dnn_conv_md(pd, b->op->kind, md);
  for (int i = 0; good && i < 3; i++) {
    const Operand *o = &operand[i];
    if (o->is_result)
      result = i;
    wide[i] = o->stored;
    if (low) {
      wide[i] = dnn_place_scratch(b, o->count * (int64_t)sizeof(float), 0);
      if (!o->is_result)
        good &= dnn_step_widen(b, o->when, o->stored, wide[i], o->count);
    }
    place[i] = wide[i];
    moves[i] = !dnn_md_same(md_ref(o->md), md_ref(md[i]));
    if (moves[i]) {
      place[i] = dnn_place_scratch(b, dnn_md_bytes(md_ref(md[i])), 0);
      if (!o->is_result)
        good &= dnn_step_reorder(b, o->when, md_ref(o->md), wide[i], md_ref(md[i]), place[i]);
    }
  }

  /* The primitive overwrites a filter gradient, so those of several chunks are added up outside. */
  bool summed = result == 1 && b->plan->n_chunks > 1;
  if (good && summed) {
    total = place[1];
    place[1] = dnn_place_scratch(b, dnn_md_bytes(md_ref(md[1])), 0);
  }
  good = good && dnn_step_conv(b, pd, md, place);
  if (good && summed) {
    good = dnn_step_sum(b, place[1], total, dnn_md_bytes(md_ref(md[1])) / (int64_t)sizeof(float));
    place[1] = total;
  }

  const Operand *out = &operand[result];
  if (good && moves[result])
    good = dnn_step_reorder(b, out->when, md_ref(md[result]), place[result], md_ref(out->md),
                            wide[result]);
  if (good && low)
    good = dnn_step_round(b, out->when, wide[result], out->stored, out->count);
  for (int i = 0; i < 3; i++)
    dnn_md_drop(&md[i]);
  return good;
}

bool dnn_build_conv(Builder *b) {
  const DnnOp *op = b->op;
  bool low = is_low(op);
  dnnl_data_type_t type = op->dtype == AMPRT_F32 || low ? dnnl_f32 : dnnl_bf16;
  DnnOp part = *op; /* the op for one chunk */
  if (type == dnnl_f32)
    part.n = op->chunk; /* in bf16 there is one chunk: sums between chunks would be rounded */
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
