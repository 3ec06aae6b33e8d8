/* policy: Keras' mixed_float16 and mixed_bfloat16 (specs/amp-rewrite.md 4.6). Every layer casts its
 * inputs to the compute type and reads its f32 variables through a cast; losses and metrics are
 * f32, and so is a softmax, as in every program that follows Keras' guide. A layer's own policy in
 * the model (`compute` on its op) comes first; there are no lists. */
#include "passes/precision/set_compute.h"

bool policy_is_low(const Node *node) {
  return node->op != OP_SOFTMAX;
}
