#include "runtime/cpu/api.h"

#include <stdio.h>

static dnnl_engine_t engine;
static dnnl_stream_t stream;
static dnnl_primitive_attr_t user_scratch; /* the caller provides scratchpad memory */
static char reason[200];

bool dnn_fail(const char *what, dnnl_status_t status) {
  static const char *const text[] = {"success",          "out of memory", "invalid arguments",
                                     "not implemented",  "end of list",   "run-time error",
                                     "must be a kernel", "another error"};
  int i = status >= 0 && status < 7 ? (int)status : 7;
  snprintf(reason, sizeof reason, "oneDNN: %s: %s", what, text[i]);
  return false;
}

const char *dnn_reason(void) {
  return reason;
}

static bool try(const char *what, dnnl_status_t status) {
  return status == dnnl_success || dnn_fail(what, status);
}

bool dnn_api_start(void) {
  if (stream)
    return true;
  return try("engine", dnnl_engine_create(&engine, dnnl_cpu, 0)) &&
         try("stream", dnnl_stream_create(&stream, engine, dnnl_stream_in_order)) &&
         try("attributes", dnnl_primitive_attr_create(&user_scratch)) &&
         try("attributes",
             dnnl_primitive_attr_set_scratchpad_mode(user_scratch, dnnl_scratchpad_mode_user));
}

void dnn_api_stop(void) {
  if (!stream)
    return;
  dnnl_primitive_attr_destroy(user_scratch);
  dnnl_stream_destroy(stream);
  dnnl_engine_destroy(engine);
  stream = NULL;
}

bool dnn_md_make(Md *md, int rank, const dnnl_dims_t dim, dnnl_data_type_t type,
                 dnnl_format_tag_t tag) {
#if DNNL_VERSION_MAJOR >= 3
  return try("descriptor", dnnl_memory_desc_create_with_tag(md, rank, dim, type, tag));
#else
  return try("descriptor", dnnl_memory_desc_init_by_tag(md, rank, dim, type, tag));
#endif
}

bool dnn_md_of_pd(Md *md, const_dnnl_primitive_desc_t pd, dnnl_query_t what) {
#if DNNL_VERSION_MAJOR >= 3
  return try("descriptor", dnnl_memory_desc_clone(md, dnnl_primitive_desc_query_md(pd, what, 0)));
#else
  *md = *dnnl_primitive_desc_query_md(pd, what, 0);
  return true;
#endif
}

void dnn_md_drop(Md *md) {
#if DNNL_VERSION_MAJOR >= 3
  dnnl_memory_desc_destroy(*md);
  *md = NULL;
#else
  (void)md;
#endif
}

int64_t dnn_md_bytes(MdRef md) {
  return (int64_t)dnnl_memory_desc_get_size(md);
}
bool dnn_md_same(MdRef a, MdRef b) {
  return dnnl_memory_desc_equal(a, b);
}

typedef struct Window { /* the arrays are as long as oneDNN wants them */
  dnnl_dims_t stride, dense, before, after;
} Window;

#if DNNL_VERSION_MAJOR >= 3
static dnnl_status_t conv_forward(dnnl_primitive_desc_t *pd, const Window *win, MdRef x, MdRef w,
                                  MdRef y) {
  return dnnl_convolution_forward_primitive_desc_create(
      pd, engine, dnnl_forward_training, dnnl_convolution_direct, x, w, NULL, y, win->stride,
      win->dense, win->before, win->after, user_scratch);
}

static dnnl_status_t conv_backward(dnnl_primitive_desc_t *pd, DnnKind kind, const Window *win,
                                   MdRef x, MdRef w, MdRef y, const_dnnl_primitive_desc_t forward) {
  if (kind == DNN_DGRAD)
    return dnnl_convolution_backward_data_primitive_desc_create(
        pd, engine, dnnl_convolution_direct, x, w, y, win->stride, win->dense, win->before,
        win->after, forward, user_scratch);
  return dnnl_convolution_backward_weights_primitive_desc_create(
      pd, engine, dnnl_convolution_direct, x, w, NULL, y, win->stride, win->dense, win->before,
      win->after, forward, user_scratch);
}
#else
static dnnl_status_t conv_forward(dnnl_primitive_desc_t *pd, const Window *win, MdRef x, MdRef w,
                                  MdRef y) {
  dnnl_convolution_desc_t desc;
  dnnl_status_t status =
      dnnl_convolution_forward_desc_init(&desc, dnnl_forward_training, dnnl_convolution_direct, x,
                                         w, NULL, y, win->stride, win->before, win->after);
  return status ? status : dnnl_primitive_desc_create(pd, &desc, user_scratch, engine, NULL);
}

static dnnl_status_t conv_backward(dnnl_primitive_desc_t *pd, DnnKind kind, const Window *win,
                                   MdRef x, MdRef w, MdRef y, const_dnnl_primitive_desc_t forward) {
  dnnl_convolution_desc_t desc;
  dnnl_status_t status =
      kind == DNN_DGRAD
          ? dnnl_convolution_backward_data_desc_init(&desc, dnnl_convolution_direct, x, w, y,
                                                     win->stride, win->before, win->after)
          : dnnl_convolution_backward_weights_desc_init(&desc, dnnl_convolution_direct, x, w, NULL,
                                                        y, win->stride, win->before, win->after);
  return status ? status : dnnl_primitive_desc_create(pd, &desc, user_scratch, engine, forward);
}
#endif

bool dnn_pd_conv(dnnl_primitive_desc_t *pd, const DnnOp *op, MdRef x, MdRef w, MdRef y) {
  Window win = {.stride = {op->stride[0], op->stride[1]},
                .before = {op->pad[0], op->pad[2]},
                .after = {op->pad[1], op->pad[3]}};
  dnnl_primitive_desc_t forward;
  if (!try("convolution", conv_forward(&forward, &win, x, w, y)))
    return false;
  if (op->kind == DNN_CONV) {
    *pd = forward;
    return true;
  }
  dnnl_status_t status = conv_backward(pd, op->kind, &win, x, w, y, forward);
  dnnl_primitive_desc_destroy(forward);
  return try("gradient of convolution", status);
}

bool dnn_pd_reorder(dnnl_primitive_desc_t *pd, MdRef from, MdRef to) {
  return try("reorder",
             dnnl_reorder_primitive_desc_create(pd, from, engine, to, engine, user_scratch));
}

bool dnn_prim_make(dnnl_primitive_t *prim, const_dnnl_primitive_desc_t pd) {
  return try("code generation", dnnl_primitive_create(prim, pd));
}

bool dnn_mem_make(dnnl_memory_t *mem, MdRef md, void *at) {
  return try("memory", dnnl_memory_create(mem, md, engine, at));
}

bool dnn_prim_run(const_dnnl_primitive_t prim, int n_args, const dnnl_exec_arg_t *arg) {
  return try("execution", dnnl_primitive_execute(prim, stream, n_args, arg)) &&
         try("execution", dnnl_stream_wait(stream));
}
