/* Numbers as their bits in memory. */
#ifndef AMPCC_CODEGEN_LOOP_BITS_H
#define AMPCC_CODEGEN_LOOP_BITS_H

#include "ir/ir.h"

/* Of x rounded to f32, f16 or bf16; the low 16 bits for the latter two. */
uint32_t float_bits(double x, DType dtype);

#endif
