/* recompute: compute values a second time rather than keep them, where memory is short.
 *
 *   before   %y = affine %x, %s, %t {kernel=2} : f32[8,4,4,16]
 *            %h = relu %y {kernel=2} : f32[8,4,4,16]
 *            %z = conv2d %h, %w {kernel=3} ..
 *            ...                                       // many kernels, %x lives on anyway
 *            %dw = conv2d_wgrad %h, %dz {kernel=90} ..
 *   after    ...
 *            %y.again = affine %x, %s, %t {kernel=90, again=1} : f32[8,4,4,16]
 *            %h.again = relu %y.again {kernel=90, again=1} : f32[8,4,4,16]
 *            %dw = conv2d_wgrad %h.again, %dz {kernel=91} ..
 *
 * Only pointwise ops are done twice (recompute_remake.c), and as few of them as will do
 * (recompute_choose.c). No value changes, since each copy is rounded as the first was: where a
 * library's kernel computed several ops in f32 and rounded at the end, so do the ops of the copy.
 * Runs on the final order of kernels, when it is known which values are stored and for how long.
 * plan-memory reports an error if the graph still does not fit.
 * Tests: tests/passes/memory/recompute.amp, tests/unit/plan.c, tests/cuda/programs/recompute.py */
#include "passes/memory/recompute.h"

#include "passes/edit.h"
#include "passes/memory/plan.h"

/* ---- second copies ---- */

typedef struct Copies {
  Recompute *r;
  Value **again;  /* per storage: its second copy, NULL before that is made */
  Kernel *kernel; /* per storage: the kernel that makes it */
} Copies;

/* The copy of `value` that kernel k, or a second copy made in front of it, is to read. */
static Value *copy_for(const Copies *copies, Value *value, int k) {
  const Recompute *r = copies->r;
  int i = storage_index(r->storages, value);
  return i >= 0 && r->split[i] >= 0 && k > r->split[i] ? copies->again[i] : value;
}

/* Adds a node to the kernel that makes the second copy of storage i; its result is the copy of
 * `first`. `type` is as for node_finish. */
static Value *add_node(const Copies *copies, int i, Node *node, const Value *first,
                       const TensorType *type) {
  const Recompute *r = copies->r;
  Graph *graph = r->graph;
  Kernel *kernel = &copies->kernel[i];
  const Node *reader = r->storages->kernels.kernel[r->place[i]].node[0];
  attr_set_int(graph, node, ATTR_STAGE, attr_int(reader, ATTR_STAGE, 0));
  attr_set_str(graph, node, ATTR_ROLE, "prologue");
  attr_set_int(graph, node, ATTR_AGAIN, 1);
  Value *value = node_finish(graph, node, name_with(graph, first->name, "again"), 1, type);
  value->layout = first->layout;
  kernel->node[kernel->n_nodes++] = node;
  return value;
}

static Value *add_cast(const Copies *copies, int i, Value *from, const Value *first, DType dtype) {
  TensorType type = type_with(from->type, dtype);
  Node *node = graph_append(copies->r->graph, OP_CAST, first->node->loc, 1, &from);
  return add_node(copies, i, node, first, &type);
}

static Value *widened(const Copies *copies, int i, Value *value) {
  const Kernel *kernel = &copies->kernel[i];
  for (int n = 0; n < kernel->n_nodes; n++)
    if (kernel->node[n]->op == OP_CAST && kernel->node[n]->arg[0] == value)
      return kernel->node[n]->result[0];
  return add_cast(copies, i, value, value, DT_F32);
}

/* The value that stands for operand k of `node` in the second copy of storage i. */
static Value *operand_for(const Copies *copies, int i, const Node *node, int k,
                          Value *const *made) {
  const Remake *remake = copies->r->remake[i];
  for (int n = 0; n < remake->n && remake->node[n] != node; n++)
    if (remake->node[n]->result[0] == node->arg[k])
      return made[n];
  Value *value = copy_for(copies, node->arg[k], copies->r->place[i]);
  return remake->wide && arg_is_elementwise(node, k) ? widened(copies, i, value) : value;
}

/* Copies a node for the second copy of storage i. Attributes that passes wrote about the first copy
 * (stage, kernel, place, notes) are left out. */
static Value *copy_node(const Copies *copies, int i, const Node *from, Value *const *made) {
  Graph *graph = copies->r->graph;
  Node *to = graph_append(graph, from->op, from->loc, from->n_args, from->arg);
  for (int k = 0; k < from->n_args; k++)
    to->arg[k] = operand_for(copies, i, from, k, made);
  for (int k = 0; k < from->n_attrs; k++)
    if (!attr_info[from->attr[k].key].any && !attr_info[from->attr[k].key].note)
      attr_set(graph, to, from->attr[k]);
  return add_node(copies, i, to, from->result[0], &from->result[0]->type);
}

static void make_copy(Copies *copies, int i) {
  const Recompute *r = copies->r;
  const Remake *remake = r->remake[i];
  const Value *first = r->storages->storage[i].value;
  size_t room = (size_t)(remake->n + remake->leaf.n + 1);
  Value *made[MAX_GROUP];
  copies->kernel[i].node = arena_alloc(r->arena, room * sizeof(Node *));
  for (int n = 0; n < remake->n; n++)
    made[n] = copy_node(copies, i, remake->node[n], made);
  Value *last = made[remake->n - 1];
  copies->again[i] = remake->wide ? add_cast(copies, i, last, first, first->type.dtype) : last;
}

