#include "ir/recipe/opt.h"

#include <string.h>

static const OptOp ops[OP_COUNT] = {
#define SLOT(suffix, init) {#suffix, #init},
#define OPTIMIZER_OP(id, name, slots, needs, attributes)                                           \
  [OP_OPT_##id] = {#name, #needs, OPT_##needs, {slots{NULL, NULL}}},
#include "ir/recipe/opt.def"
#undef SLOT
};

static const OptRule rules[] = {
#define NUMBER(attribute, value) {ATTR_##attribute, false, value},
#define FLAG(attribute)          {ATTR_##attribute, true, 1},
#define RULE(name, op, numbers, spared)                                                            \
  {#name, #spared, OP_OPT_##op, {numbers{ATTR_END, false, 0}}},
    OPTIMIZERS(RULE)};
enum { N_RULES = sizeof rules / sizeof *rules };

static const struct Coefficient {
  AttrKey key;
  const char *field;
  size_t offset; /* of the field in Recipe */
} coefficients[] = {
#define COEFFICIENT(attribute, field, flag, low, high, help)                                       \
  {ATTR_##attribute, #field, offsetof(Recipe, field)},
#include "ir/recipe/opt.def"
};
enum { N_COEFFICIENTS = sizeof coefficients / sizeof *coefficients };

const uint64_t opt_coefficients = 0
#define COEFFICIENT(attribute, field, flag, low, high, help) | UINT64_C(1) << ATTR_##attribute
#include "ir/recipe/opt.def"
    ;

const OptOp *opt_op(OpKind op) {
  return ops[op].name ? &ops[op] : NULL;
}

int opt_slots(OpKind op) {
  return op_info[op].min_results - 1;
}

int opt_gradient(OpKind op) {
  return 1 + opt_slots(op);
}

const OptRule *opt_find(const char *name) {
  for (int i = 0; i < N_RULES; i++)
    if (strcmp(rules[i].name, name) == 0)
      return &rules[i];
  return NULL;
}

double opt_number(const Recipe *recipe, const OptNumber *number) {
  for (int i = 0; i < N_COEFFICIENTS; i++)
    if (coefficients[i].key == number->key) {
      const char *at = (const char *)recipe + coefficients[i].offset;
      if (recipe_is_set((const double *)(const void *)at))
        return *(const double *)(const void *)at;
    }
  return number->value;
}

void opt_print_defaults(const char *field, FILE *out) {
  int printed = 0;
  for (int c = 0; c < N_COEFFICIENTS; c++)
    for (int r = 0; r < N_RULES && strcmp(coefficients[c].field, field) == 0; r++)
      for (const OptNumber *number = rules[r].number; number->key != ATTR_END; number++)
        if (number->key == coefficients[c].key)
          fprintf(out, "%s%s %g", printed++ ? ", " : " (", rules[r].name, number->value);
  fputs(printed ? ")" : "", out);
}
