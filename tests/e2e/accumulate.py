#!/usr/bin/env python3
"""Tests --accumulate, which sums the gradients of several parts of a batch: accumulate.py AMPCC ZOO

Four parts of 32 examples must train as one batch of 128: the same parameters and slots, losses, and counts of steps and examples.
The net has no batch normalisation, which would see the parts, and no ReLU, whose mask may flip where a sum is rounded otherwise. In
a net with batch normalisation, in fp16, skipped steps must leave nothing behind, and a resumed run must be equal to the bit. Flags
that look into a single batch must say that they cannot."""
import pathlib, shutil, subprocess, sys, tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "oracle"))
import compare, data, tensors

BOUND, SLOT_BOUND = 1e-6, 1e-5  # slots are sums whose terms nearly cancel
MODEL = """version: 1 name: "net"
input { name: "image" dim: [0, 32, 32, 3] } input { name: "label" dim: 0 }
parameter { name: "conv.weight" dim: [8, 3, 3, 3] init { kind: HE_NORMAL } }
parameter { name: "conv.bias" dim: 8 }
parameter { name: "fc.weight" dim: [10, 128] init { kind: GLOROT_UNIFORM } }
parameter { name: "fc.bias" dim: 10 }
node { op: "conv2d" input: ["image", "conv.weight"] output: "c" attribute { name: "stride" ints { v: [2, 2] } }
       attribute { name: "pad" ints { v: [1, 1, 1, 1] } } }
node { op: "bias_add" input: ["c", "conv.bias"] output: "b" }
node { op: "tanh" input: "b" output: "r" }
node { op: "avg_pool" input: "r" output: "p" attribute { name: "window" ints { v: [4, 4] } }
       attribute { name: "stride" ints { v: [4, 4] } } attribute { name: "pad" ints { v: [0, 0, 0, 0] } } }
node { op: "reshape" input: "p" output: "x" attribute { name: "shape" ints { v: [0, 128] } } }
node { op: "matmul" input: ["x", "fc.weight"] output: "xw" attribute { name: "trans_b" i: 1 } }
node { op: "bias_add" input: ["xw", "fc.bias"] output: "y" }
loss { kind: SOFTMAX_CROSS_ENTROPY logits: "y" }
recipe { dataset: "cifar10" batch_size: 128 train_epochs: 4 optimizer: "momentum" weight_decay: 1e-4 learning_rate: 0.05 lr_batch: 128
         schedule: "cosine" warmup_epochs: 1 pad: 4 flip: 1 }
"""


def program(command):
    got = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    return got.returncode, got.stdout + got.stderr


def train(ampcc, tmp, name, model, flags, run=()):
    compare.run(ampcc, model, "-o", tmp / name, "--target=cpu", "--cpu=native", *flags)
    folder = tmp / ("run_" + name)
    compare.run(tmp / name, f"--data-dir={tmp / 'data'}", "--threads=1", f"--model-dir={folder}", "--epochs-between-evals=4", "--log-every=1", "-q", *run)
    (saved,) = folder.glob("*.safetensors")
    return tensors.load(saved), compare.events(folder, "train"), compare.events(folder, "eval")


