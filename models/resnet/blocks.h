/* Residual networks: what the official, torchvision, CIFAR and Fashion-MNIST forms share. */
#ifndef AMPCC_MODELS_RESNET_BLOCKS_H
#define AMPCC_MODELS_RESNET_BLOCKS_H

#include "models/builder.h"

#include <stdbool.h>

typedef struct ResNet {
  int version; /* 1, or 2: pre-activation */
  bool bottleneck;
  bool project_always; /* project in the first block of every layer (official form), not only
                          where shapes change (torchvision's form) */
  bool pad_same;       /* TensorFlow's SAME padding (Keras); else (k-1)/2 before, the rest after */
  const int *blocks;   /* per layer */
  int n_layers;
  int64_t filters; /* of layer 1; each further layer has twice as many */
  int64_t width;   /* filters of a bottleneck's 3x3 in layer 1, if they are not `filters`; else 0 */
  int64_t groups;  /* of a bottleneck's 3x3; 0 and 1 say the same */
} ResNet;

/* Builds all layers of blocks and, for v2, the final norm. The last value of layer L is called
 * block_layerL. */
Tensor build_blocks(Builder *b, const ResNet *net, Tensor x);
/* Builds the layers avgpool and fc, whose values are final_reduce_mean and final_dense, and the
 * loss. */
void build_head(Builder *b, Tensor x, int64_t classes);
/* Sets the constants of the official programs, which models/resnet/README.md lists. */
void use_official(Builder *b, double bn_momentum);
/* Sets those of Torch and PyTorch, but for the dense layer. */
void use_torch(Builder *b, double bn_momentum);

#endif
