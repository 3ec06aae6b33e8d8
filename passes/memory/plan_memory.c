/* plan-memory: give every stored result a place in memory.
 *
 *   before   %a = relu %x {kernel=0} : f32[25]
 *            %b = exp %a {kernel=1} : f32[25]
 *            %c = neg %b {kernel=2} : f32[25]
 *   after    %a = relu %x {kernel=0, at=[0], live=[0,1]} : f32[25]
 *            %b = exp %a {kernel=1, at=[0], live=[1,2]} : f32[25]   // in place
 *            ...
 *
 * Variables get an offset in the state block, the same in every graph. All other values share one
 * arena: the live range of a value goes from the kernel that makes it to the last that reads it.
 * Values that no other kernel reads have no place (AT_INTERNAL, AT_STATE); a view has the place of
 * its operand (AT_VIEW). What is summed over shards lies in buckets side by side (shards.h),
 * which live from the first value that is put there to the last sum that is read. A loop may
 * write over an operand that dies in it. Never moves a kernel. The graph goes from stage fused to
 * planned.
 * Tests: tests/passes/memory/plan_memory.amp, tests/unit/plan.c */
#include "passes/memory/depend.h"
#include "passes/memory/pack.h"
#include "passes/memory/plan.h"
#include "passes/memory/shards.h"
#include "passes/pass.h"

#include <inttypes.h>
#include <string.h>

typedef struct Plan {
  Arena *arena;
  Graph *graph;
  const Target *target;
  Storages *storages;
  int *last;    /* per storage: the last kernel that reads it; of outputs, the last kernel */
  int *over;    /* per storage: the storage whose place it takes over, or -1 */
  Block *block; /* one per place: first storages, then workspaces; see make_blocks */
  int n_blocks;
  int *block_of;   /* per storage */
  Buckets buckets; /* one block for all */
  int64_t *inside; /* per storage: its offset in that block, -1 if it is not summed over shards */
  int *work_block; /* per kernel, -1 without workspace */
} Plan;

/* ---- state ---- */

/* The variable of that name in the first graph that has one; sets *g to the index of that graph. */
static const Node *first_variable(const Module *module, const char *name, int *g) {
  for (*g = 0; *g < module->n_graphs; ++*g) {
    const Value *value = graph_find(module->graph[*g], name);
    if (value && value->node->op == OP_VARIABLE)
      return value->node;
  }
  return NULL;
}

/* Lays variables out in the order of their first appearance in the module, so that the runs of this
 * pass on all graphs find the same offsets. */
static void plan_state(Module *module, Graph *graph, int64_t align, Arena *arena) {
  /* at[graph][node]: the offset of a variable, where it appears first */
  int64_t *at[MAX_GRAPHS], bytes = 0;
  int first;
  for (int g = 0; g < module->n_graphs; g++) {
    at[g] = arena_alloc(arena, ((size_t)module->graph[g]->n_nodes + 1) * sizeof *at[g]);
    for (int i = 0; i < module->graph[g]->n_nodes; i++) {
      const Node *node = module->graph[g]->node[i];
      if (node->op != OP_VARIABLE || first_variable(module, node->result[0]->name, &first) != node)
        continue;
      at[g][i] = bytes;
      bytes += round_up(type_bytes(node->result[0]->type), align);
    }
  }
  for (int i = 0; i < graph->n_nodes; i++)
    if (graph->node[i]->op == OP_VARIABLE) {
      const Node *node = first_variable(module, graph->node[i]->result[0]->name, &first);
      attr_set_ints(graph, graph->node[i], ATTR_AT, &at[first][node->order], 1);
    }
  module->state_bytes = bytes;
}

/* ---- the limit ---- */

static int64_t state_bytes(const Module *module, int64_t align) {
  int64_t bytes = 0;
  int first;
  for (int g = 0; g < module->n_graphs; g++)
    for (int i = 0; i < module->graph[g]->n_nodes; i++) {
      const Node *node = module->graph[g]->node[i];
      if (node->op == OP_VARIABLE && first_variable(module, node->result[0]->name, &first) == node)
        bytes += round_up(type_bytes(node->result[0]->type), align);
    }
  return bytes;
}

int64_t plan_limit(const PassContext *context) {
  const Target *target = context->target;
  if (context->options->max_memory)
    return context->options->max_memory;
  if (!target->memory)
    return INT64_MAX;
  int64_t left = target->memory - state_bytes(context->module, target->align);
  return left > 0 ? left : 0;
}

static const char *size_text(Arena *arena, int64_t bytes) {
  return bytes < 1 << 20   ? arena_printf(arena, "%" PRId64 " bytes", bytes)
         : bytes < 1 << 30 ? arena_printf(arena, "%.3f MiB", (double)bytes / 0x1p20)
                           : arena_printf(arena, "%.3f GiB", (double)bytes / 0x1p30);
}

