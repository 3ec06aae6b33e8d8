/* Tests fuse, schedule, recompute and plan-memory on random graphs: the results compute the same
 * numbers, the checker of plans accepts them, and it rejects them after each kind of damage that is
 * tried. */
#include "passes/memory/plan.h"

#include "passes/memory/pack.h"
#include "passes/pass.h"
#include "tests/unit/plan_graph.h"

/* clang-format off */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h> /* wants those before it */
/* clang-format on */

enum { N_GRAPHS = 300, MAX_OPS = 60 };

/* ---- targets ---- */

/* Only some kernels have a workspace, so that workspaces of several sizes are needed at several
 * times. */
static int64_t some_workspace(const Target *target, const Kernel *kernel) {
  (void)target;
  return kernel_main(kernel) ? 100 * kernel->n_nodes : 0;
}

static bool holds(Node *const *list, int n, const Node *node) {
  for (int i = 0; i < n; i++)
    if (list[i] == node)
      return true;
  return false;
}

/* Does it read something of the list, and neither sums nor views of it? */
static bool goes_on(Node *const *list, int n, const Node *node) {
  bool reads = false;
  for (int k = 0; k < node->n_args; k++) {
    const Value *storage = value_storage(node->arg[k]);
    bool inside = holds(list, n, storage->node);
    if (inside && (storage != node->arg[k] || op_info[storage->node->op].gen == GEN_CHANNEL))
      return false;
    reads |= inside;
  }
  return reads;
}

/* A target takes into the kernel of a main op the node that makes its first operand, if no other
 * node reads that, and the nodes that may follow it. */
static int much(const Target *target, Node *main, Node *const *among, int n,
                Node *out[MAX_AROUND]) {
  int count = 0;
  (void)target;
  out[count++] = main;
  for (Value *v = main->arg[0]; v->n_uses == 1 && op_info[v->node->op].gen == GEN_POINT &&
                                holds(among, n, v->node) && count < 3;
       v = v->node->arg[0])
    out[count++] = v->node;
  for (int i = 0; i < n && count < MAX_AROUND; i++) {
    GenClass gen = op_info[among[i]->op].gen;
    if ((gen == GEN_POINT || gen == GEN_CHANNEL) && !holds(out, count, among[i]) &&
        goes_on(out, count, among[i]))
      out[count++] = among[i];
  }
  return count;
}

static const Target targets[] = {
    {.name = "plain", .align = 64, .activations = LAYOUT_NHWC, .workspace = some_workspace},
    {.name = "single", .align = 16, .activations = LAYOUT_NHWC, .workspace = some_workspace},
    {.name = "greedy",
     .align = 64,
     .activations = LAYOUT_NHWC,
     .kernel_around = much,
     .workspace = some_workspace},
};
enum { N_TARGETS = (int)(sizeof targets / sizeof targets[0]) };

/* ---- a planned module ---- */

typedef struct Planned {
  Arena *arena;
  Module *module;
  Graph *graph;
  const Target *target;
  Random random;
} Planned;

static void run_pass(PassContext *context, const char *flag) {
  pass_run(pass_find(flag, strlen(flag)), context, NULL);
  assert_int_equal(context->diag->n_errors, 0);
}

static Module *make(Arena *arena, Random *random) {
  return random_module(arena, random, 3 + (int)random_below(random, MAX_OPS));
}

/* With `save`, every value that can be is computed twice rather than kept in memory. */
static void plan(Module *module, const Target *target, bool save) {
  Diag diag = {.out = stderr};
  CompileOptions options;
  compile_options_default(&options);
  options.unfused = strcmp(target->name, "single") == 0;
  PassContext context = {module, &options, target, &diag, arena_new()};
  run_pass(&context, "fuse");
  run_pass(&context, "schedule");
  options.max_memory = save;
  run_pass(&context, "recompute");
  options.max_memory = 0;
  run_pass(&context, "plan-memory");
  run_pass(&context, "check-plan");
  arena_free(context.scratch);
}

static Planned planned_new(int seed) {
  Planned p = {.arena = arena_new(), .target = &targets[seed % N_TARGETS]};
  p.random.state = (uint64_t)seed + 1;
  p.module = make(p.arena, &p.random);
  p.graph = p.module->graph[0];
  plan(p.module, p.target, seed % 2);
  return p;
}

