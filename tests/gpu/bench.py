"""Times ampcc's programs and PyTorch on the GPU, in turns within one run."""
import json, pathlib, re, shutil, statistics, subprocess, sys, tempfile, threading, time

import machine

ROUNDS = 2
STEPS = 200  # enough for some seconds, in which clock and power settle
SYNTHETIC = ["--device=cuda", "--use-synthetic-data"]


class Watch:
    """with Watch() as watch: then watch.peak, the most device memory in use meanwhile, in MiB above what was in use before, and
    watch.words: the median clock, the most power, and the reasons that held the clock down. One nvidia-smi for all of it, so
    that no process is started while times are taken."""
    ASKED = "memory.used,clocks.sm,power.draw,clocks_throttle_reasons.active"

    def __enter__(self):
        base = machine.answer(["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]).split()
        self.base = int(base[0]) if base and base[0].isdigit() else 0
        self.lines = tempfile.TemporaryFile("w+")
        try:
            self.process = machine.start(["nvidia-smi", f"--query-gpu={self.ASKED}", "--format=csv,noheader,nounits", "-lms", 500], stdout=self.lines,
                                         stderr=subprocess.DEVNULL)
        except OSError:
            self.process = None
        return self

    def __exit__(self, *_):
        if self.process:
            machine.stop(self.process)
        self.lines.seek(0)
        rows = [cells for cells in (line.strip().split(", ") for line in self.lines) if len(cells) == 4 and cells[0].isdigit()]
        numbers = lambda i: [float(row[i]) for row in rows if row[i].replace(".", "", 1).isdigit()] or [0]
        self.peak = max(0, round(max(numbers(0))) - self.base)
        # these two mean no reason, and idle
        reasons = sorted({row[3] for row in rows} - {"0x0000000000000000", "0x0000000000000001"})
        self.words = f"{statistics.median(numbers(1)):.0f} MHz, at most {max(numbers(2)):.0f} W, held down by {' '.join(reasons) or 'nothing'}"


def ours(place, name, end):
    """Runs a program of ampcc. Returns images per second (the median of all windows but the first),
    peak MiB, clock and power. A few batches of images serve all steps, because drawing new ones
    for each step took longer than the steps."""
    folder = place.work / f"bench_{name}"
    shutil.rmtree(folder, ignore_errors=True)
    with Watch() as watch:
        machine.run([place.program(name), *SYNTHETIC, f"--max-train-steps={STEPS}", "--log-every=10", f"--synthetic-examples={8 * machine.BATCH}",
                     "--train-epochs=1000", "--epochs-between-evals=1000", "-q", f"--model-dir={folder}"], end)
    events = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    return statistics.median([e["images_per_second"] for e in events if e["event"] == "train"][1:]), watch.peak, watch.words


def torch(mode, dtype, end):
    """Runs torch_resnet50.py. Returns images per second, peak MiB, clock and power, and its output."""
    with Watch() as watch:
        done = machine.run([sys.executable, pathlib.Path(__file__).parent / "torch_resnet50.py", mode, dtype.replace("tf32", "fp32"), machine.BATCH, STEPS], end)
    words = json.loads(done.stdout.splitlines()[-1])
    return words["images_per_second"], watch.peak, watch.words, words


# The most seconds of each kind of measurement. PLAN is their order: the most telling first, as
# many as there is time for, and torch.compile, of which one did not end within 120 s, last.
LIMITS = {"ampcc": 40, "eager": 50, "graph": 50, "compile": 120}
TYPES = ("fp16", "bf16", "tf32")
TURN = [(dtype, mode) for dtype in TYPES for mode in ("ampcc", "eager", "graph")]
PLAN = [*TURN, *TURN, *((dtype, "compile") for dtype in TYPES)]


def throughput_rows(rates, memory, clocks):
    rows = [["precision", "program", "images/s, each round", "ours / this, by medians", "peak MiB", "clock, power, why not faster (last round)"]]
    for dtype, mode in sorted(rates, key=lambda key: (TYPES.index(key[0]), list(LIMITS).index(key[1]))):
        own, this = rates.get((dtype, "ampcc")), rates[dtype, mode]
        ratio = f"{statistics.median(own) / statistics.median(this):.3f}" if own else "-"
        rows.append([dtype, mode, " ".join(f"{r:.0f}" for r in this), ratio, memory[dtype, mode], clocks[dtype, mode]])
    return rows


def throughput(place, end, found):
    rates, memory, clocks, tensors, failed = {}, {}, {}, {}, {}
    found.update({"batch": machine.BATCH, "steps": STEPS, "PyTorch": "did not run"})
    for key in PLAN:
        dtype, mode = key
        now = time.monotonic()
        if key in failed or end - now < 15:
            continue
        until = min(end, now + LIMITS[mode])
        try:
            if mode == "ampcc":
                rate, peak, clock = ours(place, f"resnet50_{dtype}", until)
            else:
                rate, peak, clock, words = torch(mode, dtype, until)
                found["PyTorch"] = words["torch"]
                tensors[f"{dtype} {mode}"] = words["peak_allocated_mib"]
        except Exception as error:  # the other cases go on
            failed[key] = (str(error).strip() or type(error).__name__).splitlines()[-1]
            place.detail(" ".join(key), str(error))
            continue
        rates.setdefault(key, []).append(rate)
        memory[key] = max(peak, memory.get(key, 0))
        clocks[key] = clock
        found["rows"] = throughput_rows(rates, memory, clocks)
    found["MiB of PyTorch's tensors alone, at the peak"] = ", ".join(f"{name} {mib}" for name, mib in tensors.items()) or "-"
    left_out = [" ".join(key) for key in PLAN if key not in rates and key not in failed]
    if left_out:
        found["no time for"] = ", ".join(dict.fromkeys(left_out))
    for error in dict.fromkeys(failed.values()):
        found[f"did not run: {', '.join(' '.join(key) for key in failed if failed[key] == error)}"] = error
    if not any(mode == "ampcc" for _, mode in rates):
        raise AssertionError("none of our programs ran")


def turns(place, names, rates, memory, end):
    for _ in range(ROUNDS):
        for name in names:
            rate, memory[name], _ = ours(place, f"resnet50_{name}", end)
            rates.setdefault(name, []).append(rate)


def variants(place, end, found):
    """Times ResNet-50 in fp16 as compiled, with the fused forms of --fuse-level=3, with little memory,
    and with the plans that --tune found fastest; in turns."""
    rates, memory, db = {}, {}, place.out / "tuning_fp16.json"
    try:
        turns(place, ("fp16", "level3", "small"), rates, memory, end)
        began = time.monotonic()
        done = machine.run([place.program("resnet50_fp16"), "--device=cuda", f"--tune={db}"], end)
        found["seconds to tune"] = round(time.monotonic() - began)
        found["tuning"] = (done.stdout.strip().splitlines() or ["it said nothing"])[-1]
        place.detail("tune", done.stdout)
        machine.compile_program(place, "resnet50_tuned", *machine.PROGRAMS["resnet50_fp16"], end, f"--tuning-db={db}")
        turns(place, ("fp16", "tuned"), rates, memory, end)
    finally:
        found["rows"] = [["program", "images/s, each round", "peak MiB"]]
        found["rows"] += [[name, " ".join(f"{r:.0f}" for r in rate), memory[name]] for name, rate in rates.items()]


def first_step(command, end):
    """The seconds from the start of a program to the progress line of step 1."""
    began, text = time.monotonic(), []
    process = machine.start(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    guard = threading.Timer(max(end - began, 1), machine.stop, [process])
    guard.start()
    seconds = None
    for line in process.stdout:
        text.append(line)
        if seconds is None and re.search(r"step 1\b", line):
            seconds = time.monotonic() - began
    process.wait()
    guard.cancel()
    if seconds is None:
        raise RuntimeError(f"no line of step 1: status {process.returncode}: {''.join(text)[-300:]}")
    return seconds


def start(place, end, found):
    """Measures the time from the start of programs to their first progress line, with
    --log-every=1."""
    rows = found["rows"] = [["program", "seconds from exec to the end of the first step"]]
    for name in ("resnet50_fp16", "cifar_fp16"):
        command = [place.program(name), *SYNTHETIC, "--max-train-steps=2", "--synthetic-examples=512", "--log-every=1", "--model-dir="]
        rows.append([name, " ".join(f"{first_step(command, end):.2f}" for _ in range(3))])


def profile(place, name, steps, end):
    """Milliseconds of all runs of each kernel, and its layer: {kernel: (ms, layer)}."""
    done = machine.run([place.program(name), *SYNTHETIC, f"--max-train-steps={steps}", "--synthetic-examples=512", "--train-epochs=100", "--skip-eval",
                        "--profile", "--model-dir="], end)
    text = done.stdout + done.stderr
    place.detail(f"profile {name}, {steps} steps", text)
    lines = text[text.index("@train:"):].split("\n\n")[0].splitlines()[1:]
    found = (re.fullmatch(r".*% +([0-9.]+) ms +(\S+) *(.*)", line).groups() for line in lines)
    return {kernel: (steps * float(ms), layer) for ms, kernel, layer in found}


def kernels(place, end, found):
    """Lists the slowest kernels, measured by CUDA events (--profile runs kernel by kernel). The times of a run of few steps are
    taken off those of a longer one, as the driver loads the code of a kernel when that runs first, which takes up to 60 ms."""
    rows = found["rows"] = [["program", "ms a step", "kernel", "layer"]]
    few, many = 2, 12
    for name in machine.wanted(("resnet50_fp16", "resnet50_bf16", "resnet50_tf32", "cifar_fp32", "cifar_fp16")):
        first, all_of = profile(place, name, few, end), profile(place, name, many, end)
        each = {kernel: (ms - first[kernel][0]) / (many - few) for kernel, (ms, _) in all_of.items()}
        rows.append([name, f"{sum(each.values()):.3f}", "all", ""])
        for kernel in sorted(each, key=each.get, reverse=True)[:12]:
            rows.append([name, f"{each[kernel]:.3f}", kernel, all_of[kernel][1]])
