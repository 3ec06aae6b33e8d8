"""The nets that compare.py tests: width of the stem, stages of blocks (widths, kernels, stride, project), number of classes."""
EPSILON, MOMENTUM = 1.001e-5, 0.9
BATCH = 4


def basic(width, stride):
    return ([width, width], [3, 3], stride, True)


def bottleneck(width, stride, project):
    return ([width, width, 4 * width], [1, 3, 1], stride, project)


NETS = {
    "cifar_resnet8": (16, [[basic(16, 1)], [basic(32, 2)], [basic(64, 2)]], 10),
    "bottleneck": (16, [[bottleneck(8, 1, True), bottleneck(8, 1, False)], [bottleneck(16, 2, True)]], 10),
}
