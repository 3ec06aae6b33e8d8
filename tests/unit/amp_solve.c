/* The colouring of mixed precision against what TensorFlow's own tests assert and what its pass
 * does in the corners (specs/amp-rewrite.md 1.6, 2.14, 3.1, 3.2, 3.4): colours only.
 *
 * A graph is text: `name input input; ...`. The name's first letters are its class (allow, infer,
 * clr, deny; anything else is in no list). Marks after the name: ! is not to be touched, + is to be
 * low, - is to be denied, = is not f32, * does not admit the low type, ? has no kernel, & reads a
 * variable in place, @N shares storage with all of group N. An input may stand below its reader. */
#include "passes/precision/amp.h"

/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h> /* wants those before it */
/* clang-format on */

enum { MAX_VERTICES = 128, MAX_NAME = 24 };

typedef struct Case {
  const char *title, *graph;
  const char *low;        /* names to be low without `follow` (f16 up to TensorFlow 2.19: era A) */
  const char *low_follow; /* and with it (era B, bf16); NULL: the same */
  const char *denied;
} Case;

static const Case cases[] = {
    {"NoOp", "in; deny1 in; clr1 deny1; infer1 clr1; clr2 infer1; fetch clr2", "", NULL, ""},
    {"Simple",
     "in; deny1 in; clr1 deny1; infer1 clr1; clr2 infer1; allow1 clr2 clr2; clr3 allow1; infer2 "
     "clr3;"
     "clr4 infer2; deny2 clr4 clr4; clr5 deny2; fetch clr5",
     "clr2 allow1 clr3", NULL, "deny1 clr1 infer1 deny2"},
    {"NoInferOp: infer ops under deny",
     "in; deny1 in; clr1 deny1; denyI1 clr1; clr2 denyI1; allow1 clr2 clr2; clr3 allow1; denyI2 "
     "clr3;"
     "clr4 denyI2; allow2 clr4 clr4; denyI3 allow2; fetch denyI3",
     "clr2 allow1 clr3 clr4 allow2", NULL, "deny1 clr1 denyI1 denyI2 denyI3"},
    {"BidirectionalClearChain: the walk turns round",
     "in; clr1 in; clr2 in; allow1 clr1 clr1; clr3 clr1 clr2; clr4 clr2; fetch1 allow1; fetch2 "
     "clr4",
     "clr1 clr2 allow1 clr3 clr4", NULL, ""},
    {"PreserveFetches",
     "in; allow1! in in; clr1 allow1; infer1 clr1; deny1 infer1; clr2! deny1; allow2 clr2 clr2;"
     "clr3! allow2; deny2 clr3; clr4 deny2",
     "allow2", NULL, "deny1 deny2"},
    {"PreserveCPUNodes: infer behind allow, an untouchable allow behind it",
     "in; clr1 in; allow1 clr1 clr1; infer1 allow1; allow2! infer1 infer1; clr2 allow2; fetch clr2",
     "clr1 allow1", "clr1 allow1 infer1", ""},
    {"PreserveIdentityAfterVariable",
     "in; var1; clr1& var1; allow1 in clr1; in2; clr2 in2; allow2 in clr2; fetch1 allow1; fetch2 "
     "allow2",
     "allow1 clr2 allow2", NULL, ""},
    {"FusedBatchNorm: parameters and statistics are a vertex of their own",
     "in; weight; scale; allow1 in weight; infer1T allow1; infer1U* scale; infer2T infer1T allow1;"
     "infer2U* infer1U scale; infer3 infer1T infer2T; allow2 infer3 weight; fetch allow2",
     "allow1 infer1T infer2T infer3 allow2", NULL, ""},
    {"RepeatedAndListTypeAttrs: a vertex for each type of a list",
     "in; allow1 in in; clrA allow1; clrB allow1; clrC allow1; infer1 clrA clrB clrC;"
     "allow2 infer1 infer1; fetch allow2",
     "allow1 clrA clrB clrC infer1 allow2", NULL, ""},
    {"RecurrentEdgeColorMismatch: before the caller settles loops",
     "in; deny1 in; clrEnter deny1; clrMerge1 clrEnter clrNext; clrSwitch clrMerge1; infer1 "
     "clrSwitch;"
     "allow1 infer1 infer1; clrNext allow1; clrExit clrSwitch; fetch clrExit; clrMerge2 clrEnter "
     "clrNext",
     "allow1 clrNext clrMerge2", NULL, "deny1 clrEnter clrMerge1 clrSwitch infer1"},
    {"TensorListSetGet: a list has one type",
     "in; l1@1; clrW1@1 in; allow1 in in; clrW2@1 allow1; clrR1@1 clrW1 clrW2; infer1 clrR1;"
     "allow2 infer1 infer1; clrW3@1 allow2; clrR2@1 clrW3; clrV1@2 in; clrV2@2 clrV1; f1 clrR2; f2 "
     "clrV2",
     "l1 clrW1 allow1 clrW2 clrR1 infer1 allow2 clrW3 clrR2", NULL, ""},
    {"TensorListFromTensor: a member that only the group makes low",
     "in; allow1 in in; clrL1@1 allow1; clrR1@1 clrL1; infer1 clrR1; allow2 infer1 infer1; f1 "
     "allow2;"
     "clrL2@2 allow1; other@2 in",
     "allow1 clrL1 clrR1 infer1 allow2 clrL2 other", NULL, ""},
    {"a list that leaves the graph is denied whole",
     "in; allow1 in in; clrW1-@1 allow1; clrR1@1 clrW1; infer1 clrR1; allow2 infer1 infer1; f "
     "allow2",
     "allow1 allow2", NULL, "clrW1 clrR1"},
    {"InferFollowUpStreamAllow", "in; w; b; allow1 in w; infer1 allow1 b; clr1 infer1; fetch clr1",
     "allow1", "allow1 infer1 clr1", ""},
    {"InferFollowUpStreamDeny", "in; w; b; deny1 in w; infer1 deny1 b; clr1 infer1; fetch clr1", "",
     NULL, ""},
    {"MklTest.Simple: follow comes before join",
     "in; deny1 in; clr1 deny1; infer1 clr1; clr2 infer1; allow1 clr2 clr2; clr3 allow1; infer2 "
     "clr3;"
     "clr4 infer2; deny3 clr4 clr4; clr5 deny3; fetch clr5",
     "clr2 allow1 clr3", NULL, "deny1 clr1 infer1 deny3"},
    {"BatchMatMul, a version that has no low form", "in; allow1* in in; fetch allow1", "", NULL,
     ""},
    /* 2.6 and 2.14 */
    {"deny stops at allow; a clear tail is spared",
     "in; deny1 in; infer1 deny1; clr1 infer1; infer2 clr1; clr2 infer2; allow1 clr2; infer3 "
     "allow1",
     "clr2 allow1", "clr2 allow1 infer3", "deny1 infer1 clr1 infer2"},
    {"a chain of infer ops, in order",
     "in; allow1 in in; infer1 allow1; infer2 infer1; infer3 infer2; f infer3", "allow1",
     "allow1 infer1 infer2 infer3", ""},
    {"the same, in reverse order",
     "f infer3; infer3 infer2; infer2 infer1; infer1 allow1; allow1 in in; in", "allow1",
     "allow1 infer1", ""},
    {"allow - clear - infer", "in; allow1 in in; clr1 allow1; infer1 clr1; fetch infer1",
     "allow1 clr1", NULL, ""},
    {"a denied op that may not be touched still spoils",
     "in; deny1! in; infer1 deny1; allow1 infer1; fetch allow1", "allow1", NULL, "deny1 infer1"},
    {"an infer op between a low op and a constant",
     "in; c; allow1 in in; infer1 allow1 c; fetch infer1", "allow1", "allow1 infer1", ""},
    {"clear op between a read and an allow op", "in; read; clr1 read; allow1 in clr1; fetch allow1",
     "clr1 allow1", NULL, ""},
    {"the tail after the loss", "in; allow1 in in; deny1 allow1; clr1 deny1; clr2 clr1; fetch clr2",
     "allow1", NULL, "deny1"},
    {"what is in no list is a barrier to both",
     "in; allow1 in in; infer1 allow1; cast infer1; infer2 cast; allow2 infer2; deny1 in; cast2 "
     "deny1;"
     "infer3 cast2; allow3 infer3",
     "allow1 allow2 allow3", "allow1 infer1 allow2 allow3", "deny1"},
    {"one denied operand keeps an infer op between allow ops high",
     "in; allow1 in in; deny1 in; infer1 allow1 deny1; allow2 infer1", "allow1 allow2", NULL,
     "deny1 infer1"},
    {"no kernel: not between, not joined, not following",
     "in; allow1 in in; infer1? allow1; allow2 infer1; clr1? allow2; fetch clr1", "allow1 allow2",
     NULL, ""},
    {"not f32", "in; allow1 in in; infer1= allow1; allow2 infer1; clr1= allow2", "allow1 allow2",
     NULL, ""},
    /* 3.4 */
    {"follow with a denied operand in a group",
     "in; allow1 in in; clrW1-@1 in; clrR1@1 clrW1; infer1 allow1 clrR1; fetch infer1", "allow1",
     NULL, "clrW1 clrR1"},
    {"an allow op's fixed operand stays", "in; s; allow1T in; allow1U* s; fetch allow1T", "allow1T",
     NULL, ""},
    {"no low form: not between, not joined",
     "in; allow1 in in; infer1* allow1; allow2 infer1; clr1* allow2", "allow1 allow2", NULL, ""},
    {"deny does not pass what is banned already: its storage holds it, not its value",
     "in; allow1 in; deny1 in; clrL- deny1; infer1 allow1 clrL; allow2 infer1; infer2 deny1",
     "allow1 infer1 allow2", NULL, "deny1 clrL infer2"},
    {"denied wins in a group, whoever comes first",
     "in; allow1@1 in; clrL1-@1 in; clrL2-@2 in; allow2@2 in; allow3 in", "allow3", NULL,
     "allow1 clrL1 clrL2 allow2"},
    {"what is low only by its group and may not be touched does not spread",
     "in; allow1@1 in; other!@1 in; clr1 other; clr2 allow1", "allow1 other clr2", NULL, ""},
    {"what is banned does not spread, be it an op of the deny list",
     "in; allow1 in; deny1- in; infer1 allow1 deny1; allow2 infer1", "allow1 infer1 allow2", NULL,
     "deny1"},
    {"taken: low in spite of danger, and what it feeds is out of it",
     "in; deny1 in; deny2+ deny1; infer1 deny2; allow1 infer1", "deny2 allow1",
     "deny2 infer1 allow1", "deny1"},
    {"taken: low, and clear ops around it, but no path ends at it",
     "in; clr1 in; other+ clr1; infer1 other; allow1 infer1; fetch allow1", "clr1 other allow1",
     "clr1 other infer1 allow1", ""},
};

