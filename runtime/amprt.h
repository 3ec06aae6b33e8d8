/* libamprt: the tiny library in every trained program. This is the only header that generated
 * code includes; it fixes the plan format between compiler and runtime. Generated code
 * defines one `const AmprtProgram` for each part and a `main` that calls amprt_main. The runtime
 * knows nothing of the compiler and of no kernel library.
 *
 * Memory: two blocks, both allocated once by the runtime with 64-byte alignment and zeroed:
 * `state` (variables; lives as long as the program, saved in checkpoints) and `arena` (all the
 * rest, shared by the graphs, contents undefined between steps). All offsets are in bytes and fixed
 * at compile time. */
#ifndef AMPRT_H
#define AMPRT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { AMPRT_ABI = 12, AMPRT_MAX_RANK = 6 };

/* The order is that of ir/dtypes.def. */
typedef enum AmprtDType {
  AMPRT_F32,
  AMPRT_F16,
  AMPRT_BF16,
  AMPRT_F64,
  AMPRT_I32,
  AMPRT_I64,
  AMPRT_U8,
  AMPRT_BOOL
} AmprtDType;

typedef enum AmprtKind {
  AMPRT_PARAM,   /* trained, f32; in checkpoints under its own name                          */
  AMPRT_SLOT,    /* optimizer state of parameter `of`; in checkpoints                        */
  AMPRT_STAT,    /* moving statistic; in checkpoints                                         */
  AMPRT_SCALE,   /* loss-scale state; in checkpoints, dropped with a word on other dtypes    */
  AMPRT_COUNTER, /* global step; in checkpoints                                              */
  AMPRT_COPY,    /* low-precision copy of `of`: not in checkpoints, recomputed when that is set */
  AMPRT_SUM,     /* over the parts of a batch; not in checkpoints, which are made between batches */
  AMPRT_AVERAGE, /* of parameter `of` over time, f32: begins as that does; in checkpoints */
} AmprtKind;

/* How a variable is filled before the first step; what stands behind each is its init_arg[]. */
typedef enum AmprtInit {
  AMPRT_ZEROS,
  AMPRT_ONES,
  AMPRT_CONSTANT,         /* value */
  AMPRT_UNIFORM,          /* low, high */
  AMPRT_NORMAL,           /* mean, stddev */
  AMPRT_TRUNCATED_NORMAL, /* mean, stddev; values beyond 2 stddev are drawn again */
  /* scale, mode (0 fan_in, 1 fan_out, 2 average), distribution (0 truncated normal with the stddev
   * divided by .87962566103423978, 1 untruncated normal, 2 uniform, 3 truncated without that
   * correction). fan_in of [K,R,S,C] is R*S*C, fan_out R*S*K; of [out,in]: in, out. */
  AMPRT_VARIANCE_SCALING,
  AMPRT_DATA, /* none: init_data holds one double per element */
} AmprtInit;

typedef struct AmprtVariable {
  const char *name; /* unique; parameters and statistics: the torchvision name for the ResNets */
  uint8_t dtype, rank, kind, init;
  int64_t dim[AMPRT_MAX_RANK]; /* logical; rank-4 parameters (and their slots) are K,R,S,C here and
                                  K,C,R,S in checkpoints */
  uint64_t at;                 /* offset in the state block */
  const char *of;              /* SLOT, COPY: parameter; else NULL */
  double init_arg[3];
  const double *init_data; /* AMPRT_DATA only */
  const char *layer;       /* PARAM, COPY: the layer that reads it first; else NULL */
} AmprtVariable;

/* A named tensor of a graph: an input that the runtime fills before kernel 0, an output that kernel
 * `after` makes and that lives to the end, or a tap that --dump-step and --grad-histogram-every
 * read right after kernel `after`. */
typedef struct AmprtPort {
  const char *name; /* inputs: image, label, schedule, bn_momentum, first_part, mix, shard_factor,
                       stop_vote. outputs: loss, accuracy, logits, learning_rate, finite, loss_each,
                       hit_each, hit5_each, stop_votes. taps: PARAM.grad */
  uint8_t dtype, rank;
  uint8_t in_state; /* offset is into the state block */
  uint8_t scaled;   /* taps: multiplied by the loss scale (variable "loss_scale"); divide it out */
  uint8_t pixels;   /* inputs: the device can make it of bytes (AmprtInput.scaling) */
  int64_t dim[AMPRT_MAX_RANK];
  uint64_t at;
  int32_t after;
} AmprtPort;

