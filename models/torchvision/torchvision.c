/* ResNet, ResNeXt and Wide ResNet for ImageNet as torchvision builds and initialises them: weights
 * are interchangeable. */
#include "models/resnet/resnet.h"
#include "models/zoo.h"

#include <math.h>

#define SCRIPT                                                                                     \
  "batch_size: 32\n"                                                                               \
  "optimizer: 'momentum'  momentum: 0.9\n"                                                         \
  "weight_decay: 1e-4  decay_spares: 'none'\n"                                                     \
  "learning_rate: 0.1  lr_batch: 256\n"                                                            \
  "schedule: 'piecewise'\n"                                                                        \
  "preprocessing: 'torchvision'  flip: 1\n"                                                        \
  "metrics: 'top1,top5'\n"

static const char recipe[] = SCRIPT "train_epochs: 90  boundaries: [30, 60]\n"
                                    "multipliers: [1, 0.1, 0.01]\n";
static const char resnext_recipe[] = SCRIPT "train_epochs: 100  boundaries: [30, 60, 90]\n"
                                            "multipliers: [1, 0.1, 0.01, 0.001]\n";

static void build(Builder *b, ResNet net, ZooOptions options, const char *recipe_text) {
  net.project_always = false;
  use_torch(b, options.bn_momentum < 0 ? 0.9 : options.bn_momentum);
  Tensor x = build_inputs(b, 224, 224, 3);
  x = builder_rename(b, build_conv(b, "conv1", x, 64, 7, 2, pad_each(3)), "initial_conv");
  x = build_point(b, "relu", "relu", build_batch_norm(b, "bn1", x));
  x = builder_rename(b, build_max_pool(b, "maxpool", x, 3, 2, pad_each(1)), "initial_max_pool");
  x = build_blocks(b, &net, x);
  /* torch.nn.Linear draws kernel and bias from the same range */
  b->dense_init = b->bias_init = init_uniform(1 / sqrt((double)x.c));
  build_head(b, x, options.classes);
  builder_recipe(b, recipe_text);
}

void build_resnet_tv(Builder *b, int size, ZooOptions options) {
  build(b, imagenet_net(size, 1), options, recipe);
}

void build_wide_resnet_2_tv(Builder *b, int size, ZooOptions options) {
  ResNet net = imagenet_net(size, 1);
  net.width = 2 * net.filters;
  build(b, net, options, recipe);
}

/* `width`: channels of a group in layer 1 */
static void build_resnext(Builder *b, int size, int64_t groups, int64_t width, ZooOptions options) {
  ResNet net = imagenet_net(size, 1);
  net.groups = groups;
  net.width = groups * width;
  build(b, net, options, resnext_recipe);
}

void build_resnext_32x4d_tv(Builder *b, int size, ZooOptions options) {
  build_resnext(b, size, 32, 4, options);
}

void build_resnext_32x8d_tv(Builder *b, int size, ZooOptions options) {
  build_resnext(b, size, 32, 8, options);
}

void build_resnext_64x4d_tv(Builder *b, int size, ZooOptions options) {
  build_resnext(b, size, 64, 4, options);
}
