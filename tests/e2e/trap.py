#!/usr/bin/env python3
"""Tests --trap and --reproduce, which lead from a number that overflows to the op that made it: trap.py AMPCC AMPCC_ZOO

A ResNet-8 in fp16 whose one gamma is much too large is trained under --trap=first-nonfinite. The program names the
kernel and the ops in it that may be to blame; the same model compiled with --no-fuse, which must compute the bits of
--fuse-level=1, runs the saved step again and names the one op. A step that is skipped is run again as well, without a copy of
the parameters."""
import json
import os
import subprocess
import sys
import tempfile
import zlib

from shell import content, run, safetensors

os.environ["OMP_NUM_THREADS"] = "1"
AMPCC, ZOO = map(os.path.abspath, sys.argv[1:3])
TRAIN = ["--use-synthetic-data", "--learning-rate=1e-4", "--threads=1"]
GAMMA = "layer2.0.bn1.weight"


def spoil(source, target):
    """Copies a checkpoint with all of one parameter set to 1e6 in f32, and with the checksum that fits."""
    header, data = safetensors(source)
    data = bytearray(data)
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


def memory_of_a_skipped_step():
    """ResNet-50 has 256 MB of variables, and the first loss scale is too large for it."""
    run(ZOO, "resnet50", "-o", "r50.pb")
    run(AMPCC, "r50.pb", "--target=cpu", "--cpu=native", "--dtype=fp16", "--batch-size=1", "-o", "large")
    part = json.loads(run("./large", "--about=json"))["parts"][0]
    planned = part["state_bytes"] + part["arena_bytes"]
    with open("said", "w+") as said:
        program = subprocess.Popen(["./large", *TRAIN, "--max-train-steps=1", "--skip-eval"], stdout=said, stderr=said)
        _, status, usage = os.wait4(program.pid, 0)
        said.seek(0)
        text = said.read()
    expect(text, "skipped step 0, batch 0, loss scale 32768: first not finite: ")
    if status or usage.ru_maxrss << 10 > planned + (32 << 20):
        sys.exit("status %d, %d kB of memory where %d bytes are planned\n%s" % (status, usage.ru_maxrss, planned, text))


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        run(ZOO, "cifar_resnet8", "-o", "r8.pb")
        for name, flags in ("fused", []), ("loops", ["--fuse-level=1"]), ("single", ["--no-fuse"]):
            run(AMPCC, "r8.pb", "--target=cpu", "--cpu=native", "--dtype=fp16", "--batch-size=4", "-o", name, *flags)
            run("./" + name, *TRAIN, "--model-dir=m-" + name, "--max-train-steps=4")
        if content("m-loops/ckpt-4.safetensors") != content("m-single/ckpt-4.safetensors"):
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
        memory_of_a_skipped_step()
        os.chdir("/")
    print("trapped, saved, run again, named")


main()
