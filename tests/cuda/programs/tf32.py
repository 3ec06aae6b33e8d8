"""Tests --tf32, also for GPUs that have no TF32: tf32.py MODEL TOOL...

MODEL is a small net in text form, the rest as in program.py."""
import os
import re
import subprocess
import sys
import tempfile

from program import Program, Tools

TRAIN = ["--use-synthetic-data", "--model-dir=", "--max-train-steps=4", "--synthetic-examples=40", "--log-every=1", "--dump-step=step.safetensors"]
wrong = []


def expect(good, what, text=""):
    if not good:
        wrong.append(what)
        print(f"FAIL {what}\n{text}")


def compile_text(tools, model, target, *flags):
    done = subprocess.run([tools.ampcc, model, f"--target={target}", f"--cache-dir={tools.scratch}/cache", "--emit=c", *flags],
                          capture_output=True, text=True, cwd=tools.scratch)
    return done.returncode, done.stdout, done.stderr


def texts(tools, model):
    """With --tf32 the keys of plans and the products ask for TF32; without it, or on GPUs that have
    no TF32, they do not or are refused."""
    _, plain, _ = compile_text(tools, model, "cuda:a100")
    status, text, errors = compile_text(tools, model, "cuda:a100", "--tf32")
    keys, products = re.findall(r"\.key = \"([^\"]*)\"", text), re.findall(r"\.tf32 = 1, \.bias = [01],\n", text)
    expect(status == 0 and keys and all(key.endswith(" tf32") for key in keys), "plans", errors + str(keys))
    expect(len(products) == 3 and ", .tf32 = 1,\n" in text, "products", text[-2000:])
    expect("tf32\"" not in plain and ".tf32 = 1" not in plain, "without --tf32")
    status, _, errors = compile_text(tools, model, "cuda:t4", "--tf32")
    expect(status == 1 and errors.count("error[E402]: cuda:sm_75 cannot run") == 1 and "it has no TF32; sm_80 and later have" in errors, "t4", errors)
    for flags, says in ((["--dtype=fp16"], "--tf32 is of fp32, not of --dtype=fp16"), (["--target=cpu"], "--tf32 is for GPUs")):
        status, _, errors = compile_text(tools, model, "cuda:a100", "--tf32", *flags)
        expect(status == 2 and says in errors, says, errors)


def run(tools, model, name, *flags):
    program = Program(tools, model, name, f"--cache-dir={tools.scratch}/cache", *flags, cpu=False)
    _, about = program.run("cuda", "--about")
    status, text = program.run("cuda", *TRAIN)
    expect(status == 0, f"{name} runs", text)
    return about, (tools.scratch / "step.safetensors").read_bytes()


def main(model, *tools):
    with tempfile.TemporaryDirectory() as scratch:
        made, model = Tools(scratch, *tools), os.path.abspath(model)
        texts(made, model)
        (plain_about, plain), (about, tf32) = run(made, model, "plain"), run(made, model, "tf32", "--tf32")
    expect(plain != tf32 and len(plain) == len(tf32), "products of fewer bits")
    expect(", TF32\n" in about and "TF32" not in plain_about, "--about", about)
    print(f"{len(wrong)} wrong")
    return bool(wrong)


sys.exit(main(*sys.argv[1:]))
