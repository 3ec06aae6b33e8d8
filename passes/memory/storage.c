#include "passes/memory/storage.h"

#include "passes/kernels/fuse.h"

int64_t round_up(int64_t bytes, int64_t align) {
  return (bytes + align - 1) / align * align;
}

static int slot(const Value *value) {
  return value->node->order * MAX_RESULTS + value->index;
}

int storage_index(const Storages *storages, const Value *value) {
  return storages->index_of[slot(value_storage((Value *)value))];
}

/* Flags of a value. */
enum {
  READ_OUTSIDE = 1,    /* something outside its kernel reads it */
  READ_BY_PROGRAM = 2, /* it is an output                       */
};

static void flag_readers(const Graph *graph, const int *kernel, unsigned char *flags) {
  for (int i = 0; i < graph->n_nodes; i++) {
    const Node *node = graph->node[i];
    bool view = op_info[node->op].gen == GEN_VIEW;
    for (int a = node->op == OP_UPDATE; a < node->n_args; a++) {
      const Value *value = value_storage(node->arg[a]);
      if (node->op == OP_OUTPUT)
        flags[slot(value)] |= READ_OUTSIDE | READ_BY_PROGRAM;
      else if (view || kernel[i] != kernel[value->node->order])
        flags[slot(value)] |= READ_OUTSIDE;
    }
  }
}

static bool has(const IntList *list, int v) {
  for (int i = 0; i < list->n; i++)
    if (list->v[i] == v)
      return true;
  return false;
}

static void list_kernels(Arena *arena, Storages *s) {
  for (int k = 0; k < s->kernels.n; k++)
    for (int i = 0; i < s->kernels.kernel[k].n_nodes; i++) {
      const Node *node = s->kernels.kernel[k].node[i];
      for (int a = node->op == OP_UPDATE; a < node->n_args; a++) {
        int index = storage_index(s, node->arg[a]);
        if (index < 0 || s->storage[index].maker == k || has(&s->reads[k], index))
          continue;
        arena_push(arena, s->reads[k].v, s->reads[k].n, s->reads[k].cap, index);
        s->storage[index].n_readers++;
      }
    }
}

Storages *storages_new(Arena *arena, Graph *graph) {
  Storages *s = arena_new_of(arena, Storages);
  size_t n = (size_t)graph->n_nodes * MAX_RESULTS + 1;
  unsigned char *flags = arena_alloc(arena, n);
  int *index_of = arena_alloc(arena, n * sizeof *index_of), cap = 0;
  s->kernels = kernels_of(arena, graph);
  s->makes = arena_alloc(arena, (size_t)(s->kernels.n + 1) * sizeof *s->makes);
  s->reads = arena_alloc(arena, (size_t)(s->kernels.n + 1) * sizeof *s->reads);
  s->index_of = index_of;
  s->kernel = arena_alloc(arena, (size_t)(graph->n_nodes + 1) * sizeof *s->kernel);
  for (int i = 0; i < graph->n_nodes; i++)
    s->kernel[i] = -1;
  for (int k = 0; k < s->kernels.n; k++)
    for (int i = 0; i < s->kernels.kernel[k].n_nodes; i++)
      s->kernel[s->kernels.kernel[k].node[i]->order] = k;
  flag_readers(graph, s->kernel, flags);
  for (int i = 0; i < graph->n_nodes; i++)
    for (int r = 0; r < graph->node[i]->n_results; r++) {
      const Node *node = graph->node[i];
      Value *value = node->result[r];
      unsigned f = flags[slot(value)];
      bool unread_main = node_is_main(node) && !value->n_uses; /* the library writes it anyway */
      index_of[slot(value)] = -1;
      if (node->op != OP_INPUT && !(node_has_code(node) && (f & READ_OUTSIDE || unread_main)))
        continue;
      int maker = s->kernel[i];
      if (maker >= 0)
        arena_push(arena, s->makes[maker].v, s->makes[maker].n, s->makes[maker].cap, s->n);
      index_of[slot(value)] = s->n;
      Storage storage = {value, type_bytes(value->type), maker, f & READ_BY_PROGRAM, 0};
      arena_push(arena, s->storage, s->n, cap, storage);
    }
  list_kernels(arena, s);
  return s;
}

/* Does the kernel read each element of the value only to compute the same element of its results?
 */
static bool read_pointwise(const Kernel *kernel, const Value *value) {
  for (int i = 0; i < kernel->n_nodes; i++) {
    const Node *node = kernel->node[i];
    for (int k = node->op == OP_UPDATE; k < node->n_args; k++) {
      GenClass gen = op_info[node->op].gen;
      if (value_storage(node->arg[k]) != value)
        continue;
      if (node->arg[k] != value || (gen != GEN_POINT && gen != GEN_CHANNEL) ||
          !arg_is_elementwise(node, k))
        return false;
    }
  }
  return true;
}

bool storage_may_replace(const Target *target, const Kernel *kernel, const Storage *made,
                         const Storage *old) {
  TensorType to = made->value->type, from = old->value->type;
  return (!kernel_main(kernel) || target->takes_loop) &&
         op_info[made->value->node->op].gen == GEN_POINT && !old->output &&
         old->bytes == made->bytes && dtype_info[from.dtype].bytes == dtype_info[to.dtype].bytes &&
         read_pointwise(kernel, old->value);
}
