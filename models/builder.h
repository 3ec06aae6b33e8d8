/* Writes a ModelDef layer by layer. A Tensor stands for a value: it has its name and its shape for
 * one image, from which the next layer computes the shapes of its parameters. Layers are named as
 * in torchvision: layer `conv1` makes the parameter `conv1.weight` and the value `conv1`. */
#ifndef AMPCC_MODELS_BUILDER_H
#define AMPCC_MODELS_BUILDER_H

#include "frontend/model.pb-c.h"
#include "ir/base/arena.h"

#include <stdint.h>

typedef struct Tensor {
  const char *name;
  int64_t h, w, c; /* a vector has h = w = 0 */
} Tensor;

typedef struct Builder {
  Arena *arena;
  Ampcc__ModelDef *model;
  int n_parameters, cap_parameters, n_nodes, cap_nodes, n_inputs, cap_inputs;
  /* Constants for the layers that follow; families set them before they build. */
  Ampcc__Initializer conv_init, dense_init, bias_init;
  double bn_epsilon, bn_momentum; /* moving = moving * momentum + batch * (1 - momentum) */
} Builder;

typedef struct Pad {
  int64_t top, bottom, left, right;
} Pad;

Builder *builder_new(Arena *arena, const char *name);
/* Sets the recipe, which is given in protobuf's text form. */
void builder_recipe(Builder *b, const char *text);
/* Makes a name by a format such as "%s.%d". */
const char *builder_name(Builder *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Gives the name `name` to the value that the last layer made. */
Tensor builder_rename(Builder *b, Tensor x, const char *name);

Pad pad_fixed(int64_t size); /* size-1 in all: (size-1)/2 before, the rest after */
Pad pad_same(Tensor x, int64_t size, int64_t stride); /* TensorFlow's SAME */
Pad pad_each(int64_t n);

/* Inputs `image` [0,h,w,c] and `label` [0]. */
Tensor build_inputs(Builder *b, int64_t h, int64_t w, int64_t c);
Tensor build_conv(Builder *b, const char *layer, Tensor x, int64_t filters, int64_t size,
                  int64_t stride, Pad pad);
/* A convolution whose filters are in `groups` groups, each of which reads its own channels of x. */
Tensor build_grouped_conv(Builder *b, const char *layer, Tensor x, int64_t filters, int64_t groups,
                          int64_t size, int64_t stride, Pad pad);
Tensor build_bias(Builder *b, const char *layer, Tensor x); /* adds LAYER.bias */
Tensor build_batch_norm(Builder *b, const char *layer, Tensor x);
Tensor build_point(Builder *b, const char *op, const char *layer, Tensor x); /* relu, tanh, ... */
Tensor build_add(Builder *b, const char *layer, Tensor x, Tensor y);
Tensor build_max_pool(Builder *b, const char *layer, Tensor x, int64_t size, int64_t stride,
                      Pad pad);
Tensor build_avg_pool(Builder *b, const char *layer, Tensor x, int64_t size, int64_t stride);
Tensor build_mean(Builder *b, const char *layer, Tensor x); /* over H and W: a vector */
Tensor build_flatten(Builder *b, const char *layer, Tensor x);
Tensor build_dense(Builder *b, const char *layer, Tensor x, int64_t units);
void build_loss(Builder *b, Tensor logits); /* softmax cross entropy */

/* Initialisers */
Ampcc__Initializer init_kind(Ampcc__Initializer__Kind kind);
Ampcc__Initializer init_scaling(double scale, Ampcc__Initializer__Fan fan,
                                Ampcc__Initializer__Distribution distribution);
Ampcc__Initializer init_uniform(double limit); /* [-limit, limit) */

#endif
