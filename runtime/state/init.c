#include "runtime/state/init.h"

#include "runtime/base/convert.h"
#include "runtime/base/normal.h"

#include <math.h>
#include <string.h>

/* The source of a variable's initial values, of which a Fill function makes four at a time. */
typedef struct Source {
  const AmprtVariable *variable;
  AmprtKey key;
  double a, b; /* mean and stddev, or low and high */
} Source;

int64_t amprt_variable_elements(const AmprtVariable *variable) {
  int64_t n = 1;
  for (int i = 0; i < variable->rank; i++)
    n *= variable->dim[i];
  return n;
}

size_t amprt_variable_bytes(const AmprtVariable *variable) {
  return (size_t)amprt_variable_elements(variable) * amprt_dtype_size((AmprtDType)variable->dtype);
}

const AmprtVariable *amprt_variable_find(const AmprtProgram *program, const char *name) {
  for (int i = 0; i < program->n_variables; i++)
    if (!strcmp(program->variable[i].name, name))
      return &program->variable[i];
  return NULL;
}

static void fill_constant(const Source *source, uint64_t block, double out[4]) {
  (void)block;
  for (int i = 0; i < 4; i++)
    out[i] = source->a;
}

static void fill_data(const Source *source, uint64_t block, double out[4]) {
  uint64_t n = (uint64_t)amprt_variable_elements(source->variable);
  for (uint64_t i = 0; i < 4; i++)
    out[i] = 4 * block + i < n ? source->variable->init_data[4 * block + i] : 0;
}

static void fill_uniform(const Source *source, uint64_t block, double out[4]) {
  AmprtWords words = amprt_rng_at(source->key, block, 0);
  for (int i = 0; i < 4; i++)
    out[i] = source->a + (source->b - source->a) * amprt_rng_unit(words.v[i]);
}

static void fill_normal(const Source *source, uint64_t block, double out[4]) {
  amprt_rng_normal(amprt_rng_at(source->key, block, 0), out);
  for (int i = 0; i < 4; i++)
    out[i] = source->a + source->b * out[i];
}

static void fill_truncated(const Source *source, uint64_t block, double out[4]) {
  amprt_truncated_block(source->key, block, source->a, source->b, out);
}

typedef void Fill(const Source *source, uint64_t block, double out[4]);

static void fans(const AmprtVariable *variable, double *in, double *out) {
  double area = 1; /* R * S of a filter */
  for (int i = 1; i + 1 < variable->rank; i++)
    area *= (double)variable->dim[i];
  double last = variable->rank ? (double)variable->dim[variable->rank - 1] : 1;
  *in = area * last;
  *out = variable->rank > 1 ? area * (double)variable->dim[0] : last;
}

/* Keras's VarianceScaling (see AmprtInit). A unit normal truncated at 2 has the standard deviation
 * 0.8796. */
static Fill *variance_scaling(const AmprtVariable *variable, Source *source) {
  double in, out, scale = variable->init_arg[0];
  fans(variable, &in, &out);
  int mode = (int)variable->init_arg[1], distribution = (int)variable->init_arg[2];
  double fan = mode == 0 ? in : mode == 1 ? out : (in + out) / 2;
  double stddev = sqrt(scale / (fan > 1 ? fan : 1)), limit = sqrt(3) * stddev;
  *source = (Source){variable, source->key, 0, stddev};
  switch (distribution) {
  case 0:
    source->b = stddev / .87962566103423978;
    return fill_truncated;
  case 1:
    return fill_normal;
  case 2:
    source->a = -limit, source->b = limit;
    return fill_uniform;
  default:
    return fill_truncated;
  }
}

static Fill *choose(const AmprtVariable *variable, Source *source) {
  switch ((AmprtInit)variable->init) {
  case AMPRT_ONES:
    source->a = 1;
    return fill_constant;
  case AMPRT_CONSTANT:
    return fill_constant;
  case AMPRT_UNIFORM:
    return fill_uniform;
  case AMPRT_NORMAL:
    return fill_normal;
  case AMPRT_TRUNCATED_NORMAL:
    return fill_truncated;
  case AMPRT_VARIANCE_SCALING:
    return variance_scaling(variable, source);
  case AMPRT_ZEROS:
  case AMPRT_DATA:
    break;
  }
  return fill_data;
}

