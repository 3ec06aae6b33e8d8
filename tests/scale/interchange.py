#!/usr/bin/env python3
"""Tests that programs of every dtype and --fp16-implementation can resume from each other's checkpoints: interchange.py AMPCC

All checkpoints have the same names, shapes and types, but for the loss scale. Each program resumes from each other's file, says
what becomes of the scale, and with a learning rate of 0 hands every f32 parameter on to the bit.
"""
import json
import os
import shutil
import struct
import sys
import tempfile

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../e2e"))
from shell import run, tensors

AMPCC = os.path.abspath(sys.argv[1])
MODEL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "small.pbtxt")
PROGRAMS = { # name: (flags, kind of loss scale); START has the scale that it begins with
    "fp32": (["--dtype=fp32"], "none"),
    "bf16": (["--dtype=bf16", "--loss-scale=dynamic:init=512"], "dynamic"),
    "fp16": (["--dtype=fp16"], "dynamic"),
    "rewrite": (["--dtype=fp16", "--fp16-implementation=graph_rewrite", "--loss-scale=dynamic:init=64"], "dynamic"),
    "casting": (["--dtype=fp16", "--fp16-implementation=casting"], "fixed"),
    "policy": (["--dtype=fp16", "--fp16-implementation=policy", "--loss-scale=32"], "fixed"),
}
START = {"bf16": 512, "fp16": 32768, "rewrite": 64, "casting": 128, "policy": 32}
DTYPE = {"fp32": "fp32", "bf16": "bf16"} # those not named are fp16
SCALE = ("loss_scale", "good_steps")
failed = 0


def check(what, condition, *shown):
    global failed
    if not condition:
        failed += 1
        print("FAILED: " + what, *shown)


def train(name, folder, steps, *flags):
    return run("./" + name, "--use-synthetic-data", "--synthetic-examples=32", "--model-dir=" + folder, "--threads=1",
               "--max-train-steps=%d" % steps, *flags)


def first_loss(folder):
    with open(os.path.join(folder, "log.jsonl")) as lines:
        return next(event["loss"] for event in map(json.loads, lines) if event["event"] == "train")


def shapes(state):
    return {name: tensor[:2] for name, tensor in state.items() if name not in SCALE}


def parameters(state):
    return {name: tensor for name, tensor in state.items()
            if name not in SCALE + ("global_step",) and "momentum" not in name and "running" not in name}


def scale_of(state):
    return struct.unpack("<f", state["loss_scale"][2])[0] if "loss_scale" in state else None


def words(source, target):
    """The lines that the program `target` must print when it resumes from a file of `source`, and the scale that it goes on with."""
    kind_from, kind_to = PROGRAMS[source][1], PROGRAMS[target][1]
    if kind_to == "none":
        return ["`loss_scale` is not used by this program"] if kind_from != "none" else [], None
    if kind_from == "none":
        return ["the checkpoint has no `loss_scale`: it starts anew"], START[target]
    if kind_to == "fixed":
        same = START[source] == START[target] and kind_from == "fixed"
        return [] if same else ["`loss_scale` is not used: this program's is fixed"], START[target]
    if kind_from == "fixed":
        return ["the checkpoint's `loss_scale` was fixed: it starts anew"], START[target]
    dtype = DTYPE.get(source, "fp16")
    moves = dtype != DTYPE.get(target, "fp16")
    return ["the loss scale of the %s run goes on" % dtype] if moves else [], START[source]


def check_pair(source, target, state):
    folder = "%s_%s" % (source, target)
    shutil.copytree("from_" + source, folder)
    said = train(target, folder, 4, "--resume", "--learning-rate=0")
    after = tensors(os.path.join(folder, "ckpt-4.safetensors"))
    want, scale = words(source, target)
    for text in want:
        check("%s: says `%s`" % (folder, text), text in said, said)
    check(folder + ": says nothing else of the scale", bool(want) == ("loss_scale" in said or "loss scale" in said), said)
    check(folder + ": scale", scale_of(after) == scale, scale_of(after), scale)
    check(folder + ": parameters", parameters(after) == parameters(state))
    check(folder + ": step", struct.unpack("<q", after["global_step"][2])[0] == 4)


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name, (flags, _) in PROGRAMS.items():
            run(AMPCC, MODEL, "-o", name, "--target=cpu", "--cpu=native", *flags)
            train(name, "from_" + name, 2, "--log-every=1")
        losses = {name: first_loss("from_" + name) for name in PROGRAMS}
        for name, loss in losses.items():
            check(name + ": computes what fp32 does", abs(loss - losses["fp32"]) < 0.02 * losses["fp32"], losses)
            check(name + ": but not to the bit", name == "fp32" or loss != losses["fp32"], losses)
        states = {name: tensors(os.path.join("from_" + name, "ckpt-2.safetensors")) for name in PROGRAMS}
        for name, state in states.items():
            check(name + ": names, shapes, types", shapes(state) == shapes(states["fp32"]), shapes(state))
            check(name + ": f32 but for the step", {d for n, (d, _) in shapes(state).items()
                                                     if n != "global_step"} == {"F32"})
        for source in PROGRAMS:
            for target in PROGRAMS:
                check_pair(source, target, states[source])
        os.chdir("/")
    print("%d programs, %d failed" % (len(PROGRAMS), failed))
    return failed != 0


sys.exit(main())