/* specs/amp-rewrite.md 1.6: a whole training step, gradients going straight to the unscaling
 * multiply. */
static const Case training_step = {
    "the training step of 1.6",
    "x; w1; w2; w3; b2; b3; gamma; beta; one; scale; wd; fill;"
    "allow_conv1 x w1; infer_bn1T allow_conv1; infer_bn1U* gamma beta; clr_relu1 infer_bn1T;"
    "clr_pool1 clr_relu1; allow_conv2 clr_pool1 w2; infer_bias2 allow_conv2 b2; clr_relu2 "
    "infer_bias2;"
    "infer_gap clr_relu2; clr_flat infer_gap; allow_fc clr_flat w3; infer_logits allow_fc b3;"
    "deny_xent infer_logits; deny_mean deny_xent; deny_l2 w1; infer_decay deny_l2 wd;"
    "infer_total deny_mean infer_decay; infer_scaled infer_total scale;"
    "infer_seed fill scale; clr_tile infer_seed; infer_div clr_tile; clr_dims infer_div;"
    "infer_g_xent clr_dims deny_xent; infer_g_b3 infer_g_xent; infer_inv one scale;"
    "infer_u_b3 infer_g_b3 infer_inv; allow_g_fc infer_g_xent w3; allow_g_w3 clr_flat infer_g_xent;"
    "clr_g_flat allow_g_fc; infer_g_gap clr_g_flat; clr_g_relu2 infer_g_gap clr_relu2;"
    "infer_g_b2 clr_g_relu2; allow_g_conv2 clr_g_relu2 w2; allow_g_w2 clr_pool1 clr_g_relu2;"
    "clr_g_pool1 allow_g_conv2 clr_relu1 clr_pool1; clr_g_relu1 clr_g_pool1 clr_relu1;"
    "infer_g_bn1T clr_g_relu1 allow_conv1; infer_g_bn1U* infer_bn1U gamma; allow_g_w1c x "
    "infer_g_bn1T;"
    "infer_g_l2s infer_seed wd; infer_g_l2 infer_g_l2s w1; infer_g_w1 allow_g_w1c infer_g_l2;"
    "infer_u_w1 infer_g_w1 infer_inv; infer_u_w2 allow_g_w2 infer_inv; infer_u_w3 allow_g_w3 "
    "infer_inv;"
    "infer_u_b2 infer_g_b2 infer_inv; clr_f1 infer_u_w1; clr_f2 infer_u_w2; clr_f3 infer_u_w3;"
    "clr_f4 infer_u_b2; apply infer_u_w1 infer_u_w2 infer_u_w3 infer_u_b2 infer_u_b3 infer_g_bn1U",
    "allow_conv1 infer_bn1T clr_relu1 clr_pool1 allow_conv2 infer_bias2 clr_relu2 infer_gap "
    "clr_flat"
    " allow_fc allow_g_fc allow_g_w3 clr_g_flat infer_g_gap clr_g_relu2 allow_g_conv2 allow_g_w2"
    " clr_g_pool1 clr_g_relu1 infer_g_bn1T allow_g_w1c",
    "allow_conv1 infer_bn1T clr_relu1 clr_pool1 allow_conv2 infer_bias2 clr_relu2 infer_gap "
    "clr_flat"
    " allow_fc allow_g_fc allow_g_w3 clr_g_flat infer_g_gap clr_g_relu2 allow_g_conv2 allow_g_w2"
    " clr_g_pool1 clr_g_relu1 infer_g_bn1T allow_g_w1c"
    " infer_logits infer_g_b2 infer_g_w1 infer_u_w1 infer_u_w2 infer_u_w3 infer_u_b2 clr_f1 clr_f2"
    " clr_f3 clr_f4",
    "deny_xent deny_mean deny_l2 infer_decay infer_total infer_scaled infer_g_xent infer_g_b3 "
    "infer_u_b3"};

