#include "models/builder.h"

#include "frontend/import/pbtext.h"

#include <stdarg.h>
#include <string.h>

const char *builder_name(Builder *b, const char *fmt, ...) {
  char text[256];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  return arena_strdup(b->arena, text, strlen(text));
}

static char *copy(Builder *b, const char *text) {
  return arena_strdup(b->arena, text, strlen(text));
}

static int64_t *copy_ints(Builder *b, const int64_t *v, size_t n) {
  int64_t *copied = arena_alloc(b->arena, n * sizeof *v);
  memcpy(copied, v, n * sizeof *v);
  return copied;
}

Builder *builder_new(Arena *arena, const char *name) {
  Builder *b = arena_new_of(arena, Builder);
  b->arena = arena;
  b->model = arena_new_of(arena, Ampcc__ModelDef);
  ampcc__model_def__init(b->model);
  b->model->version = 1;
  b->model->name = copy(b, name);
  return b;
}

static void *arena_take(void *arena, size_t size) {
  return arena_alloc(arena, size);
}

static void arena_keep(void *arena, void *pointer) {
  (void)arena, (void)pointer;
}

void builder_recipe(Builder *b, const char *text) {
  Diag diag = {.out = stderr, .source = text};
  Bytes wire;
  ProtobufCAllocator allocator = {arena_take, arena_keep, b->arena};
  CHECK(
      pbtext_read(b->arena, "recipe", text, strlen(text), &ampcc__recipe__descriptor, &wire, &diag),
      "the recipe of %s is malformed", b->model->name);
  b->model->recipe = ampcc__recipe__unpack(&allocator, (size_t)wire.len, wire.at);
}

/* ---- parameters ---- */

Ampcc__Initializer init_kind(Ampcc__Initializer__Kind kind) {
  Ampcc__Initializer init = AMPCC__INITIALIZER__INIT;
  init.kind = kind;
  return init;
}

Ampcc__Initializer init_scaling(double scale, Ampcc__Initializer__Fan fan,
                                Ampcc__Initializer__Distribution distribution) {
  Ampcc__Initializer init = init_kind(AMPCC__INITIALIZER__KIND__VARIANCE_SCALING);
  init.scale = scale;
  init.fan = fan;
  init.distribution = distribution;
  return init;
}

Ampcc__Initializer init_uniform(double limit) {
  Ampcc__Initializer init = init_kind(AMPCC__INITIALIZER__KIND__UNIFORM);
  init.low = -limit;
  init.high = limit;
  return init;
}

static char *add_parameter(Builder *b, const char *layer, const char *name, size_t rank,
                           const int64_t *dim, Ampcc__Initializer init) {
  Ampcc__Parameter *param = arena_new_of(b->arena, Ampcc__Parameter);
  ampcc__parameter__init(param);
  param->name = (char *)builder_name(b, "%s.%s", layer, name);
  param->n_dim = rank;
  param->dim = copy_ints(b, dim, rank);
  param->init = arena_new_of(b->arena, Ampcc__Initializer);
  *param->init = init;
  arena_push(b->arena, b->model->parameter, b->n_parameters, b->cap_parameters, param);
  b->model->n_parameter = (size_t)b->n_parameters;
  return param->name;
}

static char *add_statistic(Builder *b, const char *layer, const char *name, int64_t channels,
                           Ampcc__Initializer init) {
  char *full = add_parameter(b, layer, name, 1, &channels, init);
  b->model->parameter[b->n_parameters - 1]->kind = AMPCC__PARAMETER__KIND__STATISTIC;
  return full;
}

/* ---- nodes ---- */

typedef struct Names {
  size_t n;
  const char *at[5];
} Names;

static char **copy_names(Builder *b, Names names) {
  char **copied = arena_alloc(b->arena, names.n * sizeof *copied);
  for (size_t i = 0; i < names.n; i++)
    copied[i] = copy(b, names.at[i]);
  return copied;
}

static Ampcc__Node *add_node(Builder *b, const char *op, const char *layer, Names in, Names out) {
  Ampcc__Node *node = arena_new_of(b->arena, Ampcc__Node);
  ampcc__node__init(node);
  node->op = copy(b, op);
  node->layer = copy(b, layer);
  node->n_input = in.n;
  node->input = copy_names(b, in);
  node->n_output = out.n;
  node->output = copy_names(b, out);
  arena_push(b->arena, b->model->node, b->n_nodes, b->cap_nodes, node);
  b->model->n_node = (size_t)b->n_nodes;
  return node;
}

