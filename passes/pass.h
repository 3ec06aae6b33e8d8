/* A pass rewrites one graph in place and says whether it changed anything. pass_run wraps
 * each one with verification, timing and dumps, so passes contain none of that. */
#ifndef AMPCC_PASSES_PASS_H
#define AMPCC_PASSES_PASS_H

#include "ir/ir.h"
#include "passes/target.h"

typedef enum LossScaleMode {
  LOSS_SCALE_AUTO, /* dynamic for f16, none otherwise */
  LOSS_SCALE_NONE,
  LOSS_SCALE_FIXED,
  LOSS_SCALE_DYNAMIC,
} LossScaleMode;

/* --fp16-implementation: how the types of ops are chosen */
typedef enum Fp16Implementation {
  IMPL_OURS,
  IMPL_GRAPH_REWRITE, /* the same choice; loss scale as TensorFlow couples it  */
  IMPL_CASTING,       /* passes/precision/casting.c                                      */
  IMPL_POLICY,        /* passes/precision/policy.c                                       */
} Fp16Implementation;

/* --excess-precision: which casts fold-casts may remove */
typedef enum ExcessPrecision {
  EXCESS_EXACT, /* those without which every value stays the same                          */
  EXCESS_FUSED, /* also f32 -> low -> f32 between ops of one loop, where nothing is stored */
  EXCESS_FAST,  /* also every such pair, and the first of two roundings in a row           */
} ExcessPrecision;

/* --amp-compat: whose colouring amp follows */
typedef enum AmpCompat {
  AMP_OWN,  /* the default: for f16 that of TensorFlow up to 2.19                 */
  AMP_TF_A, /* the same, asked for by the flag                                    */
  AMP_TF_B, /* TensorFlow from 2.20 on: f16 ops follow low ones, as bf16's always */
} AmpCompat;

/* The values of --fuse-level. */
typedef enum FuseLevel {
  FUSE_LOOPS = 1,    /* only loops are fused */
  FUSE_MAINS,        /* main ops too, with what the target allows */
  FUSE_UNREPEATABLE, /* also with kernels that are not known to give the same bytes in every run */
} FuseLevel;

/* What the command line decides about the program, beyond the recipe. */
typedef struct CompileOptions {
  DType dtype; /* DT_F32, DT_F16, DT_BF16 */
  Fp16Implementation implementation;
  LossScaleMode loss_scale;
  bool scale_untested; /* a fixed scale has no finite test, as in TensorFlow */
  double scale_init, scale_growth, scale_backoff, scale_min, scale_max; /* 2^15 2 0.5 1 inf */
  int64_t scale_interval;                                               /* default 2000 */
  const struct PrecisionRules *rules; /* passes/precision/precision_rules.h; NULL: none */
  ExcessPrecision excess;
  AmpCompat amp_compat;
  bool bf16_2_15;     /* with AMP_TF_A: bfloat16 by the lists of TensorFlow 2.15 */
  int64_t max_memory; /* bytes of each graph's arena; 0: as many as needed, or as the target has */
  FuseLevel fuse_level;
  bool tf32;            /* f32 convolutions and products may multiply as TF32 */
  bool distributed;     /* make @train_dp too, the step on one of several shards */
  bool must_distribute; /* @train_dp is not left out where it does not fit in memory */
  bool sync_batch_norm; /* @train_dp normalises by the statistics of all shards */
  int64_t bucket_bytes; /* about so many are summed over shards at once */
  bool unfused;         /* a kernel for each op, so that every result can be examined */
} CompileOptions;

void compile_options_default(CompileOptions *options);

typedef struct PassContext {
  Module *module;
  const CompileOptions *options;
  const Target *target;
  Diag *diag;      /* for the user's mistakes; a pass that reports an error returns at once */
  Arena *scratch;  /* emptied after each pass */
  const char *ran; /* passes that ran on a graph, with commas between; NULL: none yet */
} PassContext;

typedef bool PassFn(PassContext *context, Graph *graph);

/* Which graphs a pass runs on. */
typedef enum PassScope {
  PASS_TRAIN, /* @train only (it may add graphs) */
  PASS_EACH,  /* every graph of the module */
} PassScope;

typedef struct PassInfo {
  const char *flag;
  PassFn *run;
  PassScope scope;
  Stage from, to; /* runs on graphs in stages from..to */
  const char *summary;
} PassInfo;

extern const PassInfo pass_info[];
extern const int n_passes;

#define PASS(id, flag, scope, from, to, summary) PassFn pass_##id;
#include "passes/passes.def"

/* What to print around passes, and where. */
typedef struct PassTrace {
  const char *print_before, *print_after; /* comma lists of flags, "all", or NULL */
  FILE *out;
} PassTrace;

const PassInfo *pass_find(const char *flag, size_t len); /* NULL if there is none */
/* The first name in a comma list that is no pass, with its length; NULL if all are. */
const char *pass_list_unknown(const char *list, size_t *len);
/* Runs one pass on the graphs it is for, sweeps, verifies. True if anything changed. */
bool pass_run(const PassInfo *pass, PassContext *context, const PassTrace *trace);
/* Runs the default pipeline without the passes named in `skip` (a comma list, or NULL). If `only`
 * is not NULL, runs just the passes that it lists, in that order; pass_list_unknown must have found
 * all names known. Stops at the first pass that reports an error and returns false. */
bool pipeline_run(PassContext *context, const char *only, const char *skip, const PassTrace *trace);
/* One line per pass: seconds spent so far. */
void pass_time_report(FILE *out);
/* What a pipeline has done so far, which the driver writes as a reproducer when an internal error
 * ends the run. */
typedef struct PassTrail {
  char *text;        /* the module before the first pass; NULL: passes run by themselves */
  const char *begun; /* the passes since then, with commas between; */
  const char *flag;  /* the last of them, which runs now */
} PassTrail;
/* NULL between passes. */
const PassTrail *pass_trail(void);
/* For pipeline_run alone: called before its first pass, keeps the text of the module; called after
 * its last, frees it. */
void pass_trail_begin(const Module *module);
void pass_trail_end(void);

#endif
