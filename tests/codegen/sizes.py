#!/usr/bin/env python3
"""A program for ResNet-50, with kernels for every CPU level, has at most 1.5 MB in each type: sizes.py AMPCC ZOO

Skipped (77) with sanitizers."""
import os, subprocess, sys, tempfile

AMPCC, ZOO = map(os.path.abspath, sys.argv[1:3])
MOST = 1_500_000  # bytes

with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    subprocess.run([ZOO, "resnet50", "-o", "model.pb"], check=True)
    sizes = {}
    for dtype in "fp32", "bf16", "fp16":
        subprocess.run([AMPCC, "model.pb", "--target=cpu", f"--dtype={dtype}", "--batch-size=8", "-q", "-o", "program"], check=True)
        with open("program", "rb") as program:
            content = program.read()
        if b"__asan_" in content or b"__ubsan_" in content:
            sys.exit(77)
        sizes[dtype] = len(content)
        print(f"{dtype}: {len(content)} bytes")
if max(sizes.values()) > MOST:
    sys.exit(f"more than {MOST} bytes")
