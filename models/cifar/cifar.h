/* The small residual network of He et al., section 4.2, and that of Xie et al., section 5.3, shared
 * by the 32x32 and 28x28 families. */
#ifndef AMPCC_MODELS_CIFAR_CIFAR_H
#define AMPCC_MODELS_CIFAR_CIFAR_H

#include "models/resnet/blocks.h"

/* size = 6n+2; `x` is the image. Initialisers and constants of batch normalisation are those that
 * are set on the builder. */
void build_small_resnet(Builder *b, Tensor x, int size, int version, int64_t classes);
/* The same with bottlenecks, whose 3x3 is in groups: size = 9n+2; `net` says filters, width and
 * groups. */
void build_small_resnext(Builder *b, Tensor x, int size, ResNet net, int64_t classes);

#endif
