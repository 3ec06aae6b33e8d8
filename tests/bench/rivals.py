"""PyTorch as a contestant of rounds.py, where it can be imported."""
import os, pathlib, shutil, subprocess

import rounds


def torch_python():
    for python in [os.environ.get("PYTHON"), "python3", "/usr/bin/python3"]:
        if python and shutil.which(python) and subprocess.run([python, "-c", "import torch"], capture_output=True).returncode == 0:
            return python
    print("no Python that imports torch: PyTorch is left out")
    return None


def has_bf16():
    return "avx512_bf16" in open("/proc/cpuinfo").read()


def torch_contestants(model, batch, steps):
    """Both layouts, in f32 and, on a CPU with bf16 units, in bf16."""
    python = torch_python()
    script = pathlib.Path(__file__).with_name("torch_step.py")
    return [rounds.Contestant(f"PyTorch {layout} {dtype}", [python, script, model, batch, steps, layout, dtype], rounds.read_regex(r"median ([\d.]+) ms"))
            for dtype in ["f32"] + ["bf16"] * has_bf16() for layout in ("nchw", "nhwc")] if python else []
