/* Plans of the fake cuDNN as text: cuDNN's own, and ours for graphs that are planned anew. */
#include "cudnn.h"

#include <jansson.h>
#include <stdio.h>

static const struct {
  const char *operation; /* in the text */
  const char *x, *filter, *y;
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t geometry, at_x, at_filter, at_y;
} forms[] = {
    [FAKE_FPROP] = {"CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR", "X", "W", "Y",
                    CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y},
    [FAKE_DGRAD] = {"CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR", "dX", "W", "dY",
                    CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY},
    [FAKE_WGRAD] = {"CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR", "X", "dW",
                    "dY", CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY},
};
enum { N_FORMS = sizeof forms / sizeof *forms };
static const char stats_operation[] = "CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR";

static const struct {
  const char *name;
  cudnnDataType_t type;
} types[] = {[AMPRT_F32] = {"CUDNN_DATA_FLOAT", CUDNN_DATA_FLOAT},
             [AMPRT_F16] = {"CUDNN_DATA_HALF", CUDNN_DATA_HALF},
             [AMPRT_BF16] = {"CUDNN_DATA_BFLOAT16", CUDNN_DATA_BFLOAT16}};

char *plan_profile(void) {
  char *text = calloc(1, 400);
  if (!text)
    abort();
  snprintf(text, 400,
           "{\"multiProcessorCount\":7,\"totalGlobalMem\":%lld,\"deviceVer\":%lld,"
           "\"driverVer\":%lld,\"deviceName\":\"Fake GPU\"}",
           fake_number("FAKE_CUDA_MEMORY", 1ll << 31), 10 * fake_number("FAKE_CUDA_CAPABILITY", 90),
           fake_number("FAKE_CUDA_DRIVER", 13000));
  return text;
}

/* ---- text to plan ---- */

static int64_t number(const json_t *array, size_t i) {
  return json_integer_value(json_array_get(array, i));
}

static const json_t *tensor_named(const json_t *graph, const char *name) {
  const json_t *tensors = json_object_get(graph, "tensors");
  for (size_t i = 0; i < json_array_size(tensors); i++) {
    const json_t *tensor = json_array_get(tensors, i);
    const char *have = json_string_value(json_object_get(tensor, "name"));
    if (have && strcmp(have, name) == 0)
      return tensor;
  }
  return NULL;
}

/* The operand that field `field` of the operation names: its extents, if it lies as channels last.
 */
static bool read_operand(const json_t *graph, const json_t *node, const char *field, int64_t *uid,
                         int64_t dim[4], AmprtDType *type) {
  const char *name = json_string_value(json_object_get(node, field));
  const json_t *tensor = name ? tensor_named(graph, name) : NULL;
  const json_t *stride = json_object_get(tensor, "stride");
  const char *type_name = json_string_value(json_object_get(tensor, "dataType"));
  if (!tensor || json_is_true(json_object_get(tensor, "isVirtual")) || !type_name)
    return false;
  *uid = atoll(name);
  for (size_t i = 0; i < 4; i++)
    dim[i] = number(json_object_get(tensor, "dim"), i);
  *type = AMPRT_F32;
  for (int i = 0; i < 3; i++)
    if (strcmp(type_name, types[i].name) == 0)
      *type = (AmprtDType)i;
  return number(stride, 1) == 1 && number(stride, 3) == dim[1] &&
         number(stride, 2) == dim[1] * dim[3] && number(stride, 0) == dim[1] * dim[2] * dim[3];
}

static bool read_geometry(const json_t *node, FakeConv *conv) {
  const json_t *pad = json_object_get(node, "pad"), *one = json_object_get(node, "dilation");
  pad =
      pad ? pad : json_object_get(node, "pad_lower"); /* the sides are told apart if they differ */
  for (size_t i = 0; i < 2; i++) {
    conv->stride[i] = number(json_object_get(node, "stride"), i);
    conv->pad[i] = number(pad, i);
  }
  return pad && conv->stride[0] > 0 && conv->stride[1] > 0 && number(one, 0) == 1 &&
         number(one, 1) == 1 && json_number_value(json_object_get(node, "alpha")) == 1 &&
         json_number_value(json_object_get(node, "beta")) == 0;
}

