/* The reasons of amp in words. */
#include "passes/amp.h"

static const char *const class_name[] = {
    [AMP_ALLOW] = "allow", [AMP_INFER] = "infer", [AMP_CLEAR] = "clear",
    [AMP_DENY] = "deny",   [AMP_NONE] = "none",
};

/* What to call the node of a vertex. */
static const char *name_of(const Graph *graph, int v) {
  const Node *node = graph->node[v / 2];
  return node->n_results ? node->result[0]->name : op_info[node->op].name;
}

static const char *why_low(const Graph *graph, const AmpVerdict *verdict, int v) {
  int up = amp_origin(verdict, v, false), down = amp_origin(verdict, v, true);
  Arena *arena = graph->arena;
  switch (verdict[v].rule) {
  case AMP_RULE_BETWEEN:
    return arena_printf(arena, ": between %s and %s", name_of(graph, up), name_of(graph, down));
  case AMP_RULE_FOLLOW:
    return arena_printf(arena, ": follows %s", name_of(graph, verdict[v].from));
  case AMP_RULE_JOIN:
    return arena_printf(arena, ": next to %s", name_of(graph, verdict[v].from));
  case AMP_RULE_GROUP:
    return arena_printf(arena, ": shares storage with %s", name_of(graph, up));
  case AMP_RULE_PIN:
    return ": as asked";
  default:
    return "";
  }
}

static const char *why_denied(const Graph *graph, const AmpProblem *problem,
                              const AmpVerdict *verdict, int v) {
  int up = amp_origin(verdict, v, false);
  if (verdict[v].from < 0)
    return problem->vertex[v].amp == AMP_DENY ? "" : ": kept f32 as asked";
  return arena_printf(graph->arena, ": f32, fed by %s (deny)", name_of(graph, up));
}

static const char *why_plain(const Graph *graph, const AmpProblem *problem,
                             const AmpVerdict *verdict, int v) {
  const AmpVertex *x = &problem->vertex[v];
  if (x->amp == AMP_DENY)
    return ""; /* nothing is allow, so nothing was denied */
  if (x->pin == AMP_KEEP)
    return ": kept f32 as asked";
  if (!x->f32)
    return ": was not f32";
  if (!x->fits || !x->kernel)
    return ": f32, the op has no low form";
  if (verdict[v].from >= 0)
    return arena_printf(graph->arena, ": f32, below %s but above no allow op",
                        name_of(graph, amp_origin(verdict, v, false)));
  return x->amp == AMP_CLEAR ? ": f32, next to no low op" : ": f32, not between allow ops";
}

const char *amp_why(const Graph *graph, const AmpProblem *problem, const AmpVerdict *verdict,
                    int v) {
  const char *rest;
  switch (verdict[v].colour) {
  case AMP_LOW:
    rest = why_low(graph, verdict, v);
    break;
  case AMP_DENIED:
    rest = why_denied(graph, problem, verdict, v);
    break;
  default:
    rest = why_plain(graph, problem, verdict, v);
  }
  return arena_printf(graph->arena, "%s%s", class_name[problem->vertex[v].amp], rest);
}
