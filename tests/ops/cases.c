#include "tests/ops/cases.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const Case ops_case[] = {
#define CASE(op, operands, values, attrs, results, ulps)                                           \
  {OP_##op, operands, values, attrs, results, ulps, false},
#define TEXT(op, operands, values, text, ulps) {OP_##op, operands, values, text, NULL, ulps, false},
#define GRAD(op, operands, values, text, ulps) {OP_##op, operands, values, text, NULL, ulps, true},
#include "tests/ops/cases.def"
};
const int n_ops_cases = (int)(sizeof ops_case / sizeof ops_case[0]);

/* ---- text ---- */

bool case_has_dtypes(const Case *row) {
  return strstr(row->operands, "T[") || strstr(row->text, "T[");
}

const char *case_name(Arena *arena, CaseAt at) {
  return arena_printf(arena, "%s (row %d) %s", op_info[at.row->op].name, (int)(at.row - ops_case),
                      case_has_dtypes(at.row) ? dtype_info[at.dtype].name : "");
}

/* `text` with T, %name, $N and $. replaced. */
static void put(CaseAt at, const char *text, size_t len, FILE *out) {
  for (const char *c = text; c < text + len; c++)
    if (c[0] == 'T' && c[1] == '[')
      fputs(dtype_info[at.dtype].name, out);
    else if (c[0] == '%')
      fprintf(out, "%%%s", at.prefix);
    else if (c[0] == '$' && c[1] == '.')
      fputs(at.prefix, out), c++;
    else if (c[0] == '$')
      fprintf(out, "%%%s", at.prefix);
    else
      fputc(*c, out);
}

/* The word of index `i`; its length is 0 past the last. */
static const char *word(const char *list, int i, int *len) {
  for (;; i--) {
    *len = (int)strcspn(list, " ");
    if (i == 0 || !*len)
      return list;
    list += *len;
    list += *list == ' ';
  }
}

static void print_operand(CaseAt at, int i, bool as_params, FILE *out) {
  int len, ignored;
  const char *type = word(at.row->operands, i, &len);
  bool is_float = type[0] == 'T' || type[0] == 'f' || type[0] == 'b';
  if (strncmp(type, "bool", 4) == 0 || *word(at.row->values, i, &ignored) == '-')
    is_float = false;
  fprintf(out, "  %%%s%d = ", at.prefix, i);
  if (as_params && is_float)
    fprintf(out, "variable {kind=\"param\", init=\"zeros\"} : ");
  else
    fprintf(out, "input {name=\"%s%d\"} : ", at.prefix, i);
  put(at, type, (size_t)len, out);
  fputc('\n', out);
}

/* `%r0, %r1 = op $0, $1 {attrs} : types` */
static void print_node(CaseAt at, FILE *out) {
  const Case *row = at.row;
  int len;
  for (int i = 0; word(row->results, i, &len), len; i++)
    fprintf(out, "%s%%%sr%d", i ? ", " : "  ", at.prefix, i);
  fprintf(out, " = %s", op_info[row->op].name);
  for (int i = 0; word(row->operands, i, &len), len; i++)
    fprintf(out, "%s%%%s%d", i ? ", " : " ", at.prefix, i);
  if (*row->text)
    fprintf(out, " {%s}", row->text);
  for (int i = 0;; i++) {
    const char *type = word(row->results, i, &len);
    if (!len)
      break;
    fputs(i ? ", " : " : ", out);
    put(at, type, (size_t)len, out);
  }
  fputc('\n', out);
}

static void print_output(CaseAt at, const char *name, FILE *out) {
  fprintf(out, "  output %%%s%s {name=\"%s%s\"}\n", at.prefix, name, at.prefix, name);
}

void case_print(CaseAt at, bool as_params, FILE *out) {
  int len;
  for (int i = 0; word(at.row->operands, i, &len), len; i++)
    print_operand(at, i, as_params, out);
  if (at.row->results) {
    print_node(at, out);
    for (int i = 0; word(at.row->results, i, &len), len; i++)
      print_output(at, (char[]){'r', (char)('0' + i), 0}, out);
    return;
  }
  put(at, at.row->text, strlen(at.row->text), out);
  fputc('\n', out);
  print_output(at, "y", out);
  if (strstr(at.row->text, "%z"))
    print_output(at, "z", out);
}

