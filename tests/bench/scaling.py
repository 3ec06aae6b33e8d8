#!/usr/bin/env python3
"""scaling.py [MODEL]: how a training step would scale over nodes with 8 H200 each, as a table. A model, not a measurement.

The buckets are those of the compiled program: ampcc plans the step, and each bucket has its bytes and the kernel after which it is
whole. How far the way back is by then is counted in multiplications. Sums run one after the other beside the compute:

    end_i = max(end_{i-1}, ready_i * T_back) + a + 2 (N-1)/N bytes_i / B
    exposed = max(0, end - T_back),   efficiency = T / (T + exposed + s * busy)

T = images / rate, T_back = 2/3 T. What the model assumes is in NODES and RATES; a, B and s are what NCCL took elsewhere
(specs/distributed.md 3 has the sources), rates are guesses below the best that is known (7,950 img/s). Nothing is assumed of
stragglers and of the input. BUILD names the build folder; TARGET the target that is planned (cuda:h200, or cpu without CUDA)."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("BUILD", ROOT / "build"))
TARGET = os.environ.get("TARGET", "cuda:h200")
# name, GPUs, seconds that a sum takes at least, bytes per second, share of the compute that is lost while a sum runs beside it
NODES = [("1 node, NVLink, ring", 8, 30e-6, 370e9, 0.06), ("1 node, NVLink, NVLS", 8, 25e-6, 480e9, 0.03),
         ("8 nodes, 8 x 400 Gb/s each", 64, 80e-6, 320e9, 0.06), ("8 nodes, 1 x 400 Gb/s each", 64, 80e-6, 46e9, 0.06)]
RATES = [(256, 5000), (64, 5000), (32, 4000)]  # images per GPU, images per second


def count(dims):
    n = 1
    for d in dims:
        n *= d
    return n


def planned(model, batch):
    """Graph @train_dp of a model as ampcc plans it."""
    with tempfile.TemporaryDirectory() as folder:
        pb, amp = os.path.join(folder, "m.pb"), os.path.join(folder, "m.amp")
        subprocess.run([BUILD / "models/ampcc-zoo", model, "-o", pb], check=True)
        subprocess.run([BUILD / "frontend/ampcc", pb, "-q", "--emit=ir", "--dtype=fp16", f"--batch-size={batch}",
                        f"--target={TARGET}", "-o", amp], check=True)
        text = pathlib.Path(amp).read_text()
    return text[text.index("\ngraph @train_dp"):]


def nodes(graph):
    """(results, op, operands, attributes, kernel) of every node, and the dims of every value."""
    found, dims = [], {}
    for line in graph.splitlines():
        match = re.match(r"  (%[^=]+?) = (\w+) (.*?) ?(\{.*\})? : (.*)", line)
        if not match:
            continue
        results = re.findall(r"%([\w.]+)", match[1])
        for name, shape in zip(results, re.findall(r"\w+\[([\d,]*)\]", match[5])):
            dims[name] = [int(d) for d in shape.split(",") if d]
        kernel = re.search(r"\bkernel=(\d+)", line)
        found.append((results, match[2], re.findall(r"%([\w.]+)", match[3]), match[4] or "", int(kernel[1]) if kernel else None))
    return found, dims


def multiplications(op, results, operands, dims):
    shape = [dims[name] for name in operands]
    result = dims[results[0]]
    if op == "conv2d":
        return count(result) // result[-1] * count(shape[1])
    if op == "conv2d_dgrad":  # of the gradient of the result, and the filter
        return count(shape[0]) // shape[0][-1] * count(shape[1])
    if op == "conv2d_wgrad":  # of the images, and the gradient of the result
        return count(shape[1]) // shape[1][-1] * count(result)
    if op == "matmul":  # each dimension of the product occurs twice among both operands and the result
        return int(round((count(shape[0]) * count(shape[1]) * count(result)) ** .5))
    return 0


def buckets(graph):
    """[(share of the way back after which it is whole, bytes)], in their order."""
    found, dims = nodes(graph)
    work, kernel_of, first_back = {}, {}, None
    for results, op, operands, _, kernel in found:
        for name in results:
            kernel_of[name] = kernel
        if kernel is not None:
            work[kernel] = work.get(kernel, 0) + multiplications(op, results, operands, dims)
        back = op in ("conv2d_dgrad", "conv2d_wgrad") or op == "matmul" and results[0].endswith(".grad")
        if back and (first_back is None or kernel < first_back):
            first_back = kernel
    total = sum(n for kernel, n in work.items() if kernel >= first_back)
    ready, size = {}, {}
    for _, op, operands, attributes, _ in found:
        if op == "all_reduce":
            bucket = int(re.search(r"bucket=(\d+)", attributes)[1])
            made = kernel_of.get(operands[0])
            ready[bucket] = max(ready.get(bucket, 0), -1 if made is None else made)
            size[bucket] = size.get(bucket, 0) + 4 * count(dims[operands[0]])
    share = {b: sum(n for kernel, n in work.items() if first_back <= kernel <= k) / total for b, k in ready.items()}
    return [(share[b], size[b]) for b in sorted(size)]


def step(gpus, images, rate, start, bandwidth, lost, plan):
    """(efficiency, seconds busy, seconds exposed)."""
    whole = images / rate
    back, end, busy = 2 / 3 * whole, 0.0, 0.0
    for ready, size in plan:
        sum_takes = start + 2 * (gpus - 1) / gpus * size / bandwidth
        end, busy = max(end, ready * back) + sum_takes, busy + sum_takes
    exposed = max(0.0, end - back)
    return whole / (whole + exposed + lost * min(busy, back)), busy, exposed


def main():
    model = sys.argv[1] if len(sys.argv) > 1 else "resnet50"
    plans = {batch: buckets(planned(model, batch)) for batch, _ in RATES}
    plan = plans[RATES[0][0]]
    print(f"{model}, {TARGET}: {len(plan)} buckets of {sum(size for _, size in plan) / 2**20:.1f} MiB; after a share of the way back:")
    print("  " + ", ".join(f"{size / 2**20:.1f} at {ready:.0%}" for ready, size in plan))
    print("\n| assumed | images per GPU | T ms | busy ms | exposed ms | efficiency | with one bucket at the end |\n|---|---|---|---|---|---|---|")
    for name, gpus, start, bandwidth, lost in NODES:
        for images, rate in RATES:
            one = [(1.0, sum(size for _, size in plans[images]))]
            efficiency, busy, exposed = step(gpus, images, rate, start, bandwidth, lost, plans[images])
            print(f"| {name}: {start * 1e6:.0f} us, {bandwidth / 1e9:.0f} GB/s, {lost:.0%} lost | {images} | {1e3 * images / rate:.1f} "
                  f"| {1e3 * busy:.2f} | {1e3 * exposed:.2f} | {efficiency:.3f} | {step(gpus, images, rate, start, bandwidth, lost, one)[0]:.3f} |")


if __name__ == "__main__":
    main()
