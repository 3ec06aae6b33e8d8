/* What must hold of amp and fold-casts whatever the graph: amp_random N runs N random graphs of up
 * to 60 ops (specs of issue 4, done-line 8). For each:
 *   - amp again changes nothing, not a byte
 *   - no op of class deny is low, none of class allow f32, unless the file of rules asked for it
 *   - whatever is low has a reason that leads, op by op, to an op that is low by itself; whatever
 *     could be low and is not has a reason, too
 *   - no cast has the type that it casts; the graph verifies, prints and parses
 *   - evaluated with every result rounded, no value is further from the f32 graph's in exact
 *     arithmetic than its own rounding steps allow; after fold-casts as well
 *   - folds that are called exact change no bit of any value */
#include "codegen/codegen.h"
#include "passes/precision/explain.h"
#include "passes/precision/precision_rules.h"
#include "tests/passes/precision/error_bound.h"
#include "tests/passes/precision/random_graph.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct {
  int graphs, failed;
  int64_t compared, known, low, high, casts, rules, folded, bits;
} total;

static void fail(uint64_t seed, const char *what, const Node *node) {
  const char *name = node && node->n_results ? node->result[0]->name : "";
  const char *why = node ? attr_str(node, ATTR_WHY, "no reason") : "";
  printf("FAIL seed %llu: %s %s %s (%s)\n", (unsigned long long)seed, what, name,
         node ? op_info[node->op].name : "", why);
  total.failed++;
}

/* ---- reasons ---- */

static AmpClass class_of(const CompileOptions *options, const Node *node) {
  static const AmpClass asked[] = {[SAYS_ALLOW] = AMP_ALLOW,
                                   [SAYS_INFER] = AMP_INFER,
                                   [SAYS_CLEAR] = AMP_CLEAR,
                                   [SAYS_DENY] = AMP_DENY};
  const PrecisionRule *rule = rule_for(options->rules, node);
  if (rule && rule->says >= SAYS_ALLOW)
    return asked[rule->says];
  bool sums = node->op == OP_REDUCE_SUM || node->op == OP_REDUCE_MEAN;
  return sums && options->dtype == DT_BF16 ? AMP_INFER : op_info[node->op].amp;
}

static bool asks(const CompileOptions *options, const Node *node, RuleSays says) {
  const PrecisionRule *rule = rule_for(options->rules, node);
  return rule && rule->says == says;
}

/* Reads or is read by the op of that name, casts in between not counted. */
static bool is_beside(const Graph *graph, const Node *node, const char *name) {
  const Value *other = graph_find(graph, name);
  for (int i = 0; other && i < graph->n_nodes; i++) {
    const Node *reader = graph->node[i];
    for (int a = 0; a < reader->n_args; a++) {
      const Node *maker = reader->arg[a]->node;
      if (maker->op == OP_CAST)
        maker = maker->arg[0]->node;
      if ((reader == node && maker == other->node) || (reader == other->node && maker == node))
        return true;
    }
  }
  return false;
}

static const Node *named(const Graph *graph, const char *name) {
  const Value *value = graph_find(graph, name);
  return value ? value->node : NULL;
}

/* Does a chain of reasons end at an op that needs no further reason? */
static bool has_root(const CompileOptions *options, const Graph *graph, const char *name,
                     bool denied) {
  const Node *node = named(graph, name);
  if (!node)
    return false;
  AmpClass class = class_of(options, node);
  return denied ? class == AMP_DENY : class == AMP_ALLOW || asks(options, node, SAYS_LOW);
}

/* A reason may lead through the statistics of a batch normalisation without naming it. */
static bool is_behind_norm(const Graph *graph, const char *from, const char *to, int start) {
  for (int i = start; i < graph->n_nodes; i++)
    if (graph->node[i]->op == OP_BATCH_NORM && is_beside(graph, graph->node[i], from) &&
        (is_beside(graph, graph->node[i], to) ||
         is_behind_norm(graph, graph->node[i]->result[0]->name, to, i + 1)))
      return true;
  return false;
}