typedef struct AmprtThreads AmprtThreads;

typedef struct AmprtRun { /* what a kernel sees */
  unsigned char *arena, *state;
  const AmprtThreads *threads; /* NULL where kernels have no functions */
  const void *const *constant; /* AmprtProgram.constant */
} AmprtRun;

/* A part of a loop. The chunks of a loop share no result, so they may run in any order and at the
 * same time. */
typedef void AmprtChunk(const AmprtRun *run, const void *args, int64_t chunk);

/* The threads on which kernels compute. Only one thread at a time runs kernels. */
struct AmprtThreads {
  /* Starts them: n with the calling one; 0: as many as OMP_NUM_THREADS says, or else as there are
   * processors that this process may use. 0, or -1 with one line in `error`. */
  int (*open)(int n, char *error, size_t error_size);
  void (*close)(void);
  /* Binds each thread but the calling one to a processor of its own, of those that this process may
   * use: the calling thread starts others, which would be bound with it. 0, or -1 with one line in
   * `error`. */
  int (*pin)(char *error, size_t error_size);
  int (*count)(void);
  /* The number of the calling thread, from 0 to count - 1. */
  int (*number)(void);
  /* Calls chunk(run, args, i) for each i from 0 to n - 1, and returns when all are done. A loop
   * that is started by a chunk, or before open, runs on the calling thread alone. */
  void (*loop)(int64_t n, AmprtChunk *chunk, const AmprtRun *run, const void *args);
};
extern const AmprtThreads amprt_threads; /* the runtime's own */

/* 1: threads of this process may use the matrix registers of AMX for bf16, for which the first call
 * asks the kernel; 0: this CPU or kernel has none. */
int amprt_amx(void);

/* 1: a program for CPUs that multiply bf16 in pairs (AVX512_BF16) is faster than one that computes
 * in f32; 0: this CPU is one of Intel's from Sapphire Rapids on, whose vectors make half as many
 * products of bf16 in a second as of f32, and this process may not use AMX. (180 against 370
 * GFLOP/s on two processors of model 207, 2026-11-25, tests/bench/machine_peak.c.) */
int amprt_bf16_pairs_pay(void);

/* What computes a kernel. */
typedef void AmprtFunction(const AmprtRun *run, const void *args);

typedef struct AmprtKernel {
  const void *args;  /* constant data of its call */
  const char *name;  /* e.g. "k12_affine_relu" */
  const char *layer; /* user's layer, e.g. "layer1.0.bn1" */
} AmprtKernel;

/* A floating-point result that a kernel leaves in the arena, where it can be looked at right after
 * that kernel. Later ones may take its place. */
typedef struct AmprtValue {
  const char *name;   /* in the text form; unique in its graph */
  const char *op;     /* "conv2d" */
  const char *layer;  /* user's layer, or "" */
  const char *makers; /* the ops of its kernel that can have made it Inf or NaN, such as "affine of
                         layer1.0.bn1"; NULL: `op` alone */
  uint64_t at, elements;
  int32_t kernel;
  uint8_t dtype;
} AmprtValue;

/* A range of the arena that is summed over the shards of a step: gradients, statistics, reports.
 * The sums take its place. All buckets of a graph lie side by side in their order. */
typedef struct AmprtBucket {
  uint64_t at;       /* a multiple of 64 */
  uint64_t elements; /* of f32, a multiple of 16; what lies in gaps between tensors is summed too */
  int32_t ready;     /* whole once this kernel has run; no later one before `reader` touches it */
  int32_t reader;    /* the first kernel that reads sums */
} AmprtBucket;

typedef struct AmprtGraph {
  const char *name; /* train, eval, stats, accumulate, train_dp: train on one of several shards */
  const AmprtKernel *kernel;
  AmprtFunction *const *run; /* the function of each kernel, unless the program has a device */
  const AmprtPort *input, *output, *tap;
  int32_t n_kernels, n_inputs, n_outputs, n_taps;
  uint64_t arena_bytes;
  const AmprtValue *value; /* by kernel, rising; of graph train only */
  int32_t n_values;
  int32_t first_update; /* no kernel before this one changes a parameter, slot, scale or counter */
  const AmprtBucket *bucket; /* of graph train_dp only, in the order in which they become ready */
  int32_t n_buckets;
  /* Kernels before this one run for every shard; those from it on read sums, and run once. A bucket
   * whose reader is before it (synchronised batch normalisation) joins shards in mid-pass. No
   * kernel before this one changes state. A tap of this graph is the shard's own gradient right
   * after its kernel, and the sum once its bucket has arrived. */
  int32_t n_local;
} AmprtGraph;

