#!/usr/bin/env python3
"""Measures the images per second of torchvision's ResNet-50 with AMP and channels_last:

    torch_resnet50.py eager|graph|compile fp16|bf16|fp32 BATCH STEPS

fp32 allows TF32. The last line is JSON."""
import json, statistics, sys, time

import torch
import torchvision


def make(dtype, batch):
    net = torchvision.models.resnet50(num_classes=1001).cuda().to(memory_format=torch.channels_last)
    x = torch.randn(batch, 3, 224, 224, device="cuda").to(memory_format=torch.channels_last)
    label = torch.randint(0, 1001, (batch,), device="cuda")
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3, momentum=0.9, weight_decay=1e-4, fused=True)
    low = {"fp16": torch.float16, "bf16": torch.bfloat16}.get(dtype)
    scaler = torch.amp.GradScaler("cuda", enabled=dtype == "fp16")
    return net, x, label, optimizer, low, scaler


def step_of(dtype, batch, compiled):
    net, x, label, optimizer, low, scaler = make(dtype, batch)
    model = torch.compile(net) if compiled else net
    criterion = torch.nn.CrossEntropyLoss()

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", low, enabled=low is not None):
            loss = criterion(model(x), label)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

    return step


def captured(step):
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(5):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def main(mode, dtype, batch, steps):
    batch, steps = int(batch), int(steps)
    torch.backends.cudnn.benchmark = True
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    whole = step_of(dtype, batch, mode == "compile")
    step = captured(whole) if mode == "graph" else whole  # the captured graph uses memory that `whole` owns
    for _ in range(15):
        step()
    torch.cuda.synchronize()
    # memory that cudnn.benchmark used is not part of a step; that of a graph was counted during
    # the capture
    if mode != "graph":
        torch.cuda.reset_peak_memory_stats()
    rates = []
    for _ in range(max(steps // 10, 3)):
        start = time.perf_counter()
        for _ in range(10):
            step()
        torch.cuda.synchronize()
        rates.append(10 * batch / (time.perf_counter() - start))
    print(json.dumps({"images_per_second": statistics.median(rates), "torch": torch.__version__, "peak_allocated_mib": torch.cuda.max_memory_allocated() >> 20}))


main(*sys.argv[1:])