static bool chain_is_linked(const Explanation *e) {
  for (int i = 0; i + 1 < e->n_chain; i++) {
    const Node *node = named(e->graph, e->chain[i]);
    const char *next = e->chain[i + 1];
    if (!node ||
        !(is_beside(e->graph, node, next) ||
          (!strcmp(e->reason.rule, "fed") && is_behind_norm(e->graph, e->chain[i], next, 0))))
      return false;
  }
  return true;
}

/* Is one of the node's operands of type T made by a deny op, with at most a cast in between? */
static bool reads_danger(const CompileOptions *options, const Node *node) {
  for (int a = 0; a < node->n_args; a++) {
    const Node *maker = node->arg[a]->node;
    if (maker->op == OP_CAST)
      maker = maker->arg[0]->node;
    if (amp_is_t(node, a) && class_of(options, maker) == AMP_DENY &&
        !rule_for(options->rules, maker))
      return true;
  }
  return false;
}

static void check_low(uint64_t seed, const CompileOptions *options, const Explanation *e) {
  const char *rule = e->reason.rule;
  bool own = class_of(options, e->node) == AMP_ALLOW && !strcmp(rule, "own");
  if (class_of(options, e->node) == AMP_DENY && !asks(options, e->node, SAYS_LOW))
    fail(seed, "a deny op is low:", e->node);
  if (class_of(options, e->node) == AMP_INFER && reads_danger(options, e->node) &&
      !asks(options, e->node, SAYS_LOW) && strcmp(rule, "typed"))
    fail(seed, "low right behind a deny op:", e->node);
  if (asks(options, e->node, SAYS_F32))
    fail(seed, "low though f32 was asked for:", e->node);
  if (own || (asks(options, e->node, SAYS_LOW) && !strcmp(rule, "asked")) || !strcmp(rule, "typed"))
    return;
  AmpClass class = class_of(options, e->node);
  bool between = !strcmp(rule, "between") && class != AMP_DENY;
  bool follows = !strcmp(rule, "follows") && class == AMP_INFER;
  bool joins = !strcmp(rule, "next-to") && class == AMP_CLEAR;
  if (!between && !follows && !joins)
    fail(seed, "low without a reason:", e->node);
  else if (e->at == 0 || !has_root(options, e->graph, e->chain[0], false) ||
           (between && !has_root(options, e->graph, e->chain[e->n_chain - 1], false)))
    fail(seed, "its chain of reasons does not begin and end as it should:", e->node);
  else if (!chain_is_linked(e))
    fail(seed, "its chain of reasons has a gap:", e->node);
}

static void check_high(uint64_t seed, const CompileOptions *options, const Explanation *e) {
  AmpClass class = class_of(options, e->node);
  const char *rule = e->reason.rule;
  if (asks(options, e->node, SAYS_LOW) || (class == AMP_ALLOW && !asks(options, e->node, SAYS_F32)))
    fail(seed, "an allow op is f32:", e->node);
  if (class != AMP_DENY && (!strcmp(rule, "own") || !strcmp(rule, "other")))
    fail(seed, "f32 without a reason:", e->node);
  if (!strcmp(rule, "fed") &&
      (e->at == 0 || !has_root(options, e->graph, e->chain[0], true) || !chain_is_linked(e)))
    fail(seed, "its chain of reasons does not lead to a deny op:", e->node);
}

/* Of the casts that the graph had before, one may become a cast from low to low; fold-casts takes
 * those. */
static void check_casts(uint64_t seed, const Graph *graph, EvalEnv *before) {
  for (int i = 0; i < graph->n_nodes; i++) {
    const Node *node = graph->node[i];
    if (node->op != OP_CAST || (before && eval_env_get(before, node->result[0]->name)))
      continue;
    total.casts++;
    if (node->arg[0]->type.dtype == node->result[0]->type.dtype)
      fail(seed, "a cast to the type it has:", node);
  }
}

