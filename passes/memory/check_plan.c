/* check-plan: judge a memory plan without knowing how it was made.
 *
 *   %a = relu %x {kernel=0, at=[0], live=[0,2]} : f32[25]
 *   %b = exp %x {kernel=1, at=[64], live=[1,2]} : f32[25]
 *   error[E116]: %a and %b overlap in kernels 1 to 2
 *
 * Finds live ranges anew from operands and kernel numbers, then checks every place: its bounds, its
 * alignment, its live range as written in `live`, and that no two values that are alive at once
 * overlap, except that a loop may write over an operand that dies in it. Also checks workspaces,
 * that a variable has the same place in all graphs, and that what is summed over shards lies in
 * buckets that nothing else touches while they travel. Shares no code with plan-memory. Tests:
 * tests/passes/memory/check_plan.amp, tests/unit/plan.c */
#include "passes/memory/plan.h"
#include "passes/pass.h"

#include <stdlib.h>
#include <string.h>

/* A value or workspace that occupies a part of the arena for a live range. */
typedef struct Tenant {
  int64_t at, bytes;
  int first, last;
  const Value *value; /* NULL: a workspace */
  bool output;
} Tenant;

typedef struct Check {
  Arena *arena;
  const Module *module;
  const Graph *graph;
  const Target *target;
  int n_kernels;
  int *last;     /* per value (see key): last kernel that reads it, -1 if none */
  bool *outside; /* per value: read by another kernel, a view or the program   */
  bool *output;  /* per value: the program reads it                            */
  bool *updates; /* per value: an update in the same kernel stores it          */
  Tenant *tenant;
  int n_tenants;
  const char *why; /* the first failure */
} Check;

#define FAIL(c, ...)                                                                               \
  do {                                                                                             \
    if (!(c)->why)                                                                                 \
      (c)->why = arena_printf((c)->arena, __VA_ARGS__);                                            \
  } while (0)

static int key(const Value *value) {
  return value->node->order * MAX_RESULTS + value->index;
}

static bool is_view(const Node *node) {
  return op_info[node->op].gen == GEN_VIEW;
}

/* The value whose memory `value` is: views looked through. */
static const Value *owner(const Value *value) {
  while (is_view(value->node))
    value = value->node->arg[0];
  return value;
}

static int kernel_number(const Node *node) {
  return node->op == OP_INPUT || node->op == OP_VARIABLE ? -1
                                                         : (int)attr_int(node, ATTR_KERNEL, -1);
}

/* ---- live ranges ---- */

static void find_reads(Check *c) {
  for (int n = 0; n < c->graph->n_nodes; n++) {
    const Node *reader = c->graph->node[n];
    int k = kernel_number(reader);
    for (int a = reader->op == OP_UPDATE; a < reader->n_args; a++) {
      const Value *value = owner(reader->arg[a]);
      int i = key(value);
      if (reader->op == OP_OUTPUT) {
        c->output[i] = c->outside[i] = true;
        c->last[i] = c->n_kernels - 1;
        continue;
      }
      if (is_view(reader) || k != kernel_number(value->node))
        c->outside[i] = true;
      else if (reader->op == OP_UPDATE && reader->arg[a] == value && value == reader->arg[1])
        c->updates[i] = true;
      if (!is_view(reader) && k > c->last[i])
        c->last[i] = k;
    }
  }
}

/* ---- one value at a time ---- */

static bool is_library_op(const Node *node) {
  GenClass gen = op_info[node->op].gen;
  return gen == GEN_CONV || gen == GEN_MATMUL || gen == GEN_POOL;
}

static void add_tenant(Check *c, Tenant t, int64_t limit, const char *name) {
  if (t.at < 0 || t.at > limit || t.bytes > limit - t.at)
    FAIL(c, "%%%s at %lld with %lld bytes leaves the arena of %lld", name, (long long)t.at,
         (long long)t.bytes, (long long)limit);
  if (t.at % c->target->align)
    FAIL(c, "%%%s at %lld is not aligned to %lld", name, (long long)t.at,
         (long long)c->target->align);
  c->tenant[c->n_tenants++] = t;
}

