/* Building and changing graphs. A change takes two steps: value_replace only records it, and
 * graph_sweep changes the operands and drops dead nodes, so that walks never see half-edited
 * graphs. */
#include "ir/ir.h"

#include "ir/names.h"
#include "ir/recipe/recipe.h"

#include <string.h>

const DTypeInfo dtype_info[DT_COUNT] = {
#define DTYPE(id, name, bytes, ctype, is_float, low, digits, least, most, safetensors, flag)       \
  [DT_##id] = {name, bytes, #ctype, is_float, low, digits, least, most, safetensors, flag},
#include "ir/dtypes.def"
};

const char *const stage_name[STAGE_COUNT] = {
#define STAGE(id, name) [STAGE_##id] = name,
#include "ir/stages.def"
};

const char *const layout_name[LAYOUT_COUNT] = {
    [LAYOUT_LOGICAL] = "logical", [LAYOUT_NHWC] = "nhwc", [LAYOUT_NCHW] = "nchw"};

int dtype_lookup(const char *name) {
  for (int d = 0; d < DT_COUNT; d++)
    if (strcmp(dtype_info[d].name, name) == 0)
      return d;
  return -1;
}

/* ---- types ---- */

bool type_equal(TensorType a, TensorType b) {
  return a.dtype == b.dtype && a.rank == b.rank &&
         memcmp(a.dim, b.dim, (size_t)a.rank * sizeof a.dim[0]) == 0;
}

TensorType type_scalar(DType dtype) {
  return (TensorType){.dtype = dtype};
}

TensorType type_with(TensorType type, DType dtype) {
  type.dtype = dtype;
  return type;
}

TensorType type_of(DType dtype, int rank, const int64_t *dim) {
  CHECK(rank >= 0 && rank <= MAX_RANK, "rank %d", rank);
  TensorType type = {.dtype = dtype, .rank = rank};
  for (int i = 0; i < rank; i++)
    type.dim[i] = dim[i];
  return type;
}

int64_t type_count(TensorType type) {
  int64_t n = 1;
  for (int i = 0; i < type.rank; i++)
    n *= type.dim[i];
  return n;
}

int64_t type_bytes(TensorType type) {
  return type_count(type) * dtype_info[type.dtype].bytes;
}

/* ---- modules and graphs ---- */

Module *module_new(Arena *arena) {
  Module *module = arena_new_of(arena, Module);
  module->arena = arena;
  module->recipe = recipe_new(arena);
  return module;
}

Graph *module_find(const Module *module, const char *name) {
  for (int i = 0; i < module->n_graphs; i++)
    if (strcmp(module->graph[i]->name, name) == 0)
      return module->graph[i];
  return NULL;
}

void module_leave_out(Module *module, const Graph *graph) {
  int kept = 0;
  for (int i = 0; i < module->n_graphs; i++)
    if (module->graph[i] != graph)
      module->graph[kept++] = module->graph[i];
  module->n_graphs = kept;
}

Graph *module_add_graph(Module *module, const char *name, Stage stage) {
  CHECK(module->n_graphs < MAX_GRAPHS, "more than %d graphs", MAX_GRAPHS);
  CHECK(!module_find(module, name), "two graphs named @%s", name);
  Graph *graph = arena_new_of(module->arena, Graph);
  graph->module = module;
  graph->arena = module->arena;
  graph->name = name;
  graph->stage = stage;
  graph->names = names_new(module->arena);
  module->graph[module->n_graphs++] = graph;
  return graph;
}

Value *graph_find(const Graph *graph, const char *name) {
  return names_get(graph->names, name);
}

const char *graph_fresh_name(Graph *graph, const char *want) {
  return names_fresh(graph->names, want);
}

void graph_rename(Graph *graph, Value *value, const char *name) {
  if (strcmp(value->name, name) == 0)
    return;
  CHECK(!graph_find(graph, name), "%%%s exists", name);
  names_remove(graph->names, value->name);
  value->name = arena_strdup(graph->arena, name, strlen(name));
  names_put(graph->names, value->name, value);
}

/* ---- nodes ---- */

Node *graph_append(Graph *graph, OpKind op, SrcLoc loc, int n_args, Value *const *args) {
  Node *node = arena_new_of(graph->arena, Node);
  node->op = op;
  node->loc = loc;
  node->n_args = n_args;
  node->arg = arena_alloc(graph->arena, (size_t)(n_args + 1) * sizeof *node->arg);
  for (int a = 0; a < n_args; a++)
    node->arg[a] = value_resolve(args[a]);
  node->order = graph->n_nodes;
  arena_push(graph->arena, graph->node, graph->n_nodes, graph->cap_nodes, node);
  return node;
}

static Value *add_result(Graph *graph, Node *node, const char *name) {
  Value *value = arena_new_of(graph->arena, Value);
  value->node = node;
  value->index = node->n_results;
  value->name = graph_fresh_name(graph, name);
  node->result[node->n_results++] = value;
  names_put(graph->names, value->name, value);
  return value;
}

Value *node_finish(Graph *graph, Node *node, const char *name, int n_results,
                   const TensorType *written) {
  CHECK(n_results <= MAX_RESULTS, "%d results", n_results);
  for (int r = 0; r < n_results; r++) {
    const char *own = r ? arena_printf(graph->arena, "%s.%d", name, r) : name;
    Value *value = add_result(graph, node, own);
    if (written)
      value->type = *written;
  }
  TensorType type[MAX_RESULTS];
  const char *why = NULL;
  if (!node_infer(node, type, &why)) {
    node_print(node, stderr);
    BUG("%%%s = %s: %s", name, op_info[node->op].name, why);
  }
  for (int r = 0; r < n_results; r++)
    node->result[r]->type = type[r];
  return n_results ? node->result[0] : NULL;
}

Value *graph_op(Graph *graph, OpKind op, const char *name, SrcLoc loc, int n_args,
                Value *const *args) {
  return node_finish(graph, graph_append(graph, op, loc, n_args, args), name, 1, NULL);
}

Value *graph_cast(Graph *graph, Value *x, DType dtype, const char *name) {
  TensorType type = type_with(value_resolve(x)->type, dtype);
  return node_finish(graph, graph_append(graph, OP_CAST, x->node->loc, 1, &x), name, 1, &type);
}

Value *graph_const(Graph *graph, TensorType type, double value, const char *name, SrcLoc loc) {
  Node *node = graph_append(graph, OP_CONST, loc, 0, NULL);
  attr_set_float(graph, node, ATTR_VALUE, value);
  return node_finish(graph, node, name, 1, &type);
}

void graph_move_tail(Graph *graph, int count, int before) {
  int from = graph->n_nodes - count;
  CHECK(count >= 0 && before >= 0 && before <= from, "moving %d nodes to %d", count, before);
  Node **moved = arena_alloc(graph->arena, (size_t)(count + 1) * sizeof *moved);
  memcpy(moved, graph->node + from, (size_t)count * sizeof *moved);
  memmove(graph->node + before + count, graph->node + before,
          (size_t)(from - before) * sizeof *moved);
  memcpy(graph->node + before, moved, (size_t)count * sizeof *moved);
}

void graph_drop_node(Graph *graph, Node *node) {
  int kept = 0;
  for (int r = 0; r < node->n_results; r++)
    names_remove(graph->names, node->result[r]->name);
  for (int i = 0; i < graph->n_nodes; i++)
    if (graph->node[i] != node)
      graph->node[kept++] = graph->node[i];
  graph->n_nodes = kept;
}

static void renumber(Graph *graph) {
  for (int i = 0; i < graph->n_nodes; i++)
    graph->node[i]->order = i;
}

bool graph_has(const Graph *graph, const Node *node) {
  return node->order < graph->n_nodes && graph->node[node->order] == node;
}

/* A depth-first walk, operands first, from each node in the present order, which makes the result
 * stable. The stack is explicit, since graphs may be deep. */
void graph_sort(Graph *graph) {
  enum { UNSEEN, ON_STACK, DONE };
  Arena *scratch = arena_new();
  int n = graph->n_nodes, done = 0, top = 0;
  Node **sorted = arena_alloc(scratch, (size_t)(n + 1) * sizeof *sorted);
  unsigned char *state = arena_alloc(scratch, (size_t)n + 1);
  struct {
    Node *node;
    int arg;
  } *stack = arena_alloc(scratch, (size_t)(n + 1) * sizeof *stack);
  renumber(graph);
  for (int i = 0; i < n; i++) {
    if (state[i] != UNSEEN)
      continue;
    state[i] = ON_STACK;
    stack[top].node = graph->node[i];
    stack[top++].arg = 0;
    while (top) {
      Node *node = stack[top - 1].node;
      if (stack[top - 1].arg == node->n_args) {
        state[node->order] = DONE;
        sorted[done++] = node;
        top--;
        continue;
      }
      Node *def = value_resolve(node->arg[stack[top - 1].arg++])->node;
      CHECK(graph_has(graph, def), "an operand is not in the graph");
      CHECK(state[def->order] != ON_STACK, "cycle through %s", op_info[def->op].name);
      if (state[def->order] == UNSEEN) {
        state[def->order] = ON_STACK;
        stack[top].node = def;
        stack[top++].arg = 0;
      }
    }
  }
  memcpy(graph->node, sorted, (size_t)n * sizeof *sorted);
  renumber(graph);
  arena_free(scratch);
}

/* ---- replacing ---- */

Value *value_resolve(Value *value) {
  while (value->forward)
    value = value->forward;
  return value;
}

void value_replace(Value *old, Value *with) {
  with = value_resolve(with);
  CHECK(old != with, "replacing %%%s by itself", old->name);
  CHECK(type_equal(old->type, with->type), "replacing %%%s by %%%s changes its type", old->name,
        with->name);
  old->forward = with;
}

void graph_index_uses(Graph *graph) {
  int n = 0, begin = 0;
  renumber(graph);
  for (int i = 0; i < graph->n_nodes; i++)
    for (int r = 0; r < graph->node[i]->n_results; r++)
      graph->node[i]->result[r]->n_uses = 0;
  for (int i = 0; i < graph->n_nodes; i++)
    for (int a = 0; a < graph->node[i]->n_args; a++, n++) {
      Value **arg = &graph->node[i]->arg[a];
      *arg = value_resolve(*arg);
      CHECK(graph_has(graph, (*arg)->node), "operand %%%s is not in the graph", (*arg)->name);
      (*arg)->n_uses++;
    }
  if (n > graph->cap_uses) {
    graph->cap_uses = 2 * n;
    graph->use = arena_alloc(graph->arena, (size_t)graph->cap_uses * sizeof *graph->use);
  }
  for (int i = 0; i < graph->n_nodes; i++)
    for (int r = 0; r < graph->node[i]->n_results; r++) {
      Value *value = graph->node[i]->result[r];
      value->use = &graph->use[begin];
      begin += value->n_uses;
      value->n_uses = 0;
    }
  for (int i = 0; i < graph->n_nodes; i++)
    for (int a = 0; a < graph->node[i]->n_args; a++) {
      Value *value = graph->node[i]->arg[a];
      graph->use[value->use - graph->use + value->n_uses++] = (Use){graph->node[i], a};
    }
}

void graph_sweep(Graph *graph) {
  Arena *scratch = arena_new();
  bool *live = arena_alloc(scratch, (size_t)graph->n_nodes + 1);
  renumber(graph);
  for (int i = graph->n_nodes - 1; i >= 0; i--) { /* readers before what they read */
    Node *node = graph->node[i];
    live[i] |=
        op_info[node->op].flags & OPF_EFFECT || node->op == OP_INPUT || node->op == OP_VARIABLE;
    for (int a = 0; live[i] && a < node->n_args; a++) {
      const Node *def = value_resolve(node->arg[a])->node;
      CHECK(graph_has(graph, def), "operand %%%s is not in the graph", node->arg[a]->name);
      live[def->order] = true;
    }
  }
  int kept = 0;
  for (int i = 0; i < graph->n_nodes; i++) {
    Node *node = graph->node[i];
    if (live[i])
      graph->node[kept++] = node;
    else
      for (int r = 0; r < node->n_results; r++)
        names_remove(graph->names, node->result[r]->name);
  }
  graph->n_nodes = kept;
  arena_free(scratch);
  graph_index_uses(graph);
}

Graph *graph_clone(Module *into, const Graph *graph, const char *name) {
  Graph *clone = module_add_graph(into, name, graph->stage);
  clone->arena_bytes = graph->arena_bytes;
  for (int i = 0; i < graph->n_nodes; i++) {
    const Node *from = graph->node[i];
    Node *to = graph_append(clone, from->op, from->loc, 0, NULL);
    to->n_args = from->n_args;
    to->arg = arena_alloc(clone->arena, (size_t)(from->n_args + 1) * sizeof *to->arg);
    for (int a = 0; a < from->n_args; a++)
      to->arg[a] = graph_find(clone, value_resolve(from->arg[a])->name);
    for (int k = 0; k < from->n_attrs; k++)
      attr_set(clone, to, from->attr[k]);
    for (int r = 0; r < from->n_results; r++) {
      Value *value = add_result(clone, to, from->result[r]->name);
      value->type = from->result[r]->type;
      value->layout = from->result[r]->layout;
    }
  }
  graph_index_uses(clone);
  return clone;
}
