/* References to operands, in the arguments of kernels. A constant becomes a table in a CPU program
 * and bytes in the block of constants of a CUDA part. */
#include "codegen/loop/loop.h"
#include "ir/eval/eval.h"

#include <math.h>
#include <string.h>

AmpRef ref_nowhere(void) {
  return (AmpRef){.where = AMP_NOWHERE};
}

const char *ref_text(Arena *arena, AmpRef ref) {
  static const char *const where[] = {"AMP_ARENA", "AMP_STATE", "AMP_CONST", "AMP_NOWHERE"};
  if (ref.where == AMP_NOWHERE)
    return "{.where = AMP_NOWHERE}";
  return arena_printf(arena, "{%lld, %s, %d}", (long long)ref.at, where[ref.where], (int)ref.dtype);
}

const char *number_text(Arena *arena, double x) {
  if (isnan(x))
    return "AMP_NAN";
  if (isinf(x))
    return x < 0 ? "-AMP_INF" : "AMP_INF";
  return arena_printf(arena, x == rint(x) && fabs(x) < 1e9 ? "%.0f" : "%a", x);
}

/* ---- constants ---- */

/* Constants of every float type are stored as f32, which saves kernels a conversion. 16-bit ones
 * are few and small, so the memory does not matter. */
static DType stored_dtype(const Value *value) {
  return dtype_info[value->type.dtype].is_float ? DT_F32 : value->type.dtype;
}

static double element(const Value *value, int64_t i) {
  const Attr *data = attr_find(value->node, ATTR_DATA);
  return eval_round(data ? data->floats[i] : attr_float(value->node, ATTR_VALUE, 0),
                    value->type.dtype);
}

/* Programs know element types by the numbers that ampcc has for them. */
#define DTYPE(id, ...) _Static_assert((int)AMPRT_##id == (int)DT_##id, "AmprtDType, dtypes.def");
#include "ir/dtypes.def"
_Static_assert((int)AMPRT_MAX_RANK == (int)MAX_RANK, "amprt.h, ir.h");

static void store_number(void *to, DType dtype, double x) {
  CHECK(!dtype_info[dtype].low, "a constant is stored in 16 bits");
  switch (dtype) {
#define DTYPE(id, name, bytes, ctype, ...)                                                         \
  case DT_##id: {                                                                                  \
    ctype stored = (ctype)x;                                                                       \
    memcpy(to, &stored, sizeof stored);                                                            \
    break;                                                                                         \
  }
#include "ir/dtypes.def"
  case DT_COUNT:
    break;
  }
}

/* A constant's elements as a table of the CPU called `name`. */
static void write_table(Emitter *emit, const Value *value, const char *name) {
  Text numbers = {emit->arena};
  for (int64_t i = 0, n = type_count(value->type); i < n; i++)
    text_format(&numbers, "%s%s", i ? "," : "", number_text(emit->arena, element(value, i)));
  file_fill(emit->tables, emit->arena, "static const $TYPE $NAME[] = {$NUMBERS};\n",
            holes({"TYPE", ctype_of(stored_dtype(value))}, {"NAME", name},
                  {"NUMBERS", text_get(&numbers)}));
}

/* ---- values ---- */

AmpRef ref_read(Emitter *emit, const Value *value, const char *owner) {
  const Value *storage = value_storage((Value *)value);
  AmpRef ref = {.dtype = (uint8_t)value->type.dtype};
  if (storage->node->op != OP_CONST) {
    ref.where = value_in_state(value) ? AMP_STATE : AMP_ARENA;
    ref.at = value_at(value);
    return ref;
  }
  DType dtype = stored_dtype(value);
  ref.where = AMP_CONST;
  ref.dtype = (uint8_t)dtype;
  if (!emit->constants) {
    write_table(emit, storage, owner);
    ref.at = constant_number(emit, owner);
    return ref;
  }
  size_t n = (size_t)type_count(storage->type), size = (size_t)dtype_info[dtype].bytes;
  unsigned char *bytes = arena_alloc(emit->arena, n * size);
  for (size_t i = 0; i < n; i++)
    store_number(bytes + i * size, dtype, element(storage, (int64_t)i));
  ref.at = constant_intern(emit, bytes, n * size);
  return ref;
}

AmpRef ref_result(const Value *value) {
  const int64_t *at = attr_ints(value->node, ATTR_AT, value->node->n_results);
  CHECK(at, "%%%s was never planned", value->name);
  if (at[value->index] < 0)
    return ref_nowhere();
  return (AmpRef){at[value->index], AMP_ARENA, (uint8_t)value->type.dtype};
}

AmpRef ref_update(const Kernel *kernel, const Value *value) {
  for (int i = 0; i < kernel->n_nodes; i++) {
    const Node *node = kernel->node[i];
    if (node->op == OP_UPDATE && node->arg[1] == value)
      return (AmpRef){value_at(node->arg[0]), AMP_STATE, (uint8_t)value->type.dtype};
  }
  return ref_nowhere();
}

AmpRef ref_list(Emitter *emit, const AmpTensor *list, int n, const char *owner) {
  AmpRef ref = {.where = AMP_CONST};
  if (emit->constants) {
    ref.at = constant_intern(emit, list, (size_t)n * sizeof *list);
    return ref;
  }
  Text rows = {emit->arena};
  for (int i = 0; i < n; i++)
    text_format(&rows, "{%s, %lld},\n", ref_text(emit->arena, list[i].x), (long long)list[i].count);
  file_fill(emit->tables, emit->arena,
            "static const AmpTensor $NAME[] = {\n"
            "  $ROWS\n"
            "};\n",
            holes({"NAME", owner}, {"ROWS", text_get(&rows)}));
  ref.at = constant_number(emit, owner);
  return ref;
}

const char *args_name(Emitter *emit, const Kernel *kernel) {
  return arena_printf(emit->arena, "args_%s_%d", ident_of(emit->arena, emit->graph->name),
                      kernel->id);
}

int64_t kernel_scratch(const Kernel *kernel) {
  const int64_t *place = attr_ints(kernel->node[0], ATTR_WORKSPACE, 2);
  CHECK(place, "kernel %d has no workspace", kernel->id);
  return place[0];
}
