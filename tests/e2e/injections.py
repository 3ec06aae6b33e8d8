#!/usr/bin/env python3
"""Tests that a program finds the place where an Inf or NaN came from: injections.py AMPCC AMPCC_ZOO COUNT

--inject puts Inf or NaN at COUNT random places of ResNet-20, half of them in fp16 and half in bf16: into the input, a weight, a
layer's result or a gradient. Every third batch is spoiled in one element. Each time the step must be skipped and the place named,
with the op and layer that the compiler's own text gives for it, and the two steps after it must be good. A second run is spoiled
in the same batches, but always in the last bias's gradient: both must end with the same checkpoint, to the byte, so no skipped
step has left anything behind."""
import json
import os
import random
import re
import sys
import tempfile

from shell import content, run

os.environ["OMP_NUM_THREADS"] = "1"
AMPCC, ZOO, COUNT = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), int(sys.argv[3])
SCALE = 4096.0
NODE = re.compile(r"  (?P<results>%\S+(?:, %\S+)*) = (?P<op>\w+)(?P<args>[^{:]*)(?:\{(?P<attrs>.*)\})? : (?P<types>[^\"]*?)"
                  r"(?: loc \"(?P<loc>.*)\")?$")


def elements(written):
    count = 1
    for size in filter(None, re.search(r"\[(.*?)\]", written).group(1).split(",")):
        count *= int(size)
    return count


def places(text):
    """The places that --inject can name, read from the plan of @train: lists by kind of (name, op, layer, number of elements)."""
    found = {"input": [], "weight": [], "result": [], "gradient": []}
    body = text[text.index("graph @train"):].split("\n}\n")[0]
    nodes = [match.groupdict() for match in map(NODE.match, body.split("\n")) if match]
    gradients = {node["args"].split(",")[2].strip(" %") for node in nodes if node["op"] == "opt_momentum"}
    readers = {}  # from a variable to the layer of the first op that reads it and has one
    for node in nodes:
        for name in re.findall(r"%([^\s,]+)", node["args"]):
            copied = re.sub(r"\.(f16|bf16)$", "", name)
            if node["loc"] and copied not in readers:
                readers[copied] = node["loc"]
    for node in nodes:
        at = re.search(r"\bat=\[(.*?)\]", node["attrs"] or "")
        results = [name.strip(" %") for name in node["results"].split(",")]
        types = re.findall(r"\w+\[[\d,]*\]", node["types"])
        for name, where, written in zip(results, at.group(1).split(","), types):
            place = (name, node["op"], node["loc"] or "", elements(written))
            if name == "image":
                found["input"].append(place)
            elif node["op"] == "variable" and 'kind="param"' in node["attrs"]:
                found["weight"].append((name, "variable", readers[name], elements(written)))
            elif name in gradients and int(where) >= 0:
                found["gradient"].append(place)
            elif node["op"] in ("conv2d", "relu", "avg_pool", "matmul") and int(where) >= 0 and "grad" not in name:
                found["result"].append(place)
    return found


def train(program, folder, flags):
    run(program, "--use-synthetic-data", "--learning-rate=1e-4", "--threads=1", "--model-dir=" + folder, *flags)
    with open(os.path.join(folder, "log.jsonl")) as log:
        return [json.loads(line) for line in log]


def wrong(event, place, kind, batch):
    """Lists what is wrong with an event of the log; the list is empty if all is as it should be."""
    name, op, layer, _ = place
    want = {"batch": batch, "step": (batch + 1) // 3 * 2, "skipped": 1, "value": name, "op": op, "layer": layer,
            "inf": int(kind == "inf"), "nan": int(kind == "nan"), "loss_scale": 2 * SCALE}
    return ["%s %s, not %s" % (key, event.get(key), value) for key, value in want.items() if event.get(key) != value]


def spoil(dtype, count, chance):
    """Runs `count` injections; returns how many of them were found as they should be."""
    flags = ["--dtype=" + dtype, "--batch-size=4", "--loss-scale=dynamic:init=%g,interval=2" % SCALE]
    run(AMPCC, "r20.pb", "-o", dtype, "--target=cpu", "--cpu=native", *flags)
    found = places(run(AMPCC, "r20.pb", "--emit=ir", *flags))
    for kind, least in ("input", 1), ("weight", 60), ("result", 40), ("gradient", 60):
        if len(found[kind]) < least:
            sys.exit("%s: %d places to put a bad %s" % (dtype, len(found[kind]), kind))
    plan = []
    for i in range(count):
        place = chance.choice(found["input" if i % 10 == 9 else ("weight", "result", "gradient")[i % 3]])
        plan.append((3 * i + 2, chance.choice(["inf", "nan"]), place, chance.randrange(place[3])))
    steps = ["--max-train-steps=%d" % (2 * count + 1)]
    events = train("./" + dtype, dtype + "-a", steps + ["--inject=" + ",".join(
        "%s@%d:%s[%d]" % (kind, batch, place[0], element) for batch, kind, place, element in plan)])
    events = [event for event in events if event["event"] == "nonfinite"]
    if len(events) != count:
        print("%s: %d steps were not finite, not %d" % (dtype, len(events), count))
        return 0
    good = 0
    for event, (batch, kind, place, _) in zip(events, plan):
        mistakes = wrong(event, place, kind, batch)
        good += not mistakes
        if mistakes:
            print("%s: %s in %s at batch %d: %s" % (dtype, kind, place[0], batch, "; ".join(mistakes)))
    train("./" + dtype, dtype + "-b", steps + ["--inject=" + ",".join("nan@%d:fc.bias.grad" % batch for batch, *_ in plan)])
    last = "/ckpt-%d.safetensors" % (2 * count + 1)
    if content(dtype + "-a" + last) != content(dtype + "-b" + last):
        print("%s: skipped steps left something behind" % dtype)
        return 0
    return good


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        run(ZOO, "cifar_resnet20", "-o", "r20.pb")
        chance = random.Random(20)
        good = sum(spoil(dtype, COUNT // 2, chance) for dtype in ("fp16", "bf16"))
        os.chdir("/")
    print("%d of %d injections: skipped, named, recovered" % (good, COUNT))
    return good != COUNT


sys.exit(main())
