"""Exchanges shards with PyPI's package tfrecord, in both directions: make.py WRITE_SHARDS FOLDER

Writes FOLDER/train-00000-of-00001 with the package, which our reader reads in tests/runtime/data/test_tfrecord.c, and reads with
the package a shard that WRITE_SHARDS (tests/runtime) has written. It is run by hand, and the file is committed."""
import os
import subprocess
import sys
import tempfile

from tfrecord.reader import tfrecord_loader
from tfrecord.writer import TFRecordWriter

SIDES = ["ymin", "xmin", "ymax", "xmax"]


def image(i):
    return bytes((k * 7 + i) % 256 for k in range(1000 * i + 5))


def boxes(i):
    return [(.125 * b, .25, .5, .75 + .0625 * b) for b in range(i)]


def example(i):
    sides = zip(*boxes(i)) if i else [()] * 4
    return {"image/encoded": (image(i), "byte"), "image/class/label": (499 * i + 1, "int"),
            **{f"image/object/bbox/{name}": (list(side), "float") for name, side in zip(SIDES, sides)}}


write_shards, folder = sys.argv[1:]
writer = TFRecordWriter(f"{folder}/train-00000-of-00001")
for i in range(3):
    writer.write(example(i))
writer.close()

with tempfile.TemporaryDirectory() as scratch:
    lines = []
    for i in range(3):
        with open(f"{scratch}/{i}", "wb") as out:
            out.write(image(i))
        sides = " ".join(f"{x}" for box in boxes(i) for x in box)
        lines.append(f"{499 * i + 1} {scratch}/{i} {sides}\n")
    subprocess.run([write_shards, scratch, "train", "1"], input="".join(lines), text=True, check=True)
    read = list(tfrecord_loader(f"{scratch}/train-00000-of-00001", None, {
        "image/encoded": "byte", "image/class/label": "int", "image/class/text": "byte"}))
    assert len(read) == 3
    for i, got in enumerate(read):
        assert bytes(got["image/encoded"]) == image(i) and list(got["image/class/label"]) == [499 * i + 1]
        assert bytes(got["image/class/text"]) == b"a thing"
    boxed = list(tfrecord_loader(f"{scratch}/train-00000-of-00001", None, {
        f"image/object/bbox/{name}": "float" for name in SIDES}))
    for i, got in enumerate(boxed):
        for s, name in enumerate(SIDES):
            assert list(got[f"image/object/bbox/{name}"]) == [box[s] for box in boxes(i)], got
    ours, theirs = (open(f"{d}/train-00000-of-00001", "rb").read() for d in (scratch, folder))
    print(f"{len(read)} records read back; {len(ours)} bytes of ours, {len(theirs)} of theirs")
