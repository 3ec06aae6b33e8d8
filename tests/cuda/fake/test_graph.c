/* The graph in the text of each form's plan, as cuDNN writes it, computes what conv_forms.def says:
 * graph.h against plain formulas. All numbers are small integers and halves, so that nothing but a
 * quotient is rounded and every mask is met at its edge. */
#include "codegen/cuda/toolkit/plan.h"
#include "graph.h"
#include "tests/cuda/toolkit/check.h"
#include "tests/cuda/toolkit/skip.h"

#include <math.h>

static Arena *arena;
static Toolkit *toolkit;

typedef struct Form {
  ConvOp op;
  int64_t ho, wo;
  double *value[CONV_MAX_OPERANDS + 1]; /* by unique id, in memory's order */
  FakeGraph graph;
  void *at[FAKE_MOST_TENSORS];
} Form;

static int64_t count(const FakeTensor *t) {
  return t->n * t->h * t->w * t->c;
}

static unsigned noise(unsigned *seed) {
  *seed = *seed * 1664525 + 1013904223;
  return *seed >> 16;
}

/* Reads the plan of `key`, and fills its tensors with numbers that every type holds. */
static void form_init(Form *f, const char *device, const char *key) {
  char error[TOOLKIT_ERROR];
  const char *why;
  PlanText plan;
  unsigned seed = 1;
  *f = (Form){0};
  assert_true(cuda_conv_key_parse(key, &f->op) && cuda_conv_output(&f->op, &f->ho, &f->wo));
  if (!plan_list(toolkit, NULL, arena, &f->op, device_find(arena, device, &why), &plan, 1, error))
    fail_msg("%s: %s", key, error);
  if (!fake_graph_read(&f->graph, plan.json, plan.json_bytes, error, sizeof error))
    fail_msg("%s: %s", key, error);
  for (int i = 0; i < f->graph.n_tensors; i++) {
    const FakeTensor *t = &f->graph.tensor[i];
    if (t->is_virtual)
      continue;
    assert_in_range(t->uid, 1, cuda_conv_operands((ConvForm)f->op.form));
    int64_t n = count(t);
    float *from = arena_alloc(arena, (size_t)n * sizeof *from);
    f->value[t->uid] = arena_alloc(arena, (size_t)n * sizeof(double));
    f->at[i] = arena_alloc(arena, (size_t)n * sizeof(float));
    for (int64_t k = 0; k < n; k++) {
      int at_random = (int)(noise(&seed) % 5) - 2;
      from[k] = n == t->c ? 0.5f * (float)at_random : (float)at_random;
      f->value[t->uid][k] = from[k];
    }
    amprt_from_f32(t->type, from, f->at[i], (size_t)n);
  }
}

/* Compares tensor `uid` in memory with `want`; `within` is the largest difference, 0 for
 * equality. */
static void check_tensor(const Form *f, int64_t uid, const double *want, double within) {
  for (int i = 0; i < f->graph.n_tensors; i++) {
    const FakeTensor *t = &f->graph.tensor[i];
    if (t->uid != uid || t->is_virtual)
      continue;
    float *got = arena_alloc(arena, (size_t)count(t) * sizeof *got);
    amprt_to_f32(t->type, f->at[i], got, (size_t)count(t));
    for (int64_t k = 0; k < count(t); k++)
      if (!(fabs(got[k] - want[k]) <= within * fabs(want[k])))
        fail_msg("form %d, operand %lld[%lld] is %g, not %g", f->op.form, (long long)uid,
                 (long long)k, got[k], want[k]);
    return;
  }
  fail_msg("no tensor %lld", (long long)uid);
}

/* ---- formulas ---- */

static double *doubles(int64_t n) {
  return arena_alloc(arena, (size_t)n * sizeof(double));
}

/* Computes one of x, w and y from the other two, by going through every product of the
 * convolution. */
