#include "codegen/cuda/toolkit/plan.h"

#include "codegen/program/cache.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { PLAN_MOST = 32 };

const char plan_no_tf32[] = "it has no TF32; sm_80 and later have: leave out --tf32";

ConvOp plan_op(const Node *node) {
  static const struct {
    OpKind op;
    ConvForm form;
    int x, w, y; /* which operand is what; 2: the result */
  } form_of[] = {{OP_CONV2D, CONV_FPROP, 0, 1, 2},
                 {OP_CONV2D_DGRAD, CONV_DGRAD, 2, 1, 0},
                 {OP_CONV2D_WGRAD, CONV_WGRAD, 0, 2, 1}};
  const int64_t *stride = attr_ints(node, ATTR_STRIDE, 2), *pad = attr_ints(node, ATTR_PAD, 4);
  CHECK(stride && pad, "`%s` without stride or pad", op_info[node->op].name);
  for (size_t i = 0; i < sizeof form_of / sizeof *form_of; i++) {
    if (node->op != form_of[i].op)
      continue;
    const Value *operand[] = {node->arg[0], node->arg[1], node->result[0]};
    const int64_t *x = operand[form_of[i].x]->type.dim, *w = operand[form_of[i].w]->type.dim;
    DType dtype = node->result[0]->type.dtype;
    ConvOp op = {.form = (uint8_t)form_of[i].form,
                 .dtype = dtype == DT_F16    ? CONV_F16
                          : dtype == DT_BF16 ? CONV_BF16
                                             : CONV_F32,
                 .tf32 = dtype == DT_F32 && attr_int(node, ATTR_TF32, 0) != 0,
                 .n = x[0],
                 .h = x[1],
                 .w = x[2],
                 .c = x[3],
                 .k = w[0],
                 .r = w[1],
                 .s = w[2],
                 .groups = attr_int(node, ATTR_GROUPS, 1)};
    memcpy(op.stride, stride, sizeof op.stride);
    memcpy(op.pad, pad, sizeof op.pad);
    return op;
  }
  BUG("`%s` is no convolution", op_info[node->op].name);
}