static void store_exact(AmprtDType dtype, double value, unsigned char *at) {
  if (dtype == AMPRT_F64) {
    memcpy(at, &value, sizeof value);
  } else if (dtype == AMPRT_I64) {
    int64_t whole = (int64_t)value; /* not through float, which cannot hold every seed or step */
    memcpy(at, &whole, sizeof whole);
  } else {
    float single = (float)value;
    amprt_from_f32(dtype, &single, at, 1);
  }
}

/* A variable is filled in pieces of so many elements, a multiple of four. */
enum { PIECE = 16384 };

typedef struct Filling {
  Source source;
  Fill *fill;
  unsigned char *at;
} Filling;

static void fill_piece(const AmprtRun *run, const void *args, int64_t piece) {
  const Filling *f = args;
  uint64_t n = (uint64_t)amprt_variable_elements(f->source.variable);
  uint64_t first = (uint64_t)piece * PIECE, last = n - first < PIECE ? n : first + PIECE;
  AmprtDType dtype = (AmprtDType)f->source.variable->dtype;
  size_t size = amprt_dtype_size(dtype);
  (void)run;
  if (f->fill == fill_truncated && dtype == AMPRT_F32) {
    amprt_truncated_normals(f->source.key, first, f->source.a, f->source.b,
                            (float *)(void *)f->at + first, last - first);
    return;
  }
  for (uint64_t i = first; i < last; i += 4) {
    double four[4];
    f->fill(&f->source, i / 4, four);
    for (uint64_t k = i; k < last && k < i + 4; k++)
      if (dtype == AMPRT_F32)
        ((float *)(void *)f->at)[k] = (float)four[k - i];
      else
        store_exact(dtype, four[k - i], f->at + k * size);
  }
}

static void all_pieces(int64_t elements, AmprtChunk *piece, const void *args,
                       const AmprtThreads *threads) {
  int64_t pieces = (elements + PIECE - 1) / PIECE;
  if (threads)
    threads->loop(pieces, piece, NULL, args);
  else
    for (int64_t i = 0; i < pieces; i++)
      piece(NULL, args, i);
}

static void init_one(const AmprtVariable *variable, unsigned char *state, uint64_t seed,
                     const AmprtThreads *threads) {
  Filling f = {.source = {variable, amprt_rng_key(seed, variable->name), variable->init_arg[0],
                          variable->init_arg[1]},
               .at = state + variable->at};
  if (variable->init == AMPRT_ZEROS)
    return;
  f.fill = choose(variable, &f.source);
  all_pieces(amprt_variable_elements(variable), fill_piece, &f, threads);
}

bool amprt_variable_is_saved(const AmprtVariable *variable) {
  return variable->kind != AMPRT_COPY && variable->kind != AMPRT_SUM;
}

typedef struct Following {
  const AmprtVariable *copy, *of;
  unsigned char *state;
} Following;

static void copy_piece(const AmprtRun *run, const void *args, int64_t piece) {
  const Following *f = args;
  AmprtDType dtype = (AmprtDType)f->copy->dtype;
  size_t n = (size_t)amprt_variable_elements(f->copy), first = (size_t)piece * PIECE;
  (void)run;
  amprt_from_f32(dtype, (const float *)(const void *)(f->state + f->of->at) + first,
                 f->state + f->copy->at + first * amprt_dtype_size(dtype),
                 n - first < PIECE ? n - first : PIECE);
}

static void init_followers(const AmprtProgram *program, AmprtKind kind, unsigned char *state,
                           const AmprtThreads *threads) {
  for (int i = 0; i < program->n_variables; i++) {
    const AmprtVariable *copy = &program->variable[i];
    const AmprtVariable *of = copy->of ? amprt_variable_find(program, copy->of) : NULL;
    Following f = {copy, of, state};
    if (copy->kind == kind && of)
      all_pieces(amprt_variable_elements(copy), copy_piece, &f, threads);
  }
}

void amprt_init_copies(const AmprtProgram *program, unsigned char *state,
                       const AmprtThreads *threads) {
  init_followers(program, AMPRT_COPY, state, threads);
}

void amprt_init(const AmprtProgram *program, unsigned char *state, uint64_t seed,
                const AmprtThreads *threads) {
  for (int i = 0; i < program->n_variables; i++)
    if (program->variable[i].kind != AMPRT_COPY)
      init_one(&program->variable[i], state, seed, threads);
  init_followers(program, AMPRT_AVERAGE, state, threads);
  amprt_init_copies(program, state, threads);
}