static double *convolve(const Form *f, ConvForm form, const double *x, const double *w,
                        const double *y) {
  const ConvOp *op = &f->op;
  const int64_t of_x = op->c / op->groups, of_y = op->k / op->groups; /* channels of one group */
  int64_t size[] = {[CONV_FPROP] = op->n * f->ho * f->wo * op->k,
                    [CONV_DGRAD] = op->n * op->h * op->w * op->c,
                    [CONV_WGRAD] = op->k * op->r * op->s * of_x};
  double *to = doubles(size[form]);
  for (int64_t n = 0; n < op->n; n++)
    for (int64_t p = 0; p < f->ho; p++)
      for (int64_t q = 0; q < f->wo; q++)
        for (int64_t r = 0; r < op->r; r++)
          for (int64_t s = 0; s < op->s; s++) {
            int64_t i = p * op->stride[0] - op->pad[0] + r;
            int64_t j = q * op->stride[1] - op->pad[2] + s;
            if (i < 0 || i >= op->h || j < 0 || j >= op->w)
              continue;
            for (int64_t k = 0; k < op->k; k++)
              for (int64_t c = 0; c < of_x; c++) {
                int64_t at_x = ((n * op->h + i) * op->w + j) * op->c + k / of_y * of_x + c;
                int64_t at_w = ((k * op->r + r) * op->s + s) * of_x + c;
                int64_t at_y = ((n * f->ho + p) * f->wo + q) * op->k + k;
                if (form == CONV_FPROP)
                  to[at_y] += x[at_x] * w[at_w];
                else if (form == CONV_DGRAD)
                  to[at_x] += y[at_y] * w[at_w];
                else
                  to[at_w] += x[at_x] * y[at_y];
              }
          }
  return to;
}

static double *scaled_relu(const Form *f, const double *x, const double *scale,
                           const double *bias) {
  int64_t n = f->op.n * f->op.h * f->op.w * f->op.c;
  double *y = doubles(n);
  for (int64_t i = 0; i < n; i++)
    y[i] = fmax(x[i] * scale[i % f->op.c] + bias[i % f->op.c], 0);
  return y;
}

/* Sums of y and of its squares are operands `uid` and `uid` + 1. */
static void check_sums(const Form *f, int64_t uid, const double *y) {
  int64_t n = f->op.n * f->ho * f->wo * f->op.k;
  double *sum = doubles(f->op.k), *squares = doubles(f->op.k);
  for (int64_t i = 0; i < n; i++) {
    sum[i % f->op.k] += y[i];
    squares[i % f->op.k] += y[i] * y[i];
  }
  check_tensor(f, uid, sum, 0);
  check_tensor(f, uid + 1, squares, 0);
}

/* ---- forms ---- */

static const char shape[] = "f16 n2 h6 w5 c16 k24 r3 s3 u1,1 p1,1,1,1";

static void check_forward(const char *device, const char *form, bool has_relu, bool has_sums) {
  Form f;
  form_init(&f, device, arena_printf(arena, "%s %s", form, shape));
  double **v = f.value;
  const double *x = has_relu ? scaled_relu(&f, v[1], v[2], v[3]) : v[1];
  int64_t at_y = has_relu ? 5 : 3;
  const double *y = convolve(&f, CONV_FPROP, x, v[at_y - 1], NULL);
  fake_graph_run(&f.graph, f.at);
  check_tensor(&f, at_y, y, 0);
  if (has_sums)
    check_sums(&f, at_y + 1, y);
}

static void forward(void **state) {
  (void)state;
  check_forward("t4", "fprop", false, false);
  check_forward("a100", "fprop_stats", false, true);
  check_forward("h200", "fprop_stats", false, true);
  check_forward("a100", "relu_fprop_stats", true, true);
  check_forward("h200", "relu_fprop_stats", true, true);
}

/* relu(x * scale + bias + z), or with z * scale2 + bias2 in the place of z, is stored and
 * convolved. */
static void check_block_end(const char *form, bool dual) {
  Form f;
  form_init(&f, "h200", arena_printf(arena, "%s f16 n2 h6 w5 c16 k24 r1 s1 u1,1 p0,0,0,0", form));
  double **v = f.value;
  int64_t n = f.op.n * f.op.h * f.op.w * f.op.c, at_w = dual ? 7 : 5;
  double *out = doubles(n);
  for (int64_t i = 0; i < n; i++) {
    int64_t k = i % f.op.c;
    double z = dual ? v[4][i] * v[5][k] + v[6][k] : v[4][i];
    out[i] = fmax(v[1][i] * v[2][k] + v[3][k] + z, 0);
  }
  const double *y = convolve(&f, CONV_FPROP, out, v[at_w], NULL);
  fake_graph_run(&f.graph, f.at);
  check_tensor(&f, at_w + 1, out, 0);
  check_tensor(&f, at_w + 2, y, 0);
  check_sums(&f, at_w + 3, y);
}

