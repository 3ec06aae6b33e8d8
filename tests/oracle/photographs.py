#!/usr/bin/env python3
"""Writes what Pillow and numpy make of every photograph below FOLDER, for tests/image/vectors.c: photographs.py FOLDER OUT

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install pillow numpy
    /work/shared/data/unpack /tmp/data
    /tmp/venv/bin/python tests/oracle/photographs.py /tmp/data/imagenet-sample tests/image/photographs.bin

Pillow decodes. For `official` and `keras` the resizing is written here, from the definitions of TensorFlow's kernels and
Keras's smart_resize; for `torchvision` Pillow resizes. No photograph is stored: the file has 64 pixels of each result of
224 x 224 x 3, at places drawn per photograph, and the means of 4 x 4 blocks. Its numbers are little-endian:

    magic "PHOTOS1\\n", int32 number of photographs; for each: int32 length of its path below FOLDER, the path, and for
    each preprocessing (official, keras, torchvision), first evaluation, then training:
    int32 y x height width resized_height resized_width top left mirrored (AmprtPhotoView),
    uint8 pixels [64][3], uint8 means [4][4][3]
Pixel p of photograph i is at the place h % 224, h / 224 % 224 (row, column), h = (i * 64 + p) * 2654435761 mod 2^32 >> 8.

With --difference FILE, a dump of the program's own results (vectors --dump), prints the mean absolute difference over
whole images in place of writing."""
import math
import os
import struct
import sys

import numpy as np
from PIL import Image

SIZE, PIXELS = 224, 64
f32 = np.float32


class View:
    """A part of a photograph, the size to which it is resized, and where the result begins in the
    resized image."""

    def __init__(self, y, x, h, w, rh=SIZE, rw=SIZE, top=0, left=0, mirrored=False):
        self.part = (y, x, h, w)
        self.resized, self.first, self.mirrored = (rh, rw), (top, left), mirrored

    def numbers(self):
        return (*self.part, *self.resized, *self.first, int(self.mirrored))


def two_tap_axis(size, resized, first, half_pixel):
    """Indices of the lower and the upper pixel and the upper one's weight, as TensorFlow's
    resize_bilinear computes them in float32."""
    i = np.arange(first, first + SIZE, dtype=f32)
    scale = f32(size) / f32(resized)
    place = (i + f32(0.5)) * scale - f32(0.5) if half_pixel else i * scale
    floor = np.floor(place)
    lower = np.maximum(floor.astype(int), 0)
    upper = np.minimum(np.ceil(place).astype(int) if half_pixel else lower + 1, size - 1)
    return lower, upper, (place - floor).astype(f32)


def two_taps(image, view, half_pixel):
    y, x, h, w = view.part
    part = np.asarray(image, dtype=f32)[y:y + h, x:x + w]
    if view.mirrored:
        part = part[:, ::-1]
    y0, y1, dy = two_tap_axis(h, view.resized[0], view.first[0], half_pixel)
    x0, x1, dx = two_tap_axis(w, view.resized[1], view.first[1], half_pixel)
    dx, dy = dx[None, :, None], dy[:, None, None]
    top = part[y0][:, x0] + (part[y0][:, x1] - part[y0][:, x0]) * dx
    bottom = part[y1][:, x0] + (part[y1][:, x1] - part[y1][:, x0]) * dx
    return top + (bottom - top) * dy


def official(image, view):
    return two_taps(image, view, False)


def keras(image, view):
    return two_taps(image, view, True)[:, :, ::-1]  # blue, green, red


def torchvision(image, view):
    y, x, h, w = view.part
    rh, rw = view.resized
    top, left = view.first
    resized = image.crop((x, y, x + w, y + h)).resize((rw, rh), Image.Resampling.BILINEAR)
    result = np.asarray(resized.crop((left, top, left + SIZE, top + SIZE)), dtype=f32)
    return result[:, ::-1] if view.mirrored else result