static const char *verdict(const Planned *p) {
  const char *why = kernels_check(p->arena, p->graph, p->target);
  return why ? why : plan_check(p->arena, p->module, p->graph, p->target);
}

/* ---- the values stay ---- */

static void assert_same(EvalEnv *want, EvalEnv *got) {
  for (int i = 0; i < want->n; i++) {
    const EvalTensor *a = &want->tensor[i], *b = eval_env_get(got, want->name[i]);
    assert_non_null(b);
    for (int64_t e = 0; e < type_count(a->type); e++)
      if (!(a->v[e] == b->v[e] || (a->v[e] != a->v[e] && b->v[e] != b->v[e])))
        fail_msg("%s[%d]: %g, not %g", want->name[i], (int)e, b->v[e], a->v[e]);
  }
}

static int count_again(const Graph *graph) {
  int n = 0;
  for (int i = 0; i < graph->n_nodes; i++)
    n += attr_int(graph->node[i], ATTR_AGAIN, 0) != 0;
  return n;
}

static void test_values(void **state) {
  int n_again = 0;
  (void)state;
  for (int seed = 0; seed < N_GRAPHS; seed++) {
    Arena *arena = arena_new();
    Random random = {(uint64_t)seed + 1}, again, third;
    Module *module = make(arena, &random);
    again = third = random;
    EvalEnv *want = random_env(arena, module->graph[0], &again);
    EvalEnv *got = random_env(arena, module->graph[0], &third);
    eval_graph(module->graph[0], want, EVAL_TYPED, NULL);
    plan(module, &targets[seed % N_TARGETS], seed % 2);
    n_again += count_again(module->graph[0]);
    run_planned(module->graph[0], module->state_bytes, got);
    assert_same(want, got);
    arena_free(arena);
  }
  assert_in_range(n_again, N_GRAPHS / 8, INT_MAX);
}

static void test_accepts(void **state) {
  (void)state;
  for (int seed = 0; seed < N_GRAPHS; seed++) {
    Planned p = planned_new(seed);
    const char *why = verdict(&p);
    if (why)
      fail_msg("seed %d: %s", seed, why);
    arena_free(p.arena);
  }
}

/* ---- what a target takes into a main op ---- */

static const char stage_text[] = "graph @train stage lowered {\n"
                                 "  %%x = input {name=\"x\"} : f32[4,8]\n"
                                 "  %%w = input {name=\"w\"} : f32[8,8]\n"
                                 "  %%s = input {name=\"s\"} : f32[8]\n"
                                 "  %%a = affine %%x, %%s, %%s : f32[4,8]\n"
                                 "  %%y = relu %%a : f32[4,8]\n"
                                 "  %%c = matmul %%y, %%w : f32[4,8]\n"
                                 "  %%d = add %%c, %%x : f32[4,8]\n"
                                 "  %%m, %%v = bn_stats %%d : f32[8], f32[8]\n"
                                 "  %%z = affine %%d, %%m, %%v : f32[4,8]\n"
                                 "  output %%z {name=\"z\"}\n"
                                 "  output %%%s {name=\"second\"}\n"
                                 "}\n";

/* The kernel numbers of %a %y %c %d %m %z as digits, for a target and a second output. */
static void assert_kernels(const Target *target, const char *second, const char *want) {
  Arena *arena = arena_new();
  Diag diag = {.out = stderr};
  const char *text = arena_printf(arena, stage_text, second);
  Module *module = module_parse(arena, "stage", text, &diag);
  assert_non_null(module);
  plan(module, target, false);
  char got[8] = "";
  for (int i = 0; i < 6; i++) {
    const char name[] = {"aycdmz"[i], 0};
    got[i] = (char)('0' + kernel_of(graph_find(module->graph[0], name)->node));
  }
  assert_string_equal(got, want);
  arena_free(arena);
}

