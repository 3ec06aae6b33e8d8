"""trainings.py DTYPE STEPS ZOO ORACLE TOOL...: ResNet-8 and a bottleneck net trained by both parts of a program.

STEPS of ResNet-8, 20 (or STEPS, if fewer) of the bottleneck net; every loss of the GPU's part must be within a bound
of the CPU part's. ORACLE is the folder of model_text.py, the rest as in program.py."""
import json
import pathlib
import subprocess
import sys
import tempfile

from program import Program, Tools

# Relative to the loss. Sums in another order make a different last place of f32, or of a 16-bit result, and steps
# carry it on.
BOUND = {"fp32": 1e-4, "fp16": 1e-2, "bf16": 2e-2}
FLAGS = ["--use-synthetic-data", "--synthetic-mean=0", "--synthetic-stddev=1", "--learning-rate=1e-2", "--log-every=1",
         "--threads=1", "-q"]


def losses(program, device, steps):
    log = program.tools.scratch / f"{device}.jsonl"
    log.unlink(missing_ok=True)
    status, text = program.run(device, *FLAGS, f"--max-train-steps={steps}", f"--log-file={log}")
    if status:
        sys.exit(f"{device}: status {status}\n{text}")
    records = map(json.loads, log.read_text().splitlines())
    return [record["loss"] for record in records if "learning_rate" in record]


def compare(program, name, dtype, steps):
    cpu, cuda = (losses(program, device, steps) for device in ("cpu", "cuda"))
    worst = max((abs(a - b) / a for a, b in zip(cpu, cuda)), default=1)
    good = len(cpu) == len(cuda) == steps and worst <= BOUND[dtype] and cuda[-1] < cuda[0]
    print(f"{name} {dtype}: {steps} steps, loss {cuda[0]:.4f} to {cuda[-1]:.4f}, at most {worst:.1e} of the CPU part's "
          f"away, {BOUND[dtype]:.0e} allowed{'' if good else ': FAILED'}")
    return good


def main(dtype, steps, zoo, oracle, *tools):
    sys.path.insert(0, oracle)
    from model_text import model_text
    steps = int(steps)
    with tempfile.TemporaryDirectory() as scratch:
        made = Tools(scratch, *tools)
        models = {"cifar_resnet8": ["--batch-size=4"], "bottleneck": []}
        subprocess.run([zoo, "cifar_resnet8", "-o", made.scratch / "cifar_resnet8.pb"], check=True)
        (made.scratch / "bottleneck.pbtxt").write_text(model_text("bottleneck"))
        good = True
        for name, flags in models.items():
            (model,) = made.scratch.glob(name + ".pb*")
            program = Program(made, model, name, f"--dtype={dtype}", *flags)
            good &= compare(program, name, dtype, steps if name == "cifar_resnet8" else min(steps, 20))
    return not good


sys.exit(main(*sys.argv[1:]))
