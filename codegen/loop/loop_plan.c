/* What a loop kernel reads and stores, and the space that it goes over. */
#include "codegen/loop/loop.h"

#include <string.h>

enum { CHUNK = 32768 /* elements */, MAX_CHUNKS = 64 };

int64_t chunk_count(int64_t total, int64_t most) {
  int64_t n = total / CHUNK < MAX_CHUNKS ? total / CHUNK : MAX_CHUNKS;
  n = n < most ? n : most;
  return n > 1 ? n : 1;
}

int loop_sums_of(const Node *node) {
  if (op_info[node->op].gen != GEN_CHANNEL)
    return 0;
  return node->op == OP_BIAS_GRAD ? 1 : 2;
}

const Node *loop_producer(const LoopPlan *plan, const Value *value) {
  for (int i = 0; i < plan->kernel->n_nodes; i++)
    if (plan->kernel->node[i] == value->node)
      return value->node;
  return NULL;
}

int loop_number(LoopPlan *plan, double number) {
  arena_push(plan->arena, plan->number, plan->n_numbers, plan->cap_numbers, number);
  return plan->n_numbers - 1;
}

/* ---- broadcasts, reversals ---- */

/* The strides of the operand of a broadcast or reverse along the axes of the result. Neighbouring
 * axes become one where a single stride takes the operand through both. */
static AmpIndex gather_index(const Node *node) {
  const Attr *axes = attr_find(node, ATTR_AXES);
  TensorType out = node->result[0]->type;
  int64_t stride[MAX_RANK] = {0}, step = 1;
  bool named[MAX_RANK] = {false}, turns = node->op == OP_REVERSE;
  AmpIndex index = {0};
  for (int i = 0; axes && i < axes->n; i++)
    named[axes->ints[i]] = true;
  for (int d = out.rank - 1; d >= 0; d--) {
    if (named[d] && !turns)
      continue;
    stride[d] = named[d] ? -step : step;
    index.first += named[d] ? (out.dim[d] - 1) * step : 0;
    step *= out.dim[d];
  }
  for (int d = 0; d < out.rank; d++) {
    int last = index.rank - 1;
    if (index.rank && index.stride[last] == stride[d] * out.dim[d]) {
      index.dim[last] *= out.dim[d];
      index.stride[last] = stride[d];
    } else {
      index.dim[index.rank] = out.dim[d];
      index.stride[index.rank++] = stride[d];
    }
  }
  return index;
}

static LoadForm gather_form(const LoopPlan *plan, const Node *node, AmpIndex *index) {
  TensorType x = node->arg[0]->type;
  int64_t count = type_count(x);
  *index = gather_index(node);
  if (count == 1)
    return LOAD_SCALAR;
  if (count == plan->total)
    return node->op == OP_REVERSE ? LOAD_GATHER : LOAD_EACH;
  /* A vector over the channels is repeated along all other axes. */
  bool is_vector = index->rank == 2 && index->stride[0] == 0 && index->stride[1] == 1 &&
                   count == node_space(node).channels;
  return is_vector && dtype_info[x.dtype].is_float ? LOAD_VECTOR : LOAD_GATHER;
}

/* ---- operands ---- */

/* How operand k of the node is read; *index is set for LOAD_GATHER. */
static LoopInput describe_input(LoopPlan *plan, const Node *node, int k, AmpIndex *index) {
  const Value *value = node->arg[k], *storage = value_storage(node->arg[k]);
  int64_t count = type_count(value->type);
  LoopPart part = loop_part(node, plan->kernel) == PART_TAIL ? PART_TAIL : PART_BODY;
  int64_t space = part == PART_TAIL ? plan->channels : plan->total;
  LoopInput input = {storage, value->type.dtype, LOAD_EACH, part, -1};
  if (value == plan->made)
    input.form = LOAD_MADE;
  else if (storage->node->op == OP_CONST && !attr_find(storage->node, ATTR_DATA))
    input.form = LOAD_SPLAT;
  else if (node->op == OP_LR_SCHEDULE && k == 1)
    input.form = LOAD_WHOLE;
  else if (node->op == OP_BROADCAST || node->op == OP_REVERSE)
    input.form = gather_form(plan, node, index);
  else if (count != space)
    input.form = count == 1 ? LOAD_SCALAR : LOAD_VECTOR;
  return input;
}

