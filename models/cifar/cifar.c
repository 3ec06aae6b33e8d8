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

void build_small_resnet(Builder *b, Tensor x, int size, int version, int64_t classes) {
  int n = (size - 2) / 6;
  const int blocks[] = {n, n, n};
  ResNet net = {
      .version = version, .project_always = true, .blocks = blocks, .n_layers = 3, .filters = 16};
  x = builder_rename(b, build_conv(b, "conv1", x, 16, 3, 1, pad_fixed(3)), "initial_conv");
  if (version == 1)
    x = build_point(b, "relu", "relu", build_batch_norm(b, "bn1", x));
  build_head(b, build_blocks(b, &net, x), classes);
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
