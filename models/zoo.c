/* The table of families. */
#include "models/zoo.h"

static const int imagenet_sizes[] = {18, 34, 50, 101, 152, 200, 0};
static const int torchvision_sizes[] = {18, 34, 50, 101, 152, 0};
static const int size_11[] = {11, 0}, size_29[] = {29, 0};
static const int size_50[] = {50, 0}, size_101[] = {101, 0}, sizes_50_101[] = {50, 101, 0};

const ZooFamily zoo_family[] = {
    {"resnet", "", 0, 0, 0, imagenet_sizes, build_resnet_v1, 1001, "imagenet",
     "ImageNet ResNet v1(.5), official TensorFlow form"},
    {"resnet", "_v2", 0, 0, 0, imagenet_sizes, build_resnet_v2, 1001, "imagenet",
     "ImageNet ResNet v2 (pre-activation)"},
    {"resnet", "_tv", 0, 0, 0, torchvision_sizes, build_resnet_tv, 1000, "folder",
     "ImageNet ResNet v1.5, torchvision's form"},
    {"resnext", "_32x4d_tv", 0, 0, 0, size_50, build_resnext_32x4d_tv, 1000, "folder",
     "ImageNet ResNeXt, 32 groups of 4, torchvision's form"},
    {"resnext", "_32x8d_tv", 0, 0, 0, size_101, build_resnext_32x8d_tv, 1000, "folder",
     "ImageNet ResNeXt, 32 groups of 8, torchvision's form"},
    {"resnext", "_64x4d_tv", 0, 0, 0, size_101, build_resnext_64x4d_tv, 1000, "folder",
     "ImageNet ResNeXt, 64 groups of 4, torchvision's form"},
    {"wide_resnet", "_2_tv", 0, 0, 0, sizes_50_101, build_wide_resnet_2_tv, 1000, "folder",
     "ImageNet Wide ResNet, torchvision's form"},
    {"resnet", "_keras", 0, 0, 0, size_50, build_resnet_keras, 1001, "imagenet",
     "ImageNet ResNet-50 v1.5, as the custom training loop has it"},
    {"cifar_resnet", "", 8, 110, 6, NULL, build_cifar_v1, 10, "cifar10", "CIFAR-10 ResNet 6n+2 v1"},
    {"cifar_resnet", "_v2", 8, 110, 6, NULL, build_cifar_v2, 10, "cifar10",
     "CIFAR-10 ResNet 6n+2 v2"},
    {"cifar_resnext", "_8x64d", 0, 0, 0, size_29, build_cifar_resnext_8x64d, 10, "cifar10",
     "CIFAR-10 ResNeXt, 8 groups of 64"},
    {"cifar_resnext", "_16x64d", 0, 0, 0, size_29, build_cifar_resnext_16x64d, 10, "cifar10",
     "CIFAR-10 ResNeXt, 16 groups of 64"},
    {"cifar100_resnet", "", 8, 110, 6, NULL, build_cifar_v1, 100, "cifar100",
     "CIFAR-100 ResNet 6n+2 v1"},
    {"cifar100_resnet", "_v2", 8, 110, 6, NULL, build_cifar_v2, 100, "cifar100",
     "CIFAR-100 ResNet 6n+2 v2"},
    {"cifar100_resnext", "_8x64d", 0, 0, 0, size_29, build_cifar_resnext_8x64d, 100, "cifar100",
     "CIFAR-100 ResNeXt, 8 groups of 64"},
    {"cifar100_resnext", "_16x64d", 0, 0, 0, size_29, build_cifar_resnext_16x64d, 100, "cifar100",
     "CIFAR-100 ResNeXt, 16 groups of 64"},
    {"fashion_resnet", "", 8, 110, 6, NULL, build_fashion_v1, 10, "fashion_mnist",
     "Fashion-MNIST ResNet 6n+2 v1"},
    {"fashion_resnet", "_v2", 8, 110, 6, NULL, build_fashion_v2, 10, "fashion_mnist",
     "Fashion-MNIST ResNet 6n+2 v2"},
    {"fashion_resnext", "_8x4d", 0, 0, 0, size_11, build_fashion_resnext_8x4d, 10, "fashion_mnist",
     "Fashion-MNIST ResNeXt, 8 groups of 4"},
    {"lenet5", "", 0, 0, 0, NULL, build_lenet5, 10, "fashion_mnist",
     "LeNet-5 of 1998 on Fashion-MNIST"},
    {"mlp", "", 0, 0, 0, NULL, build_mlp, 10, "fashion_mnist",
     "784-256-128-10 perceptron on Fashion-MNIST"},
};
const int n_zoo_families = sizeof zoo_family / sizeof zoo_family[0];
