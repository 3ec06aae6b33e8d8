#include "codegen/cuda/conv_kernel.h"

#include "passes/memory/depend.h"

typedef struct Search {
  ConvForms forms;
  Node *main;
  Node *const *among;
  int n;
  ConvKernel *found; /* the convolution alone, until a larger form is found */
} Search;

/* ---- finding nodes ---- */

static bool is_among(const Search *s, const Node *node) {
  for (int i = 0; i < s->n; i++)
    if (s->among[i] == node)
      return true;
  return false;
}

/* The given node with this op whose first operand is `value`; NULL if there is none. */
static Node *reader_of(const Search *s, const Value *value, OpKind op) {
  for (int i = 0; i < s->n; i++)
    if (s->among[i]->op == op && s->among[i]->arg[0] == value)
      return s->among[i];
  return NULL;
}

/* The node that makes `value`, if it has this op, is one of the given nodes and `value` has a
 * single reader; else NULL. */
static Node *maker_of(const Search *s, const Value *value, OpKind op) {
  Node *node = value->node;
  return node->op == op && value->n_uses == 1 && is_among(s, node) ? node : NULL;
}

/* ---- what was found ---- */

static bool may_use(ConvForms forms, ConvOp op, ConvForm form) {
  op.form = (uint8_t)form;
  const PlanForm *row = plan_form(&op, forms.device);
  return row && row->level && row->level <= forms.level;
}

