/* schedule: order the kernels so that the peak of live memory is low.
 *
 *   before   kernel 7   %conv1.weight.grad = conv2d_wgrad ..    // all gradients live together
 *            kernel 8   %conv2.weight.grad = conv2d_wgrad ..
 *            kernel 9   opt_momentum %conv1.weight, ..
 *            kernel 10  opt_momentum %conv2.weight, ..
 *   after    7, 9, 8, 10                                        // one at a time
 *
 * Tries a few list schedules and leaves the order alone unless one has a clearly lower peak. Keeps
 * data flow, every reader of a variable in front of its update, and what reads sums over shards
 * behind all else, in the order of the sums. Numbers the kernels 0, 1, ...
 * Tests: tests/passes/memory/schedule.amp */
#include "passes/memory/depend.h"
#include "passes/memory/plan.h"
#include "passes/memory/shards.h"
#include "passes/pass.h"

/* Later strategies move makers and readers further apart in time, so that less is read from caches:
 * they must lower the peak by 1/MIN_GAIN to be worth it. */
enum { MIN_GAIN = 32 };

typedef struct Schedule {
  Arena *arena;
  const Target *target;
  Storages *storages;
  IntList *succ; /* per kernel: the kernels that must come later, each once */
  int *n_preds;
  int64_t *workspace; /* per kernel */
  bool *late;         /* per kernel: comes behind all that are not (shards.h) */
  int n_early;
  /* Per late kernel: in the given order, the last that makes part of a sum it waits for. Per other
   * one: -1 if it makes part of a sum itself, so that the sum can set out. */
  int *behind;
} Schedule;

/* One run of a strategy. */
typedef struct Run {
  int *order, n;
  int *waits;  /* per kernel: predecessors still to come */
  int *unread; /* per storage: readers still to come */
  bool *ready, *done;
  int *pool, n_pool; /* ready kernels: by Schedule.behind, then ascending */
  int *held, n_held; /* late ones that are ready too soon */
} Run;

static void collect_edges(Schedule *s, Graph *graph) {
  const Depend *depend = depend_new(s->arena, graph);
  int n = s->storages->kernels.n;
  int *last = arena_alloc(s->arena, ((size_t)n + 1) * sizeof *last);
  IntList *nodes = arena_alloc(s->arena, ((size_t)n + 1) * sizeof *nodes);
  for (int i = 0; i < depend->n; i++) {
    int k = kernel_of(depend->node[i]);
    arena_push(s->arena, nodes[k].v, nodes[k].n, nodes[k].cap, i);
  }
  for (int k = 0; k < n; k++)
    for (int j = 0; j < nodes[k].n; j++)
      for (int i = nodes[k].v[j], e = depend->succ_begin[i]; e < depend->succ_begin[i + 1]; e++) {
        int to = kernel_of(depend->node[depend->succ[e]]);
        if (to == k || last[to] == k + 1)
          continue;
        last[to] = k + 1;
        arena_push(s->arena, s->succ[k].v, s->succ[k].n, s->succ[k].cap, to);
        s->n_preds[to]++;
      }
}

static int64_t storage_bytes(const Schedule *s, int index) {
  return round_up(s->storages->storage[index].bytes, s->target->align);
}

/* The bytes that are alive after kernel k less those that were alive before it. */
static int64_t growth(const Schedule *s, const Run *run, int k) {
  int64_t bytes = 0;
  for (int i = 0; i < s->storages->makes[k].n; i++) {
    const Storage *made = &s->storages->storage[s->storages->makes[k].v[i]];
    if (made->output || made->n_readers)
      bytes += storage_bytes(s, s->storages->makes[k].v[i]);
  }
  for (int i = 0; i < s->storages->reads[k].n; i++) {
    int index = s->storages->reads[k].v[i];
    if (run->unread[index] == 1 && !s->storages->storage[index].output)
      bytes -= storage_bytes(s, index);
  }
  return bytes;
}

static bool goes_before(const Schedule *s, int a, int b) {
  return s->behind[a] != s->behind[b] ? s->behind[a] < s->behind[b] : a < b;
}