static void read_copies(const Copies *copies) {
  const KernelList *kernels = &copies->r->storages->kernels;
  for (int k = 0; k < kernels->n; k++)
    for (int n = 0; n < kernels->kernel[k].n_nodes; n++) {
      Node *node = kernels->kernel[k].node[n];
      for (int a = node->op == OP_UPDATE; a < node->n_args; a++)
        node->arg[a] = copy_for(copies, node->arg[a], k);
    }
}

/* Makes one loop of both kernels if that is legal: the second then need not read from memory what
 * the first makes. */
static bool join(const Recompute *r, Kernel *kernel, const Kernel *next) {
  int n = kernel->n_nodes + next->n_nodes;
  Kernel both = {.n_nodes = n, .node = arena_alloc(r->arena, (size_t)n * sizeof *both.node)};
  for (int i = 0; i < n; i++)
    both.node[i] = i < kernel->n_nodes ? kernel->node[i] : next->node[i - kernel->n_nodes];
  if (!form_legal(&both, r->target))
    return false;
  *kernel = both;
  return true;
}

/* Writes the kernels that make second copies in front of kernel k to `out` and returns how many.
 * Storages are in the order of the graph, so makers come before readers. */
static int again_kernels(const Copies *copies, int k, Kernel *out) {
  const Recompute *r = copies->r;
  int n = 0;
  for (int i = 0; i < r->storages->n; i++)
    if (copies->again[i] && r->place[i] == k && !(n && join(r, &out[n - 1], &copies->kernel[i])))
      out[n++] = copies->kernel[i];
  return n;
}

static void insert_kernels(const Copies *copies) {
  const Recompute *r = copies->r;
  const KernelList *old = &r->storages->kernels;
  size_t room = (size_t)old->n + (size_t)r->storages->n + 1;
  Kernel *kernel = arena_alloc(r->arena, room * sizeof *kernel);
  int n = 0;
  for (int k = 0; k < old->n; k++) {
    n += again_kernels(copies, k, &kernel[n]);
    kernel[n++] = old->kernel[k];
  }
  graph_order_kernels(r->arena, r->graph, kernel, n);
}

static bool make_copies(Recompute *r) {
  size_t n = (size_t)r->storages->n + 1;
  Copies copies = {.r = r,
                   .again = arena_alloc(r->arena, n * sizeof *copies.again),
                   .kernel = arena_alloc(r->arena, n * sizeof *copies.kernel)};
  bool any = false;
  for (int i = 0; i < r->storages->n; i++)
    if (r->split[i] >= 0) {
      make_copy(&copies, i);
      any = true;
    }
  if (any) {
    read_copies(&copies);
    insert_kernels(&copies);
  }
  return any;
}

/* ---- the pass ---- */

static int *ints_new(Arena *arena, int n, int value) {
  int *ints = arena_alloc(arena, ((size_t)n + 1) * sizeof *ints);
  for (int i = 0; i < n; i++)
    ints[i] = value;
  return ints;
}

static Recompute recompute_new(PassContext *context, Graph *graph) {
  Recompute r = {.arena = context->scratch, .graph = graph, .target = context->target};
  KernelList list = kernels_of(r.arena, graph);
  graph_order_kernels(r.arena, graph, list.kernel, list.n); /* numbers them 0, 1, ... */
  Storages *s = r.storages = storages_new(r.arena, graph);
  size_t n = (size_t)s->n + 1, n_kernels = (size_t)s->kernels.n + 1;
  r.workspace = arena_alloc(r.arena, n_kernels * sizeof *r.workspace);
  r.live = arena_alloc(r.arena, (2 * n_kernels + 1) * sizeof *r.live);
  r.reader = arena_alloc(r.arena, n * sizeof *r.reader);
  r.remake = arena_alloc(r.arena, n * sizeof(Remake *));
  r.split = ints_new(r.arena, s->n, -1);
  r.last = ints_new(r.arena, s->n, 0);
  r.place = ints_new(r.arena, s->n, 0);
  r.again_last = ints_new(r.arena, s->n, 0);
  r.over = arena_alloc(r.arena, ((size_t)s->n + 1) * sizeof *r.over);
  for (int k = 0; k < s->kernels.n; k++) {
    r.workspace[k] =
        round_up(r.target->workspace(r.target, &s->kernels.kernel[k]), r.target->align);
    for (int i = 0; i < s->reads[k].n; i++) {
      IntList *readers = &r.reader[s->reads[k].v[i]];
      arena_push(r.arena, readers->v, readers->n, readers->cap, k);
    }
  }
  return r;
}

/* What is summed over shards. plan-memory gives all of it room from the first such value on, which
 * is not in the spans here. */
static int64_t bucket_bytes(const Recompute *r) {
  int64_t bytes = 0;
  for (int i = 0; i < r->graph->n_nodes; i++)
    if (r->graph->node[i]->op == OP_ALL_REDUCE)
      bytes += round_up(type_bytes(r->graph->node[i]->result[0]->type), r->target->align);
  return bytes;
}

bool pass_recompute(PassContext *context, Graph *graph) {
  int64_t limit = plan_limit(context);
  graph_sweep(graph);
  if (limit == INT64_MAX || !kernels_accept(context, graph))
    return false;
  Recompute r = recompute_new(context, graph);
  recompute_find_remakes(&r);
  recompute_choose(&r, limit - bucket_bytes(&r));
  bool changed = make_copies(&r);
  if (changed && !context->options->max_memory)
    diag_note(context->diag, (SrcLoc){0},
              "@%s would not fit into %s: some values are computed again (--print-traffic)",
              graph->name, context->target->name);
  return changed;
}
