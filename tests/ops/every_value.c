/* Generated code on every f16 and every bf16: each pointwise op, the casts, and the ways in which
 * sums, matrix products, convolutions and optimizers read and write 16-bit floats; pairs of edge
 * values for ops of two operands; and every point half way between two neighbours, with the next
 * f32 on either side, for whatever rounds. A result must be the evaluator's, correctly rounded;
 * where the op itself is allowed an error in f32, the f32 that was rounded may be off by that.
 * Usage: every_value RESOURCE_FOLDER WORK_FOLDER */
#include "frontend/certify/measure.h"
#include "passes/pass.h"
#include "tests/ops/compare.h"
#include "tests/ops/program.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N_BITS = 65536, N_EDGES = 256, N_HALVES = 3 * N_BITS, THREADS = 2 };

/* T: the low type, U: the other one. %x: every value; %a, %b: every pair of edges; %u: b within
 * -1..1, as tanh and sigmoid give; %c: the edges; %h: f32 around the halves. */
static const char head[] = "  %x = input {name=\"x\"} : T[65536]\n"
                           "  %a = input {name=\"a\"} : T[65536]\n"
                           "  %b = input {name=\"b\"} : T[65536]\n"
                           "  %u = input {name=\"u\"} : T[65536]\n"
                           "  %c = input {name=\"c\"} : T[256]\n"
                           "  %h = input {name=\"h\"} : f32[196608]\n"
                           "  %third = const {value=0.3333333432674408} : f32[]\n"
                           "  %zero = const {value=0.0} : f32[]\n"
                           "  %one = const {value=1.0} : f32[]\n"
                           "  %yes = input {name=\"yes\"} : bool[]\n"
                           "  %no = input {name=\"no\"} : bool[]\n"
                           "  %scale = input {name=\"scale\"} : f32[1]\n"
                           "  %shift = input {name=\"shift\"} : f32[1]\n"
                           "  %w = input {name=\"w\"} : T[1,1]\n"
                           "  %rows = reshape %x {shape=[65536,1]} : T[65536,1]\n"
                           "  %line = reshape %x {shape=[1,65536]} : T[1,65536]\n"
                           "  %image = reshape %x {shape=[1,256,256,1]} : T[1,256,256,1]\n"
                           "  %filter = reshape %w {shape=[1,1,1,1]} : T[1,1,1,1]\n"
                           "  %table = reshape %a {shape=[256,256]} : T[256,256]\n"
                           "  %g = const {value=0.0} : T[196608]\n";

/* The last line of each text makes %NAME. ulps: error of the f32 that is rounded, in units of its
 * last place at the size of the largest term. */
typedef struct Row {
  const char *name, *text;
  double ulps;
  bool loses_sign; /* of zero: the sum that the result is starts with +0 */
} Row;

static const Row row[] = {
    {"neg", "%neg = neg %x : T[65536]", 0},
    {"relu", "%relu = relu %x : T[65536]", 0},
    {"sqrt", "%sqrt = sqrt %x : T[65536]", 0},
    {"exp", "%exp = exp %x : T[65536]", 1},
    {"log", "%log = log %x : T[65536]", 1},
    {"tanh", "%tanh = tanh %x : T[65536]", 2.5},
    {"sigmoid", "%sigmoid = sigmoid %x : T[65536]", 2.5},
    {"widened", "%widened = cast %x : f32[65536]", 0},
    {"other", "%other = cast %x : U[65536]", 0},
    {"narrowed", "%narrowed = cast %h : T[196608]", 0},
    {"third_of", "%third_of = mul %x, %third : T[65536]", 0.5},
    {"by_third", "%by_third = div %x, %third : T[65536]", 0.5},
    {"add", "%add = add %a, %b : T[65536]", 0},
    {"sub", "%sub = sub %a, %b : T[65536]", 0},
    {"mul", "%mul = mul %a, %b : T[65536]", 0},
    {"div", "%div = div %a, %b : T[65536]", 0},
    {"relu_grad", "%relu_grad = relu_grad %a, %b : T[65536]", 0},
    {"tanh_grad", "%tanh_grad = tanh_grad %a, %u : T[65536]", 2},
    {"sigmoid_grad", "%sigmoid_grad = sigmoid_grad %a, %u : T[65536]", 2},
    {"select", "%select = select %yes, %a, %b : T[65536]", 0},
    {"select_not", "%select_not = select %no, %a, %b : T[65536]", 0},
    {"bias_add", "%bias_add = bias_add %table, %c : T[256,256]", 0},
    {"affine", "%affine = affine %rows, %scale, %shift : T[65536,1]", 1},
    /* several roundings in one loop */
    {"chain",
     "%p = add %a, %b : T[65536]\n  %q = mul %p, %b : T[65536]\n  %chain = sub %q, %a : T[65536]",
     0},
    {"bias_grad", "%bias_grad = bias_grad %line : T[65536]", 0, true},
    {"reduce", "%reduce = reduce_sum %line {axes=[0]} : T[65536]", 0, true},
    {"matmul", "%matmul = matmul %rows, %w : T[65536,1]", 0, true},
    {"conv", "%conv = conv2d %image, %filter {stride=[1,1], pad=[0,0,0,0]} : T[1,256,256,1]", 0,
     true},
    {"pool",
     "%pool, %i = max_pool %image {window=[1,1], stride=[1,1], pad=[0,0,0,0]} : T[1,256,256,1], "
     "u8[1,256,256,1]",
     0},
    {"copy", "%new, %copy = opt_sgd %h, %g, %zero, %one : f32[196608], T[196608]", 0},
};
enum { N_ROWS = sizeof row / sizeof *row };

