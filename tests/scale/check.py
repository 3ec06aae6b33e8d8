#!/usr/bin/env python3
"""Holds the loss scales of compiled programs to stored traces (traces.txt, made by record.py): check.py AMPCC CASE...

  NAME      5,000 steps, of which those are made to fail that the trace of this name skips: the scale after each step, and
            the count of steps and the state at the end, are those of the trace. A run that is stopped in the middle and
            resumed ends with the same bytes
  clip      one step moves the parameters by the unscaled gradients, clipped by value or by norm
  traceless a run with many skipped steps ends with the same parameters, slots, statistics and step as one with none; a
            run that skips every step stops and says why
"""
import json
import math
import os
import random
import shutil
import struct
import sys
import tempfile

import traces

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../e2e"))
from shell import check, newest, run, tensors

AMPCC = os.path.abspath(sys.argv[1])
HERE = os.path.dirname(os.path.abspath(__file__))
BATCH = 4
RESUME_AT = 2345 # batches


def build(name, *flags):
    run(AMPCC, os.path.join(HERE, "small.pbtxt"), "-o", name, "--target=cpu", "--cpu=native", *flags)
    return "./" + name


def inject(steps):
    """The flag that puts Inf into one pixel of each batch whose step is to fail."""
    bad = ",".join("inf@%d:image" % i for i, good in enumerate(steps) if not good)
    return ["--inject=" + bad] if bad else []


def train(program, folder, batches, steps, *flags):
    run(program, "--use-synthetic-data", "--synthetic-examples=%d" % (BATCH * len(steps)), "--model-dir=" + folder,
        "--train-epochs=%.9g" % (batches / len(steps)), "--epochs-between-evals=%d" % len(steps), "--log-every=1",
        "--max-skipped-steps=0", "--threads=1", "--quiet", *inject(steps), *flags)


def log(folder):
    with open(os.path.join(folder, "log.jsonl")) as lines:
        return [event for event in map(json.loads, lines) if event["event"] == "train"]


def f32(x):
    """The nearest f32 number. The texts that are compared tell f32 numbers apart, but may have different digits for one."""
    return struct.unpack("<f", struct.pack("<f", x))[0]


def first_difference(got, want):
    return next(((i, g, w) for i, (g, w) in enumerate(zip(got, want)) if g != w), None)


def trace(name):
    case = traces.read(os.path.join(HERE, "traces.txt"))[name]
    steps, settings = case["steps"], case["settings"]
    # larger scales than these overflow on their own in fp16; the op and its state are the same in every type
    dtype = "fp16" if max(case["scales"]) <= 4096 else "fp32"
    program = build(name, "--dtype=" + dtype, "--loss-scale=dynamic" + (settings and ":" + settings))
    train(program, "whole", len(steps), steps)
    events = log("whole")
    good = check(name + ": as many steps", len(events) == len(steps) == traces.STEPS, len(events))
    skipped = [not event["skipped_steps"] for event in events]
    good &= check(name + ": skipped what was bad", skipped == steps, first_difference(skipped, steps))
    scales = [f32(event["loss_scale"]) for event in events]
    want = [f32(scale) for scale in case["scales"]]
    good &= check(name + ": scale after each step", scales == want, first_difference(scales, want))
    counts = [event["step"] for event in events]
    want = [sum(steps[:i + 1]) for i in range(len(steps))]
    good &= check(name + ": skipped steps do not count", counts == want, first_difference(counts, want))
    state = tensors(newest("whole"))
    good_steps = struct.unpack("<i", state["good_steps"].data)[0]
    good &= check(name + ": good steps at the end", good_steps == case["good_steps"], good_steps)
    train(program, "parts", RESUME_AT, steps)
    train(program, "parts", len(steps), steps, "--resume")
    with open(newest("whole"), "rb") as whole, open(newest("parts"), "rb") as parts:
        good &= check(name + ": resumed after step %d" % RESUME_AT, whole.read() == parts.read())
    return good


