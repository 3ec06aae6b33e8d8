#!/usr/bin/env python3
"""Tests that every header compiles alone, so that any may be included first:

    headers.py ROOT BUILD_ROOT CUDA(yes|no) INCLUDE_ARGUMENT... -- CC...

Generated headers (protobuf-c's) lie in BUILD_ROOT. Headers that include NVIDIA's are left out, and counted, where CUDA is `no`."""
import concurrent.futures
import os
import subprocess
import sys

ROOMS = ["ir", "passes", "codegen", "frontend", "models", "runtime"]
NVIDIA = ("codegen/cudnn/", "runtime/cuda/")

root, build, cuda, *rest = sys.argv[1:]
includes, compiler = rest[:rest.index("--")], rest[rest.index("--") + 1:]
headers = sorted(os.path.relpath(os.path.join(folder, name), root)
                 for room in ROOMS for folder, _, names in os.walk(os.path.join(root, room))
                 for name in names if name.endswith(".h"))


def needs_nvidia(path):
    """Follows the includes of the house."""
    if path.startswith(NVIDIA):
        return True
    with open(os.path.join(root, path), encoding="utf-8") as f:
        named = [line.split('"')[1] for line in f if line.startswith('#include "')]
    return any(needs_nvidia(name) for name in named if os.path.isfile(os.path.join(root, name)))


def alone(path):
    """The compiler's complaints about this header, or nothing."""
    # Text that is pasted into programs stands behind its target's helpers.
    front = []
    if path.startswith("codegen/text/common/"):
        front = ["-include", os.path.join(root, "codegen/text/cpu/prelude.h")]
    elif path.startswith("codegen/text/cuda/"):
        # The shim stands for NVRTC, whose machine.h says itself what amprt.h says to host programs.
        front = ["-include", os.path.join(root, "tests/cuda/shim/shim.h"), "-DAMPRT_H"]
    run = subprocess.run(
        compiler + ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function", "-fsyntax-only", "-fopenmp",
                    "-D_POSIX_C_SOURCE=200809L", "-D_DEFAULT_SOURCE", "-I" + root, "-I" + build,
                    "-I" + os.path.join(root, "runtime")] + includes + front +
        ["-include", os.path.join(root, path), "-x", "c", os.devnull], capture_output=True, text=True)
    return run.stderr if run.returncode else ""


if cuda == "no":
    left_out = [path for path in headers if needs_nvidia(path)]
    print("%d headers left out: no CUDA toolkit" % len(left_out))
    headers = [path for path in headers if path not in left_out]
with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    wrong = [(path, text) for path, text in zip(headers, pool.map(alone, headers)) if text]
for path, text in wrong:
    print("%s does not compile alone:\n%s" % (path, text))
print("%d headers, %d wrong" % (len(headers), len(wrong)))
sys.exit(1 if wrong or len(headers) < 90 else 0)
