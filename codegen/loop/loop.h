/* One generated loop kernel: POINT nodes over one iteration space (the body), sums per channel of
 * what the body computes or loads, then a tail over the channels. See codegen/README.md for a
 * program's text. */
#ifndef AMPCC_CODEGEN_LOOP_LOOP_H
#define AMPCC_CODEGEN_LOOP_LOOP_H

#include "codegen/loop/emitter.h"
#include "codegen/text/common/args.h"
#include "ir/recipe/opt.h"
#include "ir/space.h"

/* How a kernel reads an operand that it does not compute. */
typedef enum LoadForm {
  LOAD_EACH,   /* element i for element i of the space                       */
  LOAD_VECTOR, /* element i mod C: a vector over the last axis               */
  LOAD_SCALAR, /* its only element                                           */
  LOAD_GATHER, /* any other broadcast, reverse: by the element's coordinates */
  LOAD_SPLAT,  /* a constant of equal elements: a number of the args         */
  LOAD_WHOLE,  /* the op reads all of it (the table of a learning rate)      */
  LOAD_MADE,   /* element i of what the main op in front of the loop made    */
} LoadForm;

typedef struct LoopInput {
  const Value *value; /* its storage */
  DType dtype;        /* of the value as read; low and f32 are float in the kernel */
  LoadForm form;
  LoopPart part;
  int extra; /* GATHER: which index; SPLAT: which number */
} LoopInput;

typedef struct LoopOutput {
  const Value *value;    /* what is stored */
  const Value *variable; /* into this one, or NULL: at its own place */
  const Value *go;       /* under this predicate, or NULL */
  LoopPart part;         /* BODY or TAIL: which of the two stores it */
} LoopOutput;

typedef struct LoopPlan {
  Arena *arena;
  const Kernel *kernel;
  const Value *made;       /* the result of the main op in front of the loop, or NULL */
  int64_t total, channels; /* elements of the space, its last dimension */
  LoopInput *input;
  LoopOutput *output;
  AmpIndex *index;
  double *number; /* attributes and splat constants */
  int n_inputs, cap_inputs, n_outputs, cap_outputs, n_indices, cap_indices, n_numbers, cap_numbers;
  int n_sums; /* per channel */
} LoopPlan;

/* loop_plan.c */
LoopPlan loop_plan(Arena *arena, const Kernel *kernel);
/* The same of a loop behind a main op, which made that value. */
LoopPlan loop_plan_behind(Arena *arena, const Kernel *loop, const Value *made);
int loop_sums_of(const Node *node); /* sums per channel that a CHANNEL node keeps */
/* Does the body need to know the channel of an element? */
bool loop_has_channels(const Kernel *kernel);
/* Where node's operand `k` comes from: its producer in the kernel, or NULL and *input. */
const Node *loop_producer(const LoopPlan *plan, const Value *value);
int loop_input(LoopPlan *plan, const Node *node, int k);
int loop_number(LoopPlan *plan, double number); /* appended; its place */

/* loop_args.c: the args' type, `@_args`, whose first member is `space`, and the table named `name`
 * of it for a function `function`. Sums are kept from `scratch` of the arena on. */
const char *loop_types(const LoopPlan *plan, const char *space);
void loop_args(Emitter *emit, const LoopPlan *plan, const char *space, int64_t scratch,
               const char *function, const char *name);
/* One reference of the table. `owner` as for ref_read. */
AmpRef loop_input_ref(Emitter *emit, const LoopInput *in, const char *owner);
AmpRef loop_output_ref(const LoopOutput *out);
int loop_predicates(const LoopPlan *plan); /* the results up to the last that has one */
AmpRef loop_go_ref(Emitter *emit, const LoopOutput *out); /* nowhere without a predicate */
/* ref.c: ref_read: where a value is read; a constant of the CPU gets a table, named `owner`.
 * ref_result: the place of a result, nowhere if it is not stored. ref_update: the variable that an
 * update in `kernel` stores the value to, or nowhere. */
AmpRef ref_read(Emitter *emit, const Value *value, const char *owner);
AmpRef ref_result(const Value *value);
AmpRef ref_update(const Kernel *kernel, const Value *value);
AmpRef ref_nowhere(void);
const char *ref_text(Arena *arena, AmpRef ref); /* as a C initialiser */
/* A list that args point to: on the CPU a table, named `owner`; for CUDA a constant. */
AmpRef ref_list(Emitter *emit, const AmpTensor *list, int n, const char *owner);
/* many.c: cuts tensors into pieces of AMP_CHUNK, one for each block of a CUDA kernel */
int64_t many_pieces(int64_t count);
void many_cut(Emitter *emit, const AmpTensor *list, int n, int64_t scratch, AmpMany *many);
const char *many_text(Arena *arena, const AmpMany *many);    /* a C initialiser */
const char *index_text(Arena *arena, const AmpIndex *index); /* a C initialiser */
const char *number_text(Arena *arena, double x);             /* as a C expression, no digit lost */
/* "args_train_12": name of the args of a kernel of the graph being emitted */
const char *args_name(Emitter *emit, const Kernel *kernel);
int64_t kernel_scratch(const Kernel *kernel); /* where its workspace lies */

/* row.c reduce.c opt.c pool.c: kernels that call one function of codegen/text. They write the table
 * of its args and fill *call, but for its name. */
void row_emit(Emitter *emit, const Kernel *kernel, KernelCall *call);
void reduce_emit(Emitter *emit, const Kernel *kernel, KernelCall *call);
void opt_emit(Emitter *emit, const Kernel *kernel, KernelCall *call);
void pool_emit(Emitter *emit, const Kernel *kernel, KernelCall *call);
/* The affine of relu(affine) in front of a max_pool in its kernel (GPUs); NULL: there is none. */
const Node *pool_scaled(const Kernel *kernel);
/* opt.c: the args of one optimizer's kernel; what it needs (NOTHING: also of other kernels); its
 * row as arguments of the prelude's AMP_OPTIMIZER: "adam, 2, STEPS" */
AmpOpt opt_args(Emitter *emit, const Kernel *kernel, const char *name);
OptNeeds opt_needs(const Kernel *kernel);
const char *opt_text(Arena *arena, OpKind op);
/* table.c: the one of them that the kernel is for; false if it is none of theirs. */
bool table_emit(Emitter *emit, const Kernel *kernel, KernelCall *call);
/* "affine_relu": the ops in order, cut where it gets long. */
const char *loop_stem(Arena *arena, const Kernel *kernel);
int64_t opt_chunks(const Node *node);
/* How many chunks `total` elements of work are cut into, at most `most`. It follows from the size
 * alone, never from the number of threads. */
int64_t chunk_count(int64_t total, int64_t most);

#endif
