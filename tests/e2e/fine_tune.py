#!/usr/bin/env python3
"""Tests --init-from and --train: weights trained on ten garments of Fashion-MNIST are tuned to five of them.

    fine_tune.py AMPCC AMPCC_ZOO

A short training has ten classes. A program for five classes starts from its checkpoint and trains the head alone. It must say which
tensors it draws afresh, leave what is not trained as it was to the bit, and soon be better than the same training from random
weights. The test is skipped (77) without Debian's dataset-fashion-mnist.
"""
import gzip
import os
import re
import struct
import sys
import tempfile

from shell import check, run, tensors

AMPCC, ZOO = map(os.path.abspath, sys.argv[1:3])
FASHION = "/usr/share/datasets/fashion-mnist"
KEPT = 5  # classes 0 to 4


def build(name, classes, *flags):
    run(ZOO, "fashion_resnet8", "--classes=%d" % classes, "-o", name + ".pb")
    run(AMPCC, name + ".pb", "-o", name, "--target=cpu", "--cpu=native", "--batch-norm-momentum=0.9", *flags)
    return "./" + name


def keep_five(part, most):
    """The part's first images of five classes, as idx files in ./five."""
    with gzip.open("%s/%s-labels-idx1-ubyte.gz" % (FASHION, part)) as file:
        labels = file.read()[8:]
    with gzip.open("%s/%s-images-idx3-ubyte.gz" % (FASHION, part)) as file:
        images = file.read()[16:]
    wanted = [i for i, label in enumerate(labels) if label < KEPT][:most]
    with open("five/%s-labels-idx1-ubyte" % part, "wb") as file:
        file.write(struct.pack(">II", 0x801, len(wanted)) + bytes(labels[i] for i in wanted))
    with open("five/%s-images-idx3-ubyte" % part, "wb") as file:
        file.write(struct.pack(">IIII", 0x803, len(wanted), 28, 28) + b"".join(images[784 * i:784 * (i + 1)] for i in wanted))


def accuracy(text):
    return float(re.findall(r"test accuracy ([0-9.]+)", text)[-1])


def main():
    if not os.path.exists(FASHION):
        print("no", FASHION)
        return 77
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.mkdir("five")
        keep_five("train", 2560)
        keep_five("t10k", 1000)
        ten = build("ten", 10, "--batch-size=64")
        run(ten, "--max-train-steps=150", "--model-dir=ten.m", "--skip-eval")
        start = "ten.m/ckpt-150.safetensors"
        tune = ["--data-dir=five", "--train-epochs=1", "--learning-rate=0.02"]
        tuned = run(build("head", KEPT, "--train=fc.*"), *tune, "--init-from=" + start, "--model-dir=head.m")
        bare = run(build("all", KEPT), *tune, "--model-dir=all.m")
        print(tuned)
        before, after = tensors(start), tensors("head.m/ckpt-20.safetensors")
        frozen = [name for name in before if "." in name and not name.startswith("fc.") and not name.endswith(".momentum")]
        good = check("%d frozen tensors are what they were" % len(frozen), len(frozen) > 40 and all(before[n] == after[n] for n in frozen))
        good &= check("the run says that the head is drawn afresh", all(name in tuned for name in ("fc.weight", "fc.bias")))
        good &= check("accuracy: tuned %.4f, from nothing %.4f" % (accuracy(tuned), accuracy(bare)),
                      accuracy(tuned) > 0.7 and accuracy(tuned) > accuracy(bare))
        os.chdir("/")
    return 0 if good else 1


sys.exit(main())
