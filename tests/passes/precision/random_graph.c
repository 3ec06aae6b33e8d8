#include "tests/passes/precision/random_graph.h"

#include "tests/value_pool.h"

#include <math.h>

/* ROWS: 4 rows of 8; IMAGE: as many elements */
enum { ROWS, IMAGE, VECTOR, SQUARE, FILTER, EACH, SCALAR, LABEL, FLAG, N_SHAPES };

static const TensorType shapes[N_SHAPES] = {
    [ROWS] = {DT_F32, 2, {4, 8}},         [IMAGE] = {DT_F32, 4, {1, 4, 4, 2}},
    [VECTOR] = {DT_F32, 1, {8}},          [SQUARE] = {DT_F32, 2, {8, 8}},
    [FILTER] = {DT_F32, 4, {2, 3, 3, 2}}, [EACH] = {DT_F32, 1, {4}},
    [SCALAR] = {DT_F32, 0, {0}},          [LABEL] = {DT_I32, 1, {4}},
    [FLAG] = {DT_BOOL, 0, {0}},
};

typedef struct Builder {
  Graph *graph;
  DType low;
  ValuePool pool;
} Builder;

/* Adds an op whose operands have the shapes `args`; `shape` and `axis` are its attributes of these
 * names. */
typedef struct Form {
  OpKind op;
  int n_args, args[5], result, n_results;
  int axes[3], n_axes;
} Form;

static const Form forms[] = {
    {OP_MATMUL, 2, {ROWS, SQUARE}, ROWS, 1, {0}, 0},
    {OP_MATMUL, 2, {ROWS, SQUARE}, ROWS, 1, {0}, 0},
    {OP_MATMUL, 2, {SQUARE, SQUARE}, SQUARE, 1, {0}, 0},
    {OP_MATMUL, 2, {ROWS, SQUARE}, ROWS, 1, {0}, 0},
    {OP_CONV2D, 2, {IMAGE, FILTER}, IMAGE, 1, {0}, 0},
    {OP_CONV2D, 2, {IMAGE, FILTER}, IMAGE, 1, {0}, 0},
    {OP_ADD, 2, {ROWS, ROWS}, ROWS, 1, {0}, 0},
    {OP_ADD, 2, {IMAGE, IMAGE}, IMAGE, 1, {0}, 0},
    {OP_ADD, 2, {SQUARE, SQUARE}, SQUARE, 1, {0}, 0},
    {OP_SUB, 2, {ROWS, ROWS}, ROWS, 1, {0}, 0},
    {OP_MUL, 2, {ROWS, SCALAR}, ROWS, 1, {0}, 0},
    {OP_MUL, 2, {IMAGE, IMAGE}, IMAGE, 1, {0}, 0},
    {OP_NEG, 1, {ROWS}, ROWS, 1, {0}, 0},
    {OP_TANH, 1, {ROWS}, ROWS, 1, {0}, 0},
    {OP_SIGMOID, 1, {IMAGE}, IMAGE, 1, {0}, 0},
    {OP_BIAS_ADD, 2, {ROWS, VECTOR}, ROWS, 1, {0}, 0},
    {OP_BIAS_GRAD, 1, {ROWS}, VECTOR, 1, {0}, 0},
    {OP_SOFTMAX, 1, {ROWS}, ROWS, 1, {0}, 0},
    {OP_BATCH_NORM, 5, {ROWS, VECTOR, VECTOR, VECTOR, VECTOR}, ROWS, 3, {0}, 0},
    {OP_RELU, 1, {ROWS}, ROWS, 1, {0}, 0},
    {OP_RELU, 1, {IMAGE}, IMAGE, 1, {0}, 0},
    {OP_RELU_GRAD, 2, {ROWS, ROWS}, ROWS, 1, {0}, 0},
    {OP_SELECT, 3, {FLAG, ROWS, ROWS}, ROWS, 1, {0}, 0},
    {OP_MAX_POOL, 1, {IMAGE}, IMAGE, 2, {0}, 0},
    {OP_RESHAPE, 1, {ROWS}, IMAGE, 1, {0}, 0},
    {OP_RESHAPE, 1, {IMAGE}, ROWS, 1, {0}, 0},
    {OP_BROADCAST, 1, {VECTOR}, ROWS, 1, {0}, 1},
    {OP_REVERSE, 1, {ROWS}, ROWS, 1, {0}, 1},
    {OP_EXP, 1, {ROWS}, ROWS, 1, {0}, 0},
    {OP_REDUCE_SUM, 1, {ROWS}, VECTOR, 1, {0}, 1},
    {OP_REDUCE_MEAN, 1, {IMAGE}, SCALAR, 1, {0}, 4},
    {OP_REDUCE_MEAN, 1, {ROWS}, EACH, 1, {1}, 1},
    {OP_SOFTMAX_XENT, 2, {ROWS, LABEL}, EACH, 1, {0}, 0},
    {OP_SOFTMAX_XENT_GRAD, 3, {ROWS, LABEL, EACH}, ROWS, 1, {0}, 0},
    {OP_SIGMOID_XENT, 2, {ROWS, LABEL}, EACH, 1, {0}, 0},
    {OP_SIGMOID_XENT_GRAD, 3, {ROWS, LABEL, EACH}, ROWS, 1, {0}, 0},
    {OP_SQUARED_ERROR, 2, {ROWS, LABEL}, EACH, 1, {0}, 0},
    {OP_SQUARED_ERROR_GRAD, 3, {ROWS, LABEL, EACH}, ROWS, 1, {0}, 0},
};
enum { N_FORMS = (int)(sizeof forms / sizeof forms[0]) };

