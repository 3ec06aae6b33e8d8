"""What must hold on a GPU: numbers, accuracy, resuming, repeatability, no invalid access."""
import concurrent.futures, json, os, pathlib, re, shutil, subprocess, sys, time

import machine, tensors

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from ports import free_port

DEVICE = "--device=cuda"


def dump(place, name, device, end):
    """Dumps all stored numbers of one step of a part of a program."""
    out = place.work / f"{name}.{device}.safetensors"
    machine.run([place.program(name), f"--device={device}", "--use-synthetic-data", "--model-dir=", "-q", f"--dump-step={out}", "--dump-values"], end)
    numbers = tensors.read(out)
    out.unlink()  # the files have up to a gigabyte each
    return numbers


# Bounds of the median and of the worst tensor. The worst are gradients behind many ReLU masks, one of which may fall either way.
# On the fakes, whose sums are exact, the small nets reach 0.13 at the worst in fp16 and 0.07 in bf16; of 16-bit gradients of a
# ResNet-50 with 4 images one rounding leaves little (1.6 at the worst in bf16, 0.9 in fp16), so only their median says anything.
BOUND = {"fp32": (1e-4, 5e-2), "bf16": (5e-2, 2e-1), "fp16": (1e-2, 2e-1), "level3": (1e-2, 2e-1)}
ANY = float("inf")
VALUES = {**{f"{net}_{dtype}": BOUND[dtype] for net in ("small", "groups") for dtype in BOUND},
          **{f"unfused_{dtype}": BOUND[dtype] for dtype in ("fp32", "fp16")},
          "wide_fp32": (1e-4, 2e-1), "wide_fp16": (5e-3, ANY), "wide_bf16": (2e-2, ANY), "wide_level3": (5e-3, ANY)}


def values(place, end, found):
    """Runs the same step on the CPU part and twice on the CUDA part, and compares the tensors that both store. The details list
    the tensors that are furthest apart, and those that two runs of the CUDA part did not make alike."""
    rows = found["rows"] = [["program", "tensors", "median", "worst", "in", "bounds", "other bytes the second time", ""]]
    wrong = []
    for name in machine.wanted(VALUES):
        bound = VALUES[name]
        try:
            first = dump(place, name, "cuda", end)
            off = tensors.distances(dump(place, name, "cpu", end), first)
            again = tensors.others(first, dump(place, name, "cuda", end))
            median, worst, where = tensors.summary(off)
            good = median <= bound[0] and worst <= bound[1] and (not again or name.endswith("level3"))
            rows.append([name, len(off), f"{median:.2e}", f"{worst:.2e}", where, f"{bound[0]:g} {bound[1]:g}", len(again), "" if good else "wrong"])
            furthest = sorted(off, key=off.get, reverse=True)[:60]
            place.detail(f"values {name}", "\n".join([*(f"{off[n]:.3e} {n}" for n in furthest), "not made alike twice:", *again[:60]]))
        except Exception as error:  # the other cases go on
            good = False
            rows.append([name, "", "", "", "", "", "", str(error)])
        wrong += [] if good else [name]
    if wrong:
        raise AssertionError(", ".join(wrong))


APART = 1e-2  # of a plan's result from that of plain loops: roundings to bf16 are 4e-3


def executable(place, name):
    """The file that holds a program's plans; tests/gpu/walk has another."""
    return place.program(name)


def plan_keys(place):
    """The keys of all convolutions of the programs, those in fp16 first. With them those of dgrad_bn_short, which no program has, as
    plan_forms.def has it at level 0."""
    keys = set()
    for name in machine.PROGRAMS:
        keys |= set(re.findall(rb"[a-z_]+ (?:f16|bf16|f32) n\d+ h\d[a-z0-9 ,]*", executable(place, name).read_bytes()))
    keys |= {key.replace(b"dgrad ", b"dgrad_bn_short ") for key in keys if key.startswith(b"dgrad f16") and b" u1,1 " in key and b" g" not in key}
    keys = sorted(key.decode() for key in keys)
    return [key for dtype in ("f16", "bf16", "f32") for key in keys if key.split()[1] == dtype]