/* An entry of the recipe: the flag's name without dashes, its value as on the command line. */
typedef struct AmprtSetting {
  const char *flag, *value;
} AmprtSetting;

/* A text as zlib compresses it: its bytes, how many, and how many the text has; 0: the bytes are
 * the text. */
typedef struct AmprtPacked {
  const char *bytes;
  uint64_t size, text_size;
} AmprtPacked;

/* What the bytes of one channel of one image mean: (float)((byte - offset) / scale), in double, and
 * then rounded to the port's type. */
typedef struct AmprtScaling {
  double offset, scale;
} AmprtScaling;

/* What an input port gets. */
typedef struct AmprtInput {
  const void *data; /* the port's bytes; NULL: the same as in the last start, which was of this
                       graph */
  const AmprtScaling *scaling; /* NULL, or data is one byte per element, and this is
                                  [batch_size, channels] */
} AmprtInput;

/* A target whose memory is not the host's. The runtime then keeps both blocks in host memory too,
 * touches there only what it fills or looks at, and moves those bytes (machine.h). Functions return
 * 0, or -1 with one line in error(). The first failure stays: whatever is called after it does
 * nothing and returns -1. */
typedef struct AmprtProgram AmprtProgram;
typedef enum AmprtBlock { AMPRT_ARENA, AMPRT_STATE } AmprtBlock;
enum { AMPRT_MAX_WATCHED = 16, AMPRT_AHEAD = 16, AMPRT_ID_BYTES = 128 };

/* How sums over several devices are made: as fast as the library can, in an order that a repeated
 * run on the same machines has again, or in one that depends on the number of shards alone. */
typedef enum AmprtOrder { AMPRT_ORDER_ANY, AMPRT_ORDER_RUN, AMPRT_ORDER_PLACEMENT } AmprtOrder;

/* The processes that train together, for a device that sums over theirs. */
typedef struct AmprtRanks {
  int rank, size;
  int local_rank; /* among the processes of this machine: which of its devices to take */
  AmprtOrder order;
  const unsigned char *id; /* AMPRT_ID_BYTES, which AmprtDevice.make_id made on rank 0 */
  double timeout;          /* seconds until open must have reached all ranks; 0: 300 */
} AmprtRanks;
typedef struct AmprtDevice {
  /* Makes the bytes by which all ranks find each other. Before open; NULL: this device cannot. */
  int (*make_id)(unsigned char *id);
  /* Allocates both blocks (zeroed) and all else, captures nothing yet. Once, before the others but
   * make_id. `strict`: plans that do not fit the libraries found here are an error, not made anew.
   * `ranks`: NULL, or runs of graph train_dp sum over the devices of all ranks. */
  int (*open)(const AmprtProgram *program, uint64_t state_bytes, uint64_t arena_bytes, int strict,
              const AmprtRanks *ranks);
  void (*close)(void); /* also after an open that failed */
  /* Copies that are done when they return, in order with all that was started before. */
  int (*write)(AmprtBlock block, uint64_t at, const void *from, uint64_t bytes);
  int (*read)(AmprtBlock block, uint64_t at, void *to, uint64_t bytes);
  /* Starts one run of a whole graph and returns at once. `inputs` is one per input port of the
   * graph; their bytes are taken before it returns. A run of the graph that `watch` named keeps the
   * scalars as the last kernel leaves them; at most AMPRT_AHEAD such runs are not yet collected. */
  int (*start)(int graph, const AmprtInput *inputs);
  /* Names the graph that trains, 0 or train_dp, and up to AMPRT_MAX_WATCHED scalars, each of at
   * most 8 bytes. Before the first start that is to be collected. */
  int (*watch)(int graph, const AmprtBlock *block, const uint64_t *at, const uint32_t *bytes,
               int n);
  /* Waits for the oldest run of that graph not yet collected; 8 bytes per watched scalar. -1 also
   * if none is left. */
  int (*collect)(void *to);
  /* Runs kernels first..past-1 of a graph and waits: for --profile, --dump-step and the like.
   * seconds[i] (NULL: not wanted) is added what kernel first + i took. */
  int (*kernels)(int graph, int first, int past, double *seconds);
  const char *(*error)(void); /* NULL: nothing has failed */
  /* Times what the compiler left to choose among, in place of all else: a table on standard output
   * (`quiet`: its last line alone), and the choices as text for `ampcc --tuning-db`, to be freed.
   * NULL: failed. */
  char *(*tune)(int quiet);
} AmprtDevice;

