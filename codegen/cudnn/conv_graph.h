/* Execution plans of cuDNN for convolutions, made from a ConvOp or read back from their text. The
 * device that a plan is for is an object of type DEVICEPROP, which can be made from a description
 * where there is no GPU. So the same code plans when ampcc compiles and again in a program that
 * finds another cuDNN. */
#ifndef AMPCC_CODEGEN_CUDNN_CONV_GRAPH_H
#define AMPCC_CODEGEN_CUDNN_CONV_GRAPH_H

#include "codegen/cudnn/conv_op.h"
#include "codegen/cudnn/cudnn_api.h"

/* conv_graph.c: the finished operation graph of an op. Tensor i of its row in conv_forms.def has
 * the unique id i + 1 and is aligned to 16 bytes. The draft owns the graph; NULL if the draft
 * failed. */
CudnnObject cuda_conv_graph(Draft *draft, const ConvOp *op);

/* conv_plan.c */
typedef struct ConvPlan {
  CudnnObject object; /* owned: see cuda_conv_plan_free */
  int64_t workspace;  /* bytes */
  int64_t engine;     /* the number that cuDNN gives its engine; -1: not known */
  uint32_t notes;     /* bit i: numerical note i of cuDNN */
} ConvPlan;

/* A device from its description in JSON, or (json NULL) the CUDA device with this number. NULL with
 * one line in `error`. The caller destroys it. */
CudnnObject cuda_conv_device(const CudnnApi *api, const char *json, int number, char *error,
                             size_t size);

/* The first `most` plans that suit the op, in cuDNN's own order, best first: heuristic A, then its
 * fallback. A plan suits whose engine gives equal bits every time, as far as cuDNN says, sums in
 * f32, compiles nothing when it is loaded, and computes f32 in f32 unless the op allows TF32.
 * Returns how many there are, which the caller frees; 0 with the reason in `error`. */
int cuda_conv_plans(const CudnnApi *api, const ConvOp *op, CudnnObject device, ConvPlan *out,
                    int most, char *error, size_t size);
/* The first of these plans that wants at most `workspace` bytes; if all want more, the first of
 * all. Builds no more plans than it takes to find it, mostly one. The caller frees it; false with
 * the reason in `error` if there are none. */
bool cuda_conv_plan_within(const CudnnApi *api, const ConvOp *op, CudnnObject device,
                           int64_t workspace, ConvPlan *out, char *error, size_t size);
void cuda_conv_plan_free(const CudnnApi *api, ConvPlan *plan);
/* A plan from its text, to be run with this handle. NULL with the reason in `why`. The caller
 * destroys it. */
CudnnObject cuda_conv_plan_load(const CudnnApi *api, cudnnHandle_t handle, const char *json,
                                size_t bytes, char *why, size_t size);
/* The operands for a run of a plan: n unique ids, their addresses on the device, and the address of
 * the workspace. NULL with the reason in `why`. The caller destroys it. */
CudnnObject cuda_conv_pack(const CudnnApi *api, int n, const int64_t *uid, void *const *at,
                           void *workspace, char *why, size_t size);
/* A plan's or a device's text as JSON: returns its bytes without the final NUL, and copies them to
 * `to` if they are no more than `size`; -1 if there is no text. */
int64_t cuda_conv_plan_json(const CudnnApi *api, CudnnObject plan, char *to, int64_t size);
int64_t cuda_conv_device_json(const CudnnApi *api, CudnnObject device, char *to, int64_t size);
/* Finds the object called `name` in a plan's text: it begins with its brace at `from` and ends with
 * its other brace before `past`. False if there is none of that name. Two are of use: "GPUProfile"
 * describes the device, and a program puts its own in the place, as cuDNN refuses a plan for
 * another; "engine", with its knobs, is all in which plans of one key differ. */
bool cuda_conv_json_object(const char *json, size_t bytes, const char *name, size_t *from,
                           size_t *past);

#endif
