#!/usr/bin/env python3
"""Writes the files that compare.py reads: the weights NET.start.safetensors and the results NET.expect.safetensors of each net.

    make.py [SEEDS]

Tries that many seeds per net (default 40). Needs PyTorch.
"""
import pathlib, sys
import torch

import data, nets, stages, tensors

HERE = pathlib.Path(__file__).parent
LR, MOMENTUM, DECAY, STEPS = 0.05, 0.9, 2e-4, 3


def batch(step, size):
    """Standardised images [N,3,H,W] and labels of one step, as a program with --no-augment reads
    them."""
    records = [data.record(step * size + i) for i in range(size)]
    x = torch.tensor([list(r[1:]) for r in records], dtype=torch.float64)
    std = ((x - x.mean(1, keepdim=True)) ** 2).mean(1, keepdim=True).sqrt()
    x = (x - x.mean(1, keepdim=True)) / torch.clamp(std, min=3072 ** -0.5)
    return x.reshape(size, 3, 32, 32), torch.tensor([r[0] for r in records])


def fresh(name, seed):
    """A net in float64 with weights that are exact in float32 and normalisations that are not at
    their initial values."""
    torch.manual_seed(seed)
    net = nets.net(name).double()
    with torch.no_grad():
        for key, t in net.state_dict().items():
            if key.endswith("num_batches_tracked"):
                continue
            if t.dim() == 1:
                low, high = {"weight": (0.6, 1.4), "bias": (-0.4, 0.4), "running_mean": (-0.3, 0.3), "running_var": (0.5, 2)}[key.split(".")[-1]]
                t.uniform_(low, high)
            t.copy_(t.float().double())
    return net


def flat(t):
    return list(t.shape), t.detach().double().reshape(-1).tolist()


def margin(name, seed):
    with torch.no_grad():
        return min(float(z.abs().min()) for z in fresh(name, seed)(batch(0, stages.BATCH)[0])[1])


def optimizer_of(net):
    return torch.optim.SGD([
        {"params": [p for n, p in net.named_parameters() if ".bn" in n or n.startswith("bn") or "downsample.1" in n], "weight_decay": 0},
        {"params": [p for n, p in net.named_parameters() if not (".bn" in n or n.startswith("bn") or "downsample.1" in n)], "weight_decay": DECAY},
    ], lr=LR, momentum=MOMENTUM)


def write(name, seeds):
    seed = max(range(seeds), key=lambda s: margin(name, s))
    print(f"{name}: seed {seed}, smallest |input of a ReLU| in the first step {margin(name, seed):.2e}")
    net, expect = fresh(name, seed), {}
    state = lambda: {k: flat(v) for k, v in net.state_dict().items() if not k.endswith("num_batches_tracked")}
    tensors.save(HERE / f"{name}.start.safetensors", state())
    optimizer = optimizer_of(net)
    for step in range(STEPS):
        x, label = batch(step, stages.BATCH)
        logits, _ = net(x)
        loss = torch.nn.functional.cross_entropy(logits, label)
        optimizer.zero_grad()
        loss.backward()
        if step == 0:
            expect["loss"] = flat(loss)
            expect["logits"] = flat(logits)
            for n, p in net.named_parameters():
                expect[n + ".grad"] = flat(p.grad)
        optimizer.step()
    expect.update({"after3:" + k: v for k, v in state().items()})
    tensors.save(HERE / f"{name}.expect.safetensors", expect)


if __name__ == "__main__":
    for net_name in stages.NETS:
        write(net_name, int(sys.argv[1]) if len(sys.argv) > 1 else 40)
