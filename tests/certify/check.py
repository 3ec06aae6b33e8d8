#!/usr/bin/env python3
"""Tests --certify and --max-error on small models, with `short` on one of them: check.py AMPCC AMPCC_ZOO full|short"""
import json
import os
import subprocess
import sys
import tempfile

AMPCC, ZOO = map(os.path.abspath, sys.argv[1:3])
# model, dtype, largest errors against the f32 model: forward, gradient. A relu that opens or closes
# because its operand was rounded makes a gradient wrong by all of itself.
MODELS = [("lenet5", "fp16", 0.002, 0.003), ("lenet5", "fp32", 3e-6, 3e-6), ("fashion_resnet8", "bf16", 0.04, 0.4)]
CODE_ULPS, CODE_SHARE = 24, 0.005  # bounds for the code against the evaluator: units in the last
# place of f32 tensors, of which each is one sum in f32; the share of numbers in 16-bit tensors whose bits differ
failed = []


def expect(what, condition, *shown):
    if not condition:
        failed.append(what)
        print("FAILED:", what, *shown)


def run(*args):
    done = subprocess.run([AMPCC, *args, "--cpu=native"], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def check_model(model, dtype, forward, gradient):
    what = "%s %s" % (model, dtype)
    status, table, errors = run(model + ".pb", "--certify=c.json", "--dtype=" + dtype, "--emit=ir", "-o", "ir")
    expect(what + ": compiles", status == 0, errors)
    if status:
        return
    with open("c.json") as file:
        certificate = json.load(file)
    worst = certificate["worst"]
    expect(what + ": forward", worst["forward"]["norm"] <= forward, worst)
    expect(what + ": gradient", worst["gradient"]["norm"] <= gradient, worst)
    expect(what + ": some error", worst["gradient"]["norm"] > 0)
    expect(what + ": nothing lost", worst["forward"]["lost"] == worst["gradient"]["lost"] == 0)
    expect(what + ": code", worst["f32_ulp"] <= CODE_ULPS, worst)
    # sums in f32 seldom agree with the evaluator's in every bit
    low = [t for t in certificate["tensors"] if t["type"] != "f32"]
    differ = sum(t["code"]["differ"] for t in low)
    expect(what + ": other bits", differ <= CODE_SHARE * sum(t["elements"] for t in low), differ)
    names = {t["name"]: t for t in certificate["tensors"]}
    with open("ir") as file:
        params = [line.split()[0][1:] for line in file if 'variable {kind="param"' in line]
    for param in set(params):
        expect("%s: %s.new" % (what, param), param + ".new" in names, sorted(names))
    layers = {t["layer"] for t in certificate["tensors"] if t["role"] == "forward"} & \
        {t["layer"] for t in certificate["tensors"] if t["role"] == "gradient"}
    # what a convolution makes and only the loop behind it reads is never stored: its layer has a gradient alone
    layers |= {t["layer"] for t in certificate["tensors"] if t["layer"] == "conv1"}
    for layer in ("conv1", "loss"):
        expect("%s: layer %s in the table" % (what, layer), layer in layers and "\n" + layer + " " in table, table)


def check_bounds():
    """Winograd's method has a bound, and --winograd=off is without both."""
    for flags, has in ([], True), (["--winograd=off"], False):
        status, table, errors = run("fashion_resnet8.pb", "--cpu-library=own", *flags, "--certify=c.json", "--emit=ir", "-o", "ir")
        expect("bounds: compiles", status == 0, errors)
        with open("c.json") as file:
            certificate = json.load(file)
        bounds = [t["bound"] for t in certificate["tensors"] if "bound" in t]
        expect("bounds %s" % flags, (len(bounds) > 0) == has == ("Winograd" in table), bounds)
        expect("bounds hold %s" % flags, all(0 < b["used"] <= 1 < b["f32_ulp"] for b in bounds), bounds)


def check_refusal():
    status, table, errors = run("lenet5.pb", "--certify", "--dtype=fp16", "--max-error=1e-5", "--target=cpu", "-o", "program")
    expect("--max-error: status 1", status == 1, errors)
    expect("--max-error: says so", "lenet5.pb: error[E501]: a result is off by" in errors, errors)
    expect("--max-error: no program", not os.path.exists("program"))
    expect("--max-error: the table comes all the same", "\nworst " in table, table)


def main(length):
    models = MODELS if length == "full" else MODELS[:1]
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for model in {m[0] for m in models}:
            subprocess.run([ZOO, model, "-o", model + ".pb"], check=True)
        for row in models:
            check_model(*row)
        check_refusal()
        if length == "full":
            check_bounds()
        os.chdir("/")
    return 1 if failed else 0


sys.exit(main(sys.argv[3]))