static bool read_conv(Object *plan, const json_t *graph, const json_t *node) {
  const char *operation = json_string_value(json_object_get(node, "operation"));
  int64_t x[4], f[4], y[4];
  AmprtDType type_x, type_f, type_y;
  int form = 0;
  while (form < N_FORMS && (!operation || strcmp(operation, forms[form].operation) != 0))
    form++;
  if (form == N_FORMS || !read_operand(graph, node, forms[form].x, &plan->uid[0], x, &type_x) ||
      !read_operand(graph, node, forms[form].filter, &plan->uid[1], f, &type_f) ||
      !read_operand(graph, node, forms[form].y, &plan->uid[2], y, &type_y))
    return false;
  plan->conv = (FakeConv){.form = (FakeForm)form,
                          .type = type_x,
                          .n = x[0],
                          .c = x[1],
                          .h = x[2],
                          .w = x[3],
                          .k = f[0],
                          .r = f[2],
                          .s = f[3],
                          .ho = y[2],
                          .wo = y[3]};
  return type_x == type_f && type_f == type_y && f[1] == x[1] && y[1] == f[0] && y[0] == x[0] &&
         read_geometry(node, &plan->conv);
}

/* Sums over the result of the convolution before. */
static bool read_stats(Object *plan, const json_t *graph, const json_t *node) {
  static const char *const field[] = {"Sum", "SqSum"};
  const char *operation = json_string_value(json_object_get(node, "operation"));
  const char *y = json_string_value(json_object_get(node, "X"));
  if (!operation || strcmp(operation, stats_operation) != 0 || plan->conv.form != FAKE_FPROP ||
      !y || atoll(y) != plan->uid[2])
    return false;
  for (int i = 0; i < 2; i++) {
    int64_t dim[4];
    AmprtDType type;
    if (!read_operand(graph, node, field[i], &plan->uid[3 + i], dim, &type) || type != AMPRT_F32 ||
        dim[1] != plan->conv.k)
      return false;
  }
  plan->n_uids = 5;
  return true;
}

static bool read_nodes(Object *plan, const json_t *graph) {
  const json_t *nodes = json_object_get(graph, "nodes");
  size_t n = json_array_size(nodes);
  plan->n_uids = 3;
  return n >= 1 && n <= 2 && read_conv(plan, graph, json_array_get(nodes, 0)) &&
         (n == 1 || read_stats(plan, graph, json_array_get(nodes, 1)));
}

static bool has_profile(const json_t *root) {
  char *own = plan_profile();
  json_t *want = json_loads(own, 0, NULL);
  bool same = json_equal(want, json_object_get(root, "GPUProfile"));
  json_decref(want);
  free(own);
  return same;
}