/* A graph that does not fit is an error, but for @train_dp where nobody asked for it: a program
 * that trains alone must not fail for want of it. */
static void check_limit(PassContext *context, const Graph *graph) {
  int64_t limit = plan_limit(context);
  Arena *arena = context->scratch;
  bool shared = strcmp(graph->name, "train_dp") == 0;
  if (graph->arena_bytes <= limit)
    return;
  const char *needs = arena_printf(
      arena, "@%s needs %s for activations, gradients and workspaces, %s %s", graph->name,
      size_text(arena, graph->arena_bytes),
      context->options->max_memory ? "--max-memory allows"
                                   : arena_printf(arena, "%s has room for", context->target->name),
      size_text(arena, limit));
  if (shared && !context->options->must_distribute) {
    diag_warning(context->diag, (SrcLoc){0}, WARN_DISTRIBUTED,
                 "%s: the program will not train as several processes or shards", needs);
    module_leave_out(context->module, graph);
  } else {
    diag_error(context->diag, (SrcLoc){0}, DIAG_MEMORY, "%s: a smaller --batch-size%s needs less",
               needs, shared ? " or --distributed=off" : "");
  }
}

/* ---- live ranges ---- */

static void find_live_ranges(Plan *plan) {
  Storages *s = plan->storages;
  for (int i = 0; i < s->n; i++) {
    const Storage *storage = &s->storage[i];
    plan->last[i] = storage->output ? s->kernels.n - 1 : storage->maker < 0 ? 0 : storage->maker;
    if (plan->last[i] < 0)
      plan->last[i] = 0; /* a graph without kernels */
    plan->over[i] = -1;
  }
  for (int k = 0; k < s->kernels.n; k++)
    for (int r = 0; r < s->reads[k].n; r++)
      if (plan->last[s->reads[k].v[r]] < k)
        plan->last[s->reads[k].v[r]] = k;
}

/* ---- buckets ---- */

static void find_buckets(Plan *plan, int64_t limit) {
  for (int i = 0; i < plan->storages->n; i++)
    plan->inside[i] = -1;
  plan->buckets = buckets_choose(plan->arena, plan->graph, plan->storages, plan->last,
                                 plan->target->align, limit);
  for (int m = 0; m < plan->buckets.n; m++) {
    const Member *member = &plan->buckets.member[m];
    plan->inside[member->storage] = member->at;
    attr_set_int(plan->graph, member->sum, ATTR_BUCKET, member->bucket);
  }
}

/* ---- in place ---- */

/* Lets storage `made` of kernel k take over the place of an operand that dies in the kernel. */
static void take_over(Plan *plan, int k, int made) {
  Storages *s = plan->storages;
  for (int r = 0; r < s->reads[k].n; r++) {
    int old = s->reads[k].v[r];
    bool taken = false;
    for (int m = 0; m < s->makes[k].n; m++)
      taken |= plan->over[s->makes[k].v[m]] == old;
    if (!taken && plan->last[old] == k && plan->inside[old] < 0 &&
        storage_may_replace(plan->target, &s->kernels.kernel[k], &s->storage[made],
                            &s->storage[old])) {
      plan->over[made] = old;
      return;
    }
  }
}

static void find_in_place(Plan *plan) {
  for (int k = 0; k < plan->storages->kernels.n; k++)
    for (int m = 0; m < plan->storages->makes[k].n; m++)
      if (plan->inside[plan->storages->makes[k].v[m]] < 0)
        take_over(plan, k, plan->storages->makes[k].v[m]);
}

/* ---- blocks ---- */

static int first_kernel(const Plan *plan, int storage) {
  int maker = plan->storages->storage[storage].maker;
  return maker < 0 ? 0 : maker;
}

/* Makes one block for each chain of values of which each takes over the place of the one before.
 * Storages are listed in the order in which they are made, so the head of a chain comes first. */
static void make_blocks(Plan *plan) {
  Storages *s = plan->storages;
  if (plan->buckets.n)
    plan->block[plan->n_blocks++] = (Block){
        .bytes = plan->buckets.bytes, .first = plan->buckets.first, .last = plan->buckets.last};
  for (int i = 0; i < s->n; i++) {
    if (plan->inside[i] >= 0)
      continue; /* block 0 */
    if (plan->over[i] >= 0) {
      plan->block_of[i] = plan->block_of[plan->over[i]];
      plan->block[plan->block_of[i]].last = plan->last[i];
      continue;
    }
    plan->block_of[i] = plan->n_blocks;
    plan->block[plan->n_blocks++] =
        (Block){.bytes = round_up(s->storage[i].bytes, plan->target->align),
                .first = first_kernel(plan, i),
                .last = plan->last[i]};
  }
  for (int k = 0; k < s->kernels.n; k++) {
    int64_t bytes = plan->target->workspace(plan->target, &s->kernels.kernel[k]);
    plan->work_block[k] = bytes ? plan->n_blocks : -1;
    if (bytes)
      plan->block[plan->n_blocks++] =
          (Block){.bytes = round_up(bytes, plan->target->align), .first = k, .last = k};
  }
}