static void pool_add(const Schedule *s, Run *run, int k) {
  int i = run->n_pool++;
  for (; i > 0 && goes_before(s, k, run->pool[i - 1]); i--)
    run->pool[i] = run->pool[i - 1];
  run->pool[i] = k;
}

static void make_ready(const Schedule *s, Run *run, int k) {
  if (s->late[k] && run->n < s->n_early)
    run->held[run->n_held++] = k;
  else
    pool_add(s, run, k);
}

static void run_kernel(const Schedule *s, Run *run, int at) {
  int k = run->pool[at];
  for (int i = at + 1; i < run->n_pool; i++)
    run->pool[i - 1] = run->pool[i];
  run->n_pool--;
  run->order[run->n++] = k;
  for (int i = 0; i < s->storages->reads[k].n; i++)
    run->unread[s->storages->reads[k].v[i]]--;
  for (int i = 0; i < s->succ[k].n; i++)
    if (--run->waits[s->succ[k].v[i]] == 0)
      make_ready(s, run, s->succ[k].v[i]);
  for (; run->n >= s->n_early && run->n_held; run->n_held--)
    pool_add(s, run, run->held[run->n_held - 1]);
}

static Run run_new(const Schedule *s) {
  int n = s->storages->kernels.n;
  Run run = {.order = arena_alloc(s->arena, ((size_t)n + 1) * sizeof(int)),
             .pool = arena_alloc(s->arena, ((size_t)n + 1) * sizeof(int)),
             .held = arena_alloc(s->arena, ((size_t)n + 1) * sizeof(int)),
             .waits = arena_alloc(s->arena, ((size_t)n + 1) * sizeof(int)),
             .unread = arena_alloc(s->arena, ((size_t)s->storages->n + 1) * sizeof(int))};
  for (int i = 0; i < s->storages->n; i++)
    run.unread[i] = s->storages->storage[i].n_readers;
  for (int k = 0; k < n; k++)
    if ((run.waits[k] = s->n_preds[k]) == 0)
      make_ready(s, &run, k);
  return run;
}

/* A strategy picks the place in the pool of the kernel to run next. */
typedef int PickFn(const Schedule *s, const Run *run);

static int pick_first(const Schedule *s, const Run *run) {
  (void)s, (void)run;
  return 0;
}

/* A kernel that leaves no more bytes alive than before runs at once, others in the given order. */
static int pick_shrinking(const Schedule *s, const Run *run) {
  for (int i = 0; i < run->n_pool; i++)
    if (growth(s, run, run->pool[i]) <= 0)
      return i;
  return 0;
}

static int pick_least(const Schedule *s, const Run *run) {
  int best = 0;
  int64_t least = 0;
  for (int i = 0; i < run->n_pool; i++) {
    int64_t bytes = growth(s, run, run->pool[i]);
    if (i == 0 || bytes < least) {
      best = i;
      least = bytes;
    }
  }
  return best;
}

static PickFn *const strategies[] = {pick_first, pick_shrinking, pick_least};

/* The most bytes that are alive during a kernel, its workspace included. */
static int64_t peak_of(const Schedule *s, const int *order) {
  Run run = run_new(s);
  int64_t live = 0, peak = 0;
  for (int i = 0; i < s->storages->n; i++)
    if (s->storages->storage[i].maker < 0)
      live += storage_bytes(s, i);
  for (int i = 0; i < s->storages->kernels.n; i++) {
    int k = order[i];
    int64_t made = 0;
    for (int m = 0; m < s->storages->makes[k].n; m++)
      made += storage_bytes(s, s->storages->makes[k].v[m]);
    if (live + made + s->workspace[k] > peak)
      peak = live + made + s->workspace[k];
    live += growth(s, &run, k);
    for (int r = 0; r < s->storages->reads[k].n; r++)
      run.unread[s->storages->reads[k].v[r]]--;
  }
  return peak;
}