static void test_stage(void **state) {
  (void)state;
  assert_kernels(&targets[0], "z", "001223"); /* loop, product, loop with sums, loop */
  assert_kernels(&targets[1], "z", "012345");
  assert_kernels(&targets[2], "z",
                 "000001"); /* the loop that applies the normalisation waits for the sums */
  assert_kernels(&targets[2], "y", "001112"); /* a prologue that others need stays a loop */
  assert_kernels(&targets[2], "d", "000001"); /* an epilogue's values are stored where needed */
}

/* ---- damage ---- */

/* A result with a place in the arena; NULL if the try found none. */
static Value *random_stored(Planned *p) {
  for (int tries = 0; tries < 100; tries++) {
    Node *node = p->graph->node[random_below(&p->random, (uint32_t)p->graph->n_nodes)];
    if (node->op == OP_VARIABLE || !node->n_results)
      continue;
    int r = (int)random_below(&p->random, (uint32_t)node->n_results);
    if (attr_ints(node, ATTR_AT, node->n_results)[r] >= 0)
      return node->result[r];
  }
  return NULL;
}

static void set_int(Planned *p, const Value *value, AttrKey key, int n, int at, int64_t v) {
  int64_t copy[2 * MAX_RESULTS];
  memcpy(copy, attr_ints(value->node, key, n), (size_t)n * sizeof *copy);
  copy[at] = v;
  attr_set_ints(p->graph, value->node, key, copy, n);
}

static void set_at(Planned *p, const Value *value, int64_t at) {
  set_int(p, value, ATTR_AT, value->node->n_results, value->index, at);
}

static int64_t at_of(const Value *value) {
  return attr_ints(value->node, ATTR_AT, value->node->n_results)[value->index];
}

static const int64_t *live_of(const Value *value) {
  return attr_ints(value->node, ATTR_LIVE, 2 * value->node->n_results) + 2 * value->index;
}

/* Each of these functions damages a plan in one way. Returns whether it found something to
 * damage. */
typedef bool DamageFn(Planned *p);

/* Two values that are alive together in two kernels or more share a byte or all of them. */
static bool damage_overlap(Planned *p) {
  Value *a = random_stored(p), *b = random_stored(p);
  if (!a || !b || a == b)
    return false;
  int64_t first = live_of(a)[0] > live_of(b)[0] ? live_of(a)[0] : live_of(b)[0];
  int64_t last = live_of(a)[1] < live_of(b)[1] ? live_of(a)[1] : live_of(b)[1];
  int64_t at = at_of(a);
  if (type_bytes(a->type) > p->target->align && random_below(&p->random, 2))
    at += p->target->align;
  if (last <= first || at == at_of(b) || at + type_bytes(b->type) > p->graph->arena_bytes)
    return false;
  set_at(p, b, at);
  return true;
}

static bool damage_bounds(Planned *p) {
  Value *value = random_stored(p);
  if (value)
    set_at(p, value, random_below(&p->random, 2) ? p->graph->arena_bytes : INT64_MAX / 64 * 64);
  return value;
}

static bool damage_arena_size(Planned *p) {
  bool any = p->graph->arena_bytes > 0;
  p->graph->arena_bytes -= p->target->align;
  return any;
}

static bool damage_alignment(Planned *p) {
  Value *value = random_stored(p);
  if (value)
    set_at(p, value, at_of(value) + 4);
  return value;
}

static bool damage_live(Planned *p) {
  Value *value = random_stored(p);
  int end = (int)random_below(&p->random, 2);
  if (value)
    set_int(p, value, ATTR_LIVE, 2 * value->node->n_results, 2 * value->index + end,
            live_of(value)[end] + (random_below(&p->random, 2) ? 1 : -1));
  return value;
}

static bool damage_internal(Planned *p) {
  Value *value = random_stored(p);
  if (value)
    set_at(p, value, random_below(&p->random, 2) ? AT_INTERNAL : AT_STATE);
  return value;
}

static bool damage_workspace(Planned *p) {
  for (int i = 0; i < p->graph->n_nodes; i++)
    if (attr_find(p->graph->node[i], ATTR_WORKSPACE)) {
      attr_remove(p->graph->node[i], ATTR_WORKSPACE);
      return true;
    }
  return false;
}