typedef struct Drawing {
  AmpProblem problem;
  AmpVertex vertex[MAX_VERTICES];
  char name[MAX_VERTICES][MAX_NAME];
} Drawing;

static AmpClass class_named(const char *name) {
  static const struct {
    const char *prefix;
    AmpClass class;
  } classes[] = {
      {"allow", AMP_ALLOW}, {"infer", AMP_INFER}, {"clr", AMP_CLEAR}, {"deny", AMP_DENY}};
  for (size_t i = 0; i < 4; i++)
    if (strncmp(name, classes[i].prefix, strlen(classes[i].prefix)) == 0)
      return classes[i].class;
  return AMP_NONE;
}

static void set_mark(AmpVertex *v, const char *mark) {
  switch (*mark) {
  case '!':
    v->pin = AMP_KEEP;
    break;
  case '+':
    v->pin = AMP_TAKE;
    break;
  case '-':
    v->pin = AMP_BAN;
    break;
  case '=':
    v->f32 = false;
    break;
  case '*':
    v->fits = false;
    break;
  case '?':
    v->kernel = false;
    break;
  case '&':
    v->reads_state = true;
    break;
  case '@':
    v->group = mark[1] - '0';
    break;
  default:
    fail_msg("bad mark in %s", mark);
  }
}

