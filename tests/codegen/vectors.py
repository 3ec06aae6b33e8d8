#!/usr/bin/env python3
"""GCC makes vector instructions of every loop over the elements of a tensor, for AVX2: vectors.py AMPCC ZOO

What it cannot do so takes several times as long, and nothing else shows it. Skipped (77) with
another compiler and on other CPUs."""
import collections, os, platform, re, subprocess, sys, tempfile

AMPCC, ZOO = map(os.path.abspath, sys.argv[1:3])
ARITHMETIC = re.compile(r"\tv(?:add|sub|mul|div|sqrt|fmadd\d+)([sp])[sd]\b")


def loops(name):
    """By function: the loops of kernels and how many instructions compute one float or several."""
    counts, function = collections.defaultdict(collections.Counter), None
    for line in subprocess.run(["objdump", "-d", "--no-show-raw-insn", name], capture_output=True, text=True, check=True).stdout.splitlines():
        if label := re.match(r"[0-9a-f]+ <(.*)>:", line):
            function = label[1]
        elif (found := ARITHMETIC.search(line)) and re.fullmatch(r"k_\w+_on(\.\w+)*", function):
            counts[function][found[1]] += 1
    return counts


if platform.machine() != "x86_64" or "clang" in subprocess.run([os.environ.get("CC") or "cc", "--version"], capture_output=True, text=True).stdout:
    print("skipped: not GCC for x86-64")
    sys.exit(77)
scalar, n = [], 0
with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    subprocess.run([ZOO, "cifar_resnet8", "-o", "model.pb"], check=True)
    for dtype in "fp32", "bf16", "fp16":
        subprocess.run([AMPCC, "model.pb", "--target=cpu", f"--dtype={dtype}", "--batch-size=8", "-q", "--cpu=haswell", "--save-temps", "-o", dtype], check=True)
        counts = loops(f"{dtype}.amp_only.o")
        scalar += [f"{dtype}: {function}" for function, count in counts.items() if not count["p"]]
        n += len(counts)
print(f"{n} loops")
if scalar or n < 20:
    sys.exit("without vector instructions:\n  " + "\n  ".join(scalar))