static void check_reasons(uint64_t seed, const CompileOptions *options, const Graph *graph) {
  Arena *arena = arena_new();
  for (int i = 0; i < graph->n_nodes; i++) {
    const Node *node = graph->node[i];
    Explanation e;
    if (amp_type(node) == DT_COUNT || op_info[node->op].amp == AMP_NONE)
      continue;
    if (!explain_node(arena, graph, node, &e)) {
      fail(seed, "no reason at all:", node);
    } else if (amp_type(node) == options->dtype) {
      total.low++;
      check_low(seed, options, &e);
    } else {
      total.high++;
      check_high(seed, options, &e);
    }
  }
  arena_free(arena);
}

/* ---- text ---- */

static char *text_of(const Module *module) {
  char *text;
  size_t size;
  FILE *out = open_memstream(&text, &size);
  CHECK(out, "out of memory");
  module_print(module, out);
  fclose(out);
  return text;
}

static void check_parses(uint64_t seed, const Module *module) {
  Arena *arena = arena_new();
  char *text = text_of(module);
  Diag diag = {.out = stdout, .source = text};
  Module *again = module_parse(arena, "again", text, &diag);
  char *second = again ? text_of(again) : NULL;
  if (!second || strcmp(text, second))
    fail(seed, "the text does not come back", NULL);
  free(text);
  free(second);
  arena_free(arena);
}

/* ---- values ---- */

/* An exact fold leaves every value what it was, to the bit, or rounds it where the op that makes it
 * is done in the low type now. */
static void check_bits(uint64_t seed, const Node *node, const EvalTensor *before,
                       const EvalTensor *now) {
  for (int64_t k = 0; before && k < type_count(now->type); k++) {
    double want = eval_round(before->v[k], now->type.dtype);
    total.bits++;
    if (want != now->v[k] && !(isnan(want) && isnan(now->v[k]))) {
      fail(seed, "an exact fold changed a value:", node);
      return;
    }
  }
}

static void put(EvalEnv *env, const char *name, const EvalTensor *value) {
  EvalTensor *to = eval_env_set(env, name, value->type);
  memcpy(to->v, value->v, (size_t)type_count(value->type) * sizeof(double));
}

/* Every value of the graph by name, each result rounded; within its bound from `exact`, and equal
 * to what it is in `same` (NULL: not compared). */
static EvalEnv *check_values(Arena *into, uint64_t seed, const char *when, const Graph *graph,
                             EvalEnv *env, EvalEnv *exact, EvalEnv *same) {
  Arena *arena = arena_new();
  EvalEnv *rounded = eval_env_new(into);
  Bounded **all = bound_graph(arena, graph, env);
  for (int i = 0; i < graph->n_nodes; i++)
    for (int r = 0; r < graph->node[i]->n_results; r++) {
      const Value *value = graph->node[i]->result[r];
      const EvalTensor *want = eval_env_get(exact, value->name);
      bool is_state = graph->node[i]->op == OP_INPUT || graph->node[i]->op == OP_VARIABLE;
      if (!want || is_state || !dtype_info[value->type.dtype].is_float)
        continue;
      const Bounded *got = &all[i][r];
      put(rounded, value->name, &got->value);
      if (same)
        check_bits(seed, graph->node[i], eval_env_get(same, value->name), &got->value);
      for (int64_t k = 0; k < type_count(value->type); k++) {
        total.compared++;
        if (isinf(got->error[k]))
          continue;
        total.known++;
        if (!(fabs(got->value.v[k] - want->v[k]) <= got->error[k])) {
          fail(seed, when, graph->node[i]);
          printf("  element %lld: %.9g, exactly %.9g, bound %.3g\n", (long long)k, got->value.v[k],
                 want->v[k], got->error[k]);
          break;
        }
      }
    }
  arena_free(arena);
  return rounded;
}

