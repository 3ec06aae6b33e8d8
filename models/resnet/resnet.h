/* What torchvision's form of the ImageNet networks takes from the official one. */
#ifndef AMPCC_MODELS_RESNET_RESNET_H
#define AMPCC_MODELS_RESNET_RESNET_H

#include "models/resnet/blocks.h"

/* Blocks per layer of ResNet-18, 34, 50, 101, 152, 200. */
ResNet imagenet_net(int size, int version);

#endif