def run_plans(place, keys, end):
    """Runs plans.c on the keys in several processes. Returns its lines, and the last line of what each process said of errors."""
    parts = max(1, (os.cpu_count() or 2) - 2)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    running = [machine.start([place.program("gpu_plans"), 6, part, parts], **pipes) for part in range(parts)]
    lines, errors = [], []

    def collect(process):
        try:
            out, err = process.communicate("\n".join(keys) + "\n", timeout=max(end - time.monotonic(), 1))
        except subprocess.TimeoutExpired:
            machine.stop(process)
            out, err = process.communicate()
            err += "not done in time"
        lines.extend(out.splitlines())
        errors.extend(err.splitlines()[-1:])

    with concurrent.futures.ThreadPoolExecutor(parts) as pool:
        list(pool.map(collect, running))
    return lines, errors


def plans(place, end, found):
    """Runs every convolution of the programs by itself, with each plan of cuDNN that a program may take (plans.c): the bytes must be
    the same in every run, and the numbers those of plain loops. `plans.jsonl` gets a line for each plan. Only the plain forms must
    pass; what is found of the fused ones decides their level in plan_forms.def."""
    keys = plan_keys(place)
    lines, errors = run_plans(place, keys, end)
    (place.out / "plans.jsonl").write_text("\n".join(lines) + "\n")
    forms = {}
    for result in (json.loads(line) for line in lines if line.endswith("}")):  # a line of a process that was stopped may be cut
        forms.setdefault(" ".join(result["key"].split()[:2]), []).append(result)
    rows = found["rows"] = [["form, type", "keys", "plans", "failed", "other bytes, first plans", "all plans", "worst apart, first plans", "all plans"]]
    wrong = []
    for form, results in sorted(forms.items()):
        ran = [result for result in results if "results" in result]
        first = [result for result in ran if result["plan"] == 0]
        others = lambda which: sum(not all(r["equal"] for r in result["results"]) for result in which)
        apart = lambda which: max((r.get("apart", 0) for result in which for r in result["results"]), default=0)
        rows.append([form, len(first), len(results), len(results) - len(ran), others(first), others(ran), f"{apart(first):.1e}", f"{apart(ran):.1e}"])
        if form.split()[0] in ("fprop", "dgrad", "wgrad") and (others(first) or apart(first) > APART):
            wrong.append(form)
    found["keys asked for"] = len(keys)
    if errors or wrong:
        raise AssertionError(f"other bytes or wrong: {', '.join(wrong)}; {' '.join(errors)[-400:]}")


def recipes(place, end, found):
    """Losses of a few steps on both parts: JPEGs, whose bytes the GPU normalises channel by channel; a batch in two parts; frozen
    layers, through whose batch norms gradients pass."""
    rows = found["rows"] = [["program", "losses on the GPU", "largest difference", "bound", ""]]
    machine.cifar(place, end)
    data, wrong = [f"--data-dir={machine.jpegs(place)}", "--dataset=folder", "--preprocessing=official", "--learning-rate=0.01"], []
    for name, bound in (("small_fp32", 1e-3), ("small_fp16", 2e-2), ("parts_fp16", 2e-2), ("frozen_fp16", 2e-2)):
        losses = []
        for device in ("cpu", "cuda"):
            folder = place.work / f"recipes_{name}_{device}"
            machine.run([place.program(name), f"--device={device}", *data, "--max-train-steps=4", "--skip-eval", "--log-every=1", "-q",
                         f"--model-dir={folder}", "--clean"], end)
            losses.append([e["loss"] for e in events(folder, "train")])
        worst = max(abs(a - b) / abs(a) for a, b in zip(*losses))
        good = len(losses[0]) == len(losses[1]) >= 4 and worst <= bound  # more than 4: skipped steps
        rows.append([name, " ".join(f"{x:.4f}" for x in losses[1]), f"{worst:.1e}", f"{bound:g}", "" if good else "too far"])
        wrong += [] if good else [name]
    if wrong:
        raise AssertionError(", ".join(wrong))


def events(folder, kind):
    return [e for e in map(json.loads, (folder / "log.jsonl").read_text().splitlines()) if e["event"] == kind]


