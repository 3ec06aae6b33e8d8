#include "tests/ops/bytes.h"

#include <math.h>
#include <string.h>

/* ---- numbers ---- */

/* Of a double: 52 bits of a fraction, 11 of an exponent, whose bias is 1023. */
enum { FRACTION = 52, BIAS = 1023 };

static uint64_t encode_float(double x, int fraction, int exponent_bits) {
  int bias = (1 << (exponent_bits - 1)) - 1, top = (1 << exponent_bits) - 1;
  uint64_t sign = signbit(x) ? UINT64_C(1) << (fraction + exponent_bits) : 0, bits;
  if (isnan(x))
    return sign | (uint64_t)top << fraction | UINT64_C(1) << (fraction - 1);
  if (isinf(x))
    return sign | (uint64_t)top << fraction;
  if (x == 0)
    return sign;
  memcpy(&bits, &x, sizeof bits);
  if (fraction == FRACTION)
    return bits;
  int exponent = (int)(bits >> FRACTION & 0x7ff) - BIAS + bias;
  uint64_t rest = bits & ((UINT64_C(1) << FRACTION) - 1);
  if (exponent < 1)
    return sign | (rest | UINT64_C(1) << FRACTION) >> (FRACTION - fraction + 1 - exponent);
  return sign | (uint64_t)exponent << fraction | rest >> (FRACTION - fraction);
}

static double decode_float(uint64_t bits, int fraction, int exponent_bits) {
  int bias = (1 << (exponent_bits - 1)) - 1, top = (1 << exponent_bits) - 1;
  int exponent = (int)(bits >> fraction) & top;
  uint64_t rest = bits & ((UINT64_C(1) << fraction) - 1);
  double x;
  if (exponent == top)
    x = rest != 0 ? NAN : INFINITY;
  else if (exponent == 0)
    x = ldexp((double)rest, 1 - bias - fraction);
  else {
    uint64_t wide = (uint64_t)(exponent - bias + BIAS) << FRACTION | rest << (FRACTION - fraction);
    memcpy(&x, &wide, sizeof x);
  }
  return bits >> (fraction + exponent_bits) & 1 ? -x : x;
}

static const struct {
  int fraction, exponent_bits;
} format[DT_COUNT] = {
    [DT_F32] = {23, 8}, [DT_F16] = {10, 5}, [DT_BF16] = {7, 8}, [DT_F64] = {52, 11}};

void tensor_encode(const EvalTensor *t, unsigned char *to) {
  DType d = t->type.dtype;
  for (int64_t i = 0, n = type_count(t->type); i < n; i++, to += dtype_info[d].bytes) {
    uint64_t bits = dtype_info[d].is_float
                        ? encode_float(t->v[i], format[d].fraction, format[d].exponent_bits)
                        : (uint64_t)(int64_t)t->v[i];
    memcpy(to, &bits, (size_t)dtype_info[d].bytes); /* little-endian, as the CPU target is */
  }
}

void tensor_decode(const unsigned char *from, EvalTensor *t) {
  DType d = t->type.dtype;
  int bytes = dtype_info[d].bytes;
  for (int64_t i = 0, n = type_count(t->type); i < n; i++, from += bytes) {
    uint64_t bits = 0;
    memcpy(&bits, from, (size_t)bytes);
    if (dtype_info[d].is_float)
      t->v[i] = decode_float(bits, format[d].fraction, format[d].exponent_bits);
    else if (d == DT_I32)
      t->v[i] = (int32_t)bits;
    else
      t->v[i] = (double)(int64_t)bits;
  }
}

/* ---- blocks ---- */

static TensorType port_type(const AmprtPort *port) {
  return type_of((DType)port->dtype, port->rank, port->dim);
}

size_t port_bytes(const AmprtPort *port) {
  return (size_t)type_bytes(port_type(port));
}

void blocks_load(const AmprtProgram *program, const AmprtGraph *graph, const AmprtRun *run,
                 EvalEnv *env) {
  for (int i = 0; i < graph->n_inputs; i++) {
    const AmprtPort *port = &graph->input[i];
    tensor_encode(eval_env_get(env, port->name), run->arena + port->at);
  }
  for (int i = 0; i < program->n_variables; i++) {
    const EvalTensor *t = eval_env_get(env, program->variable[i].name);
    if (t) /* else a variable of another graph */
      tensor_encode(t, run->state + program->variable[i].at);
  }
}

void blocks_store(Arena *arena, const AmprtProgram *program, const AmprtGraph *graph,
                  const AmprtRun *run, EvalEnv *env) {
  for (int i = 0; i < graph->n_outputs; i++) {
    const AmprtPort *port = &graph->output[i];
    const char *name = arena_printf(arena, "output:%s", port->name);
    tensor_decode((port->in_state ? run->state : run->arena) + port->at,
                  eval_env_set(env, name, port_type(port)));
  }
  for (int i = 0; i < program->n_variables; i++) {
    EvalTensor *t = eval_env_get(env, program->variable[i].name);
    if (t)
      tensor_decode(run->state + program->variable[i].at, t);
  }
}