/* ---- one graph ---- */

/* Up to two rules that are about single ops. */
static PrecisionRules random_rules(Arena *arena, Random *random, const Graph *graph) {
  PrecisionRules rules = {0};
  for (int n = (int)random_below(random, 4) - 1; n > 0; n--) {
    const Node *node = graph->node[random_below(random, (uint32_t)graph->n_nodes)];
    if (amp_type(node) != DT_F32 || op_info[node->op].amp == AMP_NONE)
      continue;
    PrecisionRule rule = {RULE_VALUE,
                          (RuleSays)random_below(random, RULE_SAYS_COUNT),
                          arena_strdup(arena, node->result[0]->name, strlen(node->result[0]->name)),
                          {0}};
    arena_push(arena, rules.at, rules.n, rules.cap, rule);
    total.rules++;
  }
  return rules;
}

static void run(const char *flag, PassContext *context) {
  pass_run(pass_find(flag, strlen(flag)), context, NULL);
}

static void check_graph(uint64_t seed) {
  static const DType low[] = {DT_F16, DT_BF16};
  Arena *arena = arena_new();
  Random random = {seed * UINT64_C(0x9e3779b97f4a7c15) + 1};
  CompileOptions options;
  compile_options_default(&options);
  options.dtype = low[seed & 1];
  options.amp_compat = seed % 3 ? AMP_OWN : AMP_TF_B;
  options.excess = (ExcessPrecision)random_below(&random, 3);
  Module *module = random_module(arena, &random, 4 + (int)random_below(&random, 57), options.dtype);
  Graph *graph = module->graph[0];
  PrecisionRules rules = random_rules(arena, &random, graph);
  options.rules = &rules;
  EvalEnv *env = random_env(arena, graph, &random), *exact = eval_env_new(arena);
  eval_graph(graph, env, EVAL_EXACT, exact);

  FILE *quiet = fopen("/dev/null", "w");
  Diag diag = {.out = quiet};
  PassContext context = {module, &options, &target_cpu_own[WINOGRAD_AUTO], &diag, arena_new()};
  run("amp", &context);
  check_reasons(seed, &options, graph);
  check_casts(seed, graph, exact);
  EvalEnv *rounded =
      check_values(arena, seed, "after amp beyond its bound:", graph, env, exact, NULL);
  char *once = text_of(module);
  run("amp", &context);
  char *twice = text_of(module);
  if (strcmp(once, twice))
    fail(seed, "amp again changes the graph", NULL);
  free(once);
  free(twice);
  run("fold-casts", &context);
  total.folded += precision_totals(graph).folded_exact;
  check_casts(seed, graph, NULL);
  check_values(arena, seed, "after fold-casts beyond its bound:", graph, env, exact,
               options.excess == EXCESS_EXACT ? rounded : NULL);
  check_parses(seed, module);
  if (diag.n_errors)
    fail(seed, "an error was reported", NULL);
  total.graphs++;
  arena_free(context.scratch);
  arena_free(arena);
  fclose(quiet);
}

int main(int argc, char **argv) {
  uint64_t n = argc > 1 ? strtoull(argv[1], NULL, 10) : 500;
  uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
  for (uint64_t seed = first; seed < first + n; seed++)
    check_graph(seed);
  printf("%d graphs, %d failures: %lld low ops, %lld f32, %lld casts, %lld folded, %lld rules; "
         "%lld of %lld values with a bound, %lld to the bit\n",
         total.graphs, total.failed, (long long)total.low, (long long)total.high,
         (long long)total.casts, (long long)total.folded, (long long)total.rules,
         (long long)total.known, (long long)total.compared, (long long)total.bits);
  /* If these did not occur, the checks above would prove little. */
  bool strong = total.low > total.high / 4 && total.casts > total.graphs &&
                total.known > total.compared / 2 && total.bits > total.compared / 10;
  return total.failed || !strong;
}
