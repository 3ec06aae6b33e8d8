#!/usr/bin/env python3
"""Compiles models and tests how their programs train: programs.py AMPCC AMPCC_ZOO CASE...

  zoo MODEL...    each model takes three steps with finite losses in fp32, bf16 and fp16, or as MODEL:DTYPE in one of them ("all": every
                  model of the zoo)
  repeat          two runs of a program, with one thread and with two, end with the same checkpoint, to the bit
  own             with our own kernels cifar_resnet8 needs no oneDNN, and trains as with oneDNN
  same DTYPE [MODEL STEPS]  with our own kernels MODEL (cifar_resnet8) ends STEPS (50) with the same checkpoint, to the bit, for
                  1, 2, 3 and 5 threads, and for AVX2 and AVX-512 but where bf16 is multiplied in pairs; --about names the vectors that this
                  CPU is to use; made twice it is the same executable
  memory          a program that computes values again to save memory ends with the same checkpoint, to the bit
  resume          a run that is stopped half way and resumed ends with the same checkpoint as one in one go
  frozen          with --train and --freeze what is not trained stays as it is, to the bit, moving statistics included
  classes         a program of five classes that starts from weights of ten draws its head afresh
  learns          a quarter of an epoch makes fashion_resnet8 much better than chance; skipped (77) without Debian's
                  dataset-fashion-mnist
"""
import json
import math
import os
import re
import sys
import tempfile

from shell import check, content, newest, run, tensors

AMPCC, ZOO = map(os.path.abspath, sys.argv[1:3])
# Synthetic pixels are around 127, as in the official programs, so nets without normalisation need a small learning rate.
SYNTHETIC = ["--use-synthetic-data", "--learning-rate=1e-4"]
ANY = "--cpu=x86-64-v3"  # ampcc's default: a program that chooses between levels when it starts
FASHION = "/usr/share/datasets/fashion-mnist"


def build(model, *flags, cpu="--cpu=native"):
    run(ZOO, model, "-o", model + ".pb")
    run(AMPCC, model + ".pb", "-o", model, "--target=cpu", cpu, *flags)
    return "./" + model


def records(folder):
    with open(os.path.join(folder, "log.jsonl")) as log:
        return [json.loads(line) for line in log]


def finite(losses):
    return all(isinstance(loss, float) and math.isfinite(loss) for loss in losses)


def zoo(models):
    if models == ["all"]:
        models = [line.split()[0] for line in run(ZOO, "--list").splitlines()]
    good = True
    for model, _, only in (model.partition(":") for model in models):
        for dtype in [only] if only else ["fp32", "bf16", "fp16"]:
            batch = 2 if re.match("(wide_)?resne", model) else 8
            program = build(model, "--dtype=" + dtype, "--batch-size=%d" % batch)
            run(program, *SYNTHETIC, "--max-train-steps=3", "--log-every=1", "--model-dir=m", "--clean")
            losses = [r["loss"] for r in records("m") if r["event"] == "train"]
            good &= check("%s %s %s" % (model, dtype, losses), len(losses) >= 3 and finite(losses))
            os.remove(model)
    return good


def train(program, folder, *flags):
    """Returns the name of the newest checkpoint and its bytes."""
    run(program, *SYNTHETIC, "--model-dir=" + folder, "--checkpoint-every=10", *flags)
    return os.path.basename(newest(folder)), content(newest(folder))


def repeat():
    program = build("mlp", "--batch-size=16", "--dtype=fp16")
    first = train(program, "a", "--max-train-steps=30")
    good = check("the same program twice", train(program, "b", "--max-train-steps=30") == first)
    program = build("cifar_resnet8", "--batch-size=8", "--dtype=fp16", "--loss-scale=dynamic:interval=10")
    first = train(program, "c", "--max-train-steps=30", "--threads=2")
    return good & check("a ResNet twice", train(program, "d", "--max-train-steps=30", "--threads=2") == first)


def plan(model, *flags):
    """The bytes of the step's arena, and how many kernels compute something a second time."""
    text = run(AMPCC, model + ".pb", "--target=cpu", "--emit=ir", "-o", "plan.amp", "--print-memory-plan", "--print-traffic", *flags)
    return [int(re.search(pattern, text)[1]) for pattern in (r"@train: peak (\d+)", r"computed again +(\d+)")]


