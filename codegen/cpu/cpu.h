/* The CPU target: one C function per distinct kernel, called through a table of constants.
 *
 * Every kernel becomes one call `function(run, args)` (AmprtKernel in runtime/amprt.h). Kernels of
 * equal structure share the function; offsets, sizes and scalars go into `args`, a static const
 * struct. The functions' text may use the helpers of codegen/cpu/prelude.h, which emit_c puts in front
 * of them. */
#ifndef AMPCC_CODEGEN_CPU_CPU_H
#define AMPCC_CODEGEN_CPU_CPU_H

#include "codegen/codegen.h"

typedef struct KernelCall {
  const char *function; /* C identifier */
  const char *args;     /* C expression of type const void *: "&args_train_12", or "NULL" */
  const char *name;     /* for profiles: "k12_affine_relu" */
} KernelCall;

typedef struct FunctionCache FunctionCache;

/* What the emitters of one program share. */
typedef struct CpuEmit {
  Arena *arena;
  const Module *module;
  const Graph *graph; /* the one being emitted */
  FILE *functions;    /* struct types and functions */
  FILE *tables;       /* the static const args; may name functions and types */
  FunctionCache *cache;
  const CodegenOptions *options;
  const char **library; /* names of the tables of library kernels, by slot */
  int n_library, cap_library;
} CpuEmit;

/* cpu.c: shared by both emitters */
FunctionCache *function_cache_new(Arena *arena);
/* The name of the function whose text (with its own name spelled `@`) is `body`; writes it to
 * emit->functions, with `@` replaced, the first time it is asked for. */
const char *function_intern(CpuEmit *emit, const char *stem, const char *body);
/* True when the table `name` is asked for for the first time, and so must be written. */
bool table_intern(CpuEmit *emit, const char *name);
/* C text of a value's address: "run->arena + 4096" or "run->state + 128" without "run->": the block and
 * the offset separately, for args tables. Views are followed. */
bool value_in_state(const Value *value);
int64_t value_at(const Value *value);
const char *ctype_of(DType dtype);
const char *ident_of(Arena *arena, const char *name); /* any name as part of an identifier */

/* loop.c and friends: kernels without a main op (POINT, VECTOR, CHANNEL, ROW, REDUCE, OPT, UPDATE) */
void cpu_emit_loop(CpuEmit *emit, const Kernel *kernel, KernelCall *call);
int64_t cpu_loop_workspace(const Kernel *kernel);
bool cpu_loop_fuses(const Node *a, const Node *b);

/* library.c and friends: CONV, MATMUL, POOL */
void cpu_emit_main(CpuEmit *emit, const Kernel *kernel, KernelCall *call);
int64_t cpu_main_workspace(const Kernel *kernel);
/* What comes before all functions, and the hooks amp_open, amp_close, amp_set_threads, amp_threads,
 * amp_describe of AmprtProgram. */
void cpu_emit_head(FILE *out);
void cpu_emit_hooks(const CpuEmit *emit, FILE *out);

/* pool.c */
void cpu_emit_pool(CpuEmit *emit, const Kernel *kernel, KernelCall *call);
int64_t cpu_pool_workspace(const Kernel *kernel);

#endif
