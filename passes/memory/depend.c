#include "passes/memory/depend.h"

#include <string.h>

/* Linked lists of node indices, one per key: the readers of a variable, or the nodes that follow a
 * node. */
typedef struct Chains {
  int *head, *next, *item, n, cap, cap_item;
  Arena *arena;
} Chains;

static Chains chains_new(Arena *arena, int keys) {
  Chains chains = {.arena = arena};
  chains.head = arena_alloc(arena, (size_t)(keys + 1) * sizeof *chains.head);
  for (int i = 0; i < keys; i++)
    chains.head[i] = -1;
  return chains;
}

static void chains_add(Chains *chains, int key, int item) {
  int n = chains->n; /* both arrays grow alike */
  arena_push(chains->arena, chains->next, chains->n, chains->cap, chains->head[key]);
  chains->n = n;
  arena_push(chains->arena, chains->item, chains->n, chains->cap_item, item);
  chains->head[key] = n;
}

/* The last position in the graph that an update must wait for: its operands and the other readers
 * of the variable. */
static int update_after(const Graph *graph, const Node *update, const Chains *readers) {
  int last = 0;
  for (int a = 1; a < update->n_args; a++) {
    int def = value_storage(update->arg[a])->node->order;
    last = def > last ? def : last;
  }
  for (int c = readers->head[update->arg[0]->node->order]; c >= 0; c = readers->next[c])
    if (graph->node[readers->item[c]]->op != OP_UPDATE && readers->item[c] > last)
      last = readers->item[c];
  return last;
}

const Value *affine_bias(const Node *node) {
  const Node *fold = node->op == OP_AFFINE ? node->arg[1]->node : NULL;
  bool is_fold = fold && fold->op == OP_BN_FOLD && node->arg[1] == fold->result[0] &&
                 node->arg[2] == fold->result[1];
  return is_fold ? fold->arg[1] : NULL;
}

static void add_reader(Chains *readers, const Value *read, int reader) {
  const Node *def = value_storage((Value *)read)->node;
  if (def->op == OP_VARIABLE)
    chains_add(readers, def->order, reader);
}

/* For each variable the nodes with code that read it. An update does not read the variable that it
 * sets. */
static Chains variable_readers(Arena *arena, const Graph *graph) {
  Chains readers = chains_new(arena, graph->n_nodes);
  for (int i = 0; i < graph->n_nodes; i++) {
    const Node *node = graph->node[i];
    for (int a = node->op == OP_UPDATE; node_has_code(node) && a < node->n_args; a++)
      add_reader(&readers, node->arg[a], i);
    if (affine_bias(node))
      add_reader(&readers, affine_bias(node), i);
  }
  return readers;
}

static void place(Depend *depend, Node *node) {
  depend->index[node->order] = depend->n;
  depend->node[depend->n++] = node;
}

/* Keeps the order of the graph, but places each update right behind the last node it waits for. */
static void order_nodes(Arena *arena, Depend *depend, const Graph *graph, const Chains *readers) {
  Chains behind = chains_new(arena, graph->n_nodes);
  for (int i = graph->n_nodes - 1; i >= 0; i--)
    if (graph->node[i]->op == OP_UPDATE)
      chains_add(&behind, update_after(graph, graph->node[i], readers), i);
  for (int i = 0; i < graph->n_nodes; i++) {
    Node *node = graph->node[i];
    if (node->op != OP_UPDATE && node_has_code(node))
      place(depend, node);
    for (int c = behind.head[i]; c >= 0; c = behind.next[c])
      place(depend, graph->node[behind.item[c]]);
  }
}

/* edges_walk runs twice: first to count the edges of each source, then to write them. */
typedef struct Edges {
  int *count; /* per source: the edges counted; in the second walk, its next free place in succ */
  int *succ;  /* NULL while counting */
} Edges;

static void edge(Edges *edges, int from, int to) {
  if (edges->succ)
    edges->succ[edges->count[from]] = to;
  edges->count[from]++;
}

static void edges_walk(const Depend *depend, const Graph *graph, const Chains *readers,
                       Edges *edges) {
  for (int i = 0; i < depend->n; i++) {
    const Node *node = depend->node[i];
    for (int a = node->op == OP_UPDATE; a < node->n_args; a++) {
      int def = depend->index[value_storage(node->arg[a])->node->order];
      if (def >= 0)
        edge(edges, def, i);
    }
    if (node->op != OP_UPDATE)
      continue;
    for (int c = readers->head[node->arg[0]->node->order]; c >= 0; c = readers->next[c])
      if (graph->node[readers->item[c]] != node)
        edge(edges, depend->index[readers->item[c]], i);
  }
}

Depend *depend_new(Arena *arena, const Graph *graph) {
  Depend *depend = arena_new_of(arena, Depend);
  size_t n = (size_t)graph->n_nodes + 1;
  depend->node = arena_alloc(arena, n * sizeof *depend->node);
  depend->succ_begin = arena_alloc(arena, (n + 1) * sizeof *depend->succ_begin);
  depend->index = arena_alloc(arena, n * sizeof *depend->index);
  for (int i = 0; i < graph->n_nodes; i++)
    depend->index[i] = -1;
  Chains readers = variable_readers(arena, graph);
  order_nodes(arena, depend, graph, &readers);
  Edges edges = {.count = arena_alloc(arena, n * sizeof(int))};
  edges_walk(depend, graph, &readers, &edges);
  for (int i = 0; i < depend->n; i++) {
    depend->succ_begin[i + 1] = depend->succ_begin[i] + edges.count[i];
    edges.count[i] = depend->succ_begin[i];
  }
  edges.succ = arena_alloc(arena, ((size_t)depend->succ_begin[depend->n] + 1) * sizeof(int));
  edges_walk(depend, graph, &readers, &edges);
  depend->succ = edges.succ;
  return depend;
}

/* ---- the graph in kernel order ---- */

/* Where a node without code goes: 0 is in front of all kernels, k + 1 right behind kernel k, n + 1
 * at the end. */
static int bucket_of(const Node *node, int n) {
  if (node->op == OP_OUTPUT)
    return n + 1;
  const Node *def = op_info[node->op].gen == GEN_VIEW ? value_storage(node->result[0])->node : node;
  return node_has_code(def) ? kernel_of(def) + 1 : 0;
}

void graph_order_kernels(Arena *arena, Graph *graph, const Kernel *kernel, int n) {
  for (int k = 0; k < n; k++)
    for (int i = 0; i < kernel[k].n_nodes; i++)
      attr_set_int(graph, kernel[k].node[i], ATTR_KERNEL, k);
  Chains rest = chains_new(arena, n + 2);
  for (int i = graph->n_nodes - 1; i >= 0; i--)
    if (!node_has_code(graph->node[i]))
      chains_add(&rest, bucket_of(graph->node[i], n), i);
  Node **sorted = arena_alloc(arena, ((size_t)graph->n_nodes + 1) * sizeof *sorted);
  int done = 0;
  for (int k = -1; k <= n; k++) {
    for (int i = 0; k >= 0 && k < n && i < kernel[k].n_nodes; i++)
      sorted[done++] = kernel[k].node[i];
    for (int c = rest.head[k + 1]; c >= 0; c = rest.next[c])
      sorted[done++] = graph->node[rest.item[c]];
  }
  CHECK(done == graph->n_nodes, "%d of %d nodes are in kernels", done, graph->n_nodes);
  memcpy(graph->node, sorted, (size_t)done * sizeof *sorted);
  for (int i = 0; i < done; i++)
    graph->node[i]->order = i;
}