def own():
    flags = ["--max-train-steps=8", "--log-every=1", "--learning-rate=1e-3", "--threads=1"]
    program = build("cifar_resnet8", "--batch-size=16")
    needed = run("readelf", "-d", program)
    good = check("needs neither oneDNN nor OpenMP", not re.search("dnnl|gomp|iomp", needed), needed)
    train(program, "own", *flags)
    train(build("cifar_resnet8", "--batch-size=16", "--cpu-library=onednn"), "other", *flags)
    losses = [[r["loss"] for r in records(folder) if r["event"] == "train"] for folder in ("own", "other")]
    close = all(abs(a - b) < 1e-3 * abs(b) for a, b in zip(*losses))
    return good & check("losses %s, with oneDNN %s" % tuple(losses), len(losses[0]) >= 8 and close)


def vectors(dtype):
    """What a program is to choose on this CPU. Intel's CPUs from Sapphire Rapids on (those with AVX512_FP16) multiply pairs of bf16
    at half the rate of f32, but for AMX."""
    info = content("/proc/cpuinfo").decode()
    slow = "GenuineIntel" in info and "avx512_fp16" in info and "amx_bf16" not in info
    if dtype == "bf16" and "avx512_bf16" in info and not slow:
        return "AVX-512 with bf16"
    return "AVX-512" if "avx512f" in info else "AVX2"


def uses(program, level):
    chosen = re.search("own kernels, ([^,\n]*)", run(program, "--about"))
    return check("it uses " + level, chosen and chosen[1] == level, chosen)


def same(dtype, model="cifar_resnet8", steps="50"):
    flags = ["--batch-size=12", "--dtype=" + dtype]
    train_flags = ["--max-train-steps=" + steps, "--log-every=1", "--learning-rate=1e-2"]
    program = build(model, *flags, cpu=ANY)
    executable = content(program)
    good = check("made again it is the same executable", content(build(model, *flags, "--cache-dir=other", cpu=ANY)) == executable)
    first = train(program, "1", *train_flags, "--threads=1")
    losses = [r["loss"] for r in records("1") if r["event"] == "train"]
    good &= check(f"{steps} steps, losses from {losses[0]:g} to {losses[-1]:g}", len(losses) >= int(steps) and finite(losses) and first[0] == f"ckpt-{steps}.safetensors")
    for threads in 2, 3, 5:
        good &= check("%d threads" % threads, train(program, str(threads), *train_flags, "--threads=%d" % threads) == first)
    good &= uses(program, vectors(dtype))
    native = build(model, *flags)
    good &= uses(native, vectors(dtype))
    good &= check("--cpu=native gives the same checkpoint", train(native, "native", *train_flags, "--threads=2") == first)
    if vectors(dtype) != "AVX-512":
        print("no AVX-512 to compare AVX2 with, or one that rounds products of bf16 otherwise")
        return good
    alone = build(model, *flags, cpu="--cpu=haswell")
    good &= check("with AVX2 it is another executable", content(alone) != executable)
    return good & check("with AVX2 the same checkpoint", train(alone, "avx2", *train_flags, "--threads=2") == first)


