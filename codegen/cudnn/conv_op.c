#include "codegen/cudnn/conv_op.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const struct {
  const char *name, *operands;
} form_info[CONV_FORM_COUNT] = {
#define CONV_FORM(id, name, build, operands) [CONV_##id] = {name, operands},
#include "codegen/cudnn/conv_forms.def"
};

static const char *const type_name[] = {"f32", "f16", "bf16"};
enum { N_TYPES = sizeof type_name / sizeof *type_name };

void cuda_conv_key_print(const ConvOp *op, char key[CONV_KEY_BYTES]) {
  char groups[24] = "";
  if (op->groups != 1)
    snprintf(groups, sizeof groups, " g%" PRId64, op->groups);
  snprintf(key, CONV_KEY_BYTES,
           "%s %s n%" PRId64 " h%" PRId64 " w%" PRId64 " c%" PRId64 " k%" PRId64 " r%" PRId64
           " s%" PRId64 " u%" PRId64 ",%" PRId64 " p%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64
           "%s%s",
           form_info[op->form].name, type_name[op->dtype], op->n, op->h, op->w, op->c, op->k, op->r,
           op->s, op->stride[0], op->stride[1], op->pad[0], op->pad[1], op->pad[2], op->pad[3],
           groups, op->tf32 ? " tf32" : "");
}

static bool in_range(int64_t x, int64_t least) {
  return x >= least && x <= INT32_MAX;
}

bool cuda_conv_output(const ConvOp *op, int64_t *ho, int64_t *wo) {
  const int64_t extent[] = {op->n, op->h, op->w,         op->c,        op->k,
                            op->r, op->s, op->stride[0], op->stride[1]};
  for (size_t i = 0; i < sizeof extent / sizeof *extent; i++)
    if (!in_range(extent[i], 1))
      return false;
  for (int i = 0; i < 4; i++)
    if (!in_range(op->pad[i], 0))
      return false;
  if (!in_range(op->groups, 1) || op->c % op->groups || op->k % op->groups)
    return false;
  int64_t rows = op->h + op->pad[0] + op->pad[1] - op->r;
  int64_t columns = op->w + op->pad[2] + op->pad[3] - op->s;
  if (rows < 0 || columns < 0)
    return false;
  *ho = rows / op->stride[0] + 1;
  *wo = columns / op->stride[1] + 1;
  return true;
}

bool cuda_conv_key_parse(const char *key, ConvOp *out) {
  char form[24], type[8], again[CONV_KEY_BYTES];
  ConvOp op = {.form = CONV_FORM_COUNT, .dtype = N_TYPES, .groups = 1};
  int rest = 0;
  int n = sscanf(key,
                 "%23s %7s n%" SCNd64 " h%" SCNd64 " w%" SCNd64 " c%" SCNd64 " k%" SCNd64
                 " r%" SCNd64 " s%" SCNd64 " u%" SCNd64 ",%" SCNd64 " p%" SCNd64 ",%" SCNd64
                 ",%" SCNd64 ",%" SCNd64 "%n",
                 form, type, &op.n, &op.h, &op.w, &op.c, &op.k, &op.r, &op.s, &op.stride[0],
                 &op.stride[1], &op.pad[0], &op.pad[1], &op.pad[2], &op.pad[3], &rest);
  if (n < 15)
    return false;
  (void)sscanf(key + rest, " g%" SCNd64, &op.groups);
  for (int i = 0; i < CONV_FORM_COUNT; i++)
    if (strcmp(form, form_info[i].name) == 0)
      op.form = (uint8_t)i;
  for (int i = 0; i < N_TYPES; i++)
    if (strcmp(type, type_name[i]) == 0)
      op.dtype = (uint8_t)i;
  op.tf32 = strstr(key + rest, " tf32") != NULL;
  int64_t ho, wo;
  if (op.form == CONV_FORM_COUNT || op.dtype == N_TYPES || !cuda_conv_output(&op, &ho, &wo))
    return false;
  cuda_conv_key_print(&op, again); /* sscanf accepts more blanks, signs and ends than a key has */
  if (strcmp(again, key) != 0)
    return false;
  *out = op;
  return true;
}

int cuda_conv_operands(ConvForm form) {
  int n = 1;
  for (const char *c = form_info[form].operands; *c; c++)
    n += *c == ' ';
  return n;
}
