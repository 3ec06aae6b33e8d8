"""Times on the GPU: ours and PyTorch's, in one run, in turns."""
import json, pathlib, re, shutil, statistics, subprocess, sys, threading, time

import machine

ROUNDS = 2
STEPS = 60


class MemoryWatch(threading.Thread):
    """The most device memory in use while it runs, in MiB, above what was in use before."""

    def __init__(self):
        super().__init__(daemon=True)
        self.base, self.peak, self.stop = self.used(), 0, False

    @staticmethod
    def used():
        return int(subprocess.run(["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"], capture_output=True, text=True).stdout.split()[0])

    def run(self):
        while not self.stop:
            self.peak = max(self.peak, self.used() - self.base)
            time.sleep(.1)


def ours(place, dtype, left):
    """Images per second (median of the windows but the first) and peak MiB."""
    folder = place.work / f"bench_{dtype}"
    shutil.rmtree(folder, ignore_errors=True)
    watch = MemoryWatch()
    watch.start()
    machine.run([place.program(f"resnet50_{dtype}"), "--device=cuda", "--use-synthetic-data", f"--max-train-steps={STEPS}", "--log-every=10",
                 f"--synthetic-examples={STEPS * machine.BATCH}", "-q", f"--model-dir={folder}"], left)
    watch.stop = True
    events = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    return statistics.median(e["images_per_second"] for e in events[1:] if e["event"] == "train"), watch.peak


def torch(mode, dtype, left):
    watch = MemoryWatch()
    watch.start()
    done = machine.run([sys.executable, pathlib.Path(__file__).parent / "torch_resnet50.py", mode, dtype.replace("tf32", "fp32"), machine.BATCH, STEPS], left)
    watch.stop = True
    words = json.loads(done.stdout.splitlines()[-1])
    return words["images_per_second"], watch.peak, words["torch"]


def throughput(place, left):
    end = time.monotonic() + left - 60
    rates, memory, version = {}, {}, ""
    for turn in range(ROUNDS):
        for dtype in ("fp16", "bf16", "tf32"):
            for mode in ("ampcc", "eager", "graph", "compile"):
                spare = end - time.monotonic()
                if spare < 30 or (mode == "compile" and turn):
                    continue
                try:
                    if mode == "ampcc":
                        rate, peak = ours(place, dtype, spare)
                    else:
                        rate, peak, version = torch(mode, dtype, spare)
                except Exception as error:
                    print(f"{mode} {dtype}: {error}", flush=True)
                    continue
                rates.setdefault((dtype, mode), []).append(rate)
                memory[dtype, mode] = max(peak, memory.get((dtype, mode), 0))
    rows = [["precision", "program", "images/s, each round", "ours / this, by medians", "peak MiB"]]
    for (dtype, mode), found in rates.items():
        own = rates.get((dtype, "ampcc"))
        ratio = f"{statistics.median(own) / statistics.median(found):.3f}" if own else "-"
        rows.append([dtype, mode, " ".join(f"{r:.0f}" for r in found), ratio, memory[dtype, mode]])
    return {"rows": rows, "batch": machine.BATCH, "steps": STEPS, "PyTorch": version or "did not run"}


def variants(place, left):
    """fp16 as compiled; with batch norms apart; in little memory; with the plans that were fastest here. In turns."""
    end, db = time.monotonic() + left, place.out / "tuning_fp16.json"
    began = time.monotonic()
    done = machine.run([place.program("resnet50_fp16"), "--device=cuda", f"--tune={db}"], left / 2)
    seconds = time.monotonic() - began
    (place.out / "tune_fp16.txt").write_text(done.stdout)
    machine.compile_program(place, "resnet50_tuned", *machine.PROGRAMS["resnet50_fp16"], end - time.monotonic(), f"--tuning-db={db}")
    rates, memory = {"fp16": [], "level1": [], "small": [], "tuned": []}, {}
    for _ in range(ROUNDS):
        for name, found in rates.items():
            rate, memory[name] = ours(place, name, end - time.monotonic())
            found.append(rate)
    rows = [["program", "images/s, each round", "peak MiB"]]
    rows += [[name, " ".join(f"{r:.0f}" for r in found), memory[name]] for name, found in rates.items()]
    return {"rows": rows, "seconds to tune": round(seconds), "its last line": done.stdout.splitlines()[-1]}


def start(place, left):
    """exec to the first line of progress, with --log-every=1."""
    rows = [["program", "seconds from exec to the end of the first step"]]
    for name in ("resnet50_fp16", "cifar_fp16"):
        found = []
        for _ in range(3):
            began = time.monotonic()
            process = subprocess.Popen([place.program(name), "--device=cuda", "--use-synthetic-data", "--max-train-steps=2", "--synthetic-examples=512", "--log-every=1",
                                        "--model-dir="], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            seconds = next((time.monotonic() - began for line in process.stdout if re.search(r"step 1\b", line)), None)
            process.communicate(timeout=max(left, 1))
            if seconds is None:
                raise RuntimeError(f"{name}: no line of step 1")
            found.append(seconds)
        rows.append([name, " ".join(f"{s:.2f}" for s in found)])
    return {"rows": rows}


def kernels(place, left):
    """The slowest kernels, by CUDA events (--profile runs kernel by kernel)."""
    rows = []
    for dtype in ("fp16", "bf16"):
        done = machine.run([place.program(f"resnet50_{dtype}"), "--device=cuda", "--use-synthetic-data", "--max-train-steps=10", "--synthetic-examples=2560", "--profile",
                            "--model-dir="], left)
        text = done.stdout + done.stderr
        (place.out / f"profile_{dtype}.txt").write_text(text)
        rows.append(f"{dtype}: profile_{dtype}.txt, {len(text.splitlines())} lines")
    return {"tables": "; ".join(rows)}