static int find(const Drawing *d, const char *name, size_t len) {
  for (int v = 0; v < d->problem.n_vertices; v++)
    if (strlen(d->name[v]) == len && memcmp(d->name[v], name, len) == 0)
      return v;
  fail_msg("no vertex %.*s", (int)len, name);
  return -1;
}

static const char *after_blanks(const char *p) {
  return p + strspn(p, " ;");
}

static void add_vertex(Drawing *d, const char *p) {
  int v = d->problem.n_vertices++;
  size_t len = strcspn(p, " ;"), own = strcspn(p, " ;!+-=*?&@");
  assert_true(v < MAX_VERTICES && own < MAX_NAME);
  memcpy(d->name[v], p, own);
  d->vertex[v] = (AmpVertex){.amp = class_named(p), .f32 = true, .fits = true, .kernel = true};
  for (size_t i = own; i < len; i++)
    if (p[i] < '0' || p[i] > '9')
      set_mark(&d->vertex[v], p + i);
}

/* First the names, then the edges: an input may be named before its own line. */
static void draw(Drawing *d, Arena *arena, const char *graph) {
  d->problem.vertex = d->vertex;
  for (const char *p = graph; *p; p = after_blanks(p + strcspn(p, ";")))
    add_vertex(d, p);
  int v = 0;
  for (const char *p = graph; *p; p = after_blanks(p), v++) {
    for (p += strcspn(p, " ;"); *p == ' ' && p[1] != ';'; p += strcspn(p, " ;")) {
      p += strspn(p, " ");
      AmpEdge edge = {find(d, p, strcspn(p, " ;")), v};
      arena_push(arena, d->problem.edge, d->problem.n_edges, d->problem.cap_edges, edge);
    }
  }
}

