"""Tests that computing values again to save memory changes no bit of a training: recompute.py ORACLE TOOL...

A bottleneck net is trained by the GPU's part of a program, with and without a memory limit; both must end with the same checkpoint.
ORACLE is the folder of model_text.py, the rest as in program.py."""
import hashlib
import re
import subprocess
import sys
import tempfile

from program import Program, Tools

TARGET = "cuda:h200"
FLAGS = ["--use-synthetic-data", "--synthetic-mean=0", "--synthetic-stddev=1", "--learning-rate=1e-2", "--threads=1", "-q",
         "--max-train-steps=1", "--clean"]


def plan(tools, model, *flags):
    done = subprocess.run([tools.ampcc, model, "--emit=ir", "-o", tools.scratch / "plan.amp", f"--target={TARGET}", "--print-memory-plan",
                           "--print-traffic", f"--cuda-path={tools.toolkit}", "--cache-dir=", *flags], capture_output=True, text=True)
    return done.stdout + done.stderr


def limit_between(tools, model, *flags):
    """A memory limit half way between the least that the step can run with and what it uses without
    a limit."""
    least = re.search(r"needs ([\d.]+) MiB", plan(tools, model, "--max-memory=1", *flags))
    most = re.search(r"@train: peak (\d+)", plan(tools, model, *flags))
    return int(float(least[1]) * 2**20 + int(most[1])) // 2


def trained(program):
    folder = program.tools.scratch / "checkpoints"
    status, text = program.run("cuda", *FLAGS, f"--model-dir={folder}")
    if status:
        sys.exit(f"status {status}\n{text}")
    (newest,) = folder.glob("*-1.safetensors")
    return hashlib.sha256(newest.read_bytes()).hexdigest()


def main(oracle, *tools):
    sys.path.insert(0, oracle)
    from model_text import model_text
    with tempfile.TemporaryDirectory() as scratch:
        made = Tools(scratch, *tools)
        model = made.scratch / "bottleneck.pbtxt"
        model.write_text(model_text("bottleneck"))
        flags = ["--dtype=fp16"]
        limit = limit_between(made, model, *flags)
        limited = [*flags, f"--max-memory={limit}"]
        text = plan(made, model, *limited)
        size, again = int(re.search(r"@train: peak (\d+)", text)[1]), int(re.search(r"computed again +(\d+)", text)[1])
        # The CPU's part is made under the same limit, and needs less of it without Winograd's method.
        own = [f"--target={TARGET}", "--winograd=off"]
        kept, less = (trained(Program(made, model, name, *which, *own)) for name, which in (("kept", flags), ("less", limited)))
        good = size <= limit and again > 0 and kept == less
        print(f"{again} kernels again, {size} bytes: {kept} and {less}{'' if good else ': FAILED'}")
    return not good


sys.exit(main(*sys.argv[1:]))
