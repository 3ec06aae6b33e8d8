#include "passes/memory/shards.h"

#include "ir/recipe/opt.h"

#include <stdlib.h>

/* Which nodes does a sum need, and so which sums are final? */
static bool find_final(const Graph *graph, bool *needed, bool *final) {
  bool any = false;
  for (int i = graph->n_nodes - 1; i >= 0; i--) {
    const Node *node = graph->node[i];
    bool sum = node->op == OP_ALL_REDUCE;
    any |= sum;
    final[i] = sum && !needed[i];
    for (int k = 0; (sum || needed[i]) && k < node->n_args; k++)
      needed[node->arg[k]->node->order] = true;
  }
  return any;
}

/* Forwards: updates, and what depends on a final sum. */
static void find_behind(const Graph *graph, const bool *final, bool *late) {
  for (int i = 0; i < graph->n_nodes; i++) {
    const Node *node = graph->node[i];
    late[i] = node->op == OP_UPDATE;
    for (int k = 0; node->op != OP_ALL_REDUCE && k < node->n_args; k++)
      late[i] |= late[node->arg[k]->node->order] || final[node->arg[k]->node->order];
  }
}

/* Backwards: what only late nodes read. */
static void find_in_front(const Graph *graph, Arena *arena, bool *late) {
  size_t n = (size_t)graph->n_nodes + 1;
  bool *by_late = arena_alloc(arena, n), *by_others = arena_alloc(arena, n);
  for (int i = graph->n_nodes - 1; i >= 0; i--) {
    const Node *node = graph->node[i];
    if (node->op != OP_ALL_REDUCE && by_late[i] && !by_others[i])
      late[i] = true;
    for (int k = 0; k < node->n_args; k++)
      (late[i] ? by_late : by_others)[node->arg[k]->node->order] = true;
  }
}

Shards *shards_of(Arena *arena, const Graph *graph) {
  Shards *shards = arena_new_of(arena, Shards);
  size_t n = (size_t)graph->n_nodes + 1;
  shards->late = arena_alloc(arena, n);
  shards->final = arena_alloc(arena, n);
  if (!find_final(graph, arena_alloc(arena, n), shards->final))
    return NULL;
  find_behind(graph, shards->final, shards->late);
  find_in_front(graph, arena, shards->late);
  return shards;
}

bool sum_may_replace(const Node *sum) {
  const Node *reader = sum;
  const Value *value = sum->arg[0];
  for (; value->n_uses == 1 && op_info[value->node->op].gen == GEN_VIEW; value = reader->arg[0])
    reader = value->node;
  return value->n_uses == 1 && value->use[0].node == reader && node_has_code(value->node);
}

/* ---- buckets ---- */

/* The multiplications of a convolution, of its gradients, or of a matrix product: those of one
 * element of the image side, times the elements of the filter or matrix. */
static double multiplications(const Node *node) {
  TensorType a = node->arg[0]->type, b = node->arg[1]->type;
  TensorType y = node->result[0]->type;
  switch (node->op) {
  case OP_CONV2D: /* y, w: N*P*Q*K * R*S*C */
    return (double)type_count(y) * (double)type_count(b) / (double)b.dim[0];
  case OP_CONV2D_DGRAD: /* dy, w */
    return (double)type_count(a) * (double)type_count(b) / (double)b.dim[0];
  case OP_CONV2D_WGRAD: /* dy, the filter's gradient */
    return (double)type_count(b) * (double)type_count(y) / (double)y.dim[0];
  default: { /* M*I, N*I, M*N: the root of their product is M*N*I */
    double rows = (double)y.dim[0], inner = (double)type_count(a) / (rows > 0 ? rows : 1);
    return (double)type_count(y) * inner;
  }
  }
}

static bool is_gradient(const Node *sum) {
  for (int u = 0; u < sum->result[0]->n_uses; u++)
    if (opt_op(sum->result[0]->use[u].node->op))
      return true;
  return false;
}

/* The last kernel with which `share` of the way back is gone: of the multiplications from the first
 * gradient on. */
static int way_back(const Member *member, int n, const Storages *s, double share) {
  int first = s->kernels.n, past = 0;
  double all = 0, done = 0;
  for (int m = 0; m < n; m++)
    if (is_gradient(member[m].sum)) {
      first = member[m].made < first ? member[m].made : first;
      past = member[m].made + 1 > past ? member[m].made + 1 : past;
    }
  for (int pass = 0; pass < 2; pass++)
    for (int k = first; k < past; k++) {
      const Node *main = kernel_main(&s->kernels.kernel[k]);
      double work = main && op_info[main->op].gen != GEN_POOL ? multiplications(main) : 0;
      if (pass && done + work > share * all)
        return k - 1;
      *(pass ? &done : &all) += work;
    }
  return past - 1;
}

