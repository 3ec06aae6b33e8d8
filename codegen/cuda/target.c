/* What passes may ask about a GPU. A convolution is a plan of cuDNN, together with the nodes that
 * conv_kernel.c finds around it; a matrix product is a call of cublasLt, which can add a bias. */
#include "codegen/cuda/target.h"

#include "codegen/cuda/cuda.h"
#include "codegen/loop/loop.h"

#include <string.h>

/* Bytes. cuDNN and cublasLt are fastest with operands that begin at multiples of this, as memory
 * from cudaMalloc does. */
enum { ALIGN = 256 };

/* Bytes of a device's memory that are left to the context of the driver, to the libraries and to
 * inputs that are being copied. */
#define RESERVED (INT64_C(1) << 30)

void cuda_refuse(CudaTarget *cuda, const Node *node, const char *op, const char *why) {
  for (int i = 0; i < cuda->n_refusals; i++)
    if (strcmp(cuda->refusal[i].why, why) == 0)
      return;
  Refusal refusal = {node->loc, op, arena_strdup(cuda->arena, why, strlen(why))};
  arena_push(cuda->arena, cuda->refusal, cuda->n_refusals, cuda->cap_refusals, refusal);
}

static PlanText plan(CudaTarget *cuda, const Node *node, const ConvOp *op, const char *key) {
  char error[TOOLKIT_ERROR] = "";
  PlanText list[PLAN_CANDIDATES];
  int n = plan_list(cuda->toolkit, cuda->cache, cuda->arena, op, cuda->device, list,
                    PLAN_CANDIDATES, error);
  if (n > 0)
    return plan_choose(
        cuda->arena, list, n,
        tuning_find(cuda->tuning, cuda->device->capability, cuda->toolkit->cudnn_version, key));
  PlanText text = {.key = arena_strdup(cuda->arena, key, strlen(key))};
  if (cuda->toolkit->cudnn_version)
    cuda_refuse(cuda, node, text.key, error);
  else if (!cuda->failure)
    cuda->failure = arena_strdup(cuda->arena, error, strlen(error));
  return text;
}

const Planned *cuda_planned(CudaTarget *cuda, const Node *node, const ConvOp *op) {
  char key[CONV_KEY_BYTES];
  cuda_conv_key_print(op, key);
  for (int i = 0; i < cuda->n_planned; i++)
    if (strcmp(cuda->planned[i].plan.key, key) == 0)
      return &cuda->planned[i];
  Planned planned = {plan(cuda, node, op, key), cuda->n_planned};
  int newest = plan_newest(op, cuda->device);
  if (newest && (!cuda->newest || newest < cuda->newest))
    cuda->newest = newest;
  const PlanForm *row = plan_form(op, cuda->device);
  cuda->n_unrepeatable += row && row->level == FUSE_UNREPEATABLE;
  arena_push(cuda->arena, cuda->planned, cuda->n_planned, cuda->cap_planned, planned);
  return &cuda->planned[planned.index];
}

/* cublasLt adds a bias to its f32 sums before it rounds them. For an f32 result that is what a loop
 * would compute; for a 16-bit result it is not, so there the bias is left to a loop. */
static int product_around(Node *main, Node *const *among, int n, Node *out[MAX_AROUND]) {
  const Value *result = main->result[0];
  for (int i = 0; i < n && result->n_uses == 1 && result->type.dtype == DT_F32; i++)
    if (among[i]->op == OP_BIAS_ADD && among[i]->arg[0] == result) {
      out[1] = among[i];
      return 2;
    }
  return 1;
}

/* Pooling applies relu(x * scale + shift) as it loads, if nobody else needs the result. */
static int pool_around(Node *main, Node *const *among, int n, Node *out[MAX_AROUND]) {
  const Value *value = main->arg[0];
  int found = 1;
  for (int i = n - 1; i >= 0 && main->op == OP_MAX_POOL && found < 3; i--)
    if (among[i] == value->node && value->n_uses == 1 &&
        among[i]->op == (found == 1 ? OP_RELU : OP_AFFINE)) {
      out[found++] = among[i];
      value = among[i]->arg[0];
    }
  return found == 3 && out[2]->arg[1]->type.dtype == DT_F32 ? 3 : 1;
}

static int kernel_around(const Target *target, Node *main, Node *const *among, int n,
                         Node *out[MAX_AROUND]) {
  out[0] = main;
  if (op_info[main->op].gen == GEN_MATMUL)
    return product_around(main, among, n, out);
  if (op_info[main->op].gen == GEN_POOL)
    return pool_around(main, among, n, out);
  ConvKernel found = conv_kernel_around(cuda_forms(cuda_target_of(target)), main, among, n);
  memcpy(out, found.node, sizeof found.node);
  return found.n_nodes;
}

static bool has_form(const Target *target, const Node *main, NormForm form) {
  return conv_kernel_exists(cuda_forms(cuda_target_of(target)), main, form);
}

static int64_t workspace(const Target *target, const Kernel *kernel) {
  if (cuda_is_library(kernel))
    return cuda_library_workspace(target, kernel);
  return cuda_loop_workspace(kernel);
}

void cuda_target_init(CudaTarget *cuda, const char *name) {
  cuda->target = (Target){.name = name,
                          .align = ALIGN,
                          .memory = cuda->device->bytes - RESERVED,
                          .activations = LAYOUT_NHWC,
                          .pixels = true,
                          .kernel_around = kernel_around,
                          .has_form = has_form,
                          .workspace = workspace,
                          .context = cuda};
}
