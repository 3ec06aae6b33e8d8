/* The choices of codegen/cpu/onednn.c, apart so that tests and measurements can reach them. */
#ifndef AMPCC_CODEGEN_CPU_ONEDNN_H
#define AMPCC_CODEGEN_CPU_ONEDNN_H

#include "runtime/cpu/dnn_rt.h"

/* Sets method and chunk of an op whose kind, dtype and shape are set: the fastest measured for its
 * class of shapes (codegen/README.md has the numbers). */
void onednn_choose(DnnOp *op);

#endif
