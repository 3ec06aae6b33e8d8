#include "passes/precision/amp_solve.h"

enum { UNSEEN = -2, ROOT = -1 };
enum { FORWARD = 1, BACKWARD = 2 };

/* Neighbours of every vertex, forwards or backwards: those of v are next[start[v]..start[v+1]]. */
typedef struct Links {
  int *start, *next;
} Links;

typedef struct Solver {
  const AmpProblem *problem;
  const AmpVertex *vertex;
  AmpVerdict *verdict;
  Links out, in;
  int *queue;
  /* One array per walk: for each vertex that the walk reached the vertex that it came from, ROOT
   * where it began, else UNSEEN. */
  int *ahead;   /* infer and deny ops, and clear ops with one of these behind them */
  int *tainted; /* deny ops and what they feed                                     */
  int *down;    /* below an allow vertex                                           */
  int *up;      /* below one and above one                                         */
  int *joined;  /* clear ops reached from low ones                                 */
} Solver;

typedef bool Test(const Solver *solver, int v);

static Links links_of(Arena *arena, const AmpProblem *problem, bool forward) {
  int n = problem->n_vertices, total = 0;
  Links links = {arena_alloc(arena, sizeof(int) * ((size_t)n + 1)),
                 arena_alloc(arena, sizeof(int) * ((size_t)problem->n_edges + 1))};
  int *fill = arena_alloc(arena, sizeof(int) * ((size_t)n + 1));
  for (int e = 0; e < problem->n_edges; e++)
    fill[forward ? problem->edge[e].from : problem->edge[e].to]++;
  for (int v = 0; v < n; v++) {
    links.start[v] = total;
    total += fill[v];
    fill[v] = links.start[v];
  }
  links.start[n] = total;
  for (int e = 0; e < problem->n_edges; e++) {
    AmpEdge edge = problem->edge[e];
    links.next[fill[forward ? edge.from : edge.to]++] = forward ? edge.to : edge.from;
  }
  return links;
}

static int spread(Solver *s, const Links *links, Test *enter, int *came, int v, int tail) {
  for (int i = links->start[v]; i < links->start[v + 1]; i++) {
    int x = links->next[i];
    if (came[x] == UNSEEN && enter(s, x)) {
      came[x] = v;
      s->queue[tail++] = x;
    }
  }
  return tail;
}

/* Breadth first, so that every chain of reasons is a shortest one: from all vertices that pass
 * `root` through those that pass `enter`. */
static int *walk(Solver *s, Arena *arena, unsigned ways, Test *root, Test *enter) {
  int n = s->problem->n_vertices, tail = 0;
  int *came = arena_alloc(arena, sizeof(int) * ((size_t)n + 1));
  for (int v = 0; v < n; v++) {
    came[v] = UNSEEN;
    if (root(s, v)) {
      came[v] = ROOT;
      s->queue[tail++] = v;
    }
  }
  for (int head = 0; head < tail; head++) {
    if (ways & FORWARD)
      tail = spread(s, &s->out, enter, came, s->queue[head], tail);
    if (ways & BACKWARD)
      tail = spread(s, &s->in, enter, came, s->queue[head], tail);
  }
  return came;
}

static void paint(Solver *s, int v, AmpColour colour, AmpRule rule, int from) {
  s->verdict[v] = (AmpVerdict){colour, rule, from, -1};
}

/* May the low type spread to this vertex? */
static bool may_lower(const Solver *s, int v) {
  const AmpVertex *x = &s->vertex[v];
  return s->verdict[v].colour != AMP_DENIED && x->pin != AMP_KEEP && x->f32 && x->fits && x->kernel;
}

static bool is_low(const Solver *s, int v) {
  return s->verdict[v].colour == AMP_LOW;
}
static bool is_clear(const Solver *s, int v) {
  return s->vertex[v].amp == AMP_CLEAR;
}
static bool is_deny(const Solver *s, int v) {
  return s->vertex[v].amp == AMP_DENY;
}

