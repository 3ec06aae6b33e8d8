#!/usr/bin/env python3
"""Tests every optimizer against its formula in double precision: optimizers.py AMPCC

A linear model on 48 means of pixels trains for 100 steps with each optimizer and its default coefficients. From step 51 on the
learning rate is a tenth, because TensorFlow's and PyTorch's forms of momentum differ only where the rate changes. Every parameter,
its change since the start, and every slot are compared."""
import math, pathlib, subprocess, sys, tempfile

import compare, data, tensors

BATCH, STEPS, DECAY = 8, 100, 0.01
EPOCH = 5  # steps of an epoch
BOUND, CHANGE_BOUND = 1e-6, 1e-5
MODEL = """version: 1 name: "linear"
input { name: "image" dim: [0, 32, 32, 3] } input { name: "label" dim: 0 }
parameter { name: "fc.weight" dim: [10, 48] init { kind: ZEROS } }
parameter { name: "fc.bias" dim: 10 init { kind: ZEROS } }
node { op: "avg_pool" input: "image" output: "p" attribute { name: "window" ints { v: [8, 8] } }
       attribute { name: "stride" ints { v: [8, 8] } } attribute { name: "pad" ints { v: [0, 0, 0, 0] } } }
node { op: "reshape" input: "p" output: "x" attribute { name: "shape" ints { v: [0, 48] } } }
node { op: "matmul" input: ["x", "fc.weight"] output: "xw" attribute { name: "trans_b" i: 1 } }
node { op: "bias_add" input: ["xw", "fc.bias"] output: "y" }
loss { kind: SOFTMAX_CROSS_ENTROPY logits: "y" }
recipe { dataset: "cifar10" batch_size: 8 standardize: 0 }
"""
START = {"fc.weight": ([10, 48], [math.sin(i) / 4 for i in range(480)]), "fc.bias": ([10], [math.cos(i) / 4 for i in range(10)])}


def norm(v):
    return math.sqrt(sum(x * x for x in v))


# Each function updates w and its slots, lists of floats, in place; g is the gradient, t the number
# of the step, from 1 on.
def sgd(w, g, rate, t):
    for i in range(len(w)):
        w[i] -= rate * (g[i] + DECAY * w[i])


def momentum(w, g, rate, t, m, nesterov=False):
    for i in range(len(w)):
        d = g[i] + DECAY * w[i]
        m[i] = 0.9 * m[i] + d
        w[i] -= rate * (d + 0.9 * m[i] if nesterov else m[i])


def nesterov(w, g, rate, t, m):
    momentum(w, g, rate, t, m, True)


def keras_momentum(w, g, rate, t, v, nesterov=False):
    for i in range(len(w)):
        move = rate * (g[i] + DECAY * w[i])
        v[i] = 0.9 * v[i] - move
        w[i] += 0.9 * v[i] - move if nesterov else v[i]


def keras_nesterov(w, g, rate, t, v):
    keras_momentum(w, g, rate, t, v, True)


def lars(w, g, rate, t, m):
    local = rate * 0.001 * norm(w) / (norm(g) + DECAY * norm(w) + 1e-8)
    for i in range(len(w)):
        m[i] = 0.9 * m[i] + local * (g[i] + DECAY * w[i])
        w[i] -= m[i]


def adam(w, g, rate, t, m, v, coupled=DECAY, apart=0):
    for i in range(len(w)):
        d = g[i] + coupled * w[i]
        m[i] += (1 - 0.9) * (d - m[i])
        v[i] += (1 - 0.999) * (d * d - v[i])
        mean, variance = m[i] / (1 - 0.9**t), v[i] / (1 - 0.999**t)
        w[i] -= rate * (mean / (math.sqrt(variance) + 1e-8) + apart * w[i])


def adamw(w, g, rate, t, m, v):
    adam(w, g, rate, t, m, v, 0, DECAY)


def rmsprop(w, g, rate, t, rms, m, momentum=0):  # momentum 0 is TensorFlow's default
    for i in range(len(w)):
        d = g[i] + DECAY * w[i]
        rms[i] += (d * d - rms[i]) * (1 - 0.9)
        m[i] = momentum * m[i] + rate * d / math.sqrt(rms[i] + 1e-10)
        w[i] -= m[i]


