/* accumulate: cut the batch of a step into parts, whose gradients are summed before one update.
 *
 *   before   recipe {accumulate=4}
 *            graph @train stage train {
 *              output %w.grad {name="w.grad"}
 *              output %loss {name="loss"}
 *   after    graph @train stage train {          // the last part, and the update
 *              %w.sum = variable {kind="sum", of="w", init="zeros"} : f32[4]
 *              %w.total = add %w.sum, %w.grad {compute="f32"} : f32[4]
 *              output %w.total {name="w.grad"}
 *              ... the output loss: likewise the mean over all parts
 *            graph @accumulate stage train {     // each part before it
 *              %first_part = input {name="first_part"} : bool[]
 *              %w.added = add %w.sum, %w.grad {compute="f32"} : f32[4]
 *              %w.sum.new = select %first_part, %w.grad, %w.added {compute="f32"} : f32[4]
 *              update %w.sum, %w.sum.new
 *              ... the sums of loss and accuracy, and the moving statistics, likewise
 *
 * Runs after loss-scale, so that each part's gradients are scaled and the finite test is of the
 * sums, and before optimizer, whose factor that unscales divides by the number of parts. So nothing
 * is divided in a low precision. Each part renews the moving statistics, as in every framework, but
 * not if its own sums are no longer finite. Never touches what a part computes. */
#include "ir/ports.h"
#include "ir/recipe/recipe.h"
#include "passes/edit.h"
#include "passes/grad/norm.h"
#include "passes/pass.h"

/* What is summed: a gradient, or a scalar that reports. */
typedef struct Summed {
  Node *output;              /* in @train */
  const char *of;            /* its parameter; NULL: it has none */
  Value *part, *sum;         /* in @train: of the last part, of those before it */
  Value *its_part, *its_sum; /* the same values in @accumulate */
} Summed;

typedef struct SummedList {
  Summed *at;
  int n, cap;
} SummedList;

static SummedList find_summed(const Graph *graph, Arena *scratch) {
  SummedList list = {0};
  ParamGrad *grads;
  Node *reported[MAX_REPORTED];
  int n = param_grads(graph, scratch, &grads);
  for (int i = 0; i < n; i++) {
    Summed one = {.output = grads[i].output, .of = grads[i].param->name, .part = grads[i].grad};
    arena_push(scratch, list.at, list.n, list.cap, one);
  }
  for (int r = 0, n_reported = reported_means(graph, reported); n && r < n_reported; r++) {
    Summed one = {.output = reported[r], .part = value_resolve(reported[r]->arg[0])};
    arena_push(scratch, list.at, list.n, list.cap, one);
  }
  return list;
}

static Value *add_sum(Graph *graph, const char *name, const Summed *one) {
  TensorType type = type_with(one->part->type, DT_F32);
  Value *sum = graph_variable_add(graph, name, VARIABLE_SUM, type, 0);
  if (one->of)
    attr_set_str(graph, sum->node, ATTR_OF, one->of);
  return sum;
}

/* The variables, in both graphs under one name. */
static void add_sums(Graph *train, Graph *parts, SummedList list) {
  for (int i = 0; i < list.n; i++) {
    Summed *one = &list.at[i];
    const char *stem = one->of ? one->of : attr_str(one->output, ATTR_NAME, "");
    const char *name = graph_fresh_name(train, name_with(train, stem, "sum"));
    one->sum = add_sum(train, name, one);
    one->its_part = graph_find(parts, one->part->name);
    one->its_sum = add_sum(parts, name, one);
  }
}

/* ---- @train ---- */

/* Whoever read the last part's gradient reads the sum; reports become means. */
static void use_totals(Graph *train, SummedList list, int64_t parts) {
  Value *share = graph_const(train, type_scalar(DT_F32), 1 / (double)parts, "part", (SrcLoc){0});
  for (int i = 0; i < list.n; i++) {
    Summed *one = &list.at[i];
    const char *stem = one->of ? one->of : attr_str(one->output, ATTR_NAME, "");
    const Use *use = one->part->use; /* as they were before this pass */
    int n_uses = one->part->n_uses;
    Value *total = graph_op_f32(train, OP_ADD, name_with(train, stem, "total"), 2,
                                (Value *[]){one->sum, graph_widen(train, one->part)});
    if (!one->of)
      total =
          graph_op_f32(train, OP_MUL, name_with(train, stem, "mean"), 2, (Value *[]){total, share});
    for (int u = 0; u < n_uses; u++)
      if (one->of || use[u].node == one->output)
        use[u].node->arg[use[u].arg] = total;
  }
  graph_sort(train);
}

/* ---- @accumulate ---- */

static void drop_effects(Graph *graph) {
  int kept = 0;
  for (int i = 0; i < graph->n_nodes; i++)
    if (!(op_info[graph->node[i]->op].flags & OPF_EFFECT))
      graph->node[kept++] = graph->node[i];
  graph->n_nodes = kept;
}

/* The first part of a batch begins anew, whatever the sums of the batch before have come to. */
static void update_sums(Graph *parts, SummedList list, bool tested, Arena *scratch) {
  Value *first = graph_input_add(parts, port_first_part, type_scalar(DT_BOOL)),
        **now = arena_alloc(scratch, (size_t)list.n * sizeof *now);
  int n_grads = 0;
  for (int i = 0; i < list.n; i++) {
    const Summed *one = &list.at[i];
    const char *stem = one->of ? one->of : attr_str(one->output, ATTR_NAME, "");
    Value *part = graph_widen(parts, one->its_part);
    Value *added = graph_op_f32(parts, OP_ADD, name_with(parts, stem, "added"), 2,
                                (Value *[]){one->its_sum, part});
    now[i] = graph_op_f32(parts, OP_SELECT, name_with(parts, one->its_sum->name, "new"), 3,
                          (Value *[]){first, part, added});
    graph_update_add(parts, one->its_sum, now[i], NULL);
    n_grads += one->of != NULL;
  }
  Value *finite =
      tested ? graph_op(parts, OP_ALL_FINITE, port_finite, (SrcLoc){0}, n_grads, now) : NULL;
  norm_update_stats(parts, NULL, finite);
}

bool pass_accumulate(PassContext *context, Graph *graph) {
  Module *module = context->module;
  int64_t parts = module->recipe->accumulate;
  if (parts <= 1 || module_find(module, "accumulate"))
    return false;
  SummedList list = find_summed(graph, context->scratch);
  if (!list.n)
    return false;
  const Value *taken = graph_input(graph, port_first_part);
  if (taken) {
    diag_error(context->diag, taken->node->loc, DIAG_MODEL_NAME, "the name `%s` is reserved",
               port_first_part);
    return false;
  }
  if (module->n_graphs == MAX_GRAPHS) {
    diag_error(context->diag, (SrcLoc){0}, DIAG_TOO_LARGE, "more than %d graphs", MAX_GRAPHS);
    return false;
  }
  Graph *each = graph_clone(module, graph, "accumulate");
  drop_effects(each);
  add_sums(graph, each, list);
  update_sums(each, list, graph_output(graph, port_finite) != NULL, context->scratch);
  use_totals(graph, list, parts);
  return true;
}