static bool is_listed(const char *list, const char *name) {
  size_t len = strlen(name);
  for (const char *p = list; *p; p += strcspn(p, " "), p += strspn(p, " "))
    if (strcspn(p, " ") == len && memcmp(p, name, len) == 0)
      return true;
  return false;
}

/* Every coloured vertex has a reason, and following the reasons ends at a vertex that was coloured
 * by its own class or pin. */
static void check_reason(const Drawing *d, const AmpVerdict *verdict, int v) {
  int origin = v, steps = 0;
  for (; verdict[origin].from >= 0; origin = verdict[origin].from)
    assert_true(steps++ < d->problem.n_vertices);
  assert_int_equal(origin, amp_origin(verdict, v, false));
  if (verdict[v].colour == AMP_PLAIN)
    return;
  assert_int_equal(verdict[origin].colour, verdict[v].colour);
  assert_true(verdict[origin].rule == AMP_RULE_OWN || verdict[origin].rule == AMP_RULE_PIN);
}

static void check_case(const Case *c, bool follow) {
  Arena *arena = arena_new();
  Drawing d = {0};
  const char *low = follow && c->low_follow ? c->low_follow : c->low;
  draw(&d, arena, c->graph);
  d.problem.follow = follow;
  const AmpVerdict *verdict = amp_solve(arena, &d.problem);
  for (int v = 0; v < d.problem.n_vertices; v++) {
    AmpColour want = is_listed(low, d.name[v])         ? AMP_LOW
                     : is_listed(c->denied, d.name[v]) ? AMP_DENIED
                                                       : AMP_PLAIN;
    if (verdict[v].colour != want)
      fail_msg("%s (%s): %s is %d, not %d", c->title, follow ? "follow" : "no follow", d.name[v],
               verdict[v].colour, want);
    check_reason(&d, verdict, v);
  }
  arena_free(arena);
}

static void test_cases(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    check_case(&cases[i], false);
    check_case(&cases[i], true);
  }
}

static void test_training_step(void **state) {
  (void)state;
  check_case(&training_step, false);
  check_case(&training_step, true);
}