static void block_end(void **state) {
  (void)state;
  check_block_end("add_fprop_stats", false);
  check_block_end("dual_fprop_stats", true);
}

static void check_filter(const char *device, const char *form, bool has_relu) {
  Form f;
  form_init(&f, device, arena_printf(arena, "%s %s", form, shape));
  double **v = f.value;
  const double *x = has_relu ? scaled_relu(&f, v[1], v[2], v[3]) : v[1];
  const double *dy = has_relu ? v[4] : v[2];
  fake_graph_run(&f.graph, f.at);
  check_tensor(&f, has_relu ? 5 : 3, convolve(&f, CONV_WGRAD, x, NULL, dy), 0);
}

static void filter(void **state) {
  (void)state;
  check_filter("t4", "wgrad", false);
  check_filter("a100", "relu_wgrad", true);
  check_filter("h200", "relu_wgrad", true);
}

static void data(void **state) {
  (void)state;
  Form f;
  form_init(&f, "b200", "dgrad f16 n2 h7 w6 c8 k16 r3 s2 u2,1 p1,0,1,1");
  fake_graph_run(&f.graph, f.at);
  check_tensor(&f, 3, convolve(&f, CONV_DGRAD, NULL, f.value[2], f.value[1]), 0);
}

/* The plain forms in groups of several channels, and depthwise. */
static void groups(void **state) {
  (void)state;
  static const char *const devices[] = {"t4", "a100", "h200", "b200"};
  static const char *const shapes[] = {"n2 h6 w5 c16 k24 r3 s3 u1,1 p1,1,1,1 g4",
                                       "n2 h7 w6 c6 k6 r3 s2 u2,1 p1,0,1,1 g6",
                                       "n1 h5 w4 c5 k15 r2 s3 u1,2 p0,1,1,1 g5"};
  for (size_t i = 0; i < 12; i++) {
    const char *device = devices[i / 3];
    const char *rest = arena_printf(arena, "%s %s", i < 3 ? "f32" : "f16", shapes[i % 3]);
    Form y, dx, dw;
    form_init(&y, device, arena_printf(arena, "fprop %s", rest));
    fake_graph_run(&y.graph, y.at);
    check_tensor(&y, 3, convolve(&y, CONV_FPROP, y.value[1], y.value[2], NULL), 0);
    form_init(&dx, device, arena_printf(arena, "dgrad %s", rest));
    fake_graph_run(&dx.graph, dx.at);
    check_tensor(&dx, 3, convolve(&dx, CONV_DGRAD, NULL, dx.value[2], dx.value[1]), 0);
    form_init(&dw, device, arena_printf(arena, "wgrad %s", rest));
    fake_graph_run(&dw.graph, dw.at);
    check_tensor(&dw, 3, convolve(&dw, CONV_WGRAD, dw.value[1], NULL, dw.value[2]), 0);
  }
}

/* Where the operands of the dgrad_bn forms stand. */
typedef struct BnForm {
  const char *name;
  int64_t shortcut, dz, dx; /* 0: it has none */
} BnForm;

/* What the sums over dx, dscale and dbias, are; and that a * dx + b * x + c is the gradient of x.
 */
static void check_gradient(const Form *f, const BnForm *form, const double *dx) {
  int64_t channels = f->op.c, n = f->op.n * f->op.h * f->op.w * channels;
  double *const *v = f->value, rows = (double)(n / channels);
  double *dscale = doubles(channels), *dbias = doubles(channels);
  double *a = doubles(channels), *b = doubles(channels), *c = doubles(channels);
  for (int64_t i = 0; i < n; i++) {
    int64_t k = i % channels;
    dscale[k] += dx[i] * (v[3][i] - v[4][k]) * v[5][k];
    dbias[k] += dx[i];
  }
  for (int64_t k = 0; k < channels;
       k++) { /* scale / std * (dx - mean of dx - xhat * mean of dx * xhat) */
    a[k] = v[6][k] * v[5][k];
    b[k] = -a[k] * v[5][k] * dscale[k] / rows;
    c[k] = -a[k] * dbias[k] / rows - b[k] * v[4][k];
  }
  check_tensor(f, form->dx + 1, dscale, 0);
  check_tensor(f, form->dx + 2, dbias, 0);
  check_tensor(f, form->dx + 3, a, 0);
  check_tensor(f, form->dx + 4, b, 1e-6);
  check_tensor(f, form->dx + 5, c, 1e-5);
}