static void check_in_arena(Check *c, const Value *value, int64_t at) {
  const int64_t *live = attr_ints(value->node, ATTR_LIVE, 2 * value->node->n_results);
  int first = kernel_number(value->node) < 0 ? 0 : kernel_number(value->node), i = key(value);
  int last = c->last[i] > first ? c->last[i] : first;
  if (!live || live[2 * value->index] != first || live[2 * value->index + 1] != last)
    FAIL(c, "%%%s lives from kernel %d to %d, `live` says otherwise", value->name, first, last);
  Tenant tenant = {at, type_bytes(value->type), first, last, value, c->output[i]};
  add_tenant(c, tenant, c->graph->arena_bytes, value->name);
}

static void check_result(Check *c, const Value *value, int64_t at) {
  const Node *node = value->node;
  int i = key(value);
  if (at >= 0) {
    if (node->op == OP_CONST || is_view(node))
      FAIL(c, "%%%s has a place of its own", value->name);
    check_in_arena(c, value, at);
  } else if (is_view(node)) {
    if (at != AT_VIEW)
      FAIL(c, "%%%s is a view", value->name);
  } else if (node->op == OP_CONST) {
    if (at != AT_INTERNAL)
      FAIL(c, "%%%s is a constant", value->name);
  } else if (node->op == OP_INPUT || c->outside[i] || (is_library_op(node) && c->last[i] < 0)) {
    FAIL(c, "%%%s needs a place in memory", value->name);
  } else if (at != (c->updates[i] ? AT_STATE : AT_INTERNAL)) {
    FAIL(c, "%%%s is %s its kernel", value->name,
         c->updates[i] ? "stored to a variable by" : "used only inside");
  }
}

static void check_results(Check *c) {
  for (int i = 0; i < c->graph->n_nodes; i++) {
    const Node *node = c->graph->node[i];
    const int64_t *at = attr_ints(node, ATTR_AT, node->n_results);
    if (node->n_results && !at)
      FAIL(c, "%%%s has no place", node->result[0]->name);
    for (int r = 0; at && node->op != OP_VARIABLE && r < node->n_results; r++)
      check_result(c, node->result[r], at[r]);
  }
}

/* ---- workspaces ---- */

/* The kernels as lists of nodes; false if their numbers are not 0, 1, 2... */
static bool read_kernels(Check *c, Kernel *kernel) {
  for (int i = 0; i < c->graph->n_nodes; i++) {
    Node *node = c->graph->node[i];
    int k = node_has_code(node) ? kernel_number(node) : -1;
    if (node_has_code(node) && k == c->n_kernels) {
      kernel[k] = (Kernel){.id = k};
      c->n_kernels++;
    } else if (node_has_code(node) && (k < 0 || k != c->n_kernels - 1)) {
      FAIL(c, "kernel %d follows kernel %d", k, c->n_kernels - 1);
      return false;
    }
    if (k >= 0)
      kernel[k].n_nodes++;
  }
  return true;
}

static void fill_kernels(const Check *c, Kernel *kernel) {
  for (int k = 0; k < c->n_kernels; k++) {
    kernel[k].node = arena_alloc(c->arena, (size_t)kernel[k].n_nodes * sizeof(Node *));
    kernel[k].n_nodes = 0;
  }
  for (int i = 0; i < c->graph->n_nodes; i++)
    if (node_has_code(c->graph->node[i])) {
      Kernel *k = &kernel[kernel_number(c->graph->node[i])];
      k->node[k->n_nodes++] = c->graph->node[i];
    }
}