def train(place, end, found):
    rows = found["rows"] = [["precision", "test accuracy by epoch", "seconds", "images/s (median)", "skipped steps"]]
    data, last = machine.cifar(place, end), {}
    for name in machine.wanted(["cifar_fp16", "cifar_bf16", "cifar_fp32"]):
        dtype = name.removeprefix("cifar_")
        folder = place.work / f"train_{dtype}"
        start = time.monotonic()
        machine.run([place.program(name), DEVICE, "--dataset=cifar10", f"--data-dir={data}", f"--model-dir={folder}", "--clean", "-q", "--data-threads=8"], end)
        evals, steps = events(folder, "eval"), events(folder, "train")
        rate = sorted(e["images_per_second"] for e in steps)[len(steps) // 2]
        last[dtype] = evals[-1]["accuracy"]
        rows.append([dtype, " ".join(f"{e['accuracy']:.4f}" for e in evals), f"{time.monotonic() - start:.1f}", f"{rate:.0f}", steps[-1]["skipped_steps"]])
    if last and (min(last.values()) < .70 or max(last.values()) - min(last.values()) > .03):
        raise AssertionError(f"accuracies {last}: each must reach 0.70 and all lie within 0.03")


def newest(folder):
    return max(folder.glob("ckpt-*.safetensors"), key=lambda p: int(p.stem.split("-")[1]))


FLAGS = ["--use-synthetic-data", "--synthetic-examples=3200", "--max-train-steps=60", "--checkpoint-every=5", "-q"]


def resume(place, end, found):
    """A run that is killed three times ends with the same checkpoint as an undisturbed run, and the
    CPU part can resume from it."""
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
    """Trains, and returns the bytes of the last checkpoint."""
    folder = place.work / "last"
    shutil.rmtree(folder, ignore_errors=True)
    machine.run([place.program(name), DEVICE, "--use-synthetic-data", f"--model-dir={folder}", *flags], end)
    return newest(folder).read_bytes()


def repeat(place, end, found):
    """Equal runs end with equal bytes, also with --profile, which launches kernel by kernel instead
    of a CUDA graph. Programs with --fuse-level=3 need not; the table says whether they do."""
    rows, wrong = [["program", "steps", "twice", "kernel by kernel"]], []
    found["rows"] = rows
    for name, steps, examples in (("small_bf16", 60, 3200), ("small_fp16", 60, 3200), ("resnet50_fp16", 6, 512), ("resnet50_level3", 6, 512)):
        flags = [f"--max-train-steps={steps}", f"--synthetic-examples={examples}", "--train-epochs=100", "--skip-eval", "-q"]
        once, again, launched = (last_checkpoint(place, name, end, *flags, *more) for more in ([], [], ["--profile"]))
        words = ["equal bytes" if other == once else "DIFFERENT" for other in (again, launched)]
        rows.append([name, steps, *words])
        wrong += [name] if words != ["equal bytes"] * 2 and not name.endswith("level3") else []
    if wrong:
        raise AssertionError(f"other bytes: {', '.join(wrong)}")


def first_gradients(place, name, end):
    """Gradients, taken from the momentum after the first step, as a dict from a name to a function that returns its numbers."""
    path = place.work / f"{name}.gradients"
    path.write_bytes(last_checkpoint(place, name, end, "--max-train-steps=1", "--synthetic-examples=512", "--skip-eval", "-q"))
    numbers = {key: value for key, value in tensors.read(path).items() if key.endswith(".momentum")}
    if not any(value().any() for value in numbers.values()):
        raise AssertionError(f"{name}: the step was skipped")
    return numbers


def gradients(place, end, found):
    """Compares the gradients of a full batch of ResNet-50, which the CPU cannot compute in the time; batch 256 has other plans than
    batch 4, which `values` compares. The reference is unfused TF32, as exact as fp16. The fused forms of --fuse-level=3 may be twice
    as far from it as those of the default, in the median and at the worst (on the fakes they are 1.3 and 1.5 times as far)."""
    rows = found["rows"] = [["program", "tensors", "median distance to TF32", "worst", "in"]]
    exact, apart = first_gradients(place, "resnet50_tf32", end), {}
    for name in ("exact_fp16", "exact_level3"):
        off = tensors.distances(exact, first_gradients(place, name, end))
        median, worst, where = tensors.summary(off)
        apart[name] = median, worst
        rows.append([name, len(off), f"{median:.2e}", f"{worst:.2e}", where])
        place.detail(f"gradients {name}", "\n".join(f"{off[n]:.3e} {n}" for n in sorted(off, key=off.get, reverse=True)))
    (median, worst), (fused, fused_worst) = apart["exact_fp16"], apart["exact_level3"]
    if fused > 2 * median or fused_worst > 2 * worst:
        raise AssertionError("too far")


def nonfinite(place, end, found):
    """Puts a NaN into the batch. Fused plans compute masks by comparisons, which are false for NaN,
    and must not lose it. Both parts must skip the step and name the same first result."""
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


def ranks(place, end, found):
    """One GPU, which sums over itself: NCCL refuses two ranks on one. Its collectives are captured with the step; the bytes must
    be those of a run without ranks, in every order of sums. The times say what the second stream and the calls cost, not what
    travelling between GPUs does."""
    rows = found["rows"] = [["program", "sums", "checkpoint", "ms a step", "share of a step without"]]
    wrong = []
    for name, steps in (("small_fp32", 60), ("small_fp16", 60), ("resnet50_fp16", 24)):
        flags = ["--synthetic-examples=6400", "--train-epochs=100", f"--max-train-steps={steps}", "--log-every=6", "--skip-eval", "-q"]
        plain = None
        for order in ("", "placement", "run", "off"):
            os.environ.pop("AMPRT_ONE_RANK", None)
            if order:
                os.environ["AMPRT_ONE_RANK"] = "1"
            try:
                saved = last_checkpoint(place, name, end, *flags, *([f"--deterministic={order}"] if order else []))
            finally:
                os.environ.pop("AMPRT_ONE_RANK", None)
            log = events(place.work / "last", "train")
            rate = sorted(e["images_per_second"] for e in log[1:])[len(log[1:]) // 2]
            batch = events(place.work / "last", "start")[0]["batch_size"]
            plain = plain or (saved, batch / rate)
            same = saved == plain[0]
            rows.append([name, order or "none", "equal bytes" if same else "DIFFERENT", f"{1e3 * batch / rate:.3f}", f"{batch / rate / plain[1]:.3f}"])
            wrong += [] if same else [f"{name} {order}"]
    gpus = len(machine.answer(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]).splitlines())
    found["several GPUs"] = f"not tried: this machine has {gpus}" if gpus < 2 else several(place, end, gpus)
    if wrong:
        raise AssertionError(f"other bytes: {', '.join(wrong)}")


def several(place, end, gpus):
    """As many ranks as GPUs: two runs in an order that depends on their number alone have equal bytes, and what a step then takes
    beside one GPU alone."""
    saved, times = [], []
    for n in (1, gpus, gpus):
        folder = place.work / f"several-{len(times)}"
        shutil.rmtree(folder, ignore_errors=True)
        port, processes = free_port(), []
        for r in range(n):
            where = {"WORLD_SIZE": n, "RANK": r, "LOCAL_RANK": r, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port} if n > 1 else {}
            processes.append(machine.start([place.program("resnet50_fp16"), DEVICE, "--use-synthetic-data", "--max-train-steps=60", "--log-every=10",
                                            "--skip-eval", "-q", "--deterministic=placement", f"--model-dir={folder}"],
                                           env={**os.environ, **{k: str(v) for k, v in where.items()}}, stderr=subprocess.PIPE))
        try:
            texts = [p.communicate(timeout=max(end - time.monotonic(), 1))[1] for p in processes]
        finally:
            for p in processes:
                machine.stop(p)
        if any(p.returncode for p in processes):
            raise AssertionError(" ".join(texts)[-600:])
        rates = sorted(e["images_per_second"] for e in events(folder, "train")[1:])
        times.append(rates[len(rates) // 2])
        saved.append(newest(folder).read_bytes())
    if saved[1] != saved[2]:
        raise AssertionError(f"{gpus} ranks: two runs with --deterministic=placement have other bytes")
    return f"{gpus} ranks: equal bytes twice; {times[1]:.0f} and {times[2]:.0f} images/s, {times[1] / times[0] / gpus:.3f} of {gpus} times one"
