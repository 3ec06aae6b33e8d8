/* Warns of what may go wrong with the precision that amp has chosen (ir/base/warn.def). */
#include "ir/eval/eval.h"
#include "ir/recipe/recipe.h"
#include "passes/precision/amp.h"

#include <math.h>
#include <string.h>

enum { TILE = 8 }; /* tensor cores and vector units want channels in multiples of this */

/* The gradient with respect to the logits is at most scale / batch, reached where the softmax of
 * the wrong class is 1. A dynamic scale adapts itself. */
static void warn_scale(const PassContext *context) {
  const CompileOptions *options = context->options;
  int64_t batch = recipe_part(context->module->recipe);
  double most = options->scale_init / (double)(batch > 0 ? batch : 1);
  if (options->loss_scale == LOSS_SCALE_FIXED && !isfinite(eval_round(most, options->dtype)))
    diag_warning(context->diag, (SrcLoc){0}, WARN_PRECISION_RANGE,
                 "loss scale %g over a batch of %lld: gradients of up to %g do not fit %s",
                 options->scale_init, (long long)batch, most, dtype_info[options->dtype].name);
}

/* The channels that a layer reads and makes, in each group of a grouped convolution; false if the
 * node is no layer. */
static bool channels(const Node *node, int64_t *in, int64_t *out) {
  if (node->op != OP_CONV2D && node->op != OP_MATMUL)
    return false;
  TensorType x = node->arg[0]->type, y = node->result[0]->type;
  int64_t groups = attr_int(node, ATTR_GROUPS, 1);
  *in = x.dim[x.rank - 1] / groups;
  *out = y.dim[y.rank - 1] / groups;
  return true;
}

/* The gradient ops of a layer have the same channels, and one warning per layer is enough. */
static bool is_first_of_layer(const Graph *graph, int i) {
  const char *layer = graph->node[i]->loc.name;
  int64_t in, out;
  for (int j = 0; layer && j < i; j++) {
    const char *other = graph->node[j]->loc.name;
    if (other && strcmp(other, layer) == 0 && channels(graph->node[j], &in, &out))
      return false;
  }
  return true;
}

static void warn_dims(const PassContext *context, const Graph *graph) {
  int64_t in, out;
  for (int i = 0; i < graph->n_nodes; i++) {
    const Node *node = graph->node[i];
    if (channels(node, &in, &out) && dtype_info[node->result[0]->type.dtype].low &&
        (in % TILE || out % TILE) && is_first_of_layer(graph, i))
      diag_warning(context->diag, node->loc, WARN_PRECISION_DIMS,
                   "`%s` %s has %lld channels in and %lld out%s: multiples of %d run faster in %s",
                   op_info[node->op].name, node->result[0]->name, (long long)in, (long long)out,
                   attr_int(node, ATTR_GROUPS, 1) > 1 ? " in each group" : "", TILE,
                   dtype_info[node->result[0]->type.dtype].name);
  }
}

/* A constant that becomes infinite, or 0 though it is not 0, when it is cast to the low type. */
static void warn_const(const PassContext *context, const Node *cast) {
  const Node *node = cast->arg[0]->node;
  const Attr *data = attr_find(node, ATTR_DATA);
  DType low = cast->result[0]->type.dtype;
  for (int i = 0; i < (data ? data->n : 1); i++) {
    double x = data ? data->floats[i] : attr_float(node, ATTR_VALUE, 0), y = eval_round(x, low);
    if (!isfinite(x) || (isfinite(y) && (y != 0 || x == 0)))
      continue;
    diag_warning(context->diag, node->loc, WARN_PRECISION_RANGE, "constant %s: %g is %s in %s",
                 node->result[0]->name, x, y == 0 ? "0" : "infinite", dtype_info[low].name);
    return;
  }
}

void precision_warn(PassContext *context, const Graph *graph) {
  warn_scale(context);
  warn_dims(context, graph);
  for (int i = 0; i < graph->n_nodes; i++) {
    const Node *node = graph->node[i];
    if (node->op == OP_CAST && node->arg[0]->node->op == OP_CONST &&
        dtype_info[node->result[0]->type.dtype].low)
      warn_const(context, node);
  }
}
