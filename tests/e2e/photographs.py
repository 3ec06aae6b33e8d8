#!/usr/bin/env python3
"""Tests that photographs train the same from folders, from TFRecord shards and packed by ampcc-pack.

    photographs.py AMPCC AMPCC_ZOO AMPCC_PACK WRITE_SHARDS SAMPLE.tar [memorise]

The photographs are those of the tar file. With a small net the first batch of a training, cropped and flipped, must be the same
from all three sources with any number of threads, to the bit; a training that is stopped in the middle of an epoch and resumed
must end like one in one go. With `memorise`, which takes minutes, ResNet-18 must instead learn all 125 photographs by heart from
each source. The test is skipped (77) if there is no such tar file.
"""
import os
import re
import sys
import tarfile
import tempfile

from shell import check, run, tensors

AMPCC, ZOO, PACK, SHARDS, SAMPLE = map(os.path.abspath, sys.argv[1:6])


def make_data():
    """Makes folder/, pack/ and shards/ of the same images in the same order: by class, then by name."""
    with tarfile.open(SAMPLE) as tar:
        tar.extractall("folder", filter="data") if hasattr(tarfile, "data_filter") else tar.extractall("folder")
    os.symlink("train", "folder/val")
    run(PACK, "--dataset=folder", "--data-dir=folder", "-o", "pack")
    os.mkdir("shards")
    classes = sorted(os.listdir("folder/train"))
    lines = ["%d folder/train/%s/%s" % (1 + label, name, image) for label, name in enumerate(classes)
             for image in sorted(os.listdir("folder/train/" + name))]
    for part in ("train", "validation"):
        run(SHARDS, "shards", part, "1", input="\n".join(lines) + "\n")
    return len(lines)


def build(model, *flags, zoo=()):
    run(ZOO, model, *zoo, "-o", model + ".pb")
    run(AMPCC, model + ".pb", "-o", model, "--target=cpu", "--cpu=native", *flags)
    return "./" + model


SOURCES = {"folder": "folder", "pack": "pack", "imagenet": "shards"}


def source(name):
    return ["--dataset=" + name, "--data-dir=" + SOURCES[name]]


def same():
    program = build("cifar_resnet8", "--batch-size=16", "--preprocessing=official", zoo=["--classes=1001"])
    good, first = True, None
    for name in SOURCES:
        for threads in (1, 2, 8):
            out = "%s-%d.safetensors" % (name, threads)
            run(program, *source(name), "--dump-step=" + out, "--data-threads=%d" % threads, "--model-dir=")
            step = tensors(out)
            labels = [x - (name == "imagenet") for x in memoryview(step["label"].data).cast("i")]
            first = first or (step["image"], labels)
            good &= check("the first batch: %s, %d threads" % (name, threads), (step["image"], labels) == first)
        train = [program, *source(name), "--skip-eval", "--train-epochs=2", "--model-dir=" + name]
        run(*train[:-1], "--model-dir=whole-" + name, "--data-threads=3")
        run(*train, "--max-train-steps=11") # of 16 steps: stops in the second epoch
        run(*train, "--resume")
        good &= check("stopped in the middle of an epoch and resumed: %s" % name,
                      tensors(name + "/ckpt-16.safetensors") == tensors("whole-%s/ckpt-16.safetensors" % name))
    return good


def memorise():
    program = build("resnet18", "--batch-size=25")
    good = True
    for name in SOURCES:
        text = run(program, *source(name), "--train-epochs=30", "--epochs-between-evals=30", "--no-augment", "--model-dir=",
                   "--learning-rate=0.2", "--warmup-epochs=2", "--lr-schedule=cosine", "--recompute-bn-stats=5")
        found = re.search(r"test accuracy ([0-9.]+)", text)
        print(text)
        good &= check("%s: all photographs by heart" % name, found and float(found.group(1)) == 1)
    return good


def main():
    if not os.path.exists(SAMPLE):
        print("no photographs at", SAMPLE)
        return 77
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        print(make_data(), "photographs")
        good = memorise() if sys.argv[6:] == ["memorise"] else same()
        os.chdir("/")
    return 0 if good else 1


sys.exit(main())