# from the optimizer and its flags to a learning rate at which changes are large enough for f32, the
# function of its step, and its slots with their initial values
OPTIMIZERS = {
    "sgd": (0.01, sgd, {}),
    "momentum": (0.01, momentum, {"momentum": 0}),
    "nesterov": (0.01, nesterov, {"momentum": 0}),
    "keras_momentum": (0.01, keras_momentum, {"momentum": 0}),
    "keras_nesterov": (0.01, keras_nesterov, {"momentum": 0}),
    "lars": (10, lars, {"momentum": 0}),
    "adam": (0.01, adam, {"m": 0, "v": 0}),
    "adamw": (0.01, adamw, {"m": 0, "v": 0}),
    "rmsprop": (0.01, rmsprop, {"rms": 1, "momentum": 0}),
    "rmsprop --momentum=0.9": (0.01, lambda *state: rmsprop(*state, 0.9), {"rms": 1, "momentum": 0}),
}


def example(index):
    """An image of 32x32x3 as its label and the mean of each 8x8 square."""
    record = data.record(index)
    pixel = lambda row, column, c: record[1 + 1024 * c + 32 * row + column] / 255
    return record[0], [sum(pixel(8 * p + r, 8 * q + s, c) for r in range(8) for s in range(8)) / 64
                       for p in range(4) for q in range(4) for c in range(3)]


def gradients(w, b, batch):
    gw, gb = [0.0] * len(w), [0.0] * len(b)
    for k, xn in batch:
        logits = [sum(a * c for a, c in zip(w[48 * j:48 * j + 48], xn)) + b[j] for j in range(10)]
        raised = [math.exp(z - max(logits)) for z in logits]
        for j in range(10):
            d = (raised[j] / sum(raised) - (j == k)) / BATCH
            gb[j] += d
            for i in range(48):
                gw[48 * j + i] += d * xn[i]
    return gw, gb


def train(rate, step, slots, start, examples):
    """The values of all variables after the last step, by name."""
    state = {name: list(values) for name, (_, values) in start.items()}
    state.update({f"{name}.{slot}": [float(first)] * len(state[name]) for name in start for slot, first in slots.items()})
    for t in range(1, STEPS + 1):
        at = (t - 1) % EPOCH * BATCH
        now = rate if t - 1 <= STEPS // 2 else rate / 10
        for name, g in zip(["fc.weight", "fc.bias"], gradients(state["fc.weight"], state["fc.bias"], examples[at:at + BATCH])):
            step(state[name], g, now, t, *(state[f"{name}.{slot}"] for slot in slots))
    return state


def main(ampcc):
    line = compare.run(ampcc, "--help").split("the rule that changes parameters:")[1].split("\n")[0]
    said = line.replace(",", "").replace(" or ", " ").split()
    bad = [] if set(said) == {name.split()[0] for name in OPTIMIZERS} else [f"ampcc has {said}, this test {list(OPTIMIZERS)}"]
    with tempfile.TemporaryDirectory() as folder:
        tmp = pathlib.Path(folder)
        data.write_cifar(tmp / "data", BATCH)
        (tmp / "model.pbtxt").write_text(MODEL)
        tensors.save(tmp / "start", START)
        examples = [example(index) for index in range(BATCH * EPOCH)]
        for name, (rate, step, slots) in OPTIMIZERS.items():
            compare.run(ampcc, tmp / "model.pbtxt", "-o", tmp / "train", "--target=cpu", "--cpu=native", *f"--optimizer={name}".split(), f"--weight-decay={DECAY}",
                        f"--learning-rate={rate}", "--lr-schedule=piecewise", f"--lr-boundaries={STEPS // 2 / EPOCH}", "--lr-multipliers=1,0.1",
                        f"--train-epochs={STEPS / EPOCH}", "-q")
            compare.run(tmp / "train", f"--data-dir={tmp / 'data'}", "--no-shuffle", "--no-augment", "--threads=1", f"--init-from={tmp / 'start'}",
                        f"--epochs-between-evals={STEPS / EPOCH}", f"--model-dir={tmp / name}", "-q")
            (saved,) = (tmp / name).glob("*.safetensors")
            got, want = tensors.load(saved), train(rate, step, slots, START, examples)
            for key, values in want.items():
                have, old = got[key][1], START[key][1] if key in START else [0] * len(values)
                change = compare.distance([a - b for a, b in zip(have, old)], [a - b for a, b in zip(values, old)])
                far = compare.distance(have, values)
                print(f"{name}: {key} {far:.2e}, its change {change:.2e}")
                if not (change <= CHANGE_BOUND and (far <= BOUND or key not in START)):
                    bad.append(f"{name}: {key}: relative L2 {far:.2e}, bound {BOUND:.0e}; of the change {change:.2e}, bound {CHANGE_BOUND:.0e}")
            bad += [f"{name}: {key} is in the checkpoint" for key in got if key.startswith("fc.") and key not in want]
    for line in bad:
        print("FAIL", line)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
