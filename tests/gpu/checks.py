"""What must hold: numbers, accuracy, resuming, repeatability, no invalid access."""
import json, shutil, subprocess, time

import machine, tensors

DEVICE = "--device=cuda"


def dump(place, name, device, end):
    """All stored numbers of one step of a program's part."""
    out = place.work / f"{name}.{device}.safetensors"
    machine.run([place.program(name), f"--device={device}", "--use-synthetic-data", "--model-dir=", "-q", f"--dump-step={out}", "--dump-values"], end)
    numbers = tensors.read(out)
    out.unlink()  # up to a gigabyte each
    return numbers


# median and worst over the tensors: the worst are gradients that many ReLU masks lie in front of
BOUND = {"fp32": (1e-4, 5e-2), "bf16": (5e-2, 5e-1), "fp16": (1e-2, 2e-1)}


def values(place, end, found):
    """The same step on the CPU part and on the CUDA part: tensors that both store."""
    rows = found["rows"] = [["program", "tensors", "median", "worst", "in", "bounds", ""]]
    wrong = []
    for name in ("small_fp32", "small_fp16", "small_bf16", "unfused_fp32", "unfused_fp16", "wide_fp32", "wide_fp16", "wide_bf16"):
        bound = BOUND[name.split("_")[1]]
        try:
            median, worst, where, count = tensors.compare(dump(place, name, "cpu", end), dump(place, name, "cuda", end))
            good = median <= bound[0] and worst <= bound[1]
            rows.append([name, count, f"{median:.2e}", f"{worst:.2e}", where, f"{bound[0]:g} {bound[1]:g}", "" if good else "too far"])
        except Exception as error:  # the others still count
            good = False
            rows.append([name, "", "", "", "", "", str(error)])
        wrong += [] if good else [name]
    if wrong:
        raise AssertionError(", ".join(wrong))


def events(folder, kind):
    return [e for e in map(json.loads, (folder / "log.jsonl").read_text().splitlines()) if e["event"] == kind]