/* ---- the program ---- */

typedef struct Suite {
  Arena *arena;
  DType dtype;
  Module *plain, *planned;
  Program *program;
} Suite;

/* `text` with T[ and U[ replaced. */
static void put(const char *text, DType dtype, FILE *out) {
  DType other = dtype == DT_F16 ? DT_BF16 : DT_F16;
  for (; *text; text++)
    if (text[1] == '[' && (*text == 'T' || *text == 'U'))
      fputs(dtype_info[*text == 'T' ? dtype : other].name, out);
    else
      fputc(*text, out);
}

static Module *parse(const Suite *suite) {
  char *text = NULL;
  size_t size;
  FILE *out = open_memstream(&text, &size);
  fputs("graph @train stage lowered {\n", out);
  put(head, suite->dtype, out);
  for (int i = 0; i < N_ROWS; i++) {
    fputs("  ", out);
    put(row[i].text, suite->dtype, out);
    fprintf(out, "\n  output %%%s {name=\"%s\"}\n", row[i].name, row[i].name);
  }
  fputs("}\n", out);
  fclose(out);
  Diag diag = {.out = stderr, .source = text};
  Module *module = module_parse(suite->arena, "every_value", text, &diag);
  CHECK(module, "the rows do not parse");
  free(text);
  return module;
}

static Suite build(DType dtype, const char *resource, const char *folder) {
  Suite suite = {.arena = arena_new(), .dtype = dtype};
  suite.plain = parse(&suite);
  suite.planned = parse(&suite);
  CompileOptions compile;
  compile_options_default(&compile);
  compile.dtype = dtype;
  CodegenOptions options = {.compile = &compile, .resource = resource};
  Diag diag = {.out = stderr};
  PassContext context = {suite.planned, &compile, &target_cpu_onednn, &diag, arena_new()};
  bool ok =
      pipeline_run(&context, "assign-layout,fuse,schedule,plan-memory,check-plan", NULL, NULL);
  CHECK(ok, "the pipeline refused the rows");
  arena_free(context.scratch);
  suite.program = program_begin(suite.arena, suite.planned, &options, folder,
                                arena_printf(suite.arena, "every_%s", dtype_info[dtype].name));
  return suite;
}

/* ---- numbers ---- */

/* The number with these 16 bits. */
static double value_of(DType dtype, uint32_t bits) {
  int fraction = dtype == DT_F16 ? 10 : 7, top = dtype == DT_F16 ? 31 : 255;
  int exponent = (int)(bits >> fraction) & top, bias = top >> 1;
  double rest = bits & ((1u << fraction) - 1), x;
  if (exponent == top)
    x = rest > 0 ? NAN : INFINITY;
  else
    x = ldexp(rest + (exponent ? ldexp(1, fraction) : 0),
              (exponent ? exponent : 1) - bias - fraction);
  return bits >> 15 ? -x : x;
}

/* Zero, the ends of every range, the neighbours of 1, 2 and 3, and some numbers in between, with
 * both signs. */
static double edge(DType dtype, int i) {
  uint32_t inf = dtype == DT_F16 ? 0x7c00 : 0x7f80, one = dtype == DT_F16 ? 0x3c00 : 0x3f80;
  uint32_t normal = dtype == DT_F16 ? 0x400 : 0x80;
  const uint32_t start[] = {0,      normal - 4, one - 4, one + normal - 4, one + normal * 3 / 2 - 4,
                            inf - 8};
  uint32_t sign = i & 1 ? 0x8000 : 0, k = (uint32_t)i >> 1;
  if (k < 48)
    return value_of(dtype, sign | (start[k / 8] + k % 8));
  if (k == 48)
    return sign ? -INFINITY : INFINITY;
  if (k == 49)
    return NAN;
  return value_of(dtype, sign | (k * 2654435761u >> 7) % inf);
}

/* Takes number i / 3 of dtype and its neighbour away from zero, and returns the f32 half way
 * between them, or the one below or above that. */
