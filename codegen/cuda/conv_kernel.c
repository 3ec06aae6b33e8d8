#include "codegen/cuda/conv_kernel.h"

typedef struct Search {
  const Device *device;
  Node *main;
  Node *const *among;
  int n;
  ConvKernel *found; /* plain at first */
} Search;

/* ---- finding nodes ---- */

static bool is_among(const Search *s, const Node *node) {
  for (int i = 0; i < s->n; i++)
    if (s->among[i] == node)
      return true;
  return false;
}

/* The node with this op whose first operand is `value`. */
static Node *reader_of(const Search *s, const Value *value, OpKind op) {
  for (int i = 0; i < s->n; i++)
    if (s->among[i]->op == op && s->among[i]->arg[0] == value)
      return s->among[i];
  return NULL;
}

/* What makes `value`, if it is such a node that nobody but the kernel needs. */
static Node *maker_of(const Search *s, const Value *value, OpKind op) {
  Node *node = value->node;
  return node->op == op && value->n_uses == 1 && is_among(s, node) ? node : NULL;
}

/* ---- what was found ---- */

static bool has_plan(const Search *s, ConvForm form) {
  ConvOp op = s->found->op;
  op.form = (uint8_t)form;
  return plan_exists(&op, s->device);
}

static void begin(Search *s, ConvForm form) {
  s->found->op.form = (uint8_t)form;
  s->found->n_nodes = s->found->n_operands = 0;
}

static void add_node(Search *s, Node *node) {
  s->found->node[s->found->n_nodes++] = node;
}

static void add_operand(Search *s, const Value *value) {
  s->found->operand[s->found->n_operands++] = (ConvOperand){.value = value};
}

/* ---- the forms ---- */

/* relu(x * scale + shift) as the main op's first operand: its two nodes and three operands.
 * Engines take vectors of the type of x alone. */
static Node *scaled_relu(const Search *s) {
  Node *relu = maker_of(s, s->main->arg[0], OP_RELU);
  Node *affine = relu ? maker_of(s, relu->arg[0], OP_AFFINE) : NULL;
  DType type = s->main->arg[0]->type.dtype;
  bool fits = affine && affine->arg[1]->type.dtype == type && affine->arg[2]->type.dtype == type;
  return fits ? relu : NULL;
}

static void add_scaled_relu(Search *s, Node *relu) {
  Node *affine = relu->arg[0]->node;
  add_node(s, affine);
  add_node(s, relu);
  for (int k = 0; k < 3; k++)
    add_operand(s, affine->arg[k]);
}

/* Engines store y; without another reader it has no place. */
static bool needs_more_than_sums(const Node *main) {
  return main->result[0]->n_uses > 1;
}

static void find_fprop(Search *s) {
  Node *relu = scaled_relu(s), *sums = reader_of(s, s->main->result[0], OP_BN_SUMS);
  if (!sums || !needs_more_than_sums(s->main) || !has_plan(s, CONV_FPROP_STATS))
    return;
  if (relu && has_plan(s, CONV_RELU_FPROP_STATS)) {
    begin(s, CONV_RELU_FPROP_STATS);
    add_scaled_relu(s, relu);
  } else {
    begin(s, CONV_FPROP_STATS);
    add_operand(s, s->main->arg[0]);
  }
  add_node(s, s->main);
  add_node(s, sums);
  add_operand(s, s->main->arg[1]);
  add_operand(s, s->main->result[0]);
  add_operand(s, sums->result[0]);
  add_operand(s, sums->result[1]);
}

static void find_wgrad(Search *s) {
  Node *relu = scaled_relu(s);
  if (!relu || !has_plan(s, CONV_RELU_WGRAD))
    return;
  begin(s, CONV_RELU_WGRAD);
  add_scaled_relu(s, relu);
  add_node(s, s->main);
  add_operand(s, s->main->arg[1]);
  add_operand(s, s->main->result[0]);
}

ConvKernel conv_kernel_around(const Device *device, Node *main, Node *const *among, int n) {
  static const struct {
    OpKind op;
    void (*find)(Search *);
  } finder[] = {{OP_CONV2D, find_fprop}, {OP_CONV2D_WGRAD, find_wgrad}};
  ConvKernel found = {.op = plan_op(main)};
  Search search = {device, main, among, n, &found};
  add_node(&search, main);
  add_operand(&search, main->arg[0]);
  add_operand(&search, main->arg[1]);
  add_operand(&search, main->result[0]);
  for (size_t i = 0; i < sizeof finder / sizeof *finder; i++)
    if (finder[i].op == main->op)
      finder[i].find(&search);
  CHECK(found.n_operands == conv_operands((ConvForm)found.op.form), "`%s`: %d operands",
        op_info[main->op].name, found.n_operands);
  return found;
}

bool conv_kernel_exists(const Device *device, const Node *main, bool relu, bool sums) {
  ConvOp op = plan_op(main);
  if (main->op == OP_CONV2D_WGRAD && relu)
    op.form = CONV_RELU_WGRAD;
  else if (main->op == OP_CONV2D && sums && needs_more_than_sums(main))
    op.form = relu ? CONV_RELU_FPROP_STATS : CONV_FPROP_STATS;
  else
    return false;
  return plan_exists(&op, device);
}

ConvKernel conv_kernel_of(const Device *device, const Kernel *kernel) {
  ConvKernel found = conv_kernel_around(device, kernel_main(kernel), kernel->node, kernel->n_nodes);
  CHECK(found.n_nodes == kernel->n_nodes, "kernel %d is no plan", kernel->id);
  return found;
}
