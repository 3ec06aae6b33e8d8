"""PyTorch as a contestant of rounds.py, where it can be imported."""
import os, pathlib, re, shutil, statistics, subprocess

import rounds, turns


def torch_python():
    for python in [os.environ.get("PYTHON"), "python3", "/usr/bin/python3"]:
        if python and shutil.which(python) and subprocess.run([python, "-c", "import torch"], capture_output=True).returncode == 0:
            return python
    print("no Python that imports torch: PyTorch is left out")
    return None


def has_bf16():
    return "avx512_bf16" in open("/proc/cpuinfo").read()


def compiles(python):
    """Can torch.compile make code for the CPU here? Prints what it lacks where it cannot."""
    program = "import torch; torch.compile(lambda x: torch.relu(x) + 1)(torch.ones(100))"
    done = subprocess.run([python, "-c", program], capture_output=True, text=True)
    if done.returncode == 0:
        return True
    headers = "import pathlib, sysconfig; print(pathlib.Path(sysconfig.get_paths()['include'], 'Python.h').exists())"
    lacks = ["a C++ compiler (g++)"] * (not shutil.which(os.environ.get("CXX", "g++")))
    if subprocess.run([python, "-c", headers], capture_output=True, text=True).stdout.strip() != "True":
        lacks.append("Python.h (Debian: python3-dev)")
    errors = [line for line in done.stderr.splitlines() if re.match(r"\S*(Error|Exception)", line)]
    print(f"torch.compile is left out; it lacks {' and '.join(lacks) or 'something else: ' + (errors or ['no message'])[-1]}")
    return False


def torch_contestants(model, batch, steps):
    """PyTorch in both layouts, eager and compiled, in f32 and, on a CPU with bf16 units, in bf16: those that ONLY chooses and
    that can run."""
    python, script = torch_python(), pathlib.Path(__file__).with_name("torch_step.py")
    command = lambda steps, *how: [python, script, model, batch, steps, *how]
    each = lambda line: float(line.split()[1]) if line.startswith("step ") else None
    every = [rounds.Contestant(f"PyTorch {layout} {mode} {dtype}", command(steps, layout, dtype, mode),
                               rounds.read_regex(r"median ([\d.]+) ms"),
                               live=lambda how=(layout, dtype, mode): turns.Live(command(10 ** 9, *how), each))
             for dtype in ["f32"] + ["bf16"] * has_bf16() for mode in ("eager", "compile") for layout in ("nchw", "nhwc")]
    chosen = rounds.chosen(every) if python else []
    if any("compile" in c.name for c in chosen) and not compiles(python):
        chosen = [c for c in chosen if "compile" not in c.name]
    return chosen


def fastest(contestants):
    """Plays HEATS rounds and returns the contestant of each type with the least median time, which begins anew."""
    heats = int(os.environ.get("HEATS", "2"))
    if heats and len(contestants) > 1:
        print(f"\n{heats} rounds for the fastest PyTorch of each type")
        rounds.play_rounds(contestants, heats)
        types = dict.fromkeys(c.name.split()[-1] for c in contestants)
        contestants = [min((c for c in contestants if c.name.split()[-1] == t), key=lambda c: statistics.median(c.ms)) for t in types]
        for c in contestants:
            c.ms, c.mib = [], []
    return contestants