static bool is_allow(const Solver *s, int v) {
  return s->vertex[v].amp == AMP_ALLOW && s->vertex[v].pin != AMP_KEEP;
}

/* A vertex that is denied before this pass was banned because of its storage, not of its values, so
 * nothing spreads from it. A taken vertex (AMP_TAKE) is low even if it is a deny op or fed by one.
 */
static bool spreads_deny(const Solver *s, int v) {
  return is_deny(s, v) && s->verdict[v].colour != AMP_DENIED && s->vertex[v].pin != AMP_TAKE;
}

static bool is_infer_or_deny(const Solver *s, int v) {
  return s->vertex[v].amp == AMP_INFER || is_deny(s, v);
}

static bool can_be_tainted(const Solver *s, int v) {
  return s->ahead[v] != UNSEEN && s->verdict[v].colour != AMP_DENIED &&
         s->vertex[v].pin != AMP_TAKE;
}

static bool can_be_between(const Solver *s, int v) {
  return (s->vertex[v].amp == AMP_CLEAR || s->vertex[v].amp == AMP_INFER) && may_lower(s, v);
}

static bool is_below_allow(const Solver *s, int v) {
  return s->down[v] != UNSEEN;
}

static bool can_spread(const Solver *s, int v) {
  return is_low(s, v) && s->vertex[v].pin != AMP_KEEP;
}

static bool can_join(const Solver *s, int v) {
  return is_clear(s, v) && !is_low(s, v) && may_lower(s, v) && !s->vertex[v].reads_state;
}

/* Pass 1. Vertices that are low or denied by their own class or by a pin. Returns whether any is
 * low. */
static bool paint_own(Solver *s) {
  bool any = false;
  for (int v = 0; v < s->problem->n_vertices; v++) {
    if (s->vertex[v].pin == AMP_BAN)
      paint(s, v, AMP_DENIED, AMP_RULE_PIN, -1);
    else if (is_allow(s, v))
      paint(s, v, AMP_LOW, AMP_RULE_OWN, -1);
    else if (s->vertex[v].pin == AMP_TAKE)
      paint(s, v, AMP_LOW, AMP_RULE_PIN, -1);
    any |= is_low(s, v);
  }
  return any;
}

/* Pass 2. "Denied" spreads forward from deny ops through infer and clear ops. It does not spread to
 * clear ops that have no infer or deny op behind them: nothing there could be harmed. */
static void paint_denied(Solver *s, Arena *arena) {
  s->ahead = walk(s, arena, BACKWARD, is_infer_or_deny, is_clear);
  s->tainted = walk(s, arena, FORWARD, spreads_deny, can_be_tainted);
  for (int v = 0; v < s->problem->n_vertices; v++)
    if (s->tainted[v] == ROOT)
      paint(s, v, AMP_DENIED, AMP_RULE_OWN, -1);
    else if (s->tainted[v] != UNSEEN)
      paint(s, v, AMP_DENIED, AMP_RULE_FED, s->tainted[v]);
}

/* Pass 3. Every vertex on a path from one allow vertex through infer and clear ones to another is
 * low. */
static void paint_between(Solver *s, Arena *arena) {
  s->down = walk(s, arena, FORWARD, is_allow, can_be_between);
  s->up = walk(s, arena, BACKWARD, is_allow, is_below_allow);
  for (int v = 0; v < s->problem->n_vertices; v++) {
    if (s->up[v] >= 0) {
      paint(s, v, AMP_LOW, AMP_RULE_BETWEEN, s->down[v]);
      s->verdict[v].to = s->up[v];
    } else if (s->down[v] >= 0 && s->verdict[v].colour == AMP_PLAIN) {
      s->verdict[v].from = s->down[v]; /* for the text of the reason */
    }
  }
}

/* Pass 4. An infer op right behind a low one is low. In vertex order, so that all of a chain of
 * infer ops is painted. */
