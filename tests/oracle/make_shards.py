#!/usr/bin/env python3
"""Writes what shards.py compares: cifar_resnet8.shards.safetensors. Needs PyTorch.

Two shards of a batch, from the weights of cifar_resnet8.start.safetensors, in float64. `step1:` and `step3:` are the state
after one and three steps of TensorFlow's way: each replica normalises by its own part of the batch, gradients and moving
statistics are the means of both. `sync1:` is the state after one step in which both normalise by the whole batch, which is
the step of one net on that batch. NAME.momentum is the optimizer's slot: after one step the gradient and the weight decay."""
import copy, pathlib
import torch

import make, nets, stages, tensors

HERE = pathlib.Path(__file__).parent
NAME, SHARDS = "cifar_resnet8", 2


def start():
    net = nets.net(NAME).double()
    state = net.state_dict()
    for key, (shape, values) in tensors.load(HERE / f"{NAME}.start.safetensors").items():
        state[key].copy_(torch.tensor(list(values), dtype=torch.float64).reshape(shape))
    return net


def shard(step, s):
    """Shard s of step g is batch g * SHARDS + s of the stream."""
    return make.batch(step * SHARDS + s, stages.BATCH)


def loss_of(net, x, label):
    return torch.nn.functional.cross_entropy(net(x)[0], label)


def state_of(net, optimizer, prefix):
    out = {prefix + k: make.flat(v) for k, v in net.state_dict().items() if not k.endswith("num_batches_tracked")}
    for name, p in net.named_parameters():
        out[f"{prefix}{name}.momentum"] = make.flat(optimizer.state[p]["momentum_buffer"])
    return out


def replicas_step(net, optimizer, step):
    replicas = [copy.deepcopy(net) for _ in range(SHARDS)]
    for s, replica in enumerate(replicas):
        replica.zero_grad()
        loss_of(replica, *shard(step, s)).backward()
    each = [dict(replica.named_parameters()) for replica in replicas]
    for name, p in net.named_parameters():
        p.grad = sum(parameters[name].grad for parameters in each) / SHARDS
    optimizer.step()
    buffers = [dict(replica.named_buffers()) for replica in replicas]
    for name, b in net.named_buffers():
        if not name.endswith("num_batches_tracked"):
            b.copy_(sum(of[name] for of in buffers) / SHARDS)


def whole_step(net, optimizer, step):
    parts = [shard(step, s) for s in range(SHARDS)]
    net.zero_grad()
    loss_of(net, torch.cat([p[0] for p in parts]), torch.cat([p[1] for p in parts])).backward()
    optimizer.step()


def main():
    net = start()
    optimizer, expect = make.optimizer_of(net), {}
    for step in range(3):
        replicas_step(net, optimizer, step)
        if step in (0, 2):
            expect.update(state_of(net, optimizer, f"step{step + 1}:"))
    net = start()
    optimizer = make.optimizer_of(net)
    whole_step(net, optimizer, 0)
    expect.update(state_of(net, optimizer, "sync1:"))
    # the state after three steps; else slots and what moves, from which the rest follows
    expect = {k: v for k, v in expect.items() if k.startswith("step3:") != k.endswith(".momentum") or "sync1" in k and "running" in k}
    tensors.save(HERE / f"{NAME}.shards.safetensors", expect)


main()
