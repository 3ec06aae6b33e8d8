#include "ir/kernel.h"

bool node_has_code(const Node *node) {
  GenClass gen = op_info[node->op].gen;
  return (gen != GEN_STATE && gen != GEN_CONST && gen != GEN_VIEW) || node->op == OP_UPDATE;
}

bool node_is_main(const Node *node) {
  GenClass gen = op_info[node->op].gen;
  return gen == GEN_CONV || gen == GEN_MATMUL || gen == GEN_POOL;
}

int kernel_of(const Node *node) {
  return (int)attr_int(node, ATTR_KERNEL, -1);
}

Value *value_storage(Value *value) {
  while (op_info[value->node->op].gen == GEN_VIEW)
    value = value->node->arg[0];
  return value;
}

/* The length of the run of kernel `id` that starts at node[i]; nodes without code between are
 * skipped. */
static int run_length(const Graph *graph, int i, int id, int *past) {
  int count = 0;
  for (; i < graph->n_nodes; i++) {
    const Node *node = graph->node[i];
    if (node_has_code(node) && kernel_of(node) != id)
      break;
    count += node_has_code(node);
  }
  *past = i;
  return count;
}

static Kernel kernel_read(Arena *arena, const Graph *graph, int i, int *past) {
  Kernel kernel = {.id = kernel_of(graph->node[i])};
  int count = run_length(graph, i, kernel.id, past);
  kernel.node = arena_alloc(arena, (size_t)count * sizeof *kernel.node);
  for (; i < *past; i++)
    if (node_has_code(graph->node[i]))
      kernel.node[kernel.n_nodes++] = graph->node[i];
  return kernel;
}

KernelList kernels_of(Arena *arena, const Graph *graph) {
  KernelList list = {0};
  int cap = 0;
  for (int i = 0; i < graph->n_nodes;) {
    if (!node_has_code(graph->node[i])) {
      i++;
      continue;
    }
    int past;
    Kernel kernel = kernel_read(arena, graph, i, &past);
    /* Numbers that only grow leave no kernel the chance to occur twice. */
    CHECK(!list.n || list.kernel[list.n - 1].id < kernel.id, "kernel %d of @%s is out of place",
          kernel.id, graph->name);
    arena_push(arena, list.kernel, list.n, cap, kernel);
    i = past;
  }
  return list;
}

Node *kernel_main(const Kernel *kernel) {
  for (int i = 0; i < kernel->n_nodes; i++)
    if (node_is_main(kernel->node[i]))
      return kernel->node[i];
  return NULL;
}

const char *kernel_layer(const Kernel *kernel) {
  const Node *main = kernel_main(kernel);
  if (main && main->loc.name)
    return main->loc.name;
  for (int i = 0; i < kernel->n_nodes; i++)
    if (kernel->node[i]->loc.name)
      return kernel->node[i]->loc.name;
  return "";
}
