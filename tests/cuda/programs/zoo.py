"""Tests every generated CUDA kernel of the zoo's models against the evaluator: zoo.py all|short AMPCC ZOO CUDA_ZOO RESOURCE

Each kernel runs by itself on the host, through the shim (zoo.c). All nets get small batches, and those for ImageNet get images of
40x40 and a quarter of the channels, which changes no kernel's text. `all` runs these small forms of all models in every precision
and, in fp16, for GPUs with all, some and none of cuDNN's fused forms. Then it proves that the text was not changed: it looks
through the models as they are for kernels that were not among those."""
import os
import re
import subprocess
import sys
import tempfile

form, *paths = sys.argv[1:]
ampcc, zoo, cuda_zoo, resource = map(os.path.abspath, paths)
SHORT = ["lenet5", "cifar_resnet8", "cifar_resnet8_v2", "resnet18", "resnet50_v2"]


def shrink(text):
    """Replaces images and channels by smaller ones in all shapes of a graph's text."""
    text = re.sub(r"\b(dim|v): (64|128|256|512|1024|2048)\n", lambda m: f"{m[1]}: {int(m[2]) // 4}\n", text)
    return re.sub(r"\bdim: 224\n", "dim: 40\n", text)


def run(*args, stdin=None):
    done = subprocess.run(args, input=stdin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        sys.exit("%s: status %d\n%s" % (" ".join(args)[:300], done.returncode, done.stdout))
    return done.stdout


def graph(model, folder, small):
    """The graph of a model with batch 8, so that kernels with vectors along the batch occur."""
    text = run(zoo, model, "--text")
    batch = [f"--batch-size={8 if model in ('lenet5', 'mlp') else 2}"] if small else []
    if small and model.startswith(("resne", "wide_resnet")):
        text = shrink(text)
    path = f"{folder}/{model}{'' if small else '_whole'}.amp"
    run(ampcc, "-", "--passes=", *batch, "-o", path, stdin=text)
    return path


def check(dtype, device, small, whole):
    with tempfile.TemporaryDirectory() as folder:
        files = [graph(model, folder, True) for model in small] + ["--"] + [graph(model, folder, False) for model in whole]
        print(run(cuda_zoo, resource, folder, dtype, device, *files), flush=True)


if form == "short":
    check("f16", "sm_90", SHORT, [])
    check("bf16", "sm_90", SHORT[:2], [])
    check("f32", "sm_90", SHORT[:2], [])
else:
    # models with small images come first
    models = [line.split()[0] for line in run(zoo, "--list").splitlines()][::-1]
    for dtype, device in ("f16", "sm_90"), ("f16", "sm_80"), ("f16", "sm_75"), ("bf16", "sm_90"), ("f32", "sm_90"):
        check(dtype, device, models, models)
