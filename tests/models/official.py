#!/usr/bin/env python3
"""Repeats the official programs' own tests of their models (specs/resnet.md 5.1): official.py AMPCC AMPCC_ZOO

  model shape   with batch 135 and 246 classes the logits are [135,246]
  model fn      the values that the programs name have the type that was asked for; every variable, the logits, the loss
                and what evaluations count are f32
"""
import re
import subprocess
import sys

AMPCC, ZOO = sys.argv[1:3]
PASSES = "--passes=set-compute,eval-graph,autodiff,loss-scale,optimizer,amp"
MODELS = {"cifar_resnet32": (3, 128, ""), "resnet50": (4, 32, "initial_max_pool")}  # layers, batch size, one more value to test


def compile(model, *flags):
    net = subprocess.run([ZOO, *model.split()], check=True, stdout=subprocess.PIPE).stdout
    done = subprocess.run([AMPCC, "-", *flags], input=net, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return done.stdout.decode()


def types(text):
    """A dict from the name to the type of the first result of each node of the first graph."""
    first = text.split("\ngraph @", 2)[1]
    return dict(re.findall(r"^  %(\S+?)(?:, %\S+)* = .* : (\w+\[[\d,]*\])", first, re.M))


def expect(what, have, want):
    if have != want:
        sys.exit("%s: %s, not %s" % (what, have, want))


for stem, (layers, batch, pool) in MODELS.items():
    for model in (stem, stem + "_v2"):
        shape = types(compile(model + " --classes=246", "--passes=", "--batch-size=135"))
        expect(model + " model shape", shape["final_dense"], "f32[135,246]")
        points = ["initial_conv", "final_reduce_mean", "final_dense"] + ["block_layer%d" % (i + 1) for i in range(layers)]
        for dtype, low in (("fp32", "f32"), ("fp16", "f16")):
            text = compile(model, PASSES, "--batch-size=%d" % batch, "--dtype=" + dtype, "--fp16-implementation=casting")
            type_of = types(text)
            for point in points + [pool] * bool(pool):
                expect("%s %s %s" % (model, dtype, point), type_of[point].split("[")[0], low)
            variables = re.findall(r'^  %(\S+) = variable \{kind="(?:param|slot|stat)".* : (\w+)\[', text, re.M)
            expect("%s %s variables" % (model, dtype), {t for _, t in variables}, {"f32"})
            outputs = dict(re.findall(r'^  output %(\S+) \{name="(logits|loss|accuracy|loss_each|hit_each|hit5_each)"', text, re.M))
            expect("%s %s outputs" % (model, dtype), {type_of[v].split("[")[0] for v in outputs}, {"f32"})
            logits = [v for v, name in outputs.items() if name == "logits"]
            expect("%s %s logits" % (model, dtype), type_of[logits[0]], "f32[%d,%d]" % (batch, 10 if layers == 3 else 1001))
print("ok")
