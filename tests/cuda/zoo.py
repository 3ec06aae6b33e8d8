"""zoo.py all|short AMPCC ZOO CUDA_ZOO RESOURCE: every generated kernel of the zoo through the shim, one by one, against the
evaluator (zoo.c).

Nets of ImageNet's form get images of 40x40 and a quarter of the channels, all get batches of 2: that changes no
kernel's text, which `all` shows: it compares the small forms of one net of every family, in every precision and at both
levels of fusion, and then looks through all models of the zoo as they are for a text that was not among them."""
import os
import re
import subprocess
import sys
import tempfile

form, *paths = sys.argv[1:]
ampcc, zoo, cuda_zoo, resource = map(os.path.abspath, paths)
SMALL = ["lenet5", "mlp", "fashion_resnet8", "fashion_resnet8_v2", "cifar_resnet8", "cifar_resnet8_v2", "resnet18", "resnet18_v2",
         "resnet50", "resnet50_v2", "resnet18_tv", "resnet50_tv"]
SHORT = ["lenet5", "cifar_resnet8", "cifar_resnet8_v2", "resnet18", "resnet50_v2", "resnet50_tv"]


def shrink(text):
    """Smaller images and fewer channels, wherever a shape has them."""
    text = re.sub(r"\b(dim|v): (64|128|256|512|1024|2048)\n", lambda m: f"{m[1]}: {int(m[2]) // 4}\n", text)
    return re.sub(r"\bdim: 224\n", "dim: 40\n", text)


def run(*args, stdin=None):
    done = subprocess.run(args, input=stdin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        sys.exit("%s: status %d\n%s" % (" ".join(args)[:300], done.returncode, done.stdout))
    return done.stdout


def graph(model, folder, small):
    text = run(zoo, model, "--text")
    if small and model.startswith("resnet"):
        text = shrink(text)
    path = f"{folder}/{model}{'' if small else '_whole'}.amp"
    run(ampcc, "-", "--passes=", *(["--batch-size=2"] if small else []), "-o", path, stdin=text)
    return path


def check(dtype, level, small, whole=()):
    with tempfile.TemporaryDirectory() as folder:
        files = [graph(model, folder, True) for model in small] + ["--"] + [graph(model, folder, False) for model in whole]
        print(run(cuda_zoo, resource, folder, dtype, str(level), *files), flush=True)


if form == "short":
    check("f16", 2, SHORT)
    check("bf16", 1, SHORT[:2])
    check("f32", 2, SHORT[:2])
else:
    models = [line.split()[0] for line in run(zoo, "--list").splitlines()]
    for dtype in "f32", "f16", "bf16":
        for level in 1, 2:
            check(dtype, level, SMALL, models)