def train(place, end, found):
    rows = found["rows"] = [["precision", "test accuracy by epoch", "seconds", "images/s (median)", "skipped steps"]]
    data, last = machine.cifar(place, end), {}
    for dtype in ("fp16", "fp32", "bf16"):
        folder = place.work / f"train_{dtype}"
        start = time.monotonic()
        machine.run([place.program(f"cifar_{dtype}"), DEVICE, "--dataset=cifar10", f"--data-dir={data}", f"--model-dir={folder}", "--clean", "-q", "--data-threads=8"], end)
        evals, steps = events(folder, "eval"), events(folder, "train")
        rate = sorted(e["images_per_second"] for e in steps)[len(steps) // 2]
        last[dtype] = evals[-1]["accuracy"]
        rows.append([dtype, " ".join(f"{e['accuracy']:.4f}" for e in evals), f"{time.monotonic() - start:.1f}", f"{rate:.0f}", steps[-1]["skipped_steps"]])
    if min(last.values()) < .70 or max(last.values()) - min(last.values()) > .03:
        raise AssertionError(f"accuracies {last}: each must reach 0.70 and all lie within 0.03")


def newest(folder):
    return max(folder.glob("ckpt-*.safetensors"), key=lambda p: int(p.stem.split("-")[1]))


FLAGS = ["--use-synthetic-data", "--synthetic-examples=3200", "--max-train-steps=60", "--checkpoint-every=5", "-q"]


def resume(place, end, found):
    """Killed three times, the last checkpoint has the bytes of an undisturbed run; and the CPU part goes on from it."""
    program, whole, broken = place.program("small_fp16"), place.work / "whole", place.work / "broken"
    for folder in (whole, broken):
        shutil.rmtree(folder, ignore_errors=True)
    machine.run([program, DEVICE, *FLAGS, f"--model-dir={whole}"], end)
    found["killed"] = 0
    for _ in range(3):
        before = set(broken.glob("ckpt-*"))
        process = machine.start([program, DEVICE, *FLAGS, "--resume", f"--model-dir={broken}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None and time.monotonic() < end and set(broken.glob("ckpt-*")) <= before:
            time.sleep(.002)
        found["killed"] += process.poll() is None
        machine.stop(process)
    machine.run([program, DEVICE, *FLAGS, "--resume", f"--model-dir={broken}"], end)
    if newest(whole).read_bytes() != newest(broken).read_bytes():
        raise AssertionError("a killed and resumed run ends with other bytes")
    found["last checkpoint"] = f"equal bytes, step {newest(whole).stem.split('-')[1]}"
    machine.run([program, "--device=cpu", "--use-synthetic-data", "--synthetic-examples=3200", "--max-train-steps=61", "--resume", "-q", f"--model-dir={broken}"], end)
    found["the CPU part goes on to"] = newest(broken).name
    if not found["killed"]:
        raise AssertionError("it was never killed before its end")


def last_checkpoint(place, name, end, *flags):
    """What a training of this program leaves, as bytes."""
    folder = place.work / "last"
    shutil.rmtree(folder, ignore_errors=True)
    machine.run([place.program(name), DEVICE, "--use-synthetic-data", f"--model-dir={folder}", *flags], end)
    return newest(folder).read_bytes()


def repeat(place, end, found):
    """Equal runs end with equal bytes; so does one in which nothing is captured: --profile launches kernel by kernel. The
    second program has the fused plans of cuDNN, of which the library does not say whether they are deterministic."""
    rows, wrong = [["program", "steps", "twice", "kernel by kernel"]], []
    found["rows"] = rows
    for name, steps, examples in (("small_bf16", 60, 3200), ("resnet50_fp16", 6, 512)):
        flags = [f"--max-train-steps={steps}", f"--synthetic-examples={examples}", "--train-epochs=100", "-q"]
        once, again, launched = (last_checkpoint(place, name, end, *flags, *more) for more in ([], [], ["--profile"]))
        words = ["equal bytes" if other == once else "DIFFERENT" for other in (again, launched)]
        rows.append([name, steps, *words])
        wrong += [name] if words != ["equal bytes"] * 2 else []
    if wrong:
        raise AssertionError(f"other bytes: {', '.join(wrong)}")


def first_gradients(place, name, end):
    """From the momentum after the first step that is not skipped: name: function that returns numbers."""
    for steps in (1, 2, 3):
        path = place.work / f"{name}.gradients"
        path.write_bytes(last_checkpoint(place, name, end, f"--max-train-steps={steps}", "--synthetic-examples=512", "-q"))
        numbers = {key: value for key, value in tensors.read(path).items() if key.endswith(".momentum")}
        if any(value().any() for value in numbers.values()):
            return numbers
    raise AssertionError(f"{name}: every step was skipped")


def gradients(place, end, found):
    """The gradients of a full batch, which the CPU cannot compute in the time; plans of batch 256 are others than those of batch 4
    that `values` looks at. TF32, as exact as fp16 and unfused, is the reference: fused fp16 may be twice as far from it as
    unfused fp16 is, and tensors as a whole no further than half their length."""
    rows = found["rows"] = [["program", "tensors", "median distance to TF32", "worst", "in"]]
    exact, apart = first_gradients(place, "resnet50_tf32", end), {}
    for name in ("resnet50_level1", "resnet50_fp16"):
        median, worst, where, count = tensors.compare(exact, first_gradients(place, name, end))
        apart[name] = median, worst
        rows.append([name, count, f"{median:.2e}", f"{worst:.2e}", where])
    (plain, _), (fused, worst) = apart["resnet50_level1"], apart["resnet50_fp16"]
    if not fused <= 2 * plain or not worst <= .5:
        raise AssertionError("too far")


def nonfinite(place, end, found):
    """A NaN in the batch: the fused plans make masks of comparisons, which are false for NaN, and must not lose it. Both parts skip
    the step and name the same first result."""
    says = []
    for device in ("cpu", "cuda"):
        done = machine.run([place.program("small_fp16"), f"--device={device}", "--use-synthetic-data", "--synthetic-examples=128", "--max-train-steps=4",
                            "--model-dir=", "--inject=nan@2:image[5]"], end)
        says.append([line for line in (done.stdout + done.stderr).splitlines() if "skipped step 2" in line])
    found["both say"] = " ".join(says[0])
    if says[0] != says[1] or len(says[0]) != 1:
        raise AssertionError(f"the CPU part says {says[0]}, the CUDA part {says[1]}")


def sanitizer(place, end, found):
    tool = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
    program, bad = place.program("small_fp16"), []
    for check, share in (("memcheck", .5), ("racecheck", 1)):
        began = time.monotonic()
        log = place.work / f"{check}.log"
        log.unlink(missing_ok=True)
        try:
            machine.run([tool, "--tool", check, "--log-file", log, "--error-exitcode", "9", program, DEVICE, "--use-synthetic-data", "--synthetic-examples=64",
                         "--max-train-steps=2", "--model-dir=", "-q"], began + share * (end - began))
            words = "nothing found"
        except Exception as error:
            bad.append(check)
            words = str(error)
        text = log.read_text() if log.exists() else ""
        place.detail(check, text)
        found[check] = f"{words}; {(text.strip().splitlines() or ['it wrote no log'])[-1].strip('= ')}; {time.monotonic() - began:.0f} s"
    if bad:
        raise AssertionError(", ".join(bad))