def stuck(program, dtype):
    """If every step is skipped, the run does not lower the scale for ever but stops."""
    said = run(program, "--use-synthetic-data", "--synthetic-examples=400", "--model-dir=stuck_" + dtype, "--max-skipped-steps=6",
               "--threads=1", "--log-every=1", *inject([False] * 100), status=1)
    want = ("error: loss or gradients have not been finite for 6 steps, at loss scale 64; first of the last step: ",
            "training cannot recover: try ")
    good = check(dtype + ": a stuck run stops", all(text in said for text in want), said)
    return good & check(dtype + ": after 6 steps", len(log("stuck_" + dtype)) == 6)


def traceless():
    """The loss scale may not change (min equals max) and synthetic data is one batch, so both runs have the same good steps."""
    good = True
    draw = random.Random(7)
    steps = [draw.random() < 0.6 for _ in range(100)]
    n = sum(steps)
    for dtype in ("fp16", "bf16"):
        program = build("held_" + dtype, "--dtype=" + dtype, "--loss-scale=dynamic:init=64,min=64,max=64")
        train(program, dtype + "_bad", len(steps), steps)
        train(program, dtype + "_good", n, [True] * n)
        bad, clean = tensors(newest(dtype + "_bad")), tensors(newest(dtype + "_good"))
        bad.pop("good_steps"), clean.pop("good_steps")
        differ = [name for name in clean if bad.get(name) != clean[name]]
        good &= check("%s: %d skipped steps leave no trace" % (dtype, 100 - n), bad.keys() == clean.keys() and not differ,
                      differ)
        moved = log(dtype + "_good")[0]["loss"] > log(dtype + "_good")[-1]["loss"]
        good &= check(dtype + ": the others do", moved)
        good &= stuck(program, dtype)
    return good


def parameters_after(program, folder, rate):
    """All f32 parameters as one list after one step. As momentum starts from 0, that is a step of plain gradient descent."""
    run(program, "--use-synthetic-data", "--synthetic-examples=%d" % BATCH, "--model-dir=" + folder, "--clean",
        "--max-train-steps=1", "--learning-rate=%g" % rate, "--log-every=1", "--threads=1", "--quiet")
    state = tensors(newest(folder))
    names = sorted(name for name in state if name + ".momentum" in state)
    return [x for name in names for (x,) in struct.iter_unpack("<f", state[name].data)]


def step_of(program, folder):
    start = parameters_after(program, folder, 0)
    return [a - b for a, b in zip(start, parameters_after(program, folder, 1))]


def norm(values):
    return math.sqrt(sum(x * x for x in values))


def close(a, b):
    return abs(a - b) <= 1e-3 * max(abs(a), abs(b), 1e-6)


def clip():
    """Compares with the step of a program that does not clip. Gradients that were clipped while they are scaled would be 1024 times off."""
    flags = ["--dtype=fp16", "--loss-scale=dynamic:init=1024"]
    free = step_of(build("free", *flags), "free_run")
    by_norm, by_value = norm(free) / 8, max(map(abs, free)) / 8
    short = step_of(build("short", *flags, "--clip-norm=%.9g" % by_norm), "short_run")
    cut = step_of(build("cut", *flags, "--clip-value=%.9g" % by_value), "cut_run")
    loose = step_of(build("loose", *flags, "--clip-norm=%.9g" % (by_norm * 16)), "loose_run")
    good = check("clip: norm %.4g of %.4g" % (norm(short), norm(free)), close(norm(short), by_norm))
    good &= check("clip: same direction", all(close(8 * a, b) for a, b in zip(short, free)))
    good &= check("clip: the log has the norm before", close(log("short_run")[0]["gradient_norm"], norm(free)))
    good &= check("clip: elements at most %.4g" % by_value,
                  all(close(a, max(-by_value, min(by_value, b))) for a, b in zip(cut, free)))
    return good & check("clip: a bound beyond the norm changes nothing", loose == free)


def main():
    good = True
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for case in sys.argv[2:]:
            good &= {"clip": clip, "traceless": traceless}.get(case, lambda: trace(case))()
            for name in ("whole", "parts"):
                shutil.rmtree(name, ignore_errors=True)
        os.chdir("/")
    return 0 if good else 1


sys.exit(main())