/* A workspace is moved to the place of a result of its own kernel. */
static bool damage_workspace_place(Planned *p) {
  for (int i = 0; i < p->graph->n_nodes; i++) {
    Node *node = p->graph->node[i];
    const int64_t *space = attr_ints(node, ATTR_WORKSPACE, 2);
    if (!space || !node_is_main(node) || at_of(node->result[0]) < 0)
      continue;
    int64_t moved[2] = {at_of(node->result[0]), space[1]};
    attr_set_ints(p->graph, node, ATTR_WORKSPACE, moved, 2);
    return true;
  }
  return false;
}

static bool damage_state(Planned *p) {
  const Value *last = NULL;
  for (int i = 0; i < p->graph->n_nodes; i++)
    if (p->graph->node[i]->op == OP_VARIABLE) {
      const Value *value = p->graph->node[i]->result[0];
      if (last && random_below(&p->random, 2)) {
        set_at(p, value, random_below(&p->random, 2) ? at_of(last) : p->module->state_bytes);
        return true;
      }
      last = value;
    }
  return false;
}

static const struct {
  const char *name;
  DamageFn *damage;
} damages[] = {
    {"overlap", damage_overlap},
    {"out of bounds", damage_bounds},
    {"a smaller arena", damage_arena_size},
    {"misaligned", damage_alignment},
    {"wrong live range", damage_live},
    {"no place", damage_internal},
    {"no workspace", damage_workspace},
    {"workspace on a result", damage_workspace_place},
    {"state", damage_state},
};
enum { N_DAMAGES = (int)(sizeof damages / sizeof damages[0]) };

static void test_rejects(void **state) {
  (void)state;
  int done[N_DAMAGES] = {0};
  for (int seed = 0; seed < N_GRAPHS; seed++)
    for (int d = 0; d < N_DAMAGES; d++) {
      Planned p = planned_new(seed);
      if (damages[d].damage(&p)) {
        done[d]++;
        if (!verdict(&p))
          fail_msg("seed %d: %s was accepted", seed, damages[d].name);
      }
      arena_free(p.arena);
    }
  for (int d = 0; d < N_DAMAGES; d++)
    if (done[d] < N_GRAPHS / 10)
      fail_msg("%s was tried %d times only", damages[d].name, done[d]);
}

/* ---- packing alone ---- */

static void test_pack(void **state) {
  (void)state;
  Random random = {7};
  for (int round = 0; round < 100; round++) {
    Arena *arena = arena_new();
    Block block[60];
    int n = 1 + (int)random_below(&random, 60);
    for (int i = 0; i < n; i++) {
      int first = (int)random_below(&random, 30);
      block[i] = (Block){.bytes = 64 * (1 + random_below(&random, 20)),
                         .first = first,
                         .last = first + (int)random_below(&random, 10)};
    }
    int64_t bytes = pack(arena, block, n);
    assert_true(bytes >= pack_lower_bound(arena, block, n));
    for (int i = 0; i < n; i++) {
      assert_true(block[i].at >= 0 && block[i].at + block[i].bytes <= bytes);
      for (int j = 0; j < i; j++)
        assert_true(block[i].first > block[j].last || block[j].first > block[i].last ||
                    block[i].at >= block[j].at + block[j].bytes ||
                    block[j].at >= block[i].at + block[i].bytes);
    }
    arena_free(arena);
  }
}

/* Lifetimes that are nested like those of forward and backward pass of a network can be packed
 * without gaps. */
static void test_pack_stack(void **state) {
  (void)state;
  Arena *arena = arena_new();
  enum { DEPTH = 40 };
  Block block[DEPTH];
  for (int i = 0; i < DEPTH; i++)
    block[i] = (Block){.bytes = 64 * (1 + i * 7 % 11), .first = i, .last = 2 * DEPTH - i};
  assert_int_equal(pack(arena, block, DEPTH), pack_lower_bound(arena, block, DEPTH));
  assert_int_equal(pack(arena, block, 0), 0);
  arena_free(arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_values), cmocka_unit_test(test_accepts),
      cmocka_unit_test(test_stage),  cmocka_unit_test(test_rejects),
      cmocka_unit_test(test_pack),   cmocka_unit_test(test_pack_stack),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
