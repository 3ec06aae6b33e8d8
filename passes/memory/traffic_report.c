#include "passes/memory/traffic_report.h"

#include "ir/kernel.h"
#include "ir/recipe/recipe.h"

#include <inttypes.h>

typedef enum Group {
  GROUP_FORWARD,
  GROUP_DGRAD,
  GROUP_WGRAD,
  GROUP_MATMUL,
  GROUP_POOL,
  GROUP_LOOP_FORWARD,
  GROUP_LOOP_BACKWARD,
  GROUP_LOOP_AGAIN,
  GROUP_OPTIMIZER,
  N_GROUPS
} Group;

static const char *const group_name[] = {"convolution",
                                         "convolution, data gradient",
                                         "convolution, filter gradient",
                                         "matrix products",
                                         "pooling",
                                         "loops, forward",
                                         "loops, backward",
                                         "loops, computed again",
                                         "optimizer and loss scale"};

/* The kernels that begin the backward pass (the gradient of the loss) and the optimizer. */
typedef struct Places {
  int backward, optimizer;
} Places;

static Places find_places(const KernelList *kernels) {
  Places at = {kernels->n, kernels->n};
  for (int k = kernels->n - 1; k >= 0; k--)
    for (int i = 0; i < kernels->kernel[k].n_nodes; i++) {
      OpKind op = kernels->kernel[k].node[i]->op;
      if (op == OP_SOFTMAX_XENT_GRAD || op == OP_SIGMOID_XENT_GRAD || op == OP_SQUARED_ERROR_GRAD ||
          op == OP_SOFTMAX_GRAD)
        at.backward = k;
      if (op == OP_ALL_FINITE || op == OP_CLIP_NORM)
        at.optimizer = k;
    }
  return at;
}

static Group group_of(const Kernel *kernel, int k, const Places *at) {
  const Node *main = kernel_main(kernel);
  if (main && op_info[main->op].gen == GEN_POOL)
    return GROUP_POOL;
  if (main)
    return main->op == OP_CONV2D         ? GROUP_FORWARD
           : main->op == OP_CONV2D_DGRAD ? GROUP_DGRAD
           : main->op == OP_CONV2D_WGRAD ? GROUP_WGRAD
                                         : GROUP_MATMUL;
  if (attr_int(kernel->node[0], ATTR_AGAIN, 0))
    return GROUP_LOOP_AGAIN;
  if (op_info[kernel->node[0]->op].gen == GEN_OPT || k >= at->optimizer)
    return GROUP_OPTIMIZER;
  return k < at->backward ? GROUP_LOOP_FORWARD : GROUP_LOOP_BACKWARD;
}

static bool is_inside(const Kernel *kernel, const Node *node) {
  for (int i = 0; i < kernel->n_nodes; i++)
    if (kernel->node[i] == node)
      return true;
  return false;
}

/* Does the kernel read `value` anywhere before operand `k` of its node `n`? */
static bool is_known(const Kernel *kernel, const Value *value, int n, int k) {
  for (int i = 0; i <= n; i++)
    for (int a = 0; a < (i == n ? k : kernel->node[i]->n_args); a++)
      if (value_storage(kernel->node[i]->arg[a]) == value)
        return true;
  return false;
}

static int64_t bytes_read(const Kernel *kernel) {
  int64_t bytes = 0;
  for (int n = 0; n < kernel->n_nodes; n++)
    for (int k = 0; k < kernel->node[n]->n_args; k++) {
      const Value *value = value_storage(kernel->node[n]->arg[k]);
      bool target = kernel->node[n]->op == OP_UPDATE && k == 0;
      if (!target && value->node->op != OP_CONST && !is_inside(kernel, value->node) &&
          !is_known(kernel, value, n, k))
        bytes += type_bytes(value->type);
    }
  return bytes;
}

static int64_t bytes_written(const Kernel *kernel) {
  int64_t bytes = 0;
  for (int n = 0; n < kernel->n_nodes; n++) {
    const Node *node = kernel->node[n];
    const int64_t *at = attr_ints(node, ATTR_AT, node->n_results);
    if (node->op == OP_UPDATE)
      bytes += type_bytes(node->arg[0]->type);
    for (int r = 0; at && r < node->n_results; r++)
      bytes += at[r] >= 0 ? type_bytes(node->result[r]->type) : 0;
  }
  return bytes;
}

static void print_group(const char *name, Traffic traffic, int64_t batch, FILE *out) {
  fprintf(out, "%-30s %8d %14" PRId64 " %14" PRId64 " %10.3f\n", name, traffic.kernels,
          traffic.read, traffic.written,
          (double)(traffic.read + traffic.written) / 1e6 / (double)batch);
}

Traffic traffic_total(const Module *module) {
  Arena *arena = arena_new();
  KernelList kernels = kernels_of(arena, module->graph[0]);
  Traffic all = {.kernels = kernels.n};
  for (int k = 0; k < kernels.n; k++) {
    all.read += bytes_read(&kernels.kernel[k]);
    all.written += bytes_written(&kernels.kernel[k]);
  }
  arena_free(arena);
  return all;
}

void traffic_report(const Module *module, FILE *out) {
  Arena *arena = arena_new();
  KernelList kernels = kernels_of(arena, module->graph[0]);
  Places at = find_places(&kernels);
  Traffic group[N_GROUPS] = {0}, all = {0};
  int64_t batch = recipe_part(module->recipe) > 0 ? recipe_part(module->recipe) : 1;
  for (int k = 0; k < kernels.n; k++) {
    Group g = group_of(&kernels.kernel[k], k, &at);
    group[g].kernels++;
    group[g].read += bytes_read(&kernels.kernel[k]);
    group[g].written += bytes_written(&kernels.kernel[k]);
  }
  fprintf(out, "%-30s %8s %14s %14s %10s\n", "group", "kernels", "bytes read", "bytes written",
          "MB/image");
  for (int g = 0; g < N_GROUPS; g++) {
    print_group(group_name[g], group[g], batch, out);
    all.kernels += group[g].kernels;
    all.read += group[g].read;
    all.written += group[g].written;
  }
  print_group("all", all, batch, out);
  arena_free(arena);
}