Module *case_module(Arena *arena, CaseAt at, bool as_params) {
  char *text = NULL;
  size_t size;
  FILE *out = open_memstream(&text, &size);
  bool is_late = op_info[at.row->op].last > STAGE_TRAIN;
  fprintf(out, "graph @train stage %s {\n", as_params ? "model" : is_late ? "lowered" : "train");
  case_print(at, as_params, out);
  fprintf(out, "}\n");
  fclose(out);
  Diag diag = {.out = stdout, .source = text};
  Module *module = module_parse(arena, case_name(arena, at), text, &diag);
  free(text);
  return module;
}

/* ---- numbers ---- */

static uint64_t next(uint64_t *state) {
  *state += 0x9e3779b97f4a7c15; /* splitmix64 */
  uint64_t x = *state;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

/* 0.1 .. 0.95: away from the kink of relu and from overflow of anything. */
static double positive(uint64_t *state) {
  return 0.1 + 0.85 * (double)(next(state) >> 11) * 0x1p-53;
}

static double ordinary(uint64_t *state) {
  double x = positive(state);
  return next(state) & 1 ? x : -x;
}

void fill_ordinary(uint64_t seed, EvalTensor *t) {
  for (int64_t i = 0, n = type_count(t->type); i < n; i++)
    t->v[i] = eval_round(ordinary(&seed), t->type.dtype);
}

typedef struct Extremes {
  double smallest, largest_subnormal, smallest_normal, max, large;
} Extremes;

static const Extremes extremes[DT_COUNT] = {
    [DT_F32] = {0x1p-149, 0x1.fffffcp-127, 0x1p-126, 0x1.fffffep127, 1e18},
    [DT_F16] = {0x1p-24, 0x1.ff8p-15, 0x1p-14, 65504, 60000},
    [DT_BF16] = {0x1p-133, 0x1.fcp-127, 0x1p-126, 0x1.fep127, 1e18},
};

enum { N_NASTY = 17 };

static double nasty(DType dtype, int64_t i) {
  const Extremes *e = &extremes[dtype];
  const double list[N_NASTY] = {0,
                                -0.0,
                                1,
                                -1,
                                e->max,
                                -e->max,
                                0.3,
                                -2.5,
                                INFINITY,
                                -INFINITY,
                                NAN,
                                e->smallest,
                                -e->smallest,
                                e->largest_subnormal,
                                e->smallest_normal,
                                88.5,
                                -104};
  return list[i % N_NASTY];
}

static bool is_hard(const char *kind) {
  return strchr("nsqx", kind[0]) || strncmp(kind, "=-inf", 5) == 0;
}

static double one_value(const char *kind, int index, int64_t i, DType dtype, uint64_t *state) {
  double x = ordinary(state);
  switch (kind[0]) {
  case 'p':
    return fabs(x);
  case 's':
    return i == 1 ? NAN : i == 3 ? INFINITY : x;
  case 'n': /* so that two such operands form every pair */
    return nasty(dtype, index ? i / N_NASTY + i * (index - 1) : i);
  case 'q':
    return rint(x * 4) / 2;
  case 'x':
    return x < 0 ? -extremes[dtype].large : extremes[dtype].large * fabs(x);
  case 'l':
  case 'i':
    return (double)(next(state) % strtoull(kind + 1, NULL, 10));
  case 'z':
    return i ? 1 : strtod(kind + 1, NULL);
  case '=':
    return strtod(kind + 1, NULL);
  default:
    return x;
  }
}

void case_fill(const Case *row, int index, bool is_smooth, EvalTensor *t) {
  int len;
  const char *kind = word(row->values, index, &len);
  kind += kind[0] == '-';
  if (!len || !strchr("opsnqxliz=", kind[0]))
    BUG("row %d: no values for operand %d", (int)(row - ops_case), index);
  if (is_smooth && is_hard(kind))
    kind = "p"; /* operands of log and sqrt must be positive */
  uint64_t state = (uint64_t)(row - ops_case) * 100 + (uint64_t)index;
  for (int64_t i = 0, n = type_count(t->type); i < n; i++)
    t->v[i] = eval_round(one_value(kind, index, i, t->type.dtype, &state), t->type.dtype);
}
