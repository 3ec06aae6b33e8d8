#include "models/resnet/blocks.h"

typedef struct Block {
  const ResNet *net;
  const char *name; /* "layer1.0" */
  int64_t filters, width, stride;
  bool project;
} Block;

static const char *part(Builder *b, const Block *block, const char *what) {
  return builder_name(b, "%s.%s", block->name, what);
}

static int64_t conv_filters(const Block *block, int i) {
  return i == 2 ? 4 * block->filters : block->width;
}

/* Convolution i of the three of a bottleneck (1x1, 3x3, 1x1) or the two of a plain block (3x3). The
 * stride is that of the first 3x3 ("v1.5"). */
static Tensor conv(Builder *b, const Block *block, int i, Tensor x) {
  bool bottleneck = block->net->bottleneck;
  int64_t size = bottleneck && i != 1 ? 1 : 3;
  int64_t groups = bottleneck && i == 1 && block->net->groups ? block->net->groups : 1;
  int64_t stride = i == (bottleneck ? 1 : 0) ? block->stride : 1;
  Pad pad = block->net->pad_same ? pad_same(x, size, stride) : pad_fixed(size);
  return build_grouped_conv(b, part(b, block, builder_name(b, "conv%d", i + 1)), x,
                            conv_filters(block, i), groups, size, stride, pad);
}

static Tensor norm(Builder *b, const Block *block, int i, Tensor x) {
  return build_batch_norm(b, part(b, block, builder_name(b, "bn%d", i + 1)), x);
}

static Tensor relu(Builder *b, const Block *block, int i, Tensor x) {
  return build_point(b, "relu", part(b, block, builder_name(b, "relu%d", i + 1)), x);
}

static Tensor projection(Builder *b, const Block *block, Tensor x) {
  int last = block->net->bottleneck ? 2 : 1;
  return build_conv(b, part(b, block, "downsample.0"), x, conv_filters(block, last), 1,
                    block->stride, pad_each(0));
}

/* conv-BN-ReLU ..., last conv-BN, add the shortcut, ReLU */
static Tensor block_v1(Builder *b, const Block *block, Tensor x) {
  int n = block->net->bottleneck ? 3 : 2;
  Tensor shortcut = x, y = x;
  if (block->project)
    shortcut = build_batch_norm(b, part(b, block, "downsample.1"), projection(b, block, x));
  for (int i = 0; i < n; i++) {
    y = norm(b, block, i, conv(b, block, i, y));
    if (i < n - 1)
      y = relu(b, block, i, y);
  }
  return relu(b, block, n - 1, build_add(b, part(b, block, "add"), y, shortcut));
}

/* BN-ReLU-conv ..., add; the projection is taken after the first BN-ReLU and has no norm */
static Tensor block_v2(Builder *b, const Block *block, Tensor x) {
  int n = block->net->bottleneck ? 3 : 2;
  Tensor shortcut = x, y = x;
  for (int i = 0; i < n; i++) {
    y = relu(b, block, i, norm(b, block, i, y));
    if (i == 0 && block->project)
      shortcut = projection(b, block, y);
    y = conv(b, block, i, y);
  }
  return build_add(b, part(b, block, "add"), y, shortcut);
}

static Tensor build_layer(Builder *b, const ResNet *net, int layer, Tensor x) {
  Block block = {.net = net,
                 .filters = net->filters << layer,
                 .width = (net->width ? net->width : net->filters) << layer};
  for (int i = 0; i < net->blocks[layer]; i++) {
    int64_t out = block.filters * (net->bottleneck ? 4 : 1);
    block.name = builder_name(b, "layer%d.%d", layer + 1, i);
    block.stride = layer > 0 && i == 0 ? 2 : 1;
    block.project = i == 0 && (net->project_always || block.stride != 1 || x.c != out);
    x = net->version == 1 ? block_v1(b, &block, x) : block_v2(b, &block, x);
  }
  return builder_rename(b, x, builder_name(b, "block_layer%d", layer + 1));
}

Tensor build_blocks(Builder *b, const ResNet *net, Tensor x) {
  for (int layer = 0; layer < net->n_layers; layer++)
    x = build_layer(b, net, layer, x);
  if (net->version == 2)
    x = build_point(b, "relu", "relu", build_batch_norm(b, "norm", x));
  return x;
}

void build_head(Builder *b, Tensor x, int64_t classes) {
  x = builder_rename(b, build_mean(b, "avgpool", x), "final_reduce_mean");
  x = builder_rename(b, build_dense(b, "fc", x, classes), "final_dense");
  build_loss(b, x);
}

void use_official(Builder *b, double bn_momentum) {
  b->conv_init = init_scaling(1, AMPCC__INITIALIZER__FAN__FAN_IN,
                              AMPCC__INITIALIZER__DISTRIBUTION__VS_TRUNCATED);
  b->dense_init = init_kind(AMPCC__INITIALIZER__KIND__GLOROT_UNIFORM);
  b->bias_init = init_kind(AMPCC__INITIALIZER__KIND__ZEROS);
  b->bn_epsilon = 1.001e-5;
  b->bn_momentum = bn_momentum;
}

void use_torch(Builder *b, double bn_momentum) {
  b->conv_init = init_scaling(2, AMPCC__INITIALIZER__FAN__FAN_OUT,
                              AMPCC__INITIALIZER__DISTRIBUTION__VS_NORMAL);
  b->bn_epsilon = 1e-5;
  b->bn_momentum = bn_momentum;
}
