/* Headers as text, for generated code: one string per line, ended by NULL. */
#ifndef AMPCC_CODEGEN_TEXT_PRELUDE_TEXT_H
#define AMPCC_CODEGEN_TEXT_PRELUDE_TEXT_H

extern const char *const args_text[];        /* loop/args.h, for the host tables of a CUDA part */
extern const char *const cpu_prelude[];      /* args.h and what CPU kernels use */
extern const char *const cpu_rows[];         /* rows, reductions, optimizers, pooling */
extern const char *const cpu_conv_calls[];   /* what calls the CPU's own convolutions */
extern const char *const cpu_convolutions[]; /* what they are */
extern const char *const cuda_prelude[];     /* args.h and what CUDA kernels use */

/* Texts with holes (codegen/loop/text.h): the choice of an instruction set, and loops. */
extern const char *const cpu_fits[];
extern const char *const cpu_loop[], *const cpu_loop_one[];
extern const char *const cuda_loop_line[], *const cuda_loop_rows[], *const cuda_loop_tail[];

#endif