static Ampcc__Attribute *add_attribute(Builder *b, Ampcc__Node *node, const char *name) {
  Ampcc__Attribute *attr = arena_new_of(b->arena, Ampcc__Attribute);
  ampcc__attribute__init(attr);
  attr->name = copy(b, name);
  int n = (int)node->n_attribute, cap = n; /* a node has a handful, so the array grows one by one */
  arena_push(b->arena, node->attribute, n, cap, attr);
  node->n_attribute = (size_t)n;
  return attr;
}

static void set_float(Builder *b, Ampcc__Node *node, const char *name, double value) {
  Ampcc__Attribute *attr = add_attribute(b, node, name);
  attr->value_case = AMPCC__ATTRIBUTE__VALUE_F;
  attr->f = value;
}

static void set_int(Builder *b, Ampcc__Node *node, const char *name, int64_t value) {
  Ampcc__Attribute *attr = add_attribute(b, node, name);
  attr->value_case = AMPCC__ATTRIBUTE__VALUE_I;
  attr->i = value;
}

static void set_ints(Builder *b, Ampcc__Node *node, const char *name, size_t n, const int64_t *v) {
  Ampcc__Attribute *attr = add_attribute(b, node, name);
  attr->value_case = AMPCC__ATTRIBUTE__VALUE_INTS;
  attr->ints = arena_new_of(b->arena, Ampcc__Ints);
  ampcc__ints__init(attr->ints);
  attr->ints->n_v = n;
  attr->ints->v = copy_ints(b, v, n);
}

/* ---- windows ---- */

Pad pad_each(int64_t n) {
  return (Pad){n, n, n, n};
}

Pad pad_fixed(int64_t size) {
  int64_t before = (size - 1) / 2, after = size - 1 - before;
  return (Pad){before, after, before, after};
}

static int64_t same_total(int64_t in, int64_t size, int64_t stride) {
  int64_t out = (in + stride - 1) / stride, total = (out - 1) * stride + size - in;
  return total > 0 ? total : 0;
}

Pad pad_same(Tensor x, int64_t size, int64_t stride) {
  int64_t h = same_total(x.h, size, stride), w = same_total(x.w, size, stride);
  return (Pad){h / 2, h - h / 2, w / 2, w - w / 2};
}

static void set_window(Builder *b, Ampcc__Node *node, int64_t stride, Pad pad) {
  set_ints(b, node, "stride", 2, (int64_t[]){stride, stride});
  set_ints(b, node, "pad", 4, (int64_t[]){pad.top, pad.bottom, pad.left, pad.right});
}

static Tensor windowed(Tensor x, const char *name, int64_t size, int64_t stride, Pad pad,
                       int64_t channels) {
  return (Tensor){name, (x.h + pad.top + pad.bottom - size) / stride + 1,
                  (x.w + pad.left + pad.right - size) / stride + 1, channels};
}

/* ---- layers ---- */

Tensor builder_rename(Builder *b, Tensor x, const char *name) {
  Ampcc__Node *node = b->model->node[b->n_nodes - 1];
  CHECK(strcmp(node->output[0], x.name) == 0, "%s is not the last value", x.name);
  node->output[0] = copy(b, name);
  x.name = name;
  return x;
}

static void add_input(Builder *b, const char *name, const char *dtype, size_t rank,
                      const int64_t *dim) {
  Ampcc__Input *input = arena_new_of(b->arena, Ampcc__Input);
  ampcc__input__init(input);
  input->name = copy(b, name);
  input->dtype = copy(b, dtype);
  input->n_dim = rank;
  input->dim = copy_ints(b, dim, rank);
  arena_push(b->arena, b->model->input, b->n_inputs, b->cap_inputs, input);
  b->model->n_input = (size_t)b->n_inputs;
}

Tensor build_inputs(Builder *b, int64_t h, int64_t w, int64_t c) {
  add_input(b, "image", "f32", 4, (int64_t[]){0, h, w, c});
  add_input(b, "label", "i32", 1, (int64_t[]){0});
  return (Tensor){"image", h, w, c};
}

Tensor build_grouped_conv(Builder *b, const char *layer, Tensor x, int64_t filters, int64_t groups,
                          int64_t size, int64_t stride, Pad pad) {
  const int64_t dim[] = {filters, size, size, x.c / groups};
  const char *weight = add_parameter(b, layer, "weight", 4, dim, b->conv_init);
  Ampcc__Node *node =
      add_node(b, "conv2d", layer, (Names){2, {x.name, weight}}, (Names){1, {layer}});
  set_window(b, node, stride, pad);
  if (groups > 1)
    set_int(b, node, "groups", groups);
  return windowed(x, layer, size, stride, pad, filters);
}

