/* Choices among the engines of cuDNN that programs have timed (--tune), for the next compile
 * (--tuning-db). A file is for one GPU:
 *
 *   {"ampcc_tuning": 1,
 *    "device": "NVIDIA H200", "capability": 90, "cudnn": 91900,
 *    "plans": {
 *     "fprop f16 n256 h56 w56 c64 k64 r3 s3 u1,1 p1,1,1,1": [
 *       {"microseconds": 41.20, "engine": {"engineId":62,"smVersion":900,"knobChoices":{...}}},
 *       ...]}}
 *
 * with the fastest engine first, which is the one that is taken. */
#ifndef AMPCC_CODEGEN_CUDA_TOOLKIT_TUNING_H
#define AMPCC_CODEGEN_CUDA_TOOLKIT_TUNING_H

#include "ir/base/arena.h"
#include "ir/base/diag.h"

typedef struct TunedPlan {
  const char *key, *engine; /* as cuda_conv_key_print and as cuDNN write them */
} TunedPlan;

typedef struct TuningFile {
  int capability, cudnn_version; /* 90, 91900: what its choices are for */
  TunedPlan *plan;
  int n, cap;
} TuningFile;

typedef struct Tuning {
  TuningFile *file;
  int n, cap;
} Tuning;

/* Adds a file with this text. False after errors (E407) that name the place. */
bool tuning_parse(Arena *arena, const char *path, const char *text, Tuning *out, Diag *diag);
/* Is there a file for this capability and version of cuDNN? */
bool tuning_covers(const Tuning *tuning, int capability, int cudnn_version);
/* The engine that the first such file names for the key; NULL: there is none. */
const char *tuning_find(const Tuning *tuning, int capability, int cudnn_version, const char *key);

#endif