static void check_bn(const char *device, const BnForm *form) {
  Form f;
  form_init(&f, device, arena_printf(arena, "%s %s", form->name, shape));
  double **v = f.value, *dx = convolve(&f, CONV_DGRAD, NULL, v[2], v[1]);
  for (int64_t i = 0; i < f.op.n * f.op.h * f.op.w * f.op.c; i++) {
    int64_t k = i % f.op.c;
    double y = (v[3][i] - v[4][k]) * v[5][k] * v[6][k] + v[7][k];
    y += form->shortcut ? v[form->shortcut][i] : 0;
    dx[i] += form->dz ? v[form->dz][i] : 0;
    dx[i] = y > 0 ? dx[i] : 0;
  }
  fake_graph_run(&f.graph, f.at);
  check_tensor(&f, form->dx, dx, 0);
  check_gradient(&f, form, dx);
}

static void data_and_normalisation(void **state) {
  (void)state;
  static const char *const devices[] = {"a100", "h200", "b200"};
  static const BnForm forms[] = {
      {"dgrad_bn", 0, 0, 8}, {"dgrad_bn_add", 0, 8, 9}, {"dgrad_bn_short", 8, 9, 10}};
  for (size_t d = 0; d < sizeof devices / sizeof *devices; d++)
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
      check_bn(devices[d], &forms[i]);
}

/* Texts that are no graph, or hold something that the fake does not know, are refused with a
 * reason. */
static void refuses(void **state) {
  (void)state;
  static const char *const change[][3] = {
      {"\"operationGraph\"", "\"operationgraph\"", "the text is no plan"},
      {"CUDNN_POINTWISE_RELU_FWD", "CUDNN_POINTWISE_TANH_FWD", "cannot compute"},
      {"CUDNN_BACKEND_OPERATION_GEN_STATS", "CUDNN_BACKEND_OPERATION_NORM", "cannot compute"},
      {"\"SqSum\":", "\"Squares\":", "has no tensor SqSum"},
      {"\"beta\":0.0", "\"beta\":1.0", "is scaled"},
      {"\"dilation\":[1,", "\"dilation\":[2,", "dilation"},
      {"\"dim\":[24,16,3,3]", "\"dim\":[24,8,3,3]", "does not lie"},
      {"[24,16,3,3],\"stride\":[144,1,48,16]", "[24,5,3,3],\"stride\":[45,1,15,5]", "do not fit"},
      {"[24,16,3,3],\"stride\":[144,1,48,16]", "[24,1,3,3],\"stride\":[9,1,3,1]", "do not fit"},
      {"\"dim\":[1,24,1,1]", "\"dim\":[1,23,1,1]", "another shape"},
      {"\"X\":\"1000\"", "\"X\":\"1001\"", "before it is made"},
      {"\"Y\":\"1001\"", "\"Y\":\"1000\"", "made twice"},
      {"CUDNN_DATA_FLOAT\",\"dim\"", "CUDNN_DATA_FP8_E4M3\",\"dim\"", "is of type"},
  };
  const char *why;
  char error[TOOLKIT_ERROR];
  PlanText plan;
  ConvOp op;
  assert_true(cuda_conv_key_parse(arena_printf(arena, "relu_fprop_stats %s", shape), &op));
  assert_true(
      plan_list(toolkit, NULL, arena, &op, device_find(arena, "h200", &why), &plan, 1, error));
  const char *json = arena_printf(arena, "%.*s", (int)plan.json_bytes, plan.json);
  for (size_t i = 0; i < sizeof change / sizeof *change; i++) {
    FakeGraph graph;
    const char *at = strstr(json, change[i][0]);
    if (!at)
      fail_msg("no %s in %s", change[i][0], json);
    const char *bad = arena_printf(arena, "%.*s%s%s", (int)(at - json), json, change[i][1],
                                   at + strlen(change[i][0]));
    if (fake_graph_read(&graph, bad, strlen(bad), error, sizeof error) ||
        !strstr(error, change[i][2]))
      fail_msg("%s for %s: %s", change[i][1], change[i][0], error);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(forward), cmocka_unit_test(block_end),
      cmocka_unit_test(filter),  cmocka_unit_test(data),
      cmocka_unit_test(groups),  cmocka_unit_test(data_and_normalisation),
      cmocka_unit_test(refuses)};
  arena = arena_new();
  toolkit = toolkit_or_skip(arena);
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  arena_free(arena);
  return failed;
}