Tensor build_conv(Builder *b, const char *layer, Tensor x, int64_t filters, int64_t size,
                  int64_t stride, Pad pad) {
  return build_grouped_conv(b, layer, x, filters, 1, size, stride, pad);
}

Tensor build_bias(Builder *b, const char *layer, Tensor x) {
  const char *bias = add_parameter(b, layer, "bias", 1, &x.c, b->bias_init);
  const char *out = builder_name(b, "%s.biased", layer);
  add_node(b, "bias_add", layer, (Names){2, {x.name, bias}}, (Names){1, {out}});
  x.name = out;
  return x;
}

Tensor build_batch_norm(Builder *b, const char *layer, Tensor x) {
  const Ampcc__Initializer ones = init_kind(AMPCC__INITIALIZER__KIND__ONES);
  const Ampcc__Initializer zeros = init_kind(AMPCC__INITIALIZER__KIND__ZEROS);
  const char *gamma = add_parameter(b, layer, "weight", 1, &x.c, ones);
  const char *beta = add_parameter(b, layer, "bias", 1, &x.c, zeros);
  const char *mean = add_statistic(b, layer, "running_mean", x.c, zeros);
  const char *var = add_statistic(b, layer, "running_var", x.c, ones);
  Ampcc__Node *node = add_node(
      b, "batch_norm", layer, (Names){5, {x.name, gamma, beta, mean, var}},
      (Names){3, {layer, builder_name(b, "%s.mean", layer), builder_name(b, "%s.var", layer)}});
  set_float(b, node, "epsilon", b->bn_epsilon);
  set_float(b, node, "momentum", b->bn_momentum);
  x.name = layer;
  return x;
}

Tensor build_point(Builder *b, const char *op, const char *layer, Tensor x) {
  add_node(b, op, layer, (Names){1, {x.name}}, (Names){1, {layer}});
  x.name = layer;
  return x;
}

Tensor build_add(Builder *b, const char *layer, Tensor x, Tensor y) {
  add_node(b, "add", layer, (Names){2, {x.name, y.name}}, (Names){1, {layer}});
  x.name = layer;
  return x;
}

Tensor build_max_pool(Builder *b, const char *layer, Tensor x, int64_t size, int64_t stride,
                      Pad pad) {
  Ampcc__Node *node = add_node(b, "max_pool", layer, (Names){1, {x.name}},
                               (Names){2, {layer, builder_name(b, "%s.index", layer)}});
  set_ints(b, node, "window", 2, (int64_t[]){size, size});
  set_window(b, node, stride, pad);
  return windowed(x, layer, size, stride, pad, x.c);
}

Tensor build_avg_pool(Builder *b, const char *layer, Tensor x, int64_t size, int64_t stride) {
  Ampcc__Node *node = add_node(b, "avg_pool", layer, (Names){1, {x.name}}, (Names){1, {layer}});
  set_ints(b, node, "window", 2, (int64_t[]){size, size});
  set_window(b, node, stride, pad_each(0));
  return windowed(x, layer, size, stride, pad_each(0), x.c);
}

Tensor build_mean(Builder *b, const char *layer, Tensor x) {
  Ampcc__Node *node = add_node(b, "reduce_mean", layer, (Names){1, {x.name}}, (Names){1, {layer}});
  set_ints(b, node, "axes", 2, (int64_t[]){1, 2});
  return (Tensor){layer, 0, 0, x.c};
}

Tensor build_flatten(Builder *b, const char *layer, Tensor x) {
  int64_t size = x.h * x.w * x.c;
  Ampcc__Node *node = add_node(b, "reshape", layer, (Names){1, {x.name}}, (Names){1, {layer}});
  set_ints(b, node, "shape", 2, (int64_t[]){0, size});
  return (Tensor){layer, 0, 0, size};
}

Tensor build_dense(Builder *b, const char *layer, Tensor x, int64_t units) {
  const int64_t dim[] = {units, x.c};
  const char *weight = add_parameter(b, layer, "weight", 2, dim, b->dense_init);
  Ampcc__Node *node =
      add_node(b, "matmul", layer, (Names){2, {x.name, weight}}, (Names){1, {layer}});
  set_int(b, node, "trans_b", 1);
  return build_bias(b, layer, (Tensor){layer, 0, 0, units});
}

void build_loss(Builder *b, Tensor logits) {
  b->model->loss = arena_new_of(b->arena, Ampcc__Loss);
  ampcc__loss__init(b->model->loss);
  b->model->loss->kind = AMPCC__LOSS__KIND__SOFTMAX_CROSS_ENTROPY;
  b->model->loss->logits = copy(b, logits.name);
  b->model->loss->label = copy(b, "label");
}
