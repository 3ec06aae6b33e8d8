"""What must hold: numbers, accuracy, resuming, repeatability, no invalid access."""
import json, pathlib, shutil, signal, subprocess, tarfile, time

import machine, tensors

DEVICE = "--device=cuda"


def dump(place, name, device, left):
    """All stored numbers of one step of a program's part."""
    out = place.work / f"{name}.{device}.safetensors"
    machine.run([place.program(name), f"--device={device}", "--use-synthetic-data", "--model-dir=", "-q", f"--dump-step={out}", "--dump-values"], left)
    return tensors.read(out)


# median and worst over the tensors: the worst are gradients that many ReLU masks lie in front of
BOUND = {"fp32": (1e-4, 5e-2), "bf16": (5e-2, 5e-1), "fp16": (1e-2, 2e-1)}


def values(place, left):
    """The same step on the CPU part and on the CUDA part: tensors that both store."""
    rows = [["program", "tensors", "median", "worst", "in", "bounds"]]
    wrong = []
    for name in ("small_fp32", "small_bf16", "small_fp16", "unfused_fp32", "unfused_fp16", "wide_fp32", "wide_bf16", "wide_fp16"):
        median, worst, where, count = tensors.compare(dump(place, name, "cpu", left), dump(place, name, "cuda", left))
        bound = BOUND[name.split("_")[1]]
        rows.append([name, count, f"{median:.2e}", f"{worst:.2e}", where, f"{bound[0]:g} {bound[1]:g}"])
        if not (median <= bound[0] and worst <= bound[1]):
            wrong.append(name)
    if wrong:
        raise AssertionError(f"too far apart: {', '.join(wrong)}: {rows}")
    return {"rows": rows}


def cifar(place):
    folder = place.work / "data/cifar-10-batches-bin"
    if folder.exists():
        return folder.parent
    archive = machine.CARRIED / "cifar10-jpeg.tar.gz"
    if not archive.exists():
        raise FileNotFoundError("no CIFAR-10 was carried: see tests/gpu/prepare")
    with tarfile.open(archive) as tar:
        tar.extractall(place.work / "jpeg")
    source = next(p.parent for p in (place.work / "jpeg").rglob("train"))
    machine.run(["python3", machine.CARRIED / "to_binary.py", source, folder], 120)
    return folder.parent


def events(folder, kind):
    return [e for e in map(json.loads, (folder / "log.jsonl").read_text().splitlines()) if e["event"] == kind]


def train(place, left):
    rows = [["precision", "test accuracy by epoch", "seconds", "images/s (median)", "skipped steps"]]
    data, last = cifar(place), {}
    for dtype in ("fp32", "bf16", "fp16"):
        folder = place.work / f"train_{dtype}"
        start = time.monotonic()
        machine.run([place.program(f"cifar_{dtype}"), DEVICE, f"--data-dir={data}", f"--model-dir={folder}", "--clean", "-q", "--data-threads=8"], left)
        evals, steps = events(folder, "eval"), events(folder, "train")
        rate = sorted(e["images_per_second"] for e in steps)[len(steps) // 2]
        last[dtype] = evals[-1]["accuracy"]
        rows.append([dtype, " ".join(f"{e['accuracy']:.4f}" for e in evals), f"{time.monotonic() - start:.1f}", f"{rate:.0f}", steps[-1]["skipped_steps"]])
    if min(last.values()) < .70 or max(last.values()) - min(last.values()) > .03:
        raise AssertionError(f"accuracies {last}: each must reach 0.70 and all lie within 0.03")
    return {"rows": rows}


def newest(folder):
    return max(folder.glob("ckpt-*.safetensors"), key=lambda p: int(p.stem.split("-")[1]))


FLAGS = ["--use-synthetic-data", "--synthetic-examples=3200", "--max-train-steps=60", "--checkpoint-every=5", "-q"]


def resume(place, left):
    """Killed three times, the last checkpoint has the bytes of an undisturbed run; and the CPU part goes on from it."""
    program, whole, broken = place.program("small_fp16"), place.work / "whole", place.work / "broken"
    for folder in (whole, broken):
        shutil.rmtree(folder, ignore_errors=True)
    machine.run([program, DEVICE, *FLAGS, f"--model-dir={whole}"], left)
    kills = 0
    while kills < 3:
        process = subprocess.Popen([program, DEVICE, *FLAGS, "--resume", f"--model-dir={broken}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline, before = time.monotonic() + 30, len(list(broken.glob("ckpt-*"))) if broken.exists() else 0
        while process.poll() is None and time.monotonic() < deadline and (not broken.exists() or len(list(broken.glob("ckpt-*"))) <= before):
            time.sleep(.005)
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
        process.wait()
        kills += 1
    machine.run([program, DEVICE, *FLAGS, "--resume", f"--model-dir={broken}"], left)
    if newest(whole).read_bytes() != newest(broken).read_bytes():
        raise AssertionError("a killed and resumed run ends with other bytes")
    machine.run([program, "--device=cpu", "--use-synthetic-data", "--synthetic-examples=3200", "--max-train-steps=61", "--resume", "-q", f"--model-dir={broken}"], left)
    return {"kills": kills, "last checkpoint": "equal", "CPU part goes on from it": "yes"}


def repeat(place, left):
    digests = []
    for turn in range(2):
        folder = place.work / f"repeat{turn}"
        shutil.rmtree(folder, ignore_errors=True)
        machine.run([place.program("small_bf16"), DEVICE, *FLAGS, f"--model-dir={folder}"], left)
        digests.append(newest(folder).read_bytes())
    if digests[0] != digests[1]:
        raise AssertionError("two equal runs end with different bytes")
    return {"60 steps twice": "equal bytes"}


def sanitizer(place, left):
    found = {}
    for tool in ("memcheck", "racecheck"):
        done = subprocess.run(["compute-sanitizer", f"--tool={tool}", "--error-exitcode=9", str(place.program("small_fp16")), DEVICE, "--use-synthetic-data",
                               "--synthetic-examples=64", "--max-train-steps=2", "--model-dir=", "-q"], capture_output=True, text=True, timeout=max(left, 1))
        (place.out / f"{tool}.log").write_text((done.stdout + done.stderr)[-200000:])
        found[tool] = (done.stdout + done.stderr).strip().splitlines()[-1][:200]
        if done.returncode:
            raise AssertionError(f"{tool}: status {done.returncode}: {found[tool]}")
    return found