def memory():
    flags = ["--batch-size=16", "--dtype=fp16"]
    program = build("cifar_resnet8", *flags)
    all_kept = train(program, "kept", "--max-train-steps=3")
    most, none = plan("cifar_resnet8", *flags)
    good = True
    for percent in (95, 85):
        limit = most * percent // 100
        limited = [*flags, "--max-memory=%d" % limit]
        size, again = plan("cifar_resnet8", *limited)
        good &= check("%d bytes of %d, %d kernels again" % (size, most, again), size <= limit and again > none == 0)
    program = build("cifar_resnet8", *limited)
    for percent in range(85, 0, -3):  # the step of several processes needs a little more than that of one
        limited = [*flags, "--max-memory=%d" % (most * percent // 100)]
        told = run(AMPCC, "cifar_resnet8.pb", "-o", "alone", "--target=cpu", "--cpu=native", *limited)
        if "@train_dp needs" in told:
            break
    good &= check("the step of several processes does not fit and is left out", "@train_dp needs" in told and "[-Wdistributed]" in told)
    told = run("./alone", "--use-synthetic-data", "--shards=2", "--max-train-steps=1", status=2)
    good &= check("such a program refuses shards", "without graph @train_dp" in told)
    told = run(AMPCC, "cifar_resnet8.pb", "-o", "never", "--target=cpu", "--cpu=native", *limited, "--distributed=on", status=1)
    good &= check("where it is asked for, that is an error", "error[E409]: @train_dp needs" in told and not os.path.exists("never"))
    return good & check("the same checkpoint", train(program, "again", "--max-train-steps=3") == all_kept)


def resume():
    program = build("cifar_resnet8", "--batch-size=8", "--dtype=bf16")
    whole = train(program, "whole", "--max-train-steps=40")
    train(program, "parts", "--max-train-steps=20")
    return check("resumed at step 20", train(program, "parts", "--max-train-steps=40", "--resume") == whole)


def frozen():
    """Trains the head alone, then all but a part in the middle, through which gradients must pass."""
    good = True
    for dtype, flag, is_trained in [
        ("fp32", "--train=fc.*", lambda name: name.startswith("fc.")),
        ("fp16", "--freeze=layer2.*", lambda name: not name.startswith("layer2.")),
    ]:
        program = build("cifar_resnet8", "--batch-size=8", "--dtype=" + dtype, flag)
        after = []
        for steps in (1, 4):
            train(program, "%s-%d" % (dtype, steps), "--max-train-steps=%d" % steps)
            after.append(tensors("%s-%d/ckpt-%d.safetensors" % (dtype, steps, steps)))
        names = [n for n in after[0] if "." in n]
        kept = {n for n in names if after[0][n] == after[1][n]}
        wrong = [n for n in names if (n in kept) == is_trained(n)]
        slots = [n for n in names if n.endswith(".momentum") and not is_trained(n)]
        good &= check("%s: %s changes %d of %d tensors" % (dtype, flag, len(names) - len(kept), len(names)), not wrong and len(kept) > 4)
        good &= check("no slots of what is not trained", not slots)
        for name in wrong + slots:
            print("  ", name)
    return good


def classes():
    """Gives weights of ten classes to a program of five that trains its head alone: the head is drawn afresh, all else stays."""
    train(build("fashion_resnet8", "--batch-size=8"), "ten", "--max-train-steps=2")
    run(ZOO, "fashion_resnet8", "--classes=5", "-o", "five.pb")
    run(AMPCC, "five.pb", "-o", "five", "--target=cpu", "--cpu=native", "--batch-size=8", "--train=fc.*")
    start = "ten/ckpt-2.safetensors"
    text = run("./five", *SYNTHETIC, "--model_dir=tuned", "-mts=3", "--fine_tune", "--pretrained_model_checkpoint_path=" + start)
    print(text)
    before, after = tensors(start), tensors("tuned/ckpt-3.safetensors")
    kept = {name for name in after if before.get(name) == after[name]}
    good = check("the head is said", "2 parameters are drawn afresh, as it has 10 classes and this program 5" in text)
    good &= check("it alone differs", {n for n in after if "." in n} - kept == {"fc.weight", "fc.bias", "fc.weight.momentum", "fc.bias.momentum"})
    strict = run("./five", *SYNTHETIC, "--init-from=" + start, "--init-from-strict", status=1)
    good &= check("--init-from-strict refuses", "`fc.weight` is [10,64] in the file and [5,64]" in strict)
    return good


def learns():
    if not os.path.exists(FASHION):
        sys.exit(77)
    program = build("fashion_resnet8")
    text = run(program, "--train-epochs=0.25", "--epochs-between-evals=1", "--model-dir=m")
    accuracy = [r["accuracy"] for r in records("m") if r["event"] == "eval"]
    print(text)
    return check("a quarter of an epoch: %s" % accuracy, accuracy and accuracy[-1] > 0.7)


def main():
    case, rest = sys.argv[3], sys.argv[4:]
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        cases = {"repeat": repeat, "own": own, "memory": memory, "resume": resume, "frozen": frozen, "classes": classes, "learns": learns}
        good = zoo(rest) if case == "zoo" else same(*rest) if case == "same" else cases[case]()
        os.chdir("/")
    return 0 if good else 1


sys.exit(main())