static void check_workspaces(Check *c, const Kernel *kernel) {
  for (int k = 0; k < c->n_kernels; k++) {
    int64_t need = c->target->workspace(c->target, &kernel[k]);
    const int64_t *space = attr_ints(kernel[k].node[0], ATTR_WORKSPACE, 2);
    if (need > 0 && (!space || space[1] < need))
      FAIL(c, "kernel %d needs %lld bytes of workspace", k, (long long)need);
    if (space && space[1] < 0)
      FAIL(c, "kernel %d has a workspace of negative size", k);
    if (!space)
      continue;
    Tenant tenant = {.at = space[0], .bytes = space[1], .first = k, .last = k};
    add_tenant(c, tenant, c->graph->arena_bytes,
               arena_printf(c->arena, "workspace of kernel %d", k));
  }
}

/* ---- two tenants at a time ---- */

static int by_place(const void *pa, const void *pb) {
  const Tenant *a = pa, *b = pb;
  if (a->at != b->at)
    return a->at < b->at ? -1 : 1;
  return a->first < b->first ? -1 : a->first > b->first;
}

/* May `late` be written over `early`, which dies in the kernel that makes `late`? Only if the
 * kernel reads each element of `early` solely to compute the same element of its results. */
static bool may_replace(const Check *c, const Kernel *kernel, const Tenant *early,
                        const Tenant *late) {
  if (!early->value || !late->value || early->output || early->at != late->at ||
      early->bytes != late->bytes || early->last != late->first ||
      kernel_number(early->value->node) >= late->first ||
      type_count(early->value->type) != type_count(late->value->type) ||
      op_info[late->value->node->op].gen != GEN_POINT)
    return false;
  for (int i = 0; i < kernel->n_nodes; i++) {
    const Node *node = kernel->node[i];
    if (is_library_op(node) && !c->target->takes_loop)
      return false;
    for (int a = node->op == OP_UPDATE; a < node->n_args; a++) {
      GenClass gen = op_info[node->op].gen;
      if (owner(node->arg[a]) == early->value &&
          (node->arg[a] != early->value || node->op == OP_BROADCAST || node->op == OP_REVERSE ||
           (gen != GEN_POINT && gen != GEN_CHANNEL)))
        return false;
    }
  }
  return true;
}

static const char *tenant_name(Check *c, const Tenant *t) {
  return t->value ? arena_printf(c->arena, "%%%s", t->value->name)
                  : arena_printf(c->arena, "the workspace of kernel %d", t->first);
}

static void check_pair(Check *c, const Kernel *kernel, const Tenant *a, const Tenant *b) {
  int first = a->first > b->first ? a->first : b->first;
  int last = a->last < b->last ? a->last : b->last;
  if (first > last || !a->bytes || !b->bytes)
    return;
  if (c->n_kernels &&
      (may_replace(c, &kernel[b->first], a, b) || may_replace(c, &kernel[a->first], b, a)))
    return;
  FAIL(c, "%s and %s overlap in kernels %d to %d", tenant_name(c, a), tenant_name(c, b), first,
       last);
}

static void check_overlaps(Check *c, const Kernel *kernel) {
  qsort(c->tenant, (size_t)c->n_tenants, sizeof *c->tenant, by_place);
  for (int i = 0; i < c->n_tenants && !c->why; i++)
    for (int j = i + 1; j < c->n_tenants; j++) {
      if (c->tenant[j].at >= c->tenant[i].at + c->tenant[i].bytes)
        break;
      check_pair(c, kernel, &c->tenant[i], &c->tenant[j]);
    }
}

/* ---- sums over shards ---- */

typedef struct Summed {
  const Value *value; /* what is summed, in whose place the sum lies */
  int64_t at, bytes, bucket;
  int made; /* the kernel that makes it */
  int read; /* the first kernel that reads the sum, or the number of kernels */
} Summed;

static int by_address(const void *pa, const void *pb) {
  const Summed *a = pa, *b = pb;
  return a->at != b->at ? (a->at < b->at ? -1 : 1) : strcmp(a->value->name, b->value->name);
}

static Summed *summed_of(Summed *list, int n, const Value *value) {
  for (int i = 0; i < n; i++)
    if (list[i].value == value)
      return &list[i];
  return NULL;
}

