/* What a CUDA part's Backend writes. */
#ifndef AMPCC_CODEGEN_CUDA_EMIT_CUDA_H
#define AMPCC_CODEGEN_CUDA_EMIT_CUDA_H

#include "codegen/cuda/target.h"
#include "codegen/cuda/toolkit/nvrtc.h"

/* Members of Backend. */
void cuda_emit_graph(ProgramCode *program, GraphCode *code);
void cuda_emit_head(const ProgramCode *program, FILE *out);
void cuda_emit_functions(const ProgramCode *program, const char *types, const char *functions,
                         FILE *out, FILE *kernels);
void cuda_emit_hooks(const ProgramCode *program, FILE *out);
void cuda_emit_fits(const ProgramCode *program, FILE *out);
extern const char cuda_fields[];

/* Writes the machine code as the C array that the tables of the part name. */
void cuda_emit_image(const CudaTarget *cuda, const NvrtcCode *code, FILE *out);

#endif
