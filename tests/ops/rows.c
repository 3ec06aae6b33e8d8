#include "tests/ops/rows.h"

#include "tests/ops/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const graph_name[ROW_GRAPHS] = {"train", "late"};
static const Stage graph_stage[ROW_GRAPHS] = {STAGE_TRAIN, STAGE_LOWERED};

static int graph_for(const Case *row) {
  return op_info[row->op].last > STAGE_TRAIN;
}

static bool row_is_in(const RowSet *set, const Case *row) {
  return (!set->takes || set->takes(row)) && (set->dtype == DT_F32 || case_has_dtypes(row));
}

static CaseAt case_at(const RowSet *set, const Case *row) {
  const char *prefix = arena_printf(set->arena, "c%d.", (int)(row - ops_case));
  return (CaseAt){row, set->dtype, prefix};
}

static Module *parse(const RowSet *set) {
  char *text = NULL;
  size_t size;
  FILE *out = open_memstream(&text, &size);
  for (int g = 0; g < ROW_GRAPHS; g++) {
    fprintf(out, "graph @%s stage %s {\n", graph_name[g], stage_name[graph_stage[g]]);
    for (int i = 0; i < n_ops_cases; i++)
      if (graph_for(&ops_case[i]) == g && row_is_in(set, &ops_case[i]))
        case_print(case_at(set, &ops_case[i]), false, out);
    fprintf(out, "}\n");
  }
  fclose(out);
  Diag diag = {.out = stderr, .source = text};
  Module *module = module_parse(set->arena, "cases.def", text, &diag);
  CHECK(module, "cases.def does not parse: see test shapes");
  free(text);
  return module;
}

/* "c12.3" -> row 12, operand 3; a name of the row's own: operand -1. */
const Case *row_of(const char *name, int *operand) {
  if (strncmp(name, "output:", 7) == 0)
    name += 7;
  const char *rest = strchr(name, '.') + 1;
  *operand = *rest >= '0' && *rest <= '9' ? atoi(rest) : -1;
  return &ops_case[atoi(name + 1)];
}

static EvalEnv *fill(Arena *arena, const Graph *graph) {
  EvalEnv *env = eval_env_new(arena);
  for (int i = 0; i < graph->n_nodes; i++) {
    const Node *node = graph->node[i];
    if (node->op != OP_INPUT && node->op != OP_VARIABLE)
      continue;
    int operand;
    const Case *row = row_of(node->result[0]->name, &operand);
    EvalTensor *t = eval_env_set(env, node->result[0]->name, node->result[0]->type);
    if (operand < 0)
      fill_ordinary((uint64_t)i, t);
    else
      case_fill(row, operand, false, t);
  }
  return env;
}

EvalEnv *rows_fill(RowSet *set, Arena *arena, int g) {
  if (!set->filled[g])
    set->filled[g] = fill(set->arena, set->plain->graph[g]);
  return eval_env_copy(arena, set->filled[g]);
}

/* Ops whose error is measured relative to the sum of the magnitudes of their terms. The op itself
 * computes that sum from the magnitudes of its operands. */
static bool is_sum(OpKind op) {
  GenClass gen = op_info[op].gen;
  return gen == GEN_CHANNEL || gen == GEN_REDUCE || gen == GEN_CONV || gen == GEN_MATMUL ||
         gen == GEN_POOL || gen == GEN_OPT || op == OP_AFFINE || op == OP_AFFINE2;
}

static EvalEnv *rows_evaluate(RowSet *set, int g, EvalRounding rounding, bool is_absolute) {
  EvalEnv *env = rows_fill(set, set->arena, g);
  for (int i = 0; is_absolute && i < env->n; i++)
    for (int64_t j = 0, n = type_count(env->tensor[i].type); j < n; j++)
      env->tensor[i].v[j] = fabs(env->tensor[i].v[j]);
  eval_graph(set->plain->graph[g], env, rounding, NULL);
  return env;
}

/* The bound on the error of element i. In rows without extreme values all errors are measured
 * relative to `largest`. */
static double tolerance(const Case *row, double want, double terms, double largest) {
  double magnitude = fmax(fabs(want), largest);
  if (is_sum(row->op) && isfinite(terms))
    magnitude = fmax(magnitude, fabs(terms));
  return row->ulps > 0 ? row->ulps * 0x1p-23 * magnitude + 0x1p-149 : 0;
}

/* What the target states of an output: for each element, how far it may be off. NULL if nothing. */
static const double *stated(const RowSet *set, const Graph *graph, const char *name,
                            EvalEnv *values) {
  const Node *node = NULL;
  for (int i = 0; i < graph->n_nodes; i++)
    if (graph->node[i]->op == OP_OUTPUT && strncmp(name, "output:", 7) == 0 &&
        strcmp(attr_str(graph->node[i], ATTR_NAME, ""), name + 7) == 0)
      node = graph->node[i]->arg[0]->node;
  if (!node || node->n_args > MAX_AROUND || !set->target->error_bound)
    return NULL;
  EvalTensor args[MAX_AROUND];
  for (int i = 0; i < node->n_args; i++) {
    const EvalTensor *t = eval_env_get(values, node->arg[i]->name);
    if (!t)
      return NULL;
    args[i] = *t;
  }
  return set->target->error_bound(set->target, set->arena, node, args);
}

