/* The zoo: families of models, each a builder in a folder of its own. */
#ifndef AMPCC_MODELS_ZOO_H
#define AMPCC_MODELS_ZOO_H

#include "models/builder.h"

typedef struct ZooOptions {
  int64_t classes;
  double bn_momentum; /* negative if the family's own is wanted */
} ZooOptions;

/* Builds the member of this size; families without sizes get 0. */
typedef void ZooBuild(Builder *b, int size, ZooOptions options);

typedef struct ZooFamily {
  const char *prefix, *suffix; /* a member is called PREFIX SIZE SUFFIX */
  int first, last, step;       /* the sizes; first = 0 if the only member is called PREFIX */
  const int *sizes;            /* a list that ends in 0, instead of first..last; or NULL */
  ZooBuild *build;
  int64_t classes;     /* unless --classes says otherwise */
  const char *dataset; /* the recipe's: a row of ir/recipe/datasets.def */
  const char *summary;
} ZooFamily;

extern const ZooFamily zoo_family[];
extern const int n_zoo_families;

/* resnet/resnet.c */
ZooBuild build_resnet_v1, build_resnet_v2;
/* torchvision/torchvision.c */
ZooBuild build_resnet_tv, build_wide_resnet_2_tv;
ZooBuild build_resnext_32x4d_tv, build_resnext_32x8d_tv, build_resnext_64x4d_tv;
/* keras/keras.c */
ZooBuild build_resnet_keras;
/* cifar/cifar.c */
ZooBuild build_cifar_v1, build_cifar_v2, build_cifar_resnext_8x64d, build_cifar_resnext_16x64d;
/* fashion/fashion.c */
ZooBuild build_fashion_v1, build_fashion_v2, build_fashion_resnext_8x4d;
/* lenet5/lenet5.c */
ZooBuild build_lenet5;
/* mlp/mlp.c */
ZooBuild build_mlp;

#endif