static void paint_followers(Solver *s) {
  for (int v = 0; v < s->problem->n_vertices; v++) {
    const AmpVertex *x = &s->vertex[v];
    if (x->amp != AMP_INFER || s->verdict[v].colour != AMP_PLAIN || x->pin == AMP_KEEP || !x->f32 ||
        !x->fits || !(x->kernel || s->problem->follow_blind))
      continue;
    int low = -1;
    bool denied = false;
    for (int i = s->in.start[v]; i < s->in.start[v + 1]; i++) {
      AmpColour colour = s->verdict[s->in.next[i]].colour;
      denied |= colour == AMP_DENIED;
      if (colour == AMP_LOW && low < 0)
        low = s->in.next[i];
    }
    if (low >= 0 && !denied)
      paint(s, v, AMP_LOW, AMP_RULE_FOLLOW, low);
  }
}

/* Pass 5. Clear ops become low beside a low neighbour in either direction, so that the cast between
 * them moves to their other side, or is not needed at all. */
static void paint_joined(Solver *s, Arena *arena) {
  s->joined = walk(s, arena, FORWARD | BACKWARD, can_spread, can_join);
  for (int v = 0; v < s->problem->n_vertices; v++)
    if (s->joined[v] >= 0)
      paint(s, v, AMP_LOW, AMP_RULE_JOIN, s->joined[v]);
}

/* Pass 6. Pass 1 painted every vertex of an allow op, even those that cannot be low. */
static void drop_unfit(Solver *s) {
  for (int v = 0; v < s->problem->n_vertices; v++)
    if (is_low(s, v) && s->vertex[v].amp == AMP_ALLOW && !s->vertex[v].fits)
      paint(s, v, AMP_PLAIN, AMP_RULE_UNFIT, -1);
}

/* Vertices that share storage get one colour: denied wins over low, low over plain. */
static void match_groups(Solver *s, Arena *arena) {
  int n = s->problem->n_vertices, n_groups = 0;
  for (int v = 0; v < n; v++)
    n_groups = s->vertex[v].group > n_groups ? s->vertex[v].group : n_groups;
  int *chief = arena_alloc(arena, sizeof(int) * ((size_t)n_groups + 1)); /* vertex + 1, 0: none */
  for (int v = 0; v < n; v++) {
    int *c = &chief[s->vertex[v].group];
    AmpColour colour = s->verdict[v].colour;
    if (colour != AMP_PLAIN && (!*c || colour > s->verdict[*c - 1].colour))
      *c = v + 1;
  }
  for (int v = 0; v < n; v++) {
    int from = chief[s->vertex[v].group] - 1;
    if (s->vertex[v].group > 0 && from >= 0 && s->verdict[v].colour != s->verdict[from].colour)
      paint(s, v, s->verdict[from].colour, AMP_RULE_GROUP, from);
  }
}

AmpVerdict *amp_solve(Arena *arena, const AmpProblem *problem) {
  int n = problem->n_vertices;
  Solver s = {.problem = problem, .vertex = problem->vertex};
  s.verdict = arena_alloc(arena, sizeof(AmpVerdict) * ((size_t)n + 1));
  s.queue = arena_alloc(arena, sizeof(int) * ((size_t)n + 1));
  for (int v = 0; v < n; v++)
    paint(&s, v, AMP_PLAIN, AMP_RULE_NONE, -1);
  s.out = links_of(arena, problem, true);
  s.in = links_of(arena, problem, false);

  if (!paint_own(&s))
    return s.verdict;
  if (!problem->force)
    paint_denied(&s, arena);
  match_groups(&s, arena);
  paint_between(&s, arena);
  if (problem->follow)
    paint_followers(&s);
  paint_joined(&s, arena);
  drop_unfit(&s);
  match_groups(&s, arena);
  return s.verdict;
}

int amp_origin(const AmpVerdict *verdict, int vertex, bool down) {
  for (int next = vertex; next >= 0;) {
    vertex = next;
    next = down ? verdict[vertex].to : verdict[vertex].from;
  }
  return vertex;
}
