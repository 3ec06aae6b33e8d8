#include "passes/precision/explain.h"

#include "passes/edit.h"

#include <inttypes.h>
#include <string.h>

/* ---- the chain of reasons ---- */

/* Follows one kind of note, ATTR_FROM or ATTR_TO, from op to op, for at most `most` steps: in a
 * graph from text the notes may form a cycle. The op that a note names may be gone; the chain ends
 * there. Returns the number of names; `out` may be NULL. */
static int follow(const Graph *graph, const Node *node, AttrKey way, int most, const char **out) {
  int n = 0;
  while (node && n < most) {
    const char *name = attr_str(node, way, NULL);
    if (!name)
      break;
    const Value *value = graph_find(graph, name);
    node = value ? value->node : NULL;
    if (out)
      out[n] = node ? node_name(node) : name;
    n++;
  }
  return n;
}

static void make_chain(Arena *arena, Explanation *e) {
  const Graph *graph = e->graph;
  int n_up = follow(graph, e->node, ATTR_FROM, graph->n_nodes, NULL);
  int n_down = follow(graph, e->node, ATTR_TO, graph->n_nodes, NULL);
  e->n_chain = n_up + 1 + n_down;
  e->at = n_up;
  e->chain = arena_alloc(arena, (size_t)e->n_chain * sizeof *e->chain);
  follow(graph, e->node, ATTR_FROM, n_up, e->chain);
  for (int i = 0; i < n_up / 2; i++) {
    const char *swap = e->chain[i];
    e->chain[i] = e->chain[n_up - 1 - i];
    e->chain[n_up - 1 - i] = swap;
  }
  e->chain[n_up] = e->name;
  follow(graph, e->node, ATTR_TO, n_down, e->chain + n_up + 1);
}

/* ---- casts ---- */

/* The nodes of one kernel are neighbours in the graph's order. */
bool cast_is_alone(const Graph *graph, const Node *cast) {
  int64_t kernel = attr_int(cast, ATTR_KERNEL, -1);
  int at = 0;
  while (graph->node[at] != cast)
    at++;
  for (int step = -1; kernel >= 0 && step <= 1; step += 2)
    for (int i = at + step; i >= 0 && i < graph->n_nodes; i += step) {
      const Node *node = graph->node[i];
      if (attr_int(node, ATTR_KERNEL, kernel) != kernel)
        break;
      if (attr_find(node, ATTR_KERNEL) && node->op != OP_CAST)
        return false;
    }
  return true;
}

int64_t cast_bytes(const Node *cast) {
  return type_bytes(cast->arg[0]->type) + type_bytes(cast->result[0]->type);
}

static int count_readers(const Graph *graph, const Value *value) {
  int n = 0;
  for (int i = 0; i < graph->n_nodes; i++)
    for (int a = 0; a < graph->node[i]->n_args; a++)
      n += graph->node[i]->arg[a] == value;
  return n;
}

static void find_casts(Arena *arena, Explanation *e) {
  for (int a = 0; a < e->node->n_args; a++) {
    const Node *cast = e->node->arg[a]->node;
    if (!node_is_float_cast(cast))
      continue;
    ExplainedCast found = {cast->result[0], cast_bytes(cast),
                           count_readers(e->graph, cast->result[0]),
                           attr_int(cast, ATTR_KERNEL, -1), cast_is_alone(e->graph, cast)};
    arena_push(arena, e->cast, e->n_casts, e->cap_casts, found);
  }
}

/* One note of fold-casts, "f32 exact, 96 bytes: how"; false at the end of the text. */
static bool read_fold(Arena *arena, const char **text, ExplainedFold *out) {
  char to[8], class[16];
  int used = 0;
  int64_t bytes;
  if (sscanf(*text, "%7s %15[^,], %" SCNd64 " bytes: %n", to, class, &bytes, &used) != 3 || !used)
    return false;
  size_t n = strcspn(*text + used, ";");
  *out = (ExplainedFold){arena_strdup(arena, to, strlen(to)),
                         arena_strdup(arena, class, strlen(class)),
                         arena_strdup(arena, *text + used, n), bytes};
  *text += (size_t)used + n;
  *text += strspn(*text, "; ");
  return true;
}

bool explain_node(Arena *arena, const Graph *graph, const Node *node, Explanation *out) {
  const char *why = attr_str(node, ATTR_WHY, NULL);
  if (!why || !node->n_results)
    return false;
  *out = (Explanation){.graph = graph,
                       .node = node,
                       .name = node_name(node),
                       .layer = node->loc.name,
                       .dtype = node->result[0]->type.dtype,
                       .class = amp_class_name[amp_class_of(why)],
                       .why = why,
                       .reason = amp_reason(why)};
  make_chain(arena, out);
  find_casts(arena, out);
  const char *text = attr_str(node, ATTR_FOLDED, "");
  for (ExplainedFold fold; read_fold(arena, &text, &fold);)
    arena_push(arena, out->fold, out->n_folds, out->cap_folds, fold);
  return true;
}

/* ---- totals ---- */

static void count_op(PrecisionTotals *t, const Node *node) {
  GenClass gen = op_info[node->op].gen;
  if (!node->n_results || gen == GEN_STATE || gen == GEN_CONST || node->op == OP_CAST)
    return;
  const DTypeInfo *info = &dtype_info[node->result[0]->type.dtype];
  t->ops_low += info->low;
  t->ops_f32 += info->is_float && !info->low;
}

PrecisionTotals precision_totals(const Graph *graph) {
  PrecisionTotals t = {0};
  Arena *arena = arena_new();
  for (int i = 0; i < graph->n_nodes; i++) {
    const Node *node = graph->node[i];
    count_op(&t, node);
    bool copies = node->op == OP_CAST && type_equal(node->arg[0]->type, node->result[0]->type);
    if (copies)
      continue;
    if (node->op == OP_CAST && cast_is_alone(graph, node)) {
      t.casts_own++;
      t.casts_weights += node_is_param(node->arg[0]->node);
      t.bytes_own += cast_bytes(node);
    } else if (node->op == OP_CAST) {
      t.casts_inside++;
    }
    t.copies += variable_kind(node) == VARIABLE_COPY;
    const char *text = attr_str(node, ATTR_FOLDED, "");
    for (ExplainedFold fold; read_fold(arena, &text, &fold);) {
      bool exact = strcmp(fold.class, "exact") == 0;
      t.folded_exact += exact;
      t.folded_changing += !exact;
      t.bytes_gone += fold.bytes;
    }
  }
  arena_free(arena);
  return t;
}