def same_as_whole(ampcc, tmp, bad):
    for flags in ["--optimizer=momentum"], ["--optimizer=lars", "--learning-rate=5"], ["--optimizer=adam", "--clip-norm=0.5", "--learning-rate=1e-3"]:
        shutil.rmtree(tmp / "run_whole", ignore_errors=True)
        shutil.rmtree(tmp / "run_parts", ignore_errors=True)
        whole, steps, score = train(ampcc, tmp, "whole", tmp / "net.pbtxt", flags)
        parts, part_steps, part_score = train(ampcc, tmp, "parts", tmp / "net.pbtxt", [*flags, "--accumulate=4"])
        far = {key: compare.distance(parts[key][1], values) for key, (_, values) in whole.items()}
        print(*flags, {key: f"{d:.1e}" for key, d in far.items()}, "loss", steps[-1]["loss"], part_steps[-1]["loss"])
        for key, d in far.items():
            if not d <= (BOUND if key.count(".") == 1 else SLOT_BOUND):
                bad.append(f"{flags}: {key}: {d:.2e}")
        if set(parts) != set(whole) or [e["step"] for e in part_steps] != list(range(1, 21)) or list(parts["global_step"][1]) != [20]:
            bad.append(f"{flags}: {len(part_steps)} reports, not {len(steps)}")
        for key in "epoch", "loss", "accuracy", "learning_rate":
            far = max(abs(a[key] - b[key]) for a, b in zip(steps, part_steps))
            if not far <= 2e-6:
                bad.append(f"{flags}: {key} differs by {far}")
        if not abs(score[-1]["loss"] - part_score[-1]["loss"]) <= 2e-6:
            bad.append(f"{flags}: evaluations differ")
    for key in ("loss_scale", "w.sum", "loss.sum", "fc.weight.sum"):
        if key in parts:
            bad.append(f"`{key}` is in the checkpoint")


def with_norms(ampcc, zoo, tmp, bad):
    """Every part has gradients of Inf until the loss scale has come down; no parameter or statistic may keep any of it."""
    compare.run(zoo, "cifar_resnet8", "-o", tmp / "resnet.pb")
    flags = ["--batch-size=64", "--accumulate=4", "--dtype=fp16", "--loss-scale=dynamic:init=1073741824,interval=4"]
    state, steps, _ = train(ampcc, tmp, "norms", tmp / "resnet.pb", flags, ["--train-epochs=2"])
    skipped = sum(e["skipped_steps"] for e in steps)
    print("cifar_resnet8", skipped, "steps skipped of", len(steps))
    if not 0 < skipped < len(steps) or list(state["global_step"][1]) != [len(steps) - skipped]:
        bad.append(f"{skipped} of {len(steps)} steps skipped, step {state['global_step'][1]}")
    for key, (_, values) in state.items():
        if any(not abs(v) < 1e30 for v in values) and key != "loss_scale":
            bad.append(f"{key} is not finite")
    if any(key.endswith((".sum", "_sum")) for key in state):
        bad.append("sums are in the checkpoint")
    # a run in two halves ends as one in one go
    common = [f"--data-dir={tmp / 'data'}", "--threads=1", "--epochs-between-evals=4", "-q", f"--model-dir={tmp / 'halves'}", "--train-epochs=2"]
    compare.run(tmp / "norms", *common, "--max-train-steps=3")
    compare.run(tmp / "norms", *common, "--resume")
    halves = tensors.load(sorted((tmp / "halves").glob("*.safetensors"))[-1])
    for key in state:
        if halves[key] != state[key]:
            bad.append(f"resumed: {key} differs")


def refusals(ampcc, tmp, bad):
    for flag in f"--dump-step={tmp / 'd'}", "--trap=first-nonfinite", f"--reproduce={tmp / 'd'}":
        status, said = program([tmp / "parts", f"--data-dir={tmp / 'data'}", flag])
        if status != 2 or "made with --accumulate=4" not in said:
            bad.append(f"{flag}: {status} {said}")
    for flags, want, words in ((["--accumulate=3"], 1, "batch_size 128 cannot be cut into 3 equal parts"), (["--accumulate=0"], 2, "--accumulate"),
                               (["--accumulate=256"], 1, "cannot be cut into 256")):
        status, said = program([ampcc, tmp / "net.pbtxt", "-o", tmp / "no", "--target=cpu", "--cpu=native", *flags])
        if status != want or words not in said or (tmp / "no").exists():
            bad.append(f"{flags}: {status} {said}")


def main(ampcc, zoo):
    bad = []
    with tempfile.TemporaryDirectory() as folder:
        tmp = pathlib.Path(folder)
        data.write_cifar(tmp / "data", 128)
        (tmp / "net.pbtxt").write_text(MODEL)
        same_as_whole(ampcc, tmp, bad)
        with_norms(ampcc, zoo, tmp, bad)
        refusals(ampcc, tmp, bad)
    for line in bad:
        print("FAIL", line)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