static cudnnStatus_t check_root(Object *plan, const json_t *root) {
  const json_t *graph = json_object_get(root, "operationGraph");
  if (!root)
    return fake_cudnn_fail(CUDNN_STATUS_BAD_PARAM, "the text is no JSON");
  if (json_integer_value(json_object_get(root, "cudnnVersion")) !=
      fake_number("FAKE_CUDNN_VERSION", 91900))
    return fake_cudnn_fail(CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH, "cudnnVersion differs");
  if (!has_profile(root))
    return fake_cudnn_fail(CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH, "GPUProfile differs");
  if (!json_is_object(json_object_get(root, "engine")))
    return fake_cudnn_fail(CUDNN_STATUS_BAD_PARAM, "no engine");
  if (!read_nodes(plan, graph))
    return fake_cudnn_fail(CUDNN_STATUS_BAD_PARAM, "the fake cannot run this graph");
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t plan_read(Object *plan, const char *json, size_t count) {
  json_t *root = json_loadb(json, strnlen(json, count), 0, NULL);
  cudnnStatus_t status = check_root(plan, root);
  json_decref(root);
  plan->json = strndup(json, count);
  return status;
}

/* ---- graph to text ---- */

static json_t *tensor_text(const Object *tensor) {
  json_t *dim = json_array(), *stride = json_array();
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  char name[24];
  memcpy(&type, attribute_find(tensor, CUDNN_ATTR_TENSOR_DATA_TYPE)->bytes, sizeof type);
  for (int i = 0; i < 4; i++) {
    json_array_append_new(dim,
                          json_integer(attribute_int(tensor, CUDNN_ATTR_TENSOR_DIMENSIONS, i)));
    json_array_append_new(stride,
                          json_integer(attribute_int(tensor, CUDNN_ATTR_TENSOR_STRIDES, i)));
  }
  snprintf(name, sizeof name, "%lld",
           (long long)attribute_int(tensor, CUDNN_ATTR_TENSOR_UNIQUE_ID, 0));
  int t = 0;
  while (t < 2 && types[t].type != type)
    t++;
  return json_pack("{ss ss so so sb}", "name", name, "dataType", types[t].name, "dim", dim,
                   "stride", stride, "isVirtual", 0);
}

static json_t *pair(const Object *object, cudnnBackendAttributeName_t name) {
  return json_pack("[II]", (json_int_t)attribute_int(object, name, 0),
                   (json_int_t)attribute_int(object, name, 1));
}

/* Adds the operand to the graph's tensors and names it in the node. */
static void add_operand(json_t *node, const char *field, json_t *tensors, const Object *operand) {
  json_t *tensor = tensor_text(operand);
  json_object_set(node, field, json_object_get(tensor, "name"));
  json_array_append_new(tensors, tensor);
}

static json_t *stats_text(const Object *operation, json_t *tensors) {
  json_t *node = json_pack("{ss}", "operation", stats_operation);
  const Object *y = attribute_object(operation, CUDNN_ATTR_OPERATION_GENSTATS_XDESC, 0);
  json_t *tensor = tensor_text(y);
  json_object_set(node, "X", json_object_get(tensor, "name"));
  json_decref(tensor); /* the convolution has added it */
  add_operand(node, "Sum", tensors,
              attribute_object(operation, CUDNN_ATTR_OPERATION_GENSTATS_SUMDESC, 0));
  add_operand(node, "SqSum", tensors,
              attribute_object(operation, CUDNN_ATTR_OPERATION_GENSTATS_SQSUMDESC, 0));
  return node;
}

static json_t *node_text(const Object *operation, int form, json_t *tensors) {
  const Object *geometry = attribute_object(operation, forms[form].geometry, 0);
  const cudnnBackendAttributeName_t at[] = {forms[form].at_x, forms[form].at_filter,
                                            forms[form].at_y};
  const char *const field[] = {forms[form].x, forms[form].filter, forms[form].y};
  json_t *node =
      json_pack("{ss so so so sf sf}", "operation", forms[form].operation, "pad_lower",
                pair(geometry, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS), "stride",
                pair(geometry, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES), "dilation",
                pair(geometry, CUDNN_ATTR_CONVOLUTION_DILATIONS), "alpha", 1.0, "beta", 0.0);
  for (int i = 0; i < 3; i++)
    add_operand(node, field[i], tensors, attribute_object(operation, at[i], 0));
  return node;
}

cudnnStatus_t plan_write(Object *plan, const Object *graph) {
  const Attribute *ops = graph ? attribute_find(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS) : NULL;
  const Object *operation = ops ? attribute_object(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, 0) : NULL;
  const Object *second =
      ops && ops->count == 2 ? attribute_object(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, 1) : NULL;
  int form = 0;
  while (operation && form < N_FORMS && forms[form].type != operation->type)
    form++;
  bool has_stats = second && second->type == CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR;
  if (!operation || form == N_FORMS || ops->count != 1 + has_stats)
    return fake_cudnn_fail(CUDNN_STATUS_NOT_SUPPORTED, "the fake cannot plan this graph");
  char *profile = plan_profile();
  json_t *tensors = json_array(), *nodes = json_array();
  json_array_append_new(nodes, node_text(operation, form, tensors));
  if (has_stats)
    json_array_append_new(nodes, stats_text(second, tensors));
  json_t *root = json_pack("{sI s{so so} so s{si}}", "cudnnVersion",
                           (json_int_t)fake_number("FAKE_CUDNN_VERSION", 91900), "operationGraph",
                           "tensors", tensors, "nodes", nodes, "GPUProfile",
                           json_loads(profile, 0, NULL), "engine", "engineId", 0);
  cudnnStatus_t status = check_root(plan, root);
  plan->json = json_dumps(root, JSON_COMPACT);
  json_decref(root);
  free(profile);
  return status;
}
