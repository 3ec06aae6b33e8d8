/* loss_scale_update against TensorFlow's own test vectors (specs/amp-rewrite.md 4.3): which steps
 * are finite, and the scale after each. Run by the evaluator, which judges the code (cpu.c). */
#include "tests/eval_env.h"

#define MAX_F32 0x1.fffffep127

typedef struct Vector {
  const char *steps; /* T: the gradients are finite; F: they are not */
  int period;
  double initial, factor, scale[16];
} Vector;

static const Vector vectors[] = {
    {"TTTTTT", 2, 1, 2, {1, 2, 2, 4, 4, 8}},
    {"TTTTTT",
     2,
     MAX_F32 / 4,
     2,
     {MAX_F32 / 4, MAX_F32 / 2, MAX_F32 / 2, MAX_F32, MAX_F32, MAX_F32}},
    {"FFFFFF", 2, 1024, 2, {512, 256, 128, 64, 32, 16}},
    {"FFFFFF", 2, 16, 2, {8, 4, 2, 1, 1, 1}},
    {"TTTFT", 2, 1, 2, {1, 2, 2, 1, 1}},
    {"TTTFTT", 1, 1, 2, {2, 4, 8, 4, 8, 16}},
    {"TFTFTFTFT", 1, 1, 2, {2, 1, 2, 1, 2, 1, 2, 1, 2}},
    {"TFTFTFT", 2, 32, 2, {32, 16, 16, 8, 8, 4, 4}},
    {"TTFTT", 2, 4, 3, {4, 12, 4, 4, 12}},
    {"FTTTFTFTTTF", 2, 4, 2, {2, 2, 4, 4, 2, 2, 1, 1, 2, 2, 1}},
};

static const Graph *build(Arena *arena, const Vector *v) {
  const char *text = arena_printf(
      arena,
      "graph @train stage train {\n"
      "  %%scale = variable {kind=\"scale\", init=\"ones\"} : f32[]\n"
      "  %%good = variable {kind=\"scale\", init=\"zeros\"} : i32[]\n"
      "  %%finite = input {name=\"finite\"} : bool[]\n"
      "  %%s, %%g = loss_scale_update %%scale, %%good, %%finite {growth=%.17g, backoff=%.17g, "
      "interval=%d, min=1.0, max=inf} : f32[], i32[]\n"
      "  update %%scale, %%s\n"
      "  update %%good, %%g\n}\n",
      v->factor, 1 / v->factor, v->period);
  Diag diag = {.out = stderr, .source = text};
  Module *module = module_parse(arena, "loss_scale", text, &diag);
  CHECK(module, "the test's own text");
  return module->graph[0];
}

static int check(const Vector *v) {
  Arena *arena = arena_new();
  const Graph *graph = build(arena, v);
  EvalEnv *env = eval_env_new(arena);
  int failed = 0;
  eval_env_set(env, "finite", type_scalar(DT_BOOL));
  eval_env_set(env, "good", type_scalar(DT_I32));
  eval_env_set(env, "scale", type_scalar(DT_F32))->v[0] = v->initial;
  for (int i = 0; v->steps[i]; i++) {
    eval_env_get(env, "finite")->v[0] = v->steps[i] == 'T';
    eval_graph(graph, env, EVAL_TYPED, NULL);
    double got = eval_env_get(env, "scale")->v[0];
    if (got == v->scale[i])
      continue;
    printf("FAIL %s from %g: %g after step %d, not %g\n", v->steps, v->initial, got, i + 1,
           v->scale[i]);
    failed++;
  }
  arena_free(arena);
  return failed;
}

int main(void) {
  int failed = 0;
  for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
    failed += check(&vectors[i]);
  printf("%d failures\n", failed);
  return failed != 0;
}
