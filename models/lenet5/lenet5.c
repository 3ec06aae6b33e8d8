/* LeNet-5 (LeCun et al., 1998) with average pooling and tanh; the 28x28 image is padded by 2. */
#include "models/zoo.h"

static const char recipe[] = "batch_size: 128  train_epochs: 5\n"
                             "optimizer: 'momentum'  momentum: 0.9\n"
                             "learning_rate: 0.05  schedule: 'cosine'\n"
                             "standardize: 1  metrics: 'top1'\n";

static Tensor conv_tanh(Builder *b, int i, Tensor x, int64_t filters, int64_t pad) {
  const char *layer = builder_name(b, "conv%d", i);
  x = build_bias(b, layer, build_conv(b, layer, x, filters, 5, 1, pad_each(pad)));
  return build_point(b, "tanh", builder_name(b, "tanh%d", i), x);
}

void build_lenet5(Builder *b, int size, ZooOptions options) {
  (void)size;
  b->conv_init = b->dense_init = init_kind(AMPCC__INITIALIZER__KIND__GLOROT_UNIFORM);
  b->bias_init = init_kind(AMPCC__INITIALIZER__KIND__ZEROS);
  Tensor x = build_inputs(b, 28, 28, 1);
  x = build_avg_pool(b, "pool1", conv_tanh(b, 1, x, 6, 2), 2, 2);
  x = build_avg_pool(b, "pool2", conv_tanh(b, 2, x, 16, 0), 2, 2);
  x = build_flatten(b, "flatten", conv_tanh(b, 3, x, 120, 0));
  x = build_point(b, "tanh", "tanh4", build_dense(b, "fc1", x, 84));
  build_loss(b, build_dense(b, "fc2", x, options.classes));
  builder_recipe(b, recipe);
}
