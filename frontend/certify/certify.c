#include "frontend/certify/certify.h"

#include "frontend/certify/walk.h"
#include "ir/kernel.h"
#include "ir/ports.h"

#include <math.h>
#include <string.h>

const char *const role_name[ROLE_COUNT] = {"forward", "gradient", "update"};

typedef struct Run {
  Arena *arena;
  Graph *graph; /* as it became code, for this target */
  const Target *target;
  const Dump *dump;
  Certificate *out;
  Finding **finding; /* per value (place_of); NULL if the value was not stored */
  bool *blurred;     /* per value; see Finding */
  bool rounds;       /* are inputs and variables rounded to their types? */
  DType unit;        /* see Certificate */
} Run;

static size_t place_of(const Value *value) {
  return (size_t)value->node->order * MAX_RESULTS + (size_t)value->index;
}

static bool is_float(const Value *value) {
  return dtype_info[value->type.dtype].is_float;
}

/* ---- what was stored ---- */

/* Per node: do the loss, the logits or the metrics depend on it? */
static bool *forward_nodes(Arena *arena, const Graph *graph) {
  static const char *const end[] = {port_loss, port_logits, port_accuracy, port_accuracy_top_5};
  bool *forward = arena_alloc(arena, (size_t)graph->n_nodes + 1);
  for (int i = graph->n_nodes - 1; i >= 0; i--) {
    const Node *node = graph->node[i];
    for (size_t e = 0; node->op == OP_OUTPUT && e < sizeof end / sizeof *end; e++)
      forward[i] |= strcmp(attr_str(node, ATTR_NAME, ""), end[e]) == 0;
    for (int k = 0; forward[i] && k < node->n_args; k++)
      forward[node->arg[k]->node->order] = true;
  }
  return forward;
}

static Role role_of(const Node *node, const bool *forward) {
  static const OpKind update[] = {OP_EMA, OP_LR_SCHEDULE, OP_LOSS_SCALE_UPDATE, OP_CLIP_NORM};
  for (size_t i = 0; i < sizeof update / sizeof *update; i++)
    if (node->op == update[i])
      return ROLE_UPDATE;
  if (op_info[node->op].gen == GEN_OPT)
    return ROLE_UPDATE;
  return forward[node->order] ? ROLE_FORWARD : ROLE_GRADIENT;
}

/* The variable that an update writes the value to, or NULL. */
static const char *variable_of(const Value *value) {
  for (int u = 0; u < value->n_uses; u++)
    if (value->use[u].node->op == OP_UPDATE && value->use[u].arg == 1)
      return value->use[u].node->arg[0]->name;
  return NULL;
}

static const DumpTensor *stored_of(const Run *run, const Value *value) {
  const int64_t *at = attr_ints(value->node, ATTR_AT, value->node->n_results);
  const char *variable = NULL;
  if (at && at[value->index] == AT_STATE && !run->out->skipped)
    variable = variable_of(value);
  const DumpTensor *stored =
      dump_find(run->dump, variable ? arena_printf(run->arena, "after:%s", variable)
                                    : arena_printf(run->arena, "value:%s", value->name));
  return stored && stored->n == type_count(value->type) ? stored : NULL;
}

static void list_findings(Run *run) {
  const Graph *graph = run->graph;
  const bool *forward = forward_nodes(run->arena, graph);
  for (int i = 0; i < graph->n_nodes; i++) {
    const Node *node = graph->node[i];
    for (int r = 0; node_has_code(node) && r < node->n_results; r++) {
      const Value *value = node->result[r];
      const DumpTensor *stored = is_float(value) ? stored_of(run, value) : NULL;
      if (!stored)
        continue;
      Finding finding = {.value = value,
                         .layer = node->loc.name,
                         .stored = stored,
                         .role = role_of(node, forward)};
      arena_push(run->arena, run->out->at, run->out->n, run->out->cap, finding);
    }
  }
  for (int i = 0; i < run->out->n; i++)
    run->finding[place_of(run->out->at[i].value)] = &run->out->at[i];
}

/* ---- both walks ---- */

static void read_source(void *context, const Node *node, EvalTensor *value) {
  const Run *run = context;
  const char *name = node->result[0]->name;
  if (node->op == OP_VARIABLE)
    name = arena_printf(run->arena, "before:%s", name);
  else
    name = attr_str(node, ATTR_NAME, name);
  const DumpTensor *from = dump_find(run->dump, name);
  CHECK(from && from->n == type_count(value->type), "the program wrote no %s", name);
  dump_read(from, value->v);
  if (run->rounds)
    eval_round_tensor(value);
}

/* ---- the code ---- */

/* For products and sums, the sums of the magnitudes of their terms: what the op gives when operands
 * lose their signs. NULL for other ops. */
static const double *terms_of(Arena *arena, const Node *node, const EvalTensor *args) {
  GenClass gen = op_info[node->op].gen;
  if (gen != GEN_CONV && gen != GEN_MATMUL && node->op != OP_BIAS_GRAD &&
      node->op != OP_REDUCE_SUM && node->op != OP_REDUCE_MEAN && node->op != OP_AVG_POOL)
    return NULL;
  EvalTensor *bare = arena_alloc(arena, (size_t)node->n_args * sizeof *bare), terms[MAX_RESULTS];
  for (int i = 0; i < node->n_args; i++) {
    int64_t n = type_count(args[i].type);
    bare[i] = (EvalTensor){args[i].type, arena_alloc(arena, (size_t)(n + 1) * sizeof(double))};
    for (int64_t k = 0; k < n; k++)
      bare[i].v[k] = fabs(args[i].v[k]);
  }
  eval_node(node, bare, terms, arena);
  return terms[0].v;
}