static int by_maker(const void *pa, const void *pb) {
  const Member *a = pa, *b = pb;
  return a->made != b->made ? (a->made < b->made ? -1 : 1) : a->storage - b->storage;
}

static int by_bucket(const void *pa, const void *pb) {
  const Member *a = pa, *b = pb;
  return a->bucket != b->bucket ? (a->bucket < b->bucket ? -1 : 1) : by_maker(pa, pb);
}

/* A bucket that is being filled. */
typedef struct Filling {
  int bucket; /* -1: none */
  int64_t bytes;
  int made, read; /* the last kernel that makes a member; the first that waits for a sum */
} Filling;

/* The members are in the order of their makers. A bucket that something waits for in mid-pass takes
 * no member that is made behind that; buckets of final sums are filled beside it. Returns how many
 * there are, numbered as they are begun; made[b] is the last kernel of each. */
static int fill_buckets(Member *member, int n, const Storages *s, const bool *final, int64_t align,
                        int64_t limit, int *made) {
  int n_buckets = 0, edge = way_back(member, n, s, 0.85);
  Filling filling[2] = {{.bucket = -1}, {.bucket = -1}};
  for (int m = 0; m < n; m++) {
    bool is_final = final[member[m].sum->order];
    Filling *into = &filling[is_final];
    bool past_edge = is_final && into->made <= edge && member[m].made > edge;
    if (into->bucket < 0 || into->bytes >= limit || past_edge || member[m].made >= into->read)
      *into = (Filling){.bucket = n_buckets++, .read = s->kernels.n};
    member[m].bucket = into->bucket;
    made[into->bucket] = into->made = member[m].made;
    into->bytes += round_up(s->storage[member[m].storage].bytes, align);
    into->read = member[m].read < into->read ? member[m].read : into->read;
  }
  return n_buckets;
}

/* Numbers the buckets anew, in the order in which they become whole. */
static void number_buckets(Arena *arena, Member *member, int n, const int *made, int n_buckets) {
  int *number = arena_alloc(arena, ((size_t)n_buckets + 1) * sizeof *number);
  for (int b = 0; b < n_buckets; b++)
    for (int c = 0; c < n_buckets; c++)
      number[b] += made[c] < made[b] || (made[c] == made[b] && c < b);
  for (int m = 0; m < n; m++)
    member[m].bucket = number[member[m].bucket];
}

Buckets buckets_choose(Arena *arena, Graph *graph, const Storages *s, const int *last,
                       int64_t align, int64_t limit) {
  Buckets buckets = {.first = s->kernels.n, .last = 0};
  const Shards *shards = shards_of(arena, graph);
  if (!shards)
    return buckets;
  int *read = arena_alloc(arena, ((size_t)s->n + 1) * sizeof *read), cap = 0;
  for (int k = s->kernels.n - 1; k >= 0; k--)
    for (int i = 0; i < s->reads[k].n; i++)
      read[s->reads[k].v[i]] = k;
  for (int i = 0; i < graph->n_nodes; i++) {
    Node *sum = graph->node[i];
    if (sum->op != OP_ALL_REDUCE)
      continue;
    int index = storage_index(s, sum->arg[0]);
    const Storage *storage = &s->storage[index];
    Member member = {.sum = sum,
                     .storage = index,
                     .made = storage->maker,
                     .read = storage->n_readers ? read[index] : s->kernels.n};
    arena_push(arena, buckets.member, buckets.n, cap, member);
    buckets.first = storage->maker < buckets.first ? storage->maker : buckets.first;
    buckets.last = last[index] > buckets.last ? last[index] : buckets.last;
  }
  qsort(buckets.member, (size_t)buckets.n, sizeof *buckets.member, by_maker);
  int *made = arena_alloc(arena, ((size_t)buckets.n + 1) * sizeof *made);
  int n = fill_buckets(buckets.member, buckets.n, s, shards->final, align, limit, made);
  number_buckets(arena, buckets.member, buckets.n, made, n);
  qsort(buckets.member, (size_t)buckets.n, sizeof *buckets.member, by_bucket);
  for (int m = 0; m < buckets.n; m++) {
    buckets.member[m].at = buckets.bytes;
    buckets.bytes += round_up(s->storage[buckets.member[m].storage].bytes, align);
  }
  return buckets;
}
