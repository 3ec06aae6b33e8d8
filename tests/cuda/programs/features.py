"""Tests that the features of the runtime work in the GPU's part of a program as in the CPU's: features.py MODEL TENSORS TOOL...

MODEL is a small net in text form, TENSORS the folder of tensors.py, the rest as in program.py."""
import re
import sys
import tempfile

from program import Program, Tools

DATA = ["--use-synthetic-data", "--synthetic-examples=200", "--synthetic-mean=0.5", "--synthetic-stddev=0.3"]
wrong = []


def expect(good, what, text=""):
    if not good:
        wrong.append(what)
        print(f"FAIL {what}\n{text}")


def good(program, device, *flags):
    status, text = program.run(device, *DATA, *flags)
    expect(status == 0, f"{device} {' '.join(flags)}: status {status}", text)
    return text


def same_file(folder, a, b):
    return (folder / a).read_bytes() == (folder / b).read_bytes()


def checkpoints(program, folder):
    """Stops runs and resumes them, on the same part and on the other one."""
    good(program, "cuda", "--model-dir=whole", "--max-train-steps=9", "--checkpoint-every=2", "-q")
    good(program, "cuda", "--model-dir=pieces", "--max-train-steps=4", "-q")
    good(program, "cuda", "--model-dir=pieces", "--max-train-steps=9", "--resume", "-q")
    expect(same_file(folder, "whole/ckpt-9.safetensors", "pieces/ckpt-9.safetensors"), "a resumed run differs")
    text = good(program, "cuda", "--model-dir=kernels", "--max-train-steps=9", "--profile")
    expect("@train: 9 runs" in text and "_conv2d" in text, "the profile", text)
    expect(same_file(folder, "whole/ckpt-9.safetensors", "kernels/ckpt-9.safetensors"), "a captured step is not its kernels one by one")
    for device, steps in [("cpu", 12), ("cuda", 15), ("cpu", 18)]:
        good(program, device, "--model-dir=pieces", f"--max-train-steps={steps}", "--resume", "-q")
    texts = [good(program, device, "--model-dir=pieces", "--eval-only", "-q") for device in ("cpu", "cuda")]
    accuracy = [re.search(r"test accuracy ([0-9.]+)", text) for text in texts]
    expect(all(accuracy) and accuracy[0][1] == accuracy[1][1], "accuracies differ", "".join(texts))


def losses(program, bound):
    """Both parts have the same losses in the same steps."""
    found = []
    for device in ("cpu", "cuda"):
        text = good(program, device, "--model-dir=", "--max-train-steps=12", "--log-every=1")
        found.append([float(x) for x in re.findall(r" loss ([0-9.]+)  accuracy", text)])
    a, b = found
    expect(len(a) == len(b) == 12 and all(abs(x - y) <= bound for x, y in zip(a, b)), "losses differ", f"{a}\n{b}")


def bad_numbers(program, folder):
    """A skipped step, a step caught by --trap, and --reproduce of the trap's file on both parts."""
    says = []
    for device in ("cpu", "cuda"):
        text = good(program, device, "--model-dir=", "--max-train-steps=4", "--inject=nan@2:image[5]")
        says += re.findall(r"skipped step 2, .*", text)
    expect(len(says) == 2 and says[0] == says[1], "a skipped step", "\n".join(says))
    status, text = program.run("cuda", *DATA, "--model-dir=trap", "--trap=first-nonfinite", "--inject=inf@3:image[1]")
    expect(status == 1 and "stopped by --trap=first-nonfinite in step 3" in text, "a trap", text)
    for device in ("cpu", "cuda"):
        status, text = program.run(device, "--reproduce=trap/nonfinite-3.safetensors")
        expect(status == 1 and "step 3, first not finite: image (input)" in text, f"{device}: its file", text)


def insides(program, folder, tensors, bound):
    """--dump-values of a step that both parts start from the same state; --profile;
    --grad-histogram-every."""
    for device in ("cpu", "cuda"):
        good(program, device, "--init-from=whole/ckpt-9.safetensors", "--dump-values", f"--dump-step={device}.safetensors")
    cpu, cuda = (tensors.load(str(folder / f"{device}.safetensors")) for device in ("cpu", "cuda"))
    expect(set(cpu) == set(cuda), "names of tensors", str(set(cpu) ^ set(cuda)))
    for name in cpu:
        if name in cuda and name.endswith((".grad", "loss", "logits")) and ":" not in name:
            x, y = cpu[name][1], cuda[name][1]
            size = max(map(abs, x), default=0)
            expect(all(abs(p - q) <= bound * size for p, q in zip(x, y)), f"{name} differs", f"{x[:8]} {y[:8]}")
    good(program, "cuda", "--model-dir=log", "--max-train-steps=3", "--grad-histogram-every=1", "--recompute-bn-stats=2")
    log = (folder / "log/log.jsonl").read_text()
    expect(log.count('"event":"grad_histogram"') == 3 * 5, "histograms", log)


def parts_of_batches(made, model):
    """--accumulate on a device: @accumulate and @train run in turn, and only results of @train are
    collected."""
    program = Program(made, model, "parts", "--dtype=fp16", "--accumulate=2")
    losses(program, 5e-3)
    good(program, "cuda", "--model-dir=parts4", "--max-train-steps=4", "-q")
    good(program, "cuda", "--model-dir=parts4", "--max-train-steps=9", "--resume", "-q")
    text = good(program, "cuda", "--model-dir=parts9", "--max-train-steps=9", "--profile")
    expect("@train: 9 runs" in text and "@accumulate: 9 runs" in text, "the profile of parts", text)
    expect(same_file(made.scratch, "parts4/ckpt-9.safetensors", "parts9/ckpt-9.safetensors"), "a run in parts differs")


def main(model, tensors_folder, *tools):
    sys.path.insert(0, tensors_folder)
    import tensors
    with tempfile.TemporaryDirectory() as scratch:
        made = Tools(scratch, *tools)
        program = Program(made, model, "small", "--dtype=fp16")
        checkpoints(program, made.scratch)
        losses(program, 5e-3)
        bad_numbers(program, made.scratch)
        insides(program, made.scratch, tensors, 2e-2)
        parts_of_batches(made, model)
    print(f"{len(wrong)} wrong")
    return bool(wrong)


sys.exit(main(*sys.argv[1:]))
