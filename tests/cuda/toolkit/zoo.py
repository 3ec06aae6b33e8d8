#!/usr/bin/env python3
"""Tests that cuDNN has plans for every convolution of the zoo's nets, in every type, on every kind of GPU:
zoo.py AMPCC AMPCC_ZOO PLAN_KEYS

In f16 that includes convolutions that are fused with parts of a normalisation. Nets of one family share their shapes, so the deepest
ones are left out where they add none."""
import re
import subprocess
import sys

MODELS = ["resnet18", "resnet34", "resnet50", "resnet101", "resnet18_v2", "resnet50_v2", "resnet18_tv", "resnet50_tv",
          "cifar_resnet8", "cifar_resnet20", "cifar_resnet20_v2", "fashion_resnet8", "fashion_resnet8_v2", "lenet5"]
FORMS = {"conv2d": ("fprop", 0, 1), "conv2d_dgrad": ("dgrad", 2, 1), "conv2d_wgrad": ("wgrad", 0, 2)}
FUSED = {"fprop": ("fprop_stats", "relu_fprop_stats", "add_fprop_stats", "dual_fprop_stats"), "wgrad": ("relu_wgrad",),
         "dgrad": ("dgrad_bn", "dgrad_bn_add", "dgrad_bn_short")}
NODE = re.compile(r"^  (%.*?) = (\w+)(.*?)(?: \{(.*?)\})? : (\w+\[.*?)(?: loc .*)?$", re.M)


def keys(text):
    """The convolutions of a graph, as keys of plans without the type."""
    shape, found = {}, set()
    for results, op, operands, attrs, types in NODE.findall(text):
        names = results.split(", ")
        shape.update(zip(names, (dims.split(",") for dims in re.findall(r"\[(.*?)\]", types))))
        if op in FORMS:
            form, x, w = FORMS[op]
            values = operands.strip().split(", ") + names
            (n, h, wide, c), (k, r, s, _) = shape[values[x]], shape[values[w]]
            stride, pad = (re.search(word + r"=\[(.*?)\]", attrs).group(1) for word in ("stride", "pad"))
            found.add("%s %%s n%s h%s w%s c%s k%s r%s s%s u%s p%s" % (form, n, h, wide, c, k, r, s, stride, pad))
    return found


ampcc, zoo, plan_keys = sys.argv[1:4]
found = set()
for model in MODELS:
    protobuf = subprocess.run([zoo, model], check=True, capture_output=True).stdout
    found |= keys(subprocess.run([ampcc, "-", "--passes=eval-graph,autodiff"], input=protobuf, check=True,
                                 capture_output=True).stdout.decode())
lines = [key % dtype for dtype in ("f32", "f16", "bf16") for key in sorted(found)]
lines += [key.replace(plain, form, 1) % "f16" for plain, forms in FUSED.items() for form in forms
          for key in sorted(found) if key.startswith(plain)]
print("%d convolutions of %d nets in 3 types, %d plans asked for" % (len(found), len(MODELS), len(lines)))
if len(found) < 100:
    sys.exit("too few: were the graphs read right?")
sys.stdout.flush()
sys.exit(subprocess.run([plan_keys], input="\n".join(lines) + "\n", text=True).returncode)
