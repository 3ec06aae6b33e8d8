/* The CIFAR network on 28x28 grey images: 28 -> 14 -> 7. The recipe is for one or two epochs, so
 * the moving statistics must follow quickly. */
#include "models/cifar/cifar.h"
#include "models/zoo.h"

static const char recipe[] = "batch_size: 128  train_epochs: 2\n"
                             "optimizer: 'momentum'  momentum: 0.9\n"
                             "weight_decay: 2e-4  decay_spares: 'none'\n"
                             "learning_rate: 0.1  lr_batch: 128  warmup_epochs: 0.1\n"
                             "schedule: 'cosine'\n"
                             "flip: 1  standardize: 1\n"
                             "metrics: 'top1'\n";

static Tensor begin(Builder *b, ZooOptions options) {
  use_official(b, options.bn_momentum < 0 ? 0.9 : options.bn_momentum);
  builder_recipe(b, recipe);
  return build_inputs(b, 28, 28, 1);
}

void build_fashion_v1(Builder *b, int size, ZooOptions options) {
  build_small_resnet(b, begin(b, options), size, 1, options.classes);
}

void build_fashion_v2(Builder *b, int size, ZooOptions options) {
  build_small_resnet(b, begin(b, options), size, 2, options.classes);
}

void build_fashion_resnext_8x4d(Builder *b, int size, ZooOptions options) {
  const ResNet net = {.filters = 16, .width = 8 * 4, .groups = 8};
  build_small_resnext(b, begin(b, options), size, net, options.classes);
}
