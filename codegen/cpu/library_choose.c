#include "codegen/cpu/library.h"

void library_choose(DnnOp *op) {
  op->method = DNN_NHWC;
  op->chunk = (int32_t)op->n;
}
