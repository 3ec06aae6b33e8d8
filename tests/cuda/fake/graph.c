#include "graph.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
  const char *name, *mode, *shapes, *in, *out;
} operations[FAKE_OPERATIONS] = {
#define OPERATION(id, name, mode, shapes, in, out)                                                 \
  [FAKE_##id] = {"CUDNN_BACKEND_OPERATION_" name "_DESCRIPTOR", mode, shapes, in, out},
#include "graph.def"
};

typedef struct Reader {
  FakeGraph *graph;
  bool made[FAKE_MOST_TENSORS]; /* already made by a node */
  char *error;
  size_t size;
} Reader;

static bool fail(Reader *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool fail(Reader *r, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(r->error, r->size, format, args);
  va_end(args);
  return false;
}

static const char *text_of(const json_t *object, const char *field) {
  const char *text = json_string_value(json_object_get(object, field));
  return text ? text : "";
}

static int64_t number(const json_t *object, const char *field, size_t i) {
  return json_integer_value(json_array_get(json_object_get(object, field), i));
}

/* ---- tensors ---- */

static bool read_type(const char *name, AmprtDType *type) {
  static const char *const types[] = {[AMPRT_F32] = "CUDNN_DATA_FLOAT",
                                      [AMPRT_F16] = "CUDNN_DATA_HALF",
                                      [AMPRT_BF16] = "CUDNN_DATA_BFLOAT16"};
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (strcmp(name, types[i]) == 0) {
      *type = (AmprtDType)i;
      return true;
    }
  return false;
}

static bool read_tensor(Reader *r, const json_t *from) {
  const char *name = text_of(from, "name");
  if (r->graph->n_tensors == FAKE_MOST_TENSORS)
    return fail(r, "more tensors than the fake takes");
  FakeTensor *t = &r->graph->tensor[r->graph->n_tensors];
  *t = (FakeTensor){.uid = atoll(name),
                    .n = number(from, "dim", 0),
                    .c = number(from, "dim", 1),
                    .h = number(from, "dim", 2),
                    .w = number(from, "dim", 3),
                    .is_virtual = json_is_true(json_object_get(from, "isVirtual"))};
  if (!read_type(text_of(from, "dataType"), &t->type))
    return fail(r, "tensor %s is of type `%s`", name, text_of(from, "dataType"));
  bool is_vector = t->n == 1 && t->h == 1 && t->w == 1;
  if (t->n < 1 || t->h < 1 || t->w < 1 || t->c < 1 || number(from, "stride", 1) != 1 ||
      (!is_vector &&
       (number(from, "stride", 3) != t->c || number(from, "stride", 2) != t->c * t->w ||
        number(from, "stride", 0) != t->c * t->w * t->h)))
    return fail(r, "tensor %s does not lie with its channels last", name);
  r->graph->n_tensors++;
  return true;
}

/* ---- nodes ---- */

static int tensor_named(const Reader *r, const char *name) {
  for (int i = 0; *name && i < r->graph->n_tensors; i++)
    if (r->graph->tensor[i].uid == atoll(name))
      return i;
  return -1;
}

/* Appends the tensors that the node has in the fields whose names are the words of `names`. */
static bool read_fields(Reader *r, const json_t *from, const char *names, FakeNode *node) {
  for (const char *at = names; at; at = strchr(at, ' ')) {
    char field[32];
    at += *at == ' ';
    snprintf(field, sizeof field, "%.*s", (int)strcspn(at, " "), at);
    int tensor = tensor_named(r, text_of(from, field));
    if (tensor < 0)
      return fail(r, "%s has no tensor %s", text_of(from, "operation"), field);
    node->operand[node->n_operands++] = tensor;
  }
  return true;
}

static bool read_operation(Reader *r, const json_t *from, FakeOperation *out) {
  const char *name = text_of(from, "operation"), *mode = text_of(from, "pointwiseMode");
  const char *plain = strncmp(mode, "CUDNN_POINTWISE_", 16) == 0 ? mode + 16 : mode;
  for (int i = 0; i < FAKE_OPERATIONS; i++)
    if (strcmp(name, operations[i].name) == 0 &&
        strcmp(plain, operations[i].mode ? operations[i].mode : "") == 0) {
      *out = (FakeOperation)i;
      return true;
    }
  return fail(r, "the fake cannot compute %s %s", name, mode);
}

/* Extents, stride, padding and groups of a convolution whose operands are `x`, `w`, `y`. As cuDNN
 * does, it counts the groups from the channels of `x` and `w`. */
static bool read_conv(Reader *r, const json_t *from, FakeForm form, const int operand[3],
                      FakeConv *out) {
  const FakeTensor *all = r->graph->tensor, *x = &all[operand[0]], *w = &all[operand[1]];
  const FakeTensor *y = &all[operand[2]];
  /* the padding is one field if opposite sides have the same, else two */
  const char *pad = json_object_get(from, "pad") ? "pad" : "pad_lower";
  const int64_t groups = x->c / w->c;
  *out = (FakeConv){form, x->n, x->h, x->w, x->c, w->n, w->h, w->w, groups, y->h, y->w, {0}, {0}};
  for (size_t i = 0; i < 2; i++) {
    out->stride[i] = number(from, "stride", i);
    out->pad[i] = number(from, pad, i);
    if (out->stride[i] < 1 || out->pad[i] < 0 || number(from, "dilation", i) != 1)
      return fail(r, "a convolution's stride, padding or dilation is none");
  }
  if (json_number_value(json_object_get(from, "alpha")) != 1 ||
      json_number_value(json_object_get(from, "beta")) != 0)
    return fail(r, "a convolution is scaled");
  if (x->c % w->c || w->n % groups || y->c != w->n || y->n != x->n)
    return fail(r, "a convolution's operands do not fit");
  return true;
}

static bool is_like(const FakeTensor *a, const FakeTensor *b) {
  return a->n == b->n && a->h == b->h && a->w == b->w && a->c == b->c;
}

static bool is_vector_of(const FakeTensor *a, const FakeTensor *b) {
  return a->n == 1 && a->h == 1 && a->w == 1 && a->c == b->c;
}

static bool check_shapes(Reader *r, const FakeNode *node) {
  const FakeTensor *all = r->graph->tensor, *first = &all[node->operand[0]];
  const char *shapes = operations[node->operation].shapes;
  for (int i = 0; shapes[i]; i++) {
    const FakeTensor *t = &all[node->operand[i]];
    if (!(shapes[i] != 'c' && is_like(t, first)) && !(shapes[i] != 'x' && is_vector_of(t, first)))
      return fail(r, "tensor %lld of %s is of another shape", (long long)t->uid,
                  operations[node->operation].name);
  }
  return true;
}

/* Is every tensor made by one node only, and every virtual one before it is read? */
static bool check_order(Reader *r, const FakeNode *node) {
  for (int i = 0; i < node->n_operands; i++) {
    int tensor = node->operand[i];
    long long uid = (long long)r->graph->tensor[tensor].uid;
    if (i < node->n_in && r->graph->tensor[tensor].is_virtual && !r->made[tensor])
      return fail(r, "tensor %lld is read before it is made", uid);
    if (i >= node->n_in && r->made[tensor])
      return fail(r, "tensor %lld is made twice", uid);
    if (i >= node->n_in)
      r->made[tensor] = true;
  }
  return true;
}

static bool read_node(Reader *r, const json_t *from) {
  if (r->graph->n_nodes == FAKE_MOST_NODES)
    return fail(r, "more nodes than the fake takes");
  FakeNode *node = &r->graph->node[r->graph->n_nodes++];
  if (!read_operation(r, from, &node->operation) ||
      !read_fields(r, from, operations[node->operation].in, node))
    return false;
  node->n_in = node->n_operands;
  if (!read_fields(r, from, operations[node->operation].out, node) || !check_order(r, node))
    return false;
  const int *o = node->operand;
  switch (node->operation) {
  case FAKE_FORWARD: /* x w y */
    return read_conv(r, from, FAKE_FPROP, (int[]){o[0], o[1], o[2]}, &node->conv);
  case FAKE_DATA: /* dy w dx */
    return read_conv(r, from, FAKE_DGRAD, (int[]){o[2], o[1], o[0]}, &node->conv);
  case FAKE_FILTER: /* x dy dw */
    return read_conv(r, from, FAKE_WGRAD, (int[]){o[0], o[2], o[1]}, &node->conv);
  default:
    return check_shapes(r, node);
  }
}

bool fake_graph_read(FakeGraph *out, const char *json, size_t bytes, char *error, size_t size) {
  Reader r = {.graph = out, .error = error, .size = size};
  json_t *root = json_loadb(json, strnlen(json, bytes), 0, NULL);
  const json_t *graph = json_object_get(root, "operationGraph");
  const json_t *tensors = json_object_get(graph, "tensors"),
               *nodes = json_object_get(graph, "nodes");
  *out = (FakeGraph){0};
  bool good = json_array_size(nodes) > 0 || fail(&r, "the text is no plan");
  for (size_t i = 0; good && i < json_array_size(tensors); i++)
    good = read_tensor(&r, json_array_get(tensors, i));
  for (size_t i = 0; good && i < json_array_size(nodes); i++)
    good = read_node(&r, json_array_get(nodes, i));
  json_decref(root);
  return good;
}