def official_view(w, h):
    ratio = f32(256) / min(f32(h), f32(w))
    rh, rw = int(f32(h) * ratio), int(f32(w) * ratio)
    return View(0, 0, h, w, rh, rw, (rh - SIZE) // 2, (rw - SIZE) // 2)


def keras_view(w, h):
    ch, cw = min(h, int(f32(w * SIZE) / f32(SIZE))), min(w, int(f32(h * SIZE) / f32(SIZE)))
    return View((h - ch) // 2, (w - cw) // 2, ch, cw)


def torchvision_view(w, h):
    rh, rw = (int(256 * h / w), 256) if w <= h else (256, int(256 * w / h))
    return View(0, 0, h, w, rh, rw, int(round((rh - SIZE) / 2.0)), int(round((rw - SIZE) / 2.0)))


WAYS = [(official, official_view), (keras, keras_view), (torchvision, torchvision_view)]


def training_view(random, w, h):
    """A random part of any size and aspect ratio; the test needs no particular distribution."""
    area, aspect = random.uniform(0.06, 1) * w * h, math.exp(random.uniform(-0.28, 0.28))
    pw, ph = min(w, round(math.sqrt(area * aspect))), min(h, round(math.sqrt(area / aspect)))
    return View(int(random.integers(0, h - ph + 1)), int(random.integers(0, w - pw + 1)), ph, pw,
                mirrored=bool(random.integers(0, 2)))


def results(folder):
    """Yields (path, [(view, float image), ...]) for every photograph, in sorted order."""
    random = np.random.default_rng(12)
    paths = sorted(os.path.relpath(os.path.join(d, f), folder) for d, _, files in os.walk(folder) for f in files)
    for path in paths:
        image = Image.open(os.path.join(folder, path)).convert("RGB")
        found = []
        for make, evaluation in WAYS:
            for view in (evaluation(*image.size), training_view(random, *image.size)):
                found.append((view, make(image, view)))
        yield path, found


def byte(values):
    return np.floor(np.asarray(values, dtype=np.float64) + 0.5).astype(np.uint8).tobytes()


def write(folder, out):
    body, n = b"", 0
    for i, (path, found) in enumerate(results(folder)):
        name = path.encode()
        body += struct.pack("<i", len(name)) + name
        places = ((np.arange(PIXELS, dtype=np.uint64) + i * PIXELS) * 2654435761 & 0xFFFFFFFF) >> 8
        for view, image in found:
            body += struct.pack("<9i", *view.numbers())
            body += byte(image[places % SIZE, places // SIZE % SIZE])
            body += byte(image.reshape(4, SIZE // 4, 4, SIZE // 4, 3).mean(axis=(1, 3)))
        n += 1
    with open(out, "wb") as file:
        file.write(b"PHOTOS1\n" + struct.pack("<i", n) + body)
    print(f"{n} photographs, {len(body) / 1000:.0f} kB")


def difference(folder, dump):
    ours = np.fromfile(dump, dtype=np.uint8).reshape(-1, len(WAYS) * 2, SIZE, SIZE, 3)
    worst = np.zeros((len(WAYS) * 2, len(ours)))
    for i, (path, found) in enumerate(results(folder)):
        for k, (_, image) in enumerate(found):
            worst[k, i] = np.abs(ours[i, k].astype(np.float64) - image).mean()
    for k in range(len(WAYS) * 2):
        name = WAYS[k // 2][0].__name__ + (", training" if k % 2 else ", evaluation")
        print(f"{name:25} mean {worst[k].mean():.3f}, worst photograph {worst[k].max():.3f} of 255")


if __name__ == "__main__":
    if len(sys.argv) == 4 and sys.argv[2] == "--difference":
        difference(sys.argv[1], sys.argv[3])
    elif len(sys.argv) == 3:
        write(sys.argv[1], sys.argv[2])
    else:
        sys.exit(__doc__)