static const PlanForm form_rows[] = {
#define PLAN_FORM(form, least, last, c, k, filter, stride, saves, level)                           \
  {CONV_##form, least, last, c, k, filter, stride, saves, level},
#include "codegen/cuda/toolkit/plan_forms.def"
};

/* The row of plan_forms.def; NULL for plain convolutions, and where the device has no engine. */
static const PlanForm *row_of(const ConvOp *op, const Device *device) {
  for (size_t i = 0; i < sizeof form_rows / sizeof *form_rows; i++)
    if (form_rows[i].form == op->form && device->capability >= form_rows[i].least &&
        device->capability <= form_rows[i].last)
      return &form_rows[i];
  return NULL;
}

/* Have x and y fewer than 2^31 elements each? */
static bool is_countable(const ConvOp *op) {
  int64_t ho, wo;
  return cuda_conv_output(op, &ho, &wo) && op->h * op->w <= INT32_MAX / op->n / op->c &&
         ho * wo <= INT32_MAX / op->n / op->k;
}

static bool row_takes(const PlanForm *row, const ConvOp *op) {
  int64_t filter = op->r > op->s ? op->r : op->s;
  int64_t stride = op->stride[0] > op->stride[1] ? op->stride[0] : op->stride[1];
  return op->dtype == CONV_F16 && op->groups == 1 && op->c % row->c == 0 && op->k % row->k == 0 &&
         (row->filter == 0 || filter <= row->filter) &&
         (row->stride == 0 || stride <= row->stride) && op->pad[0] == op->pad[1] &&
         op->pad[2] == op->pad[3] && is_countable(op);
}

const PlanForm *plan_form(const ConvOp *op, const Device *device) {
  const PlanForm *row = row_of(op, device);
  return row && row_takes(row, op) ? row : NULL;
}

int plan_newest(const ConvOp *op, const Device *device) {
  const PlanForm *row = row_of(op, device);
  return row ? row->last : 0;
}

/* ---- in the cache: per plan a line of numbers, then its text ---- */

static CacheKey cache_key_of(const Toolkit *toolkit, const char *key, const Device *device,
                             Arena *arena, int most) {
  CacheKey name = cache_key_begin("plan");
  cache_key_int(&name, toolkit->cudnn_version);
  cache_key_text(&name, device_json(arena, device));
  cache_key_text(&name, key);
  cache_key_int(&name, most);
  return name;
}

/* Reads the plans that the cache holds, `data`, which ends in a NUL. */
static int split(const char *data, size_t size, const char *key, PlanText *out, int most) {
  int n = 0;
  for (const char *p = data; n < most && p < data + size; n++) {
    PlanText plan = {.key = key};
    int line = 0;
    if (sscanf(p, "%" SCNd64 " %" SCNd64 " %" SCNu32 " %zu\n%n", &plan.workspace, &plan.engine,
               &plan.notes, &plan.json_bytes, &line) != 4 ||
        line == 0 || plan.json_bytes > (size_t)(data + size - p) - (size_t)line)
      return 0;
    plan.json = p + line;
    p = plan.json + plan.json_bytes;
    out[n] = plan;
  }
  return n;
}

static const char *append(const Toolkit *toolkit, Arena *arena, const char *data, size_t *size,
                          const ConvPlan *plan) {
  int64_t bytes = cuda_conv_plan_json(&toolkit->cudnn, plan->object, NULL, 0);
  if (bytes <= 0)
    return NULL;
  const char *line = arena_printf(arena, "%" PRId64 " %" PRId64 " %" PRIu32 " %" PRId64 "\n",
                                  plan->workspace, plan->engine, plan->notes, bytes);
  size_t head = *size + strlen(line);
  char *all = arena_alloc(arena, head + (size_t)bytes + 1);
  memcpy(all, data, *size);
  memcpy(all + *size, line, strlen(line));
  if (cuda_conv_plan_json(&toolkit->cudnn, plan->object, all + head, bytes) != bytes)
    return NULL;
  *size = head + (size_t)bytes;
  return all;
}

/* ---- */

static const char *plan_now(Toolkit *toolkit, Arena *arena, const ConvOp *op, const Device *device,
                            int most, size_t *size, char error[TOOLKIT_ERROR]) {
  ConvPlan plan[PLAN_MOST];
  CudnnObject description = toolkit_device(toolkit, device, error);
  if (!description)
    return NULL;
  int n = cuda_conv_plans(&toolkit->cudnn, op, description, plan, most, error, TOOLKIT_ERROR);
  const char *data = n ? "" : NULL;
  *size = 0;
  for (int i = 0; i < n; i++) {
    if (data)
      data = append(toolkit, arena, data, size, &plan[i]);
    if (!data)
      snprintf(error, TOOLKIT_ERROR, "cuDNN does not give a plan's text");
    cuda_conv_plan_free(&toolkit->cudnn, &plan[i]);
  }
  return data;
}

int plan_list(Toolkit *toolkit, const char *cache, Arena *arena, const ConvOp *op,
              const Device *device, PlanText *out, int most, char error[TOOLKIT_ERROR]) {
  CHECK(most >= 1 && most <= PLAN_MOST, "%d plans asked for", most);
  if (!toolkit_cudnn(toolkit, error))
    return 0;
  if (op->dtype == CONV_BF16 && device->capability < 80) {
    snprintf(error, TOOLKIT_ERROR, "%s (sm_%d) does not multiply bf16; sm_80 and later do",
             device->name, device->capability);
    return 0;
  }
  if (op->tf32 && device->capability < 80) {
    snprintf(error, TOOLKIT_ERROR, "%s", plan_no_tf32);
    return 0;
  }
  char text[CONV_KEY_BYTES];
  cuda_conv_key_print(op, text);
  const char *key = arena_strdup(arena, text, strlen(text));
  CacheKey name = cache_key_of(toolkit, key, device, arena, most);
  char *kept;
  size_t size;
  int n = cache_get(cache, &name, arena, &kept, &size) ? split(kept, size, key, out, most) : 0;
  if (n)
    return n;
  const char *data = plan_now(toolkit, arena, op, device, most, &size, error);
  if (!data)
    return 0;
  cache_put(cache, &name, data, size);
  return split(data, size, key, out, most);
}

static const char *engine_of(Arena *arena, const PlanText *plan) {
  size_t from, past;
  CHECK(cuda_conv_json_object(plan->json, plan->json_bytes, "engine", &from, &past),
        "the plan of %s names no engine", plan->key);
  return arena_strdup(arena, plan->json + from, past - from);
}

PlanText plan_choose(Arena *arena, const PlanText *list, int n, const char *engine) {
  const char **candidate = arena_alloc(arena, (size_t)n * sizeof *candidate);
  int best = 0;
  bool tuned = false;
  for (int i = 0; i < n; i++) {
    candidate[i] = engine_of(arena, &list[i]);
    if (engine && strcmp(candidate[i], engine) == 0)
      best = i, tuned = true;
  }
  PlanText plan = list[best];
  plan.json = arena_strdup(arena, plan.json, plan.json_bytes); /* others follow in a list's text */
  plan.candidate = candidate;
  plan.n_candidates = n;
  plan.tuned = tuned;
  return plan;
}