/* TensorFlow follows without asking for a kernel. */
static void test_follow_blind(void **state) {
  (void)state;
  Arena *arena = arena_new();
  Drawing d = {0};
  draw(&d, arena, "in; allow1 in; infer1? allow1; infer2* allow1; infer3! allow1");
  d.problem.follow = d.problem.follow_blind = true;
  const AmpVerdict *verdict = amp_solve(arena, &d.problem);
  assert_int_equal(verdict[2].colour, AMP_LOW);
  assert_int_equal(verdict[3].colour, AMP_PLAIN);
  assert_int_equal(verdict[4].colour, AMP_PLAIN);
  arena_free(arena);
}

/* UNSAFE_FORCE_ALL: everything taken, nothing denied. */
static void test_force(void **state) {
  (void)state;
  Arena *arena = arena_new();
  Drawing d = {0};
  draw(&d, arena, "in; deny1+ in; infer1+ deny1; clr1+ infer1; allow1 clr1; c");
  d.problem.force = true;
  const AmpVerdict *verdict = amp_solve(arena, &d.problem);
  for (int v = 0; v < d.problem.n_vertices; v++)
    assert_int_equal(verdict[v].colour,
                     strcmp(d.name[v], "in") && strcmp(d.name[v], "c") ? AMP_LOW : AMP_PLAIN);
  arena_free(arena);
}

static void test_reasons(void **state) {
  (void)state;
  Arena *arena = arena_new();
  Drawing d = {0};
  draw(&d, arena,
       "in; allow1 in; clr1 allow1; infer1 clr1; allow2 infer1; infer2 allow2; deny1 infer2;"
       "infer3 deny1; infer4 infer3; clr2 allow1");
  const AmpVerdict *verdict = amp_solve(arena, &d.problem);
  int infer1 = find(&d, "infer1", 6), infer2 = find(&d, "infer2", 6),
      infer4 = find(&d, "infer4", 6);
  assert_int_equal(verdict[infer1].rule, AMP_RULE_BETWEEN);
  assert_int_equal(amp_origin(verdict, infer1, false), find(&d, "allow1", 6));
  assert_int_equal(amp_origin(verdict, infer1, true), find(&d, "allow2", 6));
  assert_int_equal(verdict[infer2].rule,
                   AMP_RULE_NONE); /* it is below allow2, but no low vertex is behind it */
  assert_int_equal(verdict[infer2].from, find(&d, "allow2", 6));
  assert_int_equal(verdict[infer4].rule, AMP_RULE_FED);
  assert_int_equal(amp_origin(verdict, infer4, false), find(&d, "deny1", 5));
  assert_int_equal(verdict[find(&d, "clr2", 4)].rule, AMP_RULE_JOIN);
  arena_free(arena);
}

/* The letters of operands and results are as many as the op's, and T stands exactly where there is
 * a precision to choose. */
static void test_ports(void **state) {
  (void)state;
  for (int op = 0; op < OP_COUNT; op++) {
    const OpInfo *info = &op_info[op];
    const char *in = info->operands, *out = info->results;
    bool any = info->max_args < 0;
    assert_int_equal(strlen(in), any ? info->min_args + 1 : info->max_args);
    assert_true(!any || in[info->min_args] == '*');
    assert_int_equal(strlen(out), info->max_results);
    assert_int_equal(strspn(in, "TSKW*"), strlen(in));
    assert_int_equal(strspn(out, "TK"), strlen(out));
    bool governed = strchr(in, 'T') || strchr(out, 'T');
    if (governed && info->amp == AMP_NONE)
      fail_msg("%s has a T but no class", info->name);
    if (!governed && info->amp != AMP_NONE && info->amp != AMP_DENY)
      fail_msg("%s has a class but no T", info->name);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_cases),        cmocka_unit_test(test_training_step),
      cmocka_unit_test(test_force),        cmocka_unit_test(test_reasons),
      cmocka_unit_test(test_follow_blind), cmocka_unit_test(test_ports),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