/* Lists what is summed, each once. */
static int list_summed(Check *c, Summed *list) {
  int n = 0;
  for (int i = 0; i < c->graph->n_nodes; i++) {
    const Node *node = c->graph->node[i];
    if (node->op != OP_ALL_REDUCE)
      continue;
    const Value *value = owner(node->arg[0]);
    const int64_t *at = attr_ints(value->node, ATTR_AT, value->node->n_results);
    int made = kernel_number(value->node);
    if (made < 0 || !at || at[value->index] < 0)
      FAIL(c, "%%%s, which is summed, is not what a kernel stores", value->name);
    if (summed_of(list, n, value))
      FAIL(c, "%%%s is summed twice", value->name);
    if (attr_int(node, ATTR_BUCKET, -1) < 0)
      FAIL(c, "%%%s is in no bucket", value->name);
    if (c->why)
      return 0;
    int64_t bytes = (type_bytes(value->type) + c->target->align - 1) / c->target->align;
    list[n++] = (Summed){.value = value,
                         .at = at[value->index],
                         .bytes = bytes * c->target->align,
                         .bucket = attr_int(node, ATTR_BUCKET, -1),
                         .made = made,
                         .read = c->n_kernels};
  }
  return n;
}

/* Whoever reads what is summed reads the sum: there is nothing else in that place any longer. */
static void find_sum_reads(Check *c, Summed *list, int n) {
  for (int i = 0; i < c->graph->n_nodes; i++) {
    const Node *reader = c->graph->node[i];
    for (int a = 0; !is_view(reader) && a < reader->n_args; a++) {
      const Value *value = reader->arg[a];
      bool sum = false;
      for (; is_view(value->node); value = value->node->arg[0])
        sum |= value->node->op == OP_ALL_REDUCE;
      Summed *summed = summed_of(list, n, value);
      int k = reader->op == OP_OUTPUT ? c->n_kernels : kernel_number(reader);
      if (summed && !sum)
        FAIL(c, "kernel %d reads %%%s, in whose place its sum lies", k, value->name);
      if (summed && k < summed->read)
        summed->read = k;
    }
  }
}

/* Buckets lie side by side in the order in which they become whole, and in each its members in the
 * order of their makers. Nothing is updated before the last is whole. (That nothing else lies in a
 * bucket while it travels follows from check_overlaps: places are aligned as the slices are, and
 * each member is alive until its sum is read.) */
static void check_buckets(Check *c) {
  Summed *list = arena_alloc(c->arena, ((size_t)c->graph->n_nodes + 1) * sizeof *list);
  int n = list_summed(c, list), whole = -1;
  find_sum_reads(c, list, n);
  if (n)
    qsort(list, (size_t)n, sizeof *list, by_address);
  for (int i = 0; i < n && !c->why; i++) {
    int read = list[i].read, past = i + 1;
    if (list[i].bucket != (i ? list[i - 1].bucket + 1 : 0))
      FAIL(c, "%%%s is in bucket %lld out of order", list[i].value->name,
           (long long)list[i].bucket);
    for (; past < n && list[past].bucket == list[i].bucket; past++) {
      read = list[past].read < read ? list[past].read : read;
      if (list[past].made < list[past - 1].made)
        FAIL(c, "%%%s lies behind %%%s, which is made later", list[past].value->name,
             list[past - 1].value->name);
    }
    for (int m = i ? i : 1; m < past; m++)
      if (list[m].at != list[m - 1].at + list[m - 1].bytes)
        FAIL(c, "there is a gap between %%%s and %%%s", list[m - 1].value->name,
             list[m].value->name);
    int made = list[past - 1].made;
    if (made < whole)
      FAIL(c, "bucket %lld is whole before the one in front of it", (long long)list[i].bucket);
    if (read <= made)
      FAIL(c, "kernel %d reads sums of bucket %lld, which kernel %d completes", read,
           (long long)list[i].bucket, made);
    whole = made;
    i = past - 1;
  }
  for (int i = 0; n && i < c->graph->n_nodes; i++)
    if (c->graph->node[i]->op == OP_UPDATE && kernel_number(c->graph->node[i]) <= whole)
      FAIL(c, "%%%s is updated before all that is summed is there",
           c->graph->node[i]->arg[0]->name);
}