static bool has_plan(const Search *s, ConvForm form) {
  return may_use(s->forms, s->found->op, form);
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

static void add_constant(Search *s, int64_t n, float each) {
  s->found->operand[s->found->n_operands++] = (ConvOperand){.n = n, .each = each};
}

static void add_scratch(Search *s, int64_t n) {
  s->found->operand[s->found->n_operands++] = (ConvOperand){.n = n, .is_scratch = true};
}

/* ---- the forms ---- */

/* The affine x * scale + shift that makes `value`, if nobody else reads it. Engines take scale and
 * shift in the type of x only. */
static Node *scaled(const Search *s, const Value *value) {
  Node *affine = maker_of(s, value, OP_AFFINE);
  DType type = value->type.dtype;
  bool fits = affine && affine->arg[1]->type.dtype == type && affine->arg[2]->type.dtype == type;
  return fits ? affine : NULL;
}

static void add_scaled(Search *s, Node *affine) {
  add_node(s, affine);
  for (int k = 0; k < 3; k++)
    add_operand(s, affine->arg[k]);
}

/* relu(x * scale + shift) as the first operand of the main op. */
static bool find_relu(Search *s, ConvForm form) {
  Node *relu = maker_of(s, s->main->arg[0], OP_RELU);
  Node *affine = relu ? scaled(s, relu->arg[0]) : NULL;
  if (!affine || !has_plan(s, form))
    return false;
  begin(s, form);
  add_scaled(s, affine);
  add_node(s, relu);
  return true;
}

/* The end of a residual block, relu(a + b), which others read too; one or both of a and b are
 * scaled. */
static bool find_block_end(Search *s) {
  Node *relu = s->main->arg[0]->node;
  bool is_read = relu->op == OP_RELU && s->main->arg[0]->n_uses > 1 && is_among(s, relu);
  Node *sum = is_read ? maker_of(s, relu->arg[0], OP_ADD) : NULL;
  Node *a = sum ? scaled(s, sum->arg[0]) : NULL, *b = sum ? scaled(s, sum->arg[1]) : NULL;
  ConvForm form = a && b ? CONV_DUAL_FPROP_STATS : CONV_ADD_FPROP_STATS;
  if ((!a && !b) || !has_plan(s, form))
    return false;
  begin(s, form);
  add_scaled(s, a ? a : b);
  if (a && b)
    add_scaled(s, b);
  else
    add_operand(s, sum->arg[a != NULL]);
  add_node(s, sum);
  add_node(s, relu);
  return true;
}

/* Does the result of the main op lie in memory? Engines that make sums of it store it as well, but
 * the memory plan gives it a place only if another node reads it too. */
static bool has_place(const Node *main) {
  return main->result[0]->n_uses > 1;
}

static void find_fprop(Search *s) {
  Node *sums = reader_of(s, s->main->result[0], OP_BN_SUMS);
  if (!sums || !has_place(s->main) || !has_plan(s, CONV_FPROP_STATS))
    return;
  bool is_end = find_block_end(s);
  if (!is_end && !find_relu(s, CONV_RELU_FPROP_STATS)) {
    begin(s, CONV_FPROP_STATS);
    add_operand(s, s->main->arg[0]);
  }
  add_node(s, s->main);
  add_node(s, sums);
  add_operand(s, s->main->arg[1]);
  if (is_end)
    add_operand(s, s->main->arg[0]);
  add_operand(s, s->main->result[0]);
  add_operand(s, sums->result[0]);
  add_operand(s, sums->result[1]);
}

static void find_wgrad(Search *s) {
  if (!find_relu(s, CONV_RELU_WGRAD))
    return;
  add_node(s, s->main);
  add_operand(s, s->main->arg[1]);
  add_operand(s, s->main->result[0]);
}

static Node *adder_of(const Search *s, const Value *value) {
  for (int i = 0; i < s->n; i++)
    if (s->among[i]->op == OP_ADD && (s->among[i]->arg[0] == value || s->among[i]->arg[1] == value))
      return s->among[i];
  return NULL;
}

/* Is the affine the normalisation to whose gradient the sums `stats` belong? The kernel reads the
 * bias again, so that must be a variable, which keeps its value until the kernel has run. */
static bool is_normalisation(const Node *affine, const Node *stats) {
  const Value *bias = affine_bias(affine);
  return bias && bias->node->op == OP_VARIABLE && affine->arg[0] == stats->arg[1] &&
         affine->arg[1]->node->arg[2] == stats->arg[2];
}

/* The nodes that may follow a data gradient in its kernel, up to the sums over the stored result:
 *
 *   %g = add %dgrad, %dz            // or %dz, %dgrad; may be missing
 *   %dx = relu_grad %g, %y
 *   %sum, %sum_x = bn_grad_stats %dx, %x, %mean
 *
 * where %y = affine %x, %scale, %shift is computed for this mask alone, or %y is any value in
 * memory. */
static void find_dgrad(Search *s) {
  const Value *dgrad = s->main->result[0];
  Node *add = adder_of(s, dgrad);
  const Value *g = add ? add->result[0] : dgrad;
  Node *relu = reader_of(s, g, OP_RELU_GRAD);
  Node *stats = relu ? reader_of(s, relu->result[0], OP_BN_GRAD_STATS) : NULL;
  if (!stats || dgrad->n_uses != 1 || g->n_uses != 1)
    return;
  Node *affine = maker_of(s, relu->arg[1], OP_AFFINE);
  if (affine ? !is_normalisation(affine, stats) : !add)
    return;
  ConvForm form = !affine ? CONV_DGRAD_BN_SHORT : add ? CONV_DGRAD_BN_ADD : CONV_DGRAD_BN;
  if (!has_plan(s, form))
    return;
  begin(s, form);
  int64_t channels = s->found->op.c;
  add_operand(s, s->main->arg[0]);
  add_operand(s, s->main->arg[1]);
  add_operand(s, stats->arg[1]);
  /* cuDNN takes mean, invstd, scale and bias, and computes (x - mean) * invstd * scale + bias. The
   * scale of the graph's affine already contains the inverse of the standard deviation, so invstd
   * is given as 1. The result dscale is then the sum of dx * (x - mean), which the graph wants. */
  add_operand(s, stats->arg[2]);
  add_constant(s, channels, 1);
  if (affine) {
    add_operand(s, affine->arg[1]->node->result[0]);
    add_operand(s, affine_bias(affine));
  } else {
    add_constant(s, channels, 0);
    add_constant(s, channels, 0);
    add_operand(s, relu->arg[1]);
  }
  if (add)
    add_operand(s, add->arg[add->arg[0] == dgrad]);
  add_operand(s, relu->result[0]);
  add_operand(s, stats->result[1]);
  add_operand(s, stats->result[0]);
  for (int i = 0; i < 3; i++) /* a, b and c: not read, as the graph computes its own */
    add_scratch(s, channels);
  Node *const node[] = {s->main, add, affine, relu, stats};
  for (size_t i = 0; i < sizeof node / sizeof *node; i++)
    if (node[i])
      add_node(s, node[i]);
}

ConvKernel conv_kernel_around(ConvForms forms, Node *main, Node *const *among, int n) {
  static const struct {
    OpKind op;
    void (*find)(Search *);
  } finder[] = {
      {OP_CONV2D, find_fprop}, {OP_CONV2D_DGRAD, find_dgrad}, {OP_CONV2D_WGRAD, find_wgrad}};
  ConvKernel found = {.op = plan_op(main)};
  Search search = {forms, main, among, n, &found};
  add_node(&search, main);
  add_operand(&search, main->arg[0]);
  add_operand(&search, main->arg[1]);
  add_operand(&search, main->result[0]);
  for (size_t i = 0; i < sizeof finder / sizeof *finder; i++)
    if (finder[i].op == main->op)
      finder[i].find(&search);
  CHECK(found.n_operands == cuda_conv_operands((ConvForm)found.op.form), "`%s`: %d operands",
        op_info[main->op].name, found.n_operands);
  return found;
}

bool conv_kernel_exists(ConvForms forms, const Node *main, NormForm form) {
  static const struct {
    OpKind op;
    ConvForm form;
  } wanted[] = {[NORM_SUMS] = {OP_CONV2D, CONV_FPROP_STATS},
                [NORM_RELU_SUMS] = {OP_CONV2D, CONV_RELU_FPROP_STATS},
                [NORM_ADD_SUMS] = {OP_CONV2D, CONV_ADD_FPROP_STATS},
                [NORM_DUAL_SUMS] = {OP_CONV2D, CONV_DUAL_FPROP_STATS},
                [NORM_RELU] = {OP_CONV2D_WGRAD, CONV_RELU_WGRAD}};
  if (main->op != wanted[form].op || (form != NORM_RELU && !has_place(main)))
    return false;
  return may_use(forms, plan_op(main), wanted[form].form);
}

ConvKernel conv_kernel_of(ConvForms forms, const Kernel *kernel) {
  ConvKernel found = conv_kernel_around(forms, kernel_main(kernel), kernel->node, kernel->n_nodes);
  CHECK(found.n_nodes == kernel->n_nodes, "kernel %d is no plan", kernel->id);
  return found;
}
