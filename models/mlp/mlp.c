/* A multilayer perceptron: the smallest thing that trains. */
#include "models/zoo.h"

static const char recipe[] = "batch_size: 128  train_epochs: 5\n"
                             "optimizer: 'momentum'  momentum: 0.9\n"
                             "learning_rate: 0.05  schedule: 'cosine'\n"
                             "standardize: 1  metrics: 'top1'\n";

void build_mlp(Builder *b, int size, ZooOptions options) {
  (void)size;
  b->dense_init = init_kind(AMPCC__INITIALIZER__KIND__GLOROT_UNIFORM);
  b->bias_init = init_kind(AMPCC__INITIALIZER__KIND__ZEROS);
  Tensor x = build_flatten(b, "flatten", build_inputs(b, 28, 28, 1));
  x = build_point(b, "relu", "relu1", build_dense(b, "fc1", x, 256));
  x = build_point(b, "relu", "relu2", build_dense(b, "fc2", x, 128));
  build_loss(b, build_dense(b, "fc3", x, options.classes));
  builder_recipe(b, recipe);
}