static double half(DType dtype, int64_t i) {
  double x = value_of(dtype, (uint32_t)(i / 3)), next = value_of(dtype, (uint32_t)(i / 3) + 1);
  if (!isfinite(x))
    return x;
  double max = value_of(dtype, dtype == DT_F16 ? 0x7bff : 0x7f7f);
  if (!isfinite(next)) /* the place where the next number would be */
    next = copysign(2 * max - value_of(dtype, dtype == DT_F16 ? 0x7bfe : 0x7f7e), x);
  float middle = (float)((x + next) / 2), far = copysignf(INFINITY, middle);
  return i % 3 == 0 ? middle : nextafterf(middle, i % 3 == 1 ? 0 : far);
}

static double element(DType dtype, const char *name, int64_t i) {
  double b = edge(dtype, (int)(i % N_EDGES));
  switch (name[0]) {
  case 'x':
    return value_of(dtype, (uint32_t)i);
  case 'a':
    return edge(dtype, (int)(i / N_EDGES));
  case 'b':
  case 'c':
    return b;
  case 'u':
    return fabs(b) > 1 ? ldexp(1, -20) : b;
  case 'h':
    return half(dtype, i);
  case 'n': /* no */
    return 0;
  case 's': /* scale, shift */
    return name[1] == 'c' ? 1.2345678806304932 : -0.3456789255142212;
  case 'w': /* the number next to 1, so that most products must be rounded */
    return dtype == DT_F16 ? 1 + 0x1p-10 : 1 + 0x1p-7;
  default: /* yes */
    return 1;
  }
}

static EvalEnv *fill(Arena *arena, const Suite *suite, bool absolute) {
  const Graph *graph = suite->plain->graph[0];
  EvalEnv *env = eval_env_new(arena);
  for (int i = 0; i < graph->n_nodes; i++) {
    const Node *node = graph->node[i];
    if (node->op != OP_INPUT)
      continue;
    EvalTensor *t = eval_env_set(env, node->result[0]->name, node->result[0]->type);
    for (int64_t k = 0, n = type_count(t->type); k < n; k++) {
      double x = element(suite->dtype, node->result[0]->name, k);
      t->v[k] = absolute ? fabs(x) : x;
    }
  }
  return env;
}

/* ---- comparison ---- */

static bool same(double a, double b, bool loses_sign) {
  return isnan(a) ? isnan(b) : a == b && (loses_sign || signbit(a) == signbit(b));
}

/* Can the result have been rounded from an f32 that is at most `ulps` away from the exact
 * result? */
static bool is_allowed(double got, double exact, double terms, double ulps, DType dtype) {
  int exponent;
  double size = fmax(fabs(exact), isfinite(terms) ? fabs(terms) : 0);
  frexp(size, &exponent);
  double ulp = ldexp(1, (exponent < -125 ? -125 : exponent) - 24);
  return ulps > 0 && excess_of(got, exact, dtype) <= ulps * ulp;
}

static int check_row(const Suite *suite, const Row *r, EvalEnv *got, EvalEnv *typed, EvalEnv *exact,
                     EvalEnv *terms) {
  const char *name = arena_printf(suite->arena, "output:%s", r->name);
  const EvalTensor *g = eval_env_get(got, name), *w = eval_env_get(typed, name);
  const EvalTensor *e = eval_env_get(exact, name), *t = eval_env_get(terms, name);
  int failed = 0;
  for (int64_t i = 0, n = type_count(w->type); i < n; i++)
    if (!same(g->v[i], w->v[i], r->loses_sign) &&
        !is_allowed(g->v[i], e->v[i], t->v[i], r->ulps, w->type.dtype) && failed++ < 5)
      printf("FAIL %s %s[%lld]: %a, not %a\n", dtype_info[suite->dtype].name, r->name, (long long)i,
             g->v[i], w->v[i]);
  return failed;
}

static int check(const Suite *suite) {
  EvalEnv *env[4];
  for (int i = 0; i < 4; i++)
    env[i] = fill(suite->arena, suite, i == 3);
  program_run(suite->program, 0, THREADS, env[0]);
  eval_graph(suite->plain->graph[0], env[1], EVAL_TYPED, NULL);
  eval_graph(suite->plain->graph[0], env[2], EVAL_EXACT, NULL);
  eval_graph(suite->plain->graph[0], env[3], EVAL_EXACT, NULL);
  int failed = 0;
  for (int i = 0; i < N_ROWS; i++)
    failed += check_row(suite, &row[i], env[0], env[1], env[2], env[3]);
  return failed;
}

int main(int argc, char **argv) {
  CHECK(argc == 3, "usage: every_value RESOURCE_FOLDER WORK_FOLDER");
  int failed = 0;
  Suite suite[] = {build(DT_F16, argv[1], argv[2]), build(DT_BF16, argv[1], argv[2])};
  for (int i = 0; i < 2; i++) {
    program_finish(suite[i].program);
    failed += check(&suite[i]);
    arena_free(suite[i].arena);
  }
  printf("%d rows in two types, %d numbers are wrong\n", N_ROWS, failed);
  return failed != 0;
}
