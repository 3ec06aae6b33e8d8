#!/usr/bin/env python3
"""Tests one net against PyTorch in double precision: compare.py AMPCC ZOO NET

Compiles NET in f32, runs one step with --dump-step and three steps with a checkpoint, and compares each tensor with
NET.expect.safetensors, which make.py wrote with PyTorch in float64, by the relative L2 distance."""
import json, pathlib, subprocess, sys, tempfile

import data, model_text, stages, tensors

HERE = pathlib.Path(__file__).parent
# bounds of the distance of logits, of gradients, and of the state after three steps (None: only the first step is compared)
BOUNDS = {"cifar_resnet8": (1e-5, 2e-5, 2e-6), "bottleneck": (5e-5, 5e-5, None)}


def run(*command):
    got = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if got.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n-> {got.returncode}\n{got.stdout}{got.stderr}")
    return got.stdout


def events(folder, kind):
    """The events of this kind in the log of a model folder."""
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    return [e for e in lines if e["event"] == kind]


def distance(got, want):
    difference = sum((a - b) ** 2 for a, b in zip(got, want)) ** 0.5
    return difference / max(sum(b * b for b in want) ** 0.5, 1e-30)


def compare(got, want, bound, prefix=""):
    bad, worst = [], (0.0, "")
    for name, (shape, values) in want.items():
        have = got.get(name)
        if have is None or list(have[0]) != list(shape):
            bad.append(f"{prefix}{name}: {'missing' if have is None else have[0]}, not {shape}")
            continue
        far = distance(have[1], values)
        worst = max(worst, (far, name))
        if not far <= bound:
            bad.append(f"{prefix}{name}: relative L2 {far:.2e}, bound {bound:.0e}")
    return bad, worst


def compile_net(ampcc, zoo, net, tmp, *flags):
    model = tmp / (net + ".pbtxt")
    if net in ("bottleneck",):
        model.write_text(model_text.model_text(net))
    else:
        model = tmp / (net + ".pb")
        run(zoo, net, "-o", model)
    run(ampcc, model, "-o", tmp / "train", "--target=cpu", "--cpu=native", f"--batch-size={stages.BATCH}", "--dtype=fp32", "--optimizer=momentum",
        "--momentum=0.9", "--weight-decay=2e-4", "--decay-spares=batch_norm", f"--batch-norm-momentum={stages.MOMENTUM}", *flags)
    return tmp / "train"


def main(ampcc, zoo, net):
    logits_bound, grad_bound, state_bound = BOUNDS[net]
    want = tensors.load(HERE / f"{net}.expect.safetensors")
    with tempfile.TemporaryDirectory() as folder:
        tmp = pathlib.Path(folder)
        data.write_cifar(tmp / "data", stages.BATCH)
        train = compile_net(ampcc, zoo, net, tmp)
        common = [f"--data-dir={tmp / 'data'}", f"--init-from={HERE / (net + '.start.safetensors')}", "--no-shuffle",
                  "--no-augment", "--learning-rate=0.05", "--learning-rate-batch=0", "--lr-schedule=constant", "--warmup-epochs=0", "-q"]
        run(train, *common, f"--dump-step={tmp / 'dump.safetensors'}", f"--model-dir={tmp / 'm0'}")
        got = tensors.load(tmp / "dump.safetensors")
        bad, worst_logits = compare(got, {k: want[k] for k in ("loss", "logits")}, logits_bound)
        more, worst_grad = compare(got, {k: v for k, v in want.items() if k.endswith(".grad")}, grad_bound)
        bad += more
        print(f"{net}: logits {worst_logits[0]:.2e}, worst gradient {worst_grad[0]:.2e} ({worst_grad[1]})")
        if state_bound:
            run(train, *common, "--max-train-steps=3", f"--model-dir={tmp / 'm3'}")
            (saved,) = sorted((tmp / "m3").glob("*.safetensors"))[-1:]
            state = {k[len("after3:"):]: v for k, v in want.items() if k.startswith("after3:")}
            more, worst = compare(tensors.load(saved), state, state_bound, "after three steps: ")
            bad += more
            print(f"{net}: state after three steps {worst[0]:.2e} ({worst[1]})")
    for line in bad:
        print("FAIL", line)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
