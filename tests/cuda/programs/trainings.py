"""Tests that both parts of a program train alike: trainings.py DTYPE STEPS ZOO ORACLE TOOL...

ResNet-8 takes STEPS steps, a bottleneck net and one with convolutions in groups take 10; every loss of the GPU's part must be within
a bound of the CPU part's. Then ResNet-8, and in fp16 the others as well, trains on plans that are made anew, and ResNet-8 on photographs,
which the GPU gets as bytes. With fewer than 10 STEPS there is ResNet-8 alone, on the plans that it came with.
ORACLE is the folder of model_text.py, the rest as in program.py."""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from program import Program, Tools, write_cifar

# Bounds relative to the loss. Sums in another order differ in the last place of f32, or of a
# 16-bit result, and later steps carry that on.
BOUND = {"fp32": 1e-4, "fp16": 1e-2, "bf16": 2e-2}
FLAGS = ["--learning-rate=1e-2", "--log-every=1", "--threads=1", "--model-dir=", "-q"]
SYNTHETIC = ["--use-synthetic-data", "--synthetic-mean=0", "--synthetic-stddev=1"]


def losses(program, device, steps, *data, **environment):
    """Runs a training; returns the losses of each step and of the evaluation, and the output."""
    log = program.tools.scratch / f"{device}.jsonl"
    log.unlink(missing_ok=True)
    status, text = program.run(device, *FLAGS, *data, f"--max-train-steps={steps}", f"--log-file={log}", FAKE_CUDA_COPIES="1",
                               **environment)
    if status:
        sys.exit(f"{device}: status {status}\n{text}")
    records = list(map(json.loads, log.read_text().splitlines()))
    return [record["loss"] for record in records if "loss" in record], text


def compare(program, name, dtype, steps):
    cpu, cuda = (losses(program, device, steps, *SYNTHETIC)[0] for device in ("cpu", "cuda"))
    cpu, cuda = cpu[:steps], cuda[:steps]
    worst = max((abs(a - b) / a for a, b in zip(cpu, cuda)), default=1)
    good = len(cpu) == len(cuda) == steps and worst <= BOUND[dtype] and cuda[-1] < cuda[0]
    print(f"{name} {dtype}: {steps} steps, loss {cuda[0]:.4f} to {cuda[-1]:.4f}, at most {worst:.1e} of the CPU part's "
          f"away, {BOUND[dtype]:.0e} allowed{'' if good else ': FAILED'}")
    return good


def other_machines(program, name, dtype):
    """With another version of cuDNN each plan is made anew from its key, with the same graphs and
    bits. If plans want more workspace than was planned, they are kept and get memory beside the
    arena."""
    cases = {"were made anew": {"FAKE_CUDNN_VERSION": "92000"}, "want more workspace": {"FAKE_CUDNN_WORKSPACE": str(1 << 20)}}
    old, text = losses(program, "cuda", 2, *SYNTHETIC)
    good = len(old) > 1 and not any(says in text for says in cases)
    for says, env in cases.items():
        new, text = losses(program, "cuda", 2, *SYNTHETIC, **env)
        good &= old == new and [other for other in cases if other in text] == [says]
        print(f"{name} {dtype}: 2 steps with plans that {says}{'' if good else f': FAILED {old} {new} {text}'}")
    return good


def photographs(program, dtype, batch):
    """Both parts have the same losses on photographs; also checks how many bytes are copied to the
    GPU for each step."""
    folder = program.tools.scratch / "cifar"
    write_cifar(folder, batch)
    (cpu, _), (cuda, text) = (losses(program, device, 3, "--dataset=cifar10", f"--data-dir={folder}") for device in ("cpu", "cuda"))
    worst = max((abs(a - b) / a for a, b in zip(cpu, cuda)), default=1)
    copies = list(map(int, re.findall(r"copies ([0-9]+) bytes", text)))
    images, scalings = copies.count(batch * 3072), copies.count(batch * 48)
    plan = program.run("cuda", "--print-memory-plan")[1]
    planned = f"@train: %image arrives beside the arena, as {batch * 3072} bytes of pixels and {6 * batch} numbers" in plan
    good = planned and len(cpu) == len(cuda) == 4 and worst <= BOUND[dtype] and images == 5 and scalings == 5 and max(copies) == batch * 3072
    print(f"photographs {dtype}: 3 steps and 2 batches of tests, losses at most {worst:.1e} away, {images} copies of images as "
          f"bytes{'' if good else f': FAILED {cpu} {cuda} {copies}'}")
    return good


def main(dtype, steps, zoo, oracle, *tools):
    sys.path.insert(0, oracle)
    from model_text import model_text
    steps = int(steps)
    with tempfile.TemporaryDirectory() as scratch:
        made = Tools(scratch, *tools)
        models = {"cifar_resnet8": ["--batch-size=4"], **({"bottleneck": [], "groups": []} if steps >= 10 else {})}
        subprocess.run([zoo, "cifar_resnet8", "-o", made.scratch / "cifar_resnet8.pb"], check=True)
        (made.scratch / "bottleneck.pbtxt").write_text(model_text("bottleneck"))
        shutil.copy(pathlib.Path(__file__).parent.parent / "step/groups.amp", made.scratch)
        good = True
        for name, flags in models.items():
            (model,) = made.scratch.glob(name + ".*")
            program = Program(made, model, name, f"--dtype={dtype}", *flags)
            good &= compare(program, name, dtype, steps if name == "cifar_resnet8" else 10)
            good &= steps < 10 or (name != "cifar_resnet8" and dtype != "fp16") or other_machines(program, name, dtype)
            if name == "cifar_resnet8":
                good &= photographs(program, dtype, 4)
    return not good


sys.exit(main(*sys.argv[1:]))
