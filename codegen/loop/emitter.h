/* What the emitters of every target share: a part of a program that is being written, and the names
 * of the functions and tables that it has so far. */
#ifndef AMPCC_CODEGEN_LOOP_EMITTER_H
#define AMPCC_CODEGEN_LOOP_EMITTER_H

#include "codegen/codegen.h"
#include "codegen/loop/text.h"

typedef struct FunctionCache FunctionCache;

typedef struct Bytes {
  unsigned char *byte;
  size_t n, cap;
} Bytes;

typedef struct Emitter {
  Arena *arena;
  const Module *module;
  const Graph *graph; /* the one being emitted */
  FILE *types;        /* struct types of args; NULL: each in front of its function */
  FILE *functions;    /* their text */
  FILE *tables;       /* the static const args; may name functions and types */
  FunctionCache *cache;
  const CodegenOptions *options;
  const Target *target;
  Bytes *constants;      /* CUDA: the block of constants, which AMP_CONST names; else NULL */
  const char **constant; /* CPU: the tables of constants, which AMP_CONST numbers */
  int n_constants, cap_constants;
  const char **library; /* names of the tables of library kernels, by slot */
  int n_library, cap_library;
  int64_t largest_lane;     /* own kernels: the most that a thread needs for itself */
  bool loops_behind_groups; /* own kernels: do loops call amp_grouped_with? */
} Emitter;

typedef struct KernelCall {
  const char *function; /* C identifier */
  const char *args;     /* C expression of type const void *: "&args_train_12", or "NULL" */
  const char *name;     /* for profiles: "k12_affine_relu" */
} KernelCall;

FunctionCache *function_cache_new(Arena *arena);
/* The name of the function with this text, in which `@` stands for its name. `types` are the types
 * that it uses, or "". Types and text are written, with `@` replaced, the first time they are asked
 * for. */
const char *function_intern(Emitter *emit, const char *stem, const char *types, const char *body);
/* The offset of these bytes in emit->constants. They are appended there, aligned to 16, unless
 * equal bytes are there already. */
int64_t constant_intern(Emitter *emit, const void *bytes, size_t n);
/* The number of the table `name` in emit->constant, to which it is added. */
int constant_number(Emitter *emit, const char *name);
/* True if the table `name` was not asked for before, so that the caller must write it. */
bool table_intern(Emitter *emit, const char *name);
/* Where a value lies: in the state block or else in the arena, and at which offset. A view lies
 * where the value lies that it is a view of. */
bool value_in_state(const Value *value);
int64_t value_at(const Value *value);
const char *ctype_of(DType dtype);                    /* "float" */
const char *cdtype_name(DType dtype);                 /* "AMPRT_F32" */
const char *ident_of(Arena *arena, const char *name); /* any name as part of an identifier */

#endif
