#!/usr/bin/env python3
"""trap.py AMPCC AMPCC_ZOO: from a number that overflows on its own to the op that did it.

A ResNet-8 in fp16 whose one gamma is much too large is trained under --trap=first-nonfinite. The program names the
kernel and the ops in it that may be to blame; the same model compiled with --no-fuse, which must compute the same bits,
runs the saved step again and names the one op."""
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import zlib

AMPCC, ZOO = map(os.path.abspath, sys.argv[1:3])
TRAIN = ["--use-synthetic-data", "--learning-rate=1e-4", "--threads=1"]
GAMMA = "layer2.0.bn1.weight"


def run(*args, status=0):
    done = subprocess.run(args, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={**os.environ, "OMP_NUM_THREADS": "1"})
    text = done.stdout.decode(errors="replace")
    if done.returncode != status:
        sys.exit("%s: status %d, not %d\n%s" % (" ".join(args), done.returncode, status, text))
    return text


def digest(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def spoil(source, target):
    """A checkpoint with one parameter too large; f32 1e6, and a checksum that fits."""
    with open(source, "rb") as file:
        size = int.from_bytes(file.read(8), "little")
        header, data = json.loads(file.read(size)), bytearray(file.read())
    begin, end = header[GAMMA]["data_offsets"]
    data[begin:end] = b"\x00\x24\x74\x49" * ((end - begin) // 4)
    header["__metadata__"]["crc32"] = "%08x" % zlib.crc32(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(target, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text + data)


def expect(text, *parts):
    for part in parts:
        if part not in text:
            sys.exit("expected `%s` in\n%s" % (part, text))


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        run(ZOO, "cifar_resnet8", "-o", "r8.pb")
        for name, flags in ("fused", []), ("single", ["--no-fuse"]):
            run(AMPCC, "r8.pb", "--target=cpu", "--dtype=fp16", "--batch-size=4", "-o", name, *flags)
            run("./" + name, *TRAIN, "--model-dir=m-" + name, "--max-train-steps=4")
        if digest("m-fused/ckpt-4.safetensors") != digest("m-single/ckpt-4.safetensors"):
            sys.exit("--no-fuse has changed the bits")
        spoil("m-fused/ckpt-4.safetensors", "bad.safetensors")
        text = run("./fused", *TRAIN, "--model-dir=t", "--init-from=bad.safetensors", "--trap=first-nonfinite", status=1)
        guilty = "layer2.0.relu1 (relu), F16: "
        expect(text, "stopped by --trap=first-nonfinite in step 0, loss scale 32768: first not finite: " + guilty,
               "made in one kernel by affine of layer2.0.bn1;", "--reproduce=t/nonfinite-0.safetensors runs the step again")
        expect(run("./fused", "--threads=1", "--reproduce=t/nonfinite-0.safetensors", status=1), "step 0, first not finite: " + guilty)
        expect(run("./single", "--threads=1", "--reproduce=t/nonfinite-0.safetensors", status=1),
               "step 0, first not finite: layer2.0.bn1 (affine), F16: ")
        text = run("./fused", *TRAIN, "--model-dir=r", "--init-from=bad.safetensors", "--max-skipped-steps=20", status=1)
        expect(text, guilty)
        os.chdir("/")
    print("trapped, saved, run again, named")


main()
