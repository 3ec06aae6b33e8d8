/* Execution plans of cuDNN for convolutions: made from a ConvOp or read back from their text. The
 * device is an object of type DEVICEPROP, made from a description where there is no GPU, so one
 * code plans when compiling and again in a program whose cuDNN is another one. */
#ifndef AMPCC_CODEGEN_CUDNN_CONV_GRAPH_H
#define AMPCC_CODEGEN_CUDNN_CONV_GRAPH_H

#include "codegen/cudnn/conv_op.h"
#include "codegen/cudnn/cudnn_api.h"

/* conv_graph.c: the finished operation graph of an op, with tensor i of conv_forms.def as unique id
 * i + 1, 16 bytes aligned. Destroyed with the draft; NULL if that failed. */
CudnnObject cuda_conv_graph(Draft *draft, const ConvOp *op);

/* conv_plan.c */
typedef struct ConvPlan {
  CudnnObject object; /* owned: cuda_conv_plan_free */
  int64_t workspace;  /* bytes */
  int64_t engine;     /* cuDNN's number of it */
  uint32_t notes;     /* bit i: numerical note i of cuDNN */
} ConvPlan;

/* A device from its description in JSON, or (json NULL) the CUDA device with this number. NULL with
 * one line in `error`. The caller destroys it. */
CudnnObject cuda_conv_device(const CudnnApi *api, const char *json, int number, char *error,
                             size_t size);

/* The first `most` plans of those that suit the op, best first by cuDNN's own order (heuristic A,
 * then its fallback): of engines that give equal bits every time, sum in f32, need no compiler when
 * they are loaded, and keep f32 f32 (tf32 of the op). How many there are; 0 with the reason in
 * `error`. */
int cuda_conv_plans(const CudnnApi *api, const ConvOp *op, CudnnObject device, ConvPlan *out,
                    int most, char *error, size_t size);
/* The first of these plans that wants at most `workspace` bytes; if none is content with that, the
 * first of all. Builds no more plans than it takes to find it, mostly one. False with the reason in
 * `error` if there are none. */
bool cuda_conv_plan_within(const CudnnApi *api, const ConvOp *op, CudnnObject device,
                           int64_t workspace, ConvPlan *out, char *error, size_t size);
/* A plan from its text, checked by cuDNN against its version and the device. Only `object` and
 * `workspace` of *out are set. */
bool cuda_conv_plan_load(const CudnnApi *api, const char *json, size_t bytes, CudnnObject device,
                         ConvPlan *out, char *error, size_t size);
void cuda_conv_plan_free(const CudnnApi *api, ConvPlan *plan);
/* A plan's or a device's text: bytes without the final NUL, at most `size` of them copied; -1 if
 * there is none. */
int64_t cuda_conv_plan_json(const CudnnApi *api, CudnnObject plan, char *to, int64_t size);
int64_t cuda_conv_device_json(const CudnnApi *api, CudnnObject device, char *to, int64_t size);
/* Where an object stands in a plan's text, braces included; false if there is none of that name.
 * "GPUProfile", the device: cuDNN refuses a plan whose driver or clock differ, so a program puts
 * its own device's in the place. "engine", with its knobs: all that differs between plans of one
 * key. */
bool cuda_conv_json_object(const char *json, size_t bytes, const char *name, size_t *from,
                           size_t *past);

#endif
