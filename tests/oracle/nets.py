"""The nets of stages.py in PyTorch, with the parameter names of the zoo."""
import torch
from torch import nn

import stages


def conv(c_in, c_out, k, stride=1):
    return nn.Conv2d(c_in, c_out, k, stride, padding=(k - 1) // 2, bias=False)


class Block(nn.Module):
    """A residual block of version 1 of the official models: convolution, BN and ReLU for each
    width, without the last ReLU; then the shortcut is added, then ReLU."""

    def __init__(self, c_in, widths, kernels, stride, project, norm):
        super().__init__()
        self.relus = []
        at = kernels.index(3)
        for i, (width, k) in enumerate(zip(widths, kernels), 1):
            self.add_module("conv%d" % i, conv(c_in if i == 1 else widths[i - 2], width, k, stride if i - 1 == at else 1))
            self.add_module("bn%d" % i, norm(width))
        self.n = len(widths)
        self.downsample = nn.Sequential(conv(c_in, widths[-1], 1, stride), norm(widths[-1])) if project else None

    def forward(self, x, seen):
        y = x
        for i in range(1, self.n + 1):
            y = getattr(self, "bn%d" % i)(getattr(self, "conv%d" % i)(y))
            if i < self.n:
                seen.append(y)
                y = torch.relu(y)
        y = y + (self.downsample(x) if self.downsample else x)
        seen.append(y)
        return torch.relu(y)


class ResNet(nn.Module):
    """`stages` is a list of lists of blocks (widths, kernels, stride, project)."""

    def __init__(self, stem, stages, classes, epsilon, momentum):
        super().__init__()
        norm = lambda c: nn.BatchNorm2d(c, eps=epsilon, momentum=1 - momentum)
        self.conv1, self.bn1 = conv(3, stem, 3), norm(stem)
        c = stem
        for s, blocks in enumerate(stages, 1):
            layer = nn.ModuleList()
            for widths, kernels, stride, project in blocks:
                layer.append(Block(c, widths, kernels, stride, project, norm))
                c = widths[-1]
            self.add_module("layer%d" % s, layer)
        self.n_stages = len(stages)
        self.fc = nn.Linear(c, classes)

    def forward(self, x):
        seen = [self.bn1(self.conv1(x))]  # collects the inputs of every ReLU
        y = torch.relu(seen[0])
        for s in range(1, self.n_stages + 1):
            for block in getattr(self, "layer%d" % s):
                y = block(y, seen)
        return self.fc(y.mean((2, 3))), seen


def net(name):
    stem, stages_of, classes = stages.NETS[name]
    return ResNet(stem, stages_of, classes, stages.EPSILON, stages.MOMENTUM)