/* ---- state ---- */

static int by_state(const void *pa, const void *pb) {
  const Tenant *a = pa, *b = pb;
  if (a->at != b->at)
    return a->at < b->at ? -1 : 1;
  return strcmp(a->value->name, b->value->name);
}

/* Variables of all planned graphs: those of one name share one place, others do not overlap. */
static void check_state(Check *c) {
  Tenant *t = NULL;
  int n = 0, cap = 0;
  int64_t limit = c->module->state_bytes;
  for (int g = 0; g < c->module->n_graphs; g++)
    for (int i = 0; i < c->module->graph[g]->n_nodes; i++) {
      const Node *node = c->module->graph[g]->node[i];
      const int64_t *at = attr_ints(node, ATTR_AT, 1);
      if (node->op != OP_VARIABLE || !at)
        continue;
      Tenant tenant = {at[0], type_bytes(node->result[0]->type), 0, 0, node->result[0], false};
      if (at[0] < 0 || at[0] > limit || tenant.bytes > limit - at[0] || at[0] % c->target->align)
        FAIL(c, "%%%s is misplaced in the state", tenant.value->name);
      arena_push(c->arena, t, n, cap, tenant);
    }
  if (n)
    qsort(t, (size_t)n, sizeof *t, by_state);
  for (int i = 1; i < n; i++) {
    bool same = strcmp(t[i].value->name, t[i - 1].value->name) == 0;
    if (same ? t[i].at != t[i - 1].at : t[i].at < t[i - 1].at + t[i - 1].bytes)
      FAIL(c, "%%%s and %%%s overlap in the state", t[i - 1].value->name, t[i].value->name);
  }
}

/* A variable of this graph has the same place in every other graph. check_state sorts by place and
 * so misses two places of one variable that do not overlap. */
static void check_state_agrees(Check *c) {
  for (int i = 0; i < c->graph->n_nodes; i++) {
    const Node *node = c->graph->node[i];
    for (int g = 0; node->op == OP_VARIABLE && g < c->module->n_graphs; g++) {
      const Value *other = graph_find(c->module->graph[g], node->result[0]->name);
      const int64_t *mine = attr_ints(node, ATTR_AT, 1);
      const int64_t *theirs = other ? attr_ints(other->node, ATTR_AT, 1) : NULL;
      if (theirs && other->node->op == OP_VARIABLE && mine && *mine != *theirs)
        FAIL(c, "%%%s has two places in the state", other->name);
    }
  }
}

const char *plan_check(Arena *arena, const Module *module, const Graph *graph,
                       const Target *target) {
  Check c = {.arena = arena, .module = module, .graph = graph, .target = target};
  size_t n = (size_t)graph->n_nodes * MAX_RESULTS + 1;
  Kernel *kernel = arena_alloc(arena, ((size_t)graph->n_nodes + 1) * sizeof *kernel);
  c.last = arena_alloc(arena, n * sizeof *c.last);
  c.outside = arena_alloc(arena, n);
  c.output = arena_alloc(arena, n);
  c.updates = arena_alloc(arena, n);
  c.tenant = arena_alloc(arena, (n + (size_t)graph->n_nodes) * sizeof *c.tenant);
  for (size_t i = 0; i < n; i++)
    c.last[i] = -1;
  if (!read_kernels(&c, kernel))
    return c.why;
  fill_kernels(&c, kernel);
  find_reads(&c);
  check_results(&c);
  check_workspaces(&c, kernel);
  check_overlaps(&c, kernel);
  check_buckets(&c);
  check_state(&c);
  check_state_agrees(&c);
  return c.why;
}

bool pass_check_plan(PassContext *context, Graph *graph) {
  if (!kernels_accept(context, graph))
    return false;
  const char *why = plan_check(context->scratch, context->module, graph, context->target);
  if (why)
    diag_error(context->diag, (SrcLoc){0}, DIAG_PLAN, "@%s: %s", graph->name, why);
  return false;
}