static void set_attrs(Builder *b, const Form *form, Node *node) {
  static const int64_t one[] = {1, 1}, three[] = {3, 3}, pad[] = {1, 1, 1, 1};
  uint64_t legal = op_info[form->op].attrs;
  int64_t axes[4];
  for (int i = 0; i < form->n_axes; i++)
    axes[i] = form->axes[0] + i;
  if (form->n_axes)
    attr_set_ints(b->graph, node, ATTR_AXES, axes, form->n_axes);
  if (legal >> ATTR_SHAPE & 1)
    attr_set_ints(b->graph, node, ATTR_SHAPE, shapes[form->result].dim, shapes[form->result].rank);
  if (legal >> ATTR_STRIDE & 1)
    attr_set_ints(b->graph, node, ATTR_STRIDE, one, 2);
  if (legal >> ATTR_PAD & 1)
    attr_set_ints(b->graph, node, ATTR_PAD, pad, 4);
  if (legal >> ATTR_WINDOW & 1)
    attr_set_ints(b->graph, node, ATTR_WINDOW, three, 2);
  for (int key = 0; key < ATTR_END; key++)
    if (legal >> key & 1 && attr_info[key].kind == ATTR_FLOAT)
      attr_set_float(b->graph, node, (AttrKey)key, 0.125);
}

static void add_by_form(Builder *b, const Form *form) {
  Value *args[5];
  for (int a = 0; a < form->n_args; a++)
    args[a] = pool_any(&b->pool, form->args[a]);
  Node *node = graph_append(b->graph, form->op, (SrcLoc){0}, form->n_args, args);
  set_attrs(b, form, node);
  node_finish(b->graph, node, "v", form->n_results, NULL);
  pool_keep(&b->pool, form->result, node->result[0]);
  if (form->op == OP_BATCH_NORM)
    pool_keep(&b->pool, VECTOR, node->result[1]);
}

/* Adds a cast, as models have them, or a constant. */
static void add_cast_or_const(Builder *b) {
  int shape = random_below(b->pool.random, 2) ? ROWS : IMAGE;
  if (random_below(b->pool.random, 2)) {
    Value *low = graph_cast(b->graph, pool_any(&b->pool, shape), b->low, "low");
    if (random_below(b->pool.random, 3) == 0)
      low = graph_cast(b->graph, low, b->low == DT_F16 ? DT_BF16 : DT_F16, "other");
    pool_keep(&b->pool, shape, graph_cast(b->graph, low, DT_F32, "wide"));
  } else {
    double x = 0.1 * (1 + random_below(b->pool.random, 9));
    pool_keep(&b->pool, SCALAR, graph_const(b->graph, shapes[SCALAR], x, "c", (SrcLoc){0}));
  }
}

static void add_sources(Builder *b) {
  for (int shape = 0; shape < N_SHAPES; shape++)
    for (int i = 0; i < 3; i++) {
      bool input = i == 0 || shape == LABEL || shape == FLAG;
      const char *name = arena_printf(b->graph->arena, "%c%d%d", input ? 'x' : 'w', shape, i);
      pool_keep(&b->pool, shape, source_add(b->graph, input, name, shapes[shape]));
    }
}

static void add_outputs(Graph *graph) {
  int n = graph->n_nodes;
  graph_index_uses(graph);
  for (int i = 0; i < n; i++) {
    Node *node = graph->node[i];
    if (node->op == OP_INPUT || node->op == OP_VARIABLE || node->result[0]->n_uses)
      continue;
    Node *output = graph_append(graph, OP_OUTPUT, (SrcLoc){0}, 1, node->result);
    attr_set_str(graph, output, ATTR_NAME, node->result[0]->name);
    node_finish(graph, output, "", 0, NULL);
  }
}

Module *random_module(Arena *arena, Random *random, int n_ops, DType low) {
  Module *module = module_new(arena);
  Builder b = {.graph = module_add_graph(module, "train", STAGE_TRAIN),
               .pool = {.random = random, .recent = 3, .chance = 3},
               .low = low};
  add_sources(&b);
  for (int i = 0; i < n_ops; i++)
    if (random_below(random, 12) == 0)
      add_cast_or_const(&b);
    else
      add_by_form(&b, &forms[random_below(random, N_FORMS)]);
  add_outputs(b.graph);
  graph_sweep(b.graph);
  return module;
}

EvalEnv *random_env(Arena *arena, const Graph *graph, Random *random) {
  EvalEnv *env = eval_env_new(arena);
  for (int i = 0; i < graph->n_nodes; i++) {
    const Node *node = graph->node[i];
    if (node->op != OP_INPUT && node->op != OP_VARIABLE)
      continue;
    EvalTensor *t = eval_env_set(env, node->result[0]->name, node->result[0]->type);
    bool is_float = dtype_info[t->type.dtype].is_float, is_bool = t->type.dtype == DT_BOOL;
    for (int64_t k = 0; k < type_count(t->type); k++)
      t->v[k] = is_bool    ? random_below(random, 2)
                : is_float ? eval_round((double)random_below(random, 4001) / 4000 - 0.5, DT_F32)
                           : random_below(random, 8);
  }
  return env;
}