/* Are a, whose index the plan has, and b with this index read in the same way? */
static bool same_input(const LoopPlan *plan, const LoopInput *a, const LoopInput *b,
                       const AmpIndex *index) {
  if (a->value != b->value || a->dtype != b->dtype || a->form != b->form || a->part != b->part)
    return false;
  if (a->form != LOAD_GATHER)
    return true;
  const AmpIndex *own = &plan->index[a->extra];
  return own->rank == index->rank && memcmp(own->dim, index->dim, sizeof own->dim) == 0 &&
         memcmp(own->stride, index->stride, sizeof own->stride) == 0 && own->first == index->first;
}

int loop_input(LoopPlan *plan, const Node *node, int k) {
  AmpIndex index = {0};
  LoopInput input = describe_input(plan, node, k, &index);
  for (int i = 0; i < plan->n_inputs; i++)
    if (same_input(plan, &plan->input[i], &input, &index))
      return i;
  if (input.form == LOAD_GATHER) {
    input.extra = plan->n_indices;
    arena_push(plan->arena, plan->index, plan->n_indices, plan->cap_indices, index);
  }
  if (input.form == LOAD_SPLAT)
    input.extra = loop_number(plan, attr_float(input.value->node, ATTR_VALUE, 0));
  arena_push(plan->arena, plan->input, plan->n_inputs, plan->cap_inputs, input);
  return plan->n_inputs - 1;
}

/* ---- results ---- */

static void add_output(LoopPlan *plan, LoopOutput output) {
  arena_push(plan->arena, plan->output, plan->n_outputs, plan->cap_outputs, output);
}

/* The part that stores a result of the node. Sums are finished in the tail. */
static LoopPart result_part(const LoopPlan *plan, const Node *node) {
  return loop_part(node, plan->kernel) == PART_BODY ? PART_BODY : PART_TAIL;
}

/* ---- the whole ---- */

bool loop_has_channels(const Kernel *kernel) {
  int64_t total = node_space(kernel->node[0]).count;
  for (int i = 0; i < kernel->n_nodes; i++) {
    const Node *node = kernel->node[i];
    if (op_info[node->op].gen == GEN_CHANNEL)
      return true;
    for (int k = 0; k < node->n_args; k++) {
      int64_t count = type_count(node->arg[k]->type);
      if (op_info[node->op].gen == GEN_POINT && count != 1 && count != total)
        return true;
    }
  }
  return false;
}

LoopPlan loop_plan(Arena *arena, const Kernel *kernel) {
  return loop_plan_behind(arena, kernel, NULL);
}

LoopPlan loop_plan_behind(Arena *arena, const Kernel *kernel, const Value *made) {
  Space space = node_space(kernel->node[0]);
  LoopPlan plan = {.arena = arena,
                   .kernel = kernel,
                   .made = made,
                   .total = space.count,
                   .channels = space.channels};
  for (int i = 0; i < kernel->n_nodes; i++) {
    const Node *node = kernel->node[i];
    if (node->op == OP_UPDATE) { /* of variable arg[0] to arg[1], perhaps under predicate arg[2] */
      const Node *producer = loop_producer(&plan, node->arg[1]);
      if (!producer)
        loop_input(&plan, node, 1);
      add_output(&plan, (LoopOutput){.value = node->arg[1],
                                     .variable = node->arg[0],
                                     .go = node->n_args > 2 ? node->arg[2] : NULL,
                                     .part = producer ? result_part(&plan, producer) : PART_BODY});
      continue;
    }
    for (int k = 0; k < node->n_args; k++)
      if (!loop_producer(&plan, node->arg[k]))
        loop_input(&plan, node, k);
    const int64_t *at = attr_ints(node, ATTR_AT, node->n_results);
    for (int r = 0; r < node->n_results; r++)
      if (at && at[r] >= 0)
        add_output(&plan, (LoopOutput){.value = node->result[r], .part = result_part(&plan, node)});
    plan.n_sums += loop_sums_of(node);
  }
  return plan;
}
