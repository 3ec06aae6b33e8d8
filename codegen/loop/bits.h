/* Floating-point numbers as their bits in memory. */
#ifndef AMPCC_CODEGEN_LOOP_BITS_H
#define AMPCC_CODEGEN_LOOP_BITS_H

#include "ir/ir.h"

/* The bits of x rounded to f32, f16 or bf16. For the last two they are the low 16 bits. */
uint32_t float_bits(double x, DType dtype);

#endif