static int compare(const RowSet *set, const char *name, const EvalTensor *got,
                   const EvalTensor *want, const EvalTensor *terms, const double *bound) {
  int operand;
  const Case *row = row_of(name, &operand);
  double largest = strchr(row->values, 'n') ? 0 : largest_finite(want);
  for (int64_t i = 0, n = type_count(want->type); i < n; i++) {
    double t = tolerance(row, want->v[i], terms->v[i], largest);
    if (bound)
      t = bound[i] + 0x1p-24 * fabs(want->v[i]) + 0x1p-150;
    if (close_enough(got->v[i], want->v[i], t, want->type.dtype))
      continue;
    printf("FAIL %s: %s[%lld] is %.9g, not %.9g (tolerance %.3g)\n",
           case_name(set->arena, case_at(set, row)), name, (long long)i, got->v[i], want->v[i], t);
    return 1;
  }
  return 0;
}

int rows_compare(RowSet *set, EvalEnv *got, int g) {
  const Graph *graph = set->plain->graph[g];
  if (!set->want[g]) {
    set->want[g] = rows_evaluate(set, g, EVAL_TYPED, false);
    set->terms[g] = rows_evaluate(set, g, EVAL_EXACT, true);
  }
  EvalEnv *want = set->want[g], *terms = set->terms[g];
  int failed = 0;
  if (!set->bound[g]) {
    set->bound[g] = arena_alloc(set->arena, (size_t)want->n * sizeof *set->bound[g]);
    for (int i = 0; i < want->n; i++)
      set->bound[g][i] = stated(set, graph, want->name[i], want);
  }
  for (int i = 0; i < want->n; i++) {
    const EvalTensor *g_i = eval_env_get(got, want->name[i]);
    CHECK(g_i, "the program has no %s", want->name[i]);
    failed += compare(set, want->name[i], g_i, &want->tensor[i], eval_env_get(terms, want->name[i]),
                      set->bound[g][i]);
  }
  return failed;
}

void rows_expect(RowSet *set, const RowSet *like) {
  bool same = set->dtype == like->dtype && set->takes == like->takes;
  for (int g = 0; same && g < ROW_GRAPHS; g++) {
    set->filled[g] = like->filled[g];
    set->want[g] = like->want[g];
    set->terms[g] = like->terms[g];
  }
}

static bool same_bits(double a, double b) {
  return a == b ? signbit(a) == signbit(b) : isnan(a) && isnan(b);
}

int rows_same(const RowSet *set, const EvalEnv *first, EvalEnv *second,
              bool (*spares)(const Case *row), const char *again) {
  int failed = 0;
  for (int i = 0; i < first->n; i++) {
    const EvalTensor *x = &first->tensor[i], *y = eval_env_get(second, first->name[i]);
    int operand;
    int64_t at = 0, n = type_count(x->type);
    while (at < n && same_bits(x->v[at], y->v[at]))
      at++;
    if (at == n || (spares && spares(row_of(first->name[i], &operand))))
      continue;
    printf("FAIL %s: %s[%lld] is %.9g, but %.9g %s\n", row_name(set, first->name[i]),
           first->name[i], (long long)at, x->v[at], y->v[at], again);
    failed++;
  }
  return failed;
}

bool row_multiplies(const Case *row) {
  GenClass gen = op_info[row->op].gen;
  return gen == GEN_CONV || gen == GEN_MATMUL || row->op == OP_BATCH_NORM;
}

bool row_multiplies_one_in(const Case *row, int n, int first) {
  return row_multiplies(row) && ((row - ops_case) % n == first || row->op == OP_BATCH_NORM);
}

RowSet rows_plan(DType dtype, const Target *target, bool (*takes)(const Case *row)) {
  static const char passes[] = "assign-layout,lower-norm,fuse,schedule,plan-memory,check-plan";
  RowSet set = {.arena = arena_new(), .dtype = dtype, .takes = takes, .target = target};
  set.plain = parse(&set);
  set.planned = parse(&set);
  compile_options_default(&set.options);
  set.options.dtype = dtype;
  Diag diag = {.out = stderr};
  PassContext context = {set.planned, &set.options, target, &diag, arena_new()};
  CHECK(pipeline_run(&context, passes, NULL, NULL), "the pipeline refused the rows");
  arena_free(context.scratch);
  return set;
}

int rows_count(const RowSet *set) {
  int n = 0;
  for (int i = 0; i < n_ops_cases; i++)
    n += row_is_in(set, &ops_case[i]);
  return n;
}

const char *row_name(const RowSet *set, const char *value) {
  int operand;
  return case_name(set->arena, case_at(set, row_of(value, &operand)));
}