/* ---- attributes ---- */

static bool is_updated_inside(const Plan *plan, const Value *value) {
  const int *kernel = plan->storages->kernel;
  for (int u = 0; u < value->n_uses; u++) {
    const Node *reader = value->use[u].node;
    if (reader->op == OP_UPDATE && value->use[u].arg == 1 &&
        kernel[reader->order] == kernel[value->node->order])
      return true;
  }
  return false;
}

static void set_places(Plan *plan, Node *node) {
  int64_t at[MAX_RESULTS], live[2 * MAX_RESULTS];
  bool view = op_info[node->op].gen == GEN_VIEW, any = false;
  int kernel = plan->storages->kernel[node->order];
  for (int r = 0; r < node->n_results; r++) {
    int i = view ? -1 : storage_index(plan->storages, node->result[r]);
    if (i >= 0) {
      at[r] = plan->block[plan->block_of[i]].at + (plan->inside[i] > 0 ? plan->inside[i] : 0);
      live[2 * r] = first_kernel(plan, i);
      live[2 * r + 1] = plan->last[i];
      any = true;
      continue;
    }
    bool state = !view && kernel >= 0 && is_updated_inside(plan, node->result[r]);
    at[r] = view ? AT_VIEW : state ? AT_STATE : AT_INTERNAL;
    live[2 * r] = live[2 * r + 1] = kernel;
  }
  attr_set_ints(plan->graph, node, ATTR_AT, at, node->n_results);
  if (any)
    attr_set_ints(plan->graph, node, ATTR_LIVE, live, 2 * node->n_results);
}

static void set_attributes(Plan *plan) {
  for (int i = 0; i < plan->graph->n_nodes; i++) {
    Node *node = plan->graph->node[i];
    if (node->n_results && node->op != OP_VARIABLE)
      set_places(plan, node);
  }
  for (int k = 0; k < plan->storages->kernels.n; k++) {
    if (plan->work_block[k] < 0)
      continue;
    Kernel *kernel = &plan->storages->kernels.kernel[k];
    int64_t space[2] = {plan->block[plan->work_block[k]].at,
                        plan->target->workspace(plan->target, kernel)};
    attr_set_ints(plan->graph, kernel->node[0], ATTR_WORKSPACE, space, 2);
  }
}

static Plan plan_new(PassContext *context, Graph *graph) {
  Plan plan = {.arena = context->scratch, .graph = graph, .target = context->target};
  /* Numbers the kernels 0, 1, ... so that the number of a kernel is its index in the list. */
  KernelList kernels = kernels_of(plan.arena, graph);
  graph_order_kernels(plan.arena, graph, kernels.kernel, kernels.n);
  plan.storages = storages_new(plan.arena, graph);
  size_t n = (size_t)plan.storages->n + 1, k = (size_t)kernels.n + 1;
  plan.last = arena_alloc(plan.arena, n * sizeof(int));
  plan.over = arena_alloc(plan.arena, n * sizeof(int));
  plan.block_of = arena_alloc(plan.arena, n * sizeof(int));
  plan.inside = arena_alloc(plan.arena, n * sizeof *plan.inside);
  plan.block = arena_alloc(plan.arena, (n + k + 1) * sizeof(Block));
  plan.work_block = arena_alloc(plan.arena, k * sizeof(int));
  return plan;
}

bool pass_plan_memory(PassContext *context, Graph *graph) {
  graph_sweep(graph);
  if (!kernels_accept(context, graph))
    return false;
  plan_state(context->module, graph, context->target->align, context->scratch);
  Plan plan = plan_new(context, graph);
  find_live_ranges(&plan);
  find_buckets(&plan, context->options->bucket_bytes);
  find_in_place(&plan);
  make_blocks(&plan);
  graph->arena_bytes = pack(plan.arena, plan.block, plan.n_blocks);
  set_attributes(&plan);
  graph->stage = STAGE_PLANNED;
  const char *why = plan_check(plan.arena, context->module, graph, plan.target);
  CHECK(!why, "plan of @%s: %s", graph->name, why);
  check_limit(context, graph);
  return true;
}