/* Compares the stored numbers with `result` and then puts them there, for later nodes to read. */
static void measure_code(const Target *target, Finding *finding, const Node *node,
                         const EvalTensor *args, EvalTensor *result) {
  Arena *arena = arena_new();
  int64_t n = finding->stored->n;
  double *got = arena_alloc(arena, (size_t)(n + 1) * sizeof *got);
  dump_read(finding->stored, got);
  const double *terms = terms_of(arena, node, args), *bound = NULL;
  finding->code = drift_of(got, result->v, terms, n, result->type.dtype);
  if (target->error_bound && finding->value == node->result[0])
    bound = target->error_bound(target, arena, node, args);
  finding->has_bound = bound != NULL;
  if (bound)
    finding->bound = bound_of(got, result->v, terms, bound, n, result->type.dtype);
  memcpy(result->v, got, (size_t)n * sizeof *got);
  arena_free(arena);
}

static void visit_code(void *context, const Node *node, const EvalTensor *args,
                       EvalTensor *results) {
  Run *run = context;
  const OpInfo *op = &op_info[node->op];
  bool blurred = false;
  for (int k = 0; k < node->n_args; k++)
    blurred |= run->blurred[place_of(node->arg[k])];
  for (int r = 0; r < node->n_results; r++) {
    Value *value = node->result[r];
    Finding *finding = run->finding[place_of(value)];
    if (!is_float(value))
      continue;
    /* the optimizer's low copy is made from the parameter as it was stored */
    if (op->gen == GEN_OPT && r == node->n_results - 1 && r >= op->min_results)
      memcpy(results[r].v, results[0].v,
             (size_t)type_count(results[r].type) * sizeof *results[r].v);
    if (!finding) {
      eval_round_tensor(&results[r]);
      run->blurred[place_of(value)] =
          blurred ||
          (dtype_info[value->type.dtype].low && op->gen != GEN_CONST && op->rounds != ROUNDS_NEVER);
      continue;
    }
    finding->blurred = blurred;
    measure_code(run->target, finding, node, args, &results[r]);
  }
}

/* ---- the model ---- */

static void visit_model(void *context, const Node *node, const EvalTensor *args,
                        EvalTensor *results) {
  Run *run = context;
  (void)args;
  for (int r = 0; r < node->n_results; r++) {
    const Value *same =
        is_float(node->result[r]) ? graph_find(run->graph, node->result[r]->name) : NULL;
    Finding *finding = same ? run->finding[place_of(same)] : NULL;
    if (!finding || finding->role == ROLE_UPDATE || finding->value->node->op != node->op ||
        finding->stored->n != type_count(results[r].type))
      continue;
    Arena *arena = arena_new();
    double *got = arena_alloc(arena, (size_t)finding->stored->n * sizeof *got + 1);
    dump_read(finding->stored, got);
    finding->has_model = true;
    finding->model =
        error_of(got, results[r].v, finding->stored->n, finding->value->type.dtype, run->unit);
    arena_free(arena);
  }
}

/* ---- the whole ---- */

/* The low type that any stored tensor has; f32 if there is none. */
static DType narrowest(const Certificate *certificate) {
  for (int i = 0; i < certificate->n; i++)
    if (dtype_info[certificate->at[i].value->type.dtype].low)
      return certificate->at[i].value->type.dtype;
  return DT_F32;
}

bool step_was_skipped(const Dump *dump) {
  const DumpTensor *finite = dump_find(dump, port_finite);
  double is = 1;
  if (finite && finite->n == 1)
    dump_read(finite, &is);
  return is == 0;
}

Certificate *certify(Arena *arena, Graph *graph, const Target *target, Graph *exact,
                     const Dump *dump) {
  size_t places = (size_t)graph->n_nodes * MAX_RESULTS + 1;
  Run run = {.arena = arena,
             .graph = graph,
             .target = target,
             .dump = dump,
             .out = arena_new_of(arena, Certificate),
             .finding = arena_alloc(arena, places * sizeof *run.finding),
             .blurred = arena_alloc(arena, places),
             .rounds = true};
  run.out->skipped = step_was_skipped(dump);
  list_findings(&run);
  run.unit = run.out->unit = narrowest(run.out);
  graph_walk(graph, &(Visitor){read_source, visit_code, &run});
  run.rounds = false;
  graph_walk(exact, &(Visitor){read_source, visit_model, &run});
  return run.out;
}

double certificate_worst(const Certificate *certificate) {
  double worst = 0;
  for (int i = 0; i < certificate->n; i++) {
    const Error *e = &certificate->at[i].model;
    worst = fmax(worst, e->lost ? INFINITY : e->norm);
  }
  return worst;
}

double certificate_bound(const Certificate *certificate) {
  double used = 0;
  for (int i = 0; i < certificate->n; i++)
    used = fmax(used, certificate->at[i].bound.used);
  return used;
}

int64_t graph_products(const Graph *graph) {
  double n = 0;
  for (int i = 0; i < graph->n_nodes; i++) {
    const Node *node = graph->node[i];
    if (node->op == OP_CONV2D || node->op == OP_MATMUL) {
      TensorType w = node->arg[1]->type, y = node->result[0]->type;
      int64_t rows = y.dim[y.rank - 1];
      n += (double)type_count(y) * (double)type_count(w) / (double)(rows ? rows : 1);
    }
  }
  return n < 0x1p62 ? (int64_t)n : INT64_C(1) << 62;
}
