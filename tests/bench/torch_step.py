#!/usr/bin/env python3
"""Prints the time in ms of each training step in PyTorch on the CPU, and their median:

    torch_step.py resnet50|resnext50_32x4d|cifar_resnet20 BATCH STEPS nchw|nhwc f32|bf16 [eager|compile]

`compile` needs a C++ compiler, and the headers of this Python."""
import os, statistics, sys, time
import torch
from torch import nn


class Block(nn.Module):
    """A residual block of version 1, with the stride and the groups on the 3x3 convolution."""

    def __init__(self, c_in, width, out, kernels, stride, project, groups):
        super().__init__()
        chain, c = [], c_in
        for i, k in enumerate(kernels):
            last = i == len(kernels) - 1
            c_out = out if last else width
            s = stride if (k == 3 and stride > 1 and not any(m for m in chain if isinstance(m, nn.Conv2d) and m.stride[0] > 1)) else 1
            chain += [nn.Conv2d(c, c_out, k, s, k // 2, groups=groups if k == 3 else 1, bias=False), nn.BatchNorm2d(c_out)] + ([] if last else [nn.ReLU(True)])
            c = c_out
        self.chain = nn.Sequential(*chain)
        self.shortcut = nn.Sequential(nn.Conv2d(c_in, out, 1, stride, bias=False), nn.BatchNorm2d(out)) if project else nn.Identity()

    def forward(self, x):
        return torch.relu(self.chain(x) + self.shortcut(x))


def stack(stem, c, widths, counts, expand, kernels, classes, groups=1):
    layers = list(stem)
    for s, (width, count) in enumerate(zip(widths, counts)):
        for b in range(count):
            layers.append(Block(c, width, width * expand, kernels, 2 if s and not b else 1, not b, groups))
            c = width * expand
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(c, classes))


def make(name):
    conv = lambda c, k, s: nn.Conv2d(3, c, k, s, k // 2, bias=False)
    if name != "cifar_resnet20":
        stem = [conv(64, 7, 2), nn.BatchNorm2d(64), nn.ReLU(True), nn.MaxPool2d(3, 2, 1)]
        if name == "resnext50_32x4d":
            return stack(stem, 64, [128, 256, 512, 1024], [3, 4, 6, 3], 2, [1, 3, 1], 1000, groups=32), (3, 224, 224), 1000
        return stack(stem, 64, [64, 128, 256, 512], [3, 4, 6, 3], 4, [1, 3, 1], 1001), (3, 224, 224), 1001
    stem = [conv(16, 3, 1), nn.BatchNorm2d(16), nn.ReLU(True)]
    return stack(stem, 16, [16, 32, 64], [3, 3, 3], 1, [3, 3], 10), (3, 32, 32), 10


def main(name, batch, steps, layout, dtype, mode="eager"):
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", os.cpu_count())))
    net, shape, classes = make(name)
    x, label = torch.randn(int(batch), *shape), torch.randint(0, classes, (int(batch),))
    if layout == "nhwc":
        net, x = net.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    if mode == "compile":
        net = torch.compile(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-4, momentum=0.9, weight_decay=1e-4)
    times = []
    for _ in range(int(steps) + 2):
        start = time.perf_counter()
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=dtype == "bf16"):
            loss = nn.functional.cross_entropy(net(x).float(), label)
        loss.backward()
        optimizer.step()
        times.append(time.perf_counter() - start)
        print(f"step {1e3 * times[-1]:.2f} ms", flush=True)
    print(f"torch {torch.__version__} median {1e3 * statistics.median(times[2:]):.2f} ms")


main(*sys.argv[1:])
