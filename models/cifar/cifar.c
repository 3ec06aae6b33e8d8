#include "models/cifar/cifar.h"

#include "models/zoo.h"

static const char recipe[] = "batch_size: 128  train_epochs: 182\n"
                             "optimizer: 'momentum'  momentum: 0.9\n"
                             "weight_decay: 2e-4  decay_spares: 'none'\n"
                             "learning_rate: 0.1  lr_batch: 128\n"
                             "schedule: 'piecewise'  boundaries: [91, 136, 182]\n"
                             "multipliers: [1, 0.1, 0.01, 0.001]\n"
                             "pad: 4  flip: 1  standardize: 1\n"
                             "metrics: 'top1,top5'\n";

static const char resnext_recipe[] = "batch_size: 128  train_epochs: 300\n"
                                     "optimizer: 'momentum'  momentum: 0.9\n"
                                     "weight_decay: 5e-4  decay_spares: 'none'\n"
                                     "learning_rate: 0.1  lr_batch: 128\n"
                                     "schedule: 'piecewise'  boundaries: [150, 225]\n"
                                     "multipliers: [1, 0.1, 0.01]\n"
                                     "pad: 4  flip: 1  standardize: 1\n"
                                     "metrics: 'top1,top5'\n";

/* Builds three layers of n blocks between the first convolution and the head. */
static void build_net(Builder *b, Tensor x, ResNet net, int n, int64_t classes) {
  const int blocks[] = {n, n, n};
  net.blocks = blocks;
  net.n_layers = 3;
  net.project_always = true;
  x = builder_rename(b, build_conv(b, "conv1", x, net.filters, 3, 1, pad_fixed(3)), "initial_conv");
  if (net.version == 1)
    x = build_point(b, "relu", "relu", build_batch_norm(b, "bn1", x));
  build_head(b, build_blocks(b, &net, x), classes);
}

void build_small_resnet(Builder *b, Tensor x, int size, int version, int64_t classes) {
  const ResNet net = {.version = version, .filters = 16};
  build_net(b, x, net, (size - 2) / 6, classes);
}

void build_small_resnext(Builder *b, Tensor x, int size, ResNet net, int64_t classes) {
  net.version = 1;
  net.bottleneck = true;
  build_net(b, x, net, (size - 2) / 9, classes);
}

static void build(Builder *b, int size, int version, ZooOptions options) {
  use_official(b, options.bn_momentum < 0 ? 0.997 : options.bn_momentum);
  Tensor image = build_inputs(b, 32, 32, 3);
  build_small_resnet(b, image, size, version, options.classes);
  builder_recipe(b, recipe);
}

void build_cifar_v1(Builder *b, int size, ZooOptions options) {
  build(b, size, 1, options);
}

void build_cifar_v2(Builder *b, int size, ZooOptions options) {
  build(b, size, 2, options);
}

/* The ResNeXt of Xie et al.; `groups` are of 64 channels in layer 1. */
static void build_resnext(Builder *b, int size, int64_t groups, ZooOptions options) {
  const ResNet net = {.filters = 64, .width = 64 * groups, .groups = groups};
  use_torch(b, options.bn_momentum < 0 ? 0.9 : options.bn_momentum);
  b->dense_init = init_uniform(1.0 / 32); /* Torch's: 1 / sqrt(1024 channels) */
  b->bias_init = init_kind(AMPCC__INITIALIZER__KIND__ZEROS);
  build_small_resnext(b, build_inputs(b, 32, 32, 3), size, net, options.classes);
  builder_recipe(b, resnext_recipe);
}

void build_cifar_resnext_8x64d(Builder *b, int size, ZooOptions options) {
  build_resnext(b, size, 8, options);
}

void build_cifar_resnext_16x64d(Builder *b, int size, ZooOptions options) {
  build_resnext(b, size, 16, options);
}