struct AmprtProgram {
  uint32_t abi;                                 /* AMPRT_ABI */
  const char *model, *version, *target, *dtype; /* "cifar_resnet20", "ampcc 0.1.0", "cpu", "fp16" */
  const char *fingerprint;                      /* hex hash of the model's IR: names, shapes, ops */
  int64_t batch_size, n_classes, height, width, channels; /* of input "image" */
  const AmprtVariable *variable;
  int32_t n_variables;
  const AmprtGraph *graph; /* [0] is train; its arena may be smaller than that of train_dp */
  int32_t n_graphs;
  uint64_t state_bytes;
  const AmprtSetting *recipe;
  int32_t n_recipe;
  double bn_momentum; /* largest of the model's, 0 if it has no batch norm: for the lag warning */
  AmprtPacked memory_plan, precision; /* of --print-memory-plan, --print-precision */
  const AmprtSetting *made; /* like recipe, what the compiler has built in; for checkpoints */
  int32_t n_made;
  const AmprtSetting *given; /* ampcc's own flags as it was given them; the value of one without an
                                argument is "true", FILE stands for that of one with a path */
  int32_t n_given;
  const char *head;            /* the layer that makes the logits, or NULL */
  const void *const *constant; /* what kernels read beside both blocks, by number; NULL: nothing */
  /* Hooks of the target's generated code; any may be NULL. open makes library objects (once, before
   * any kernel) and returns 0, or -1 with one line in `error`. */
  int (*open)(const AmprtRun *run, char *error, size_t error_size);
  void (*close)(void);
  const char *(*describe)(void); /* e.g. "oneDNN 2.6.3, AVX-512", for --about and -v */
  const AmprtThreads *threads;   /* opened before `open`; NULL with a device */
  /* NULL: kernels are called on host memory. Else kernels have no functions and open, close are not
   * called: the device runs whole graphs. */
  const AmprtDevice *device;
  /* A step is so many runs, each on batch_size examples: of graph "accumulate", and the last of
   * graph 0. 0 is 1. */
  int64_t parts;
  /* What the program was made from, as JSON without its end: the list of parts, which is the
   * part_manifest of each. And the graph before the first pass, as ampcc reads it. The first part
   * has both for the whole program. */
  AmprtPacked manifest, part_manifest, ir;
};

/* The texts stand in the section `ampcc` of an executable, where tools find them without running
 * it: each begins at a multiple of 8 bytes, and there may be zeros between them. */
#define AMPRT_NOTE_MARK "AMPNOTE"
typedef struct AmprtNote {
  char mark[8];             /* AMPRT_NOTE_MARK */
  char name[24];            /* "manifest", "part", "ir", "memory_plan", "precision" */
  uint64_t size, text_size; /* of the bytes that follow, as in AmprtPacked */
} AmprtNote;

/* One target's part of an executable. */
typedef struct AmprtPart {
  const char *name; /* "cpu", "cuda:sm_90" */
  const AmprtProgram *program;
  /* Can it run here? 0, or -1 with one line in `why`. The last part asked is the one that runs.
   * NULL: it always can. */
  int (*fits)(char *why, size_t size);
} AmprtPart;

/* The whole program: parses flags, loads data, trains, evaluates, saves. Returns the exit status: 0
 * done, 1 the user's input was bad, 2 usage, 3 the environment failed, 130/143 stopped by a signal
 * after saving. Never calls exit.
 *
 * Runs the first part that fits, or the first of those that --device=NAME names ("cuda" is every
 * "cuda:..."). So the fastest comes first, "cpu" last. Says on standard error which, and of those
 * before it why not; 3 if none fits. */
int amprt_main(const AmprtPart *part, int n_parts, int argc, char **argv);

#ifdef __cplusplus
}
#endif
#endif