/* The best order found; NULL if the kernels wait for each other. */
static const int *best_order(const Schedule *s) {
  const int *best = NULL;
  int64_t least = 0;
  for (size_t i = 0; i < sizeof strategies / sizeof strategies[0]; i++) {
    Run run = run_new(s);
    while (run.n_pool)
      run_kernel(s, &run, strategies[i](s, &run));
    if (run.n < s->storages->kernels.n)
      return NULL;
    int64_t peak = peak_of(s, run.order);
    if (!best || peak < least - least / MIN_GAIN) {
      best = run.order;
      least = peak;
    }
  }
  return best;
}

static void find_late(Schedule *s, const Graph *graph) {
  const Shards *shards = shards_of(s->arena, graph);
  const KernelList *kernels = &s->storages->kernels;
  s->late = arena_alloc(s->arena, (size_t)kernels->n + 1);
  for (int k = 0; k < kernels->n; k++) {
    s->late[k] = shards && shards->late[kernels->kernel[k].node[0]->order];
    s->n_early += !s->late[k];
  }
}

static bool is_summed(const Storage *storage) {
  return storage->value->n_uses == 1 && storage->value->use[0].node->op == OP_ALL_REDUCE;
}

/* So that sums set out early, the casts of low-precision gradients to f32 among them, and late
 * kernels do what they can before the last sums arrive. */
static void find_behind(Schedule *s) {
  const KernelList *kernels = &s->storages->kernels;
  s->behind = arena_alloc(s->arena, ((size_t)kernels->n + 1) * sizeof *s->behind);
  for (int k = 0; k < kernels->n; k++) {
    for (int i = 0; i < s->storages->makes[k].n && !s->late[k]; i++)
      if (is_summed(&s->storages->storage[s->storages->makes[k].v[i]]))
        s->behind[k] = -1;
    if (!s->late[k])
      continue;
    for (int i = 0; i < s->storages->reads[k].n; i++) {
      const Storage *read = &s->storages->storage[s->storages->reads[k].v[i]];
      if (is_summed(read) && read->maker > s->behind[k])
        s->behind[k] = read->maker;
    }
    for (int i = 0; i < s->succ[k].n; i++)
      if (s->behind[s->succ[k].v[i]] < s->behind[k])
        s->behind[s->succ[k].v[i]] = s->behind[k];
  }
}

static Schedule schedule_new(PassContext *context, Graph *graph) {
  Schedule s = {.arena = context->scratch, .target = context->target};
  s.storages = storages_new(s.arena, graph);
  const KernelList *kernels = &s.storages->kernels;
  graph_order_kernels(s.arena, graph, kernels->kernel, kernels->n); /* numbers them 0, 1, ... */
  s.storages = storages_new(s.arena, graph);
  kernels = &s.storages->kernels;
  size_t n = (size_t)kernels->n + 1;
  s.succ = arena_alloc(s.arena, n * sizeof *s.succ);
  s.n_preds = arena_alloc(s.arena, n * sizeof *s.n_preds);
  s.workspace = arena_alloc(s.arena, n * sizeof *s.workspace);
  for (int k = 0; k < kernels->n; k++)
    s.workspace[k] = round_up(s.target->workspace(s.target, &kernels->kernel[k]), s.target->align);
  collect_edges(&s, graph);
  find_late(&s, graph);
  find_behind(&s);
  return s;
}

bool pass_schedule(PassContext *context, Graph *graph) {
  graph_sweep(graph);
  if (!kernels_accept(context, graph))
    return false;
  Schedule s = schedule_new(context, graph);
  const int *order = best_order(&s);
  const KernelList *kernels = &s.storages->kernels;
  CHECK(order, "kernels of @%s wait for each other", graph->name);
  bool changed = false;
  Kernel *sorted = arena_alloc(s.arena, ((size_t)kernels->n + 1) * sizeof *sorted);
  for (int i = 0; i < kernels->n; i++) {
    sorted[i] = kernels->kernel[order[i]];
    changed |= order[i] != i;
  }
  graph_order_kernels(s.arena, graph, sorted, kernels->n);
  return changed;
}
