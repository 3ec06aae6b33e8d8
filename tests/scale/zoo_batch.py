#!/usr/bin/env python3
"""Every model of the zoo in every precision for every target in one batch, by hand: zoo_batch.py BUILD FOLDER [options]

1. `ampcc --batch` makes all programs with an empty cache.
2. The same once more into another folder, from that cache: the same bytes.
3. The same in that folder, where all is there already.
4. 40 of them with a cache of their own, killed (SIGKILL) at 10 random moments and continued: the same bytes.

Prints a table of processor time (user and system, of all processes), wall time, memory (the largest process, and the sum over all
processes at one time, PSS, sampled once a second) and sizes; status 1 if any file differs or a report names a failure. Some two hours
of one processor. FOLDER must be empty or not there; it keeps the reports, JUnit and JSON, and the list.

  --targets=A,B   default cpu,cuda:a100,cuda:h200,cuda:l4
  --dtypes=A,B    default fp32,bf16,fp16
  --share=N       every Nth model only
  --minutes=N     ends the first batch after so long, and goes on with the programs that are made by then
  --jobs=N        default 2"""
import argparse, hashlib, json, os, pathlib, random, shutil, signal, subprocess, sys, threading, time
import xml.etree.ElementTree as ET

KILLS, FEW = 10, 40


def arguments():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("build")
    parser.add_argument("folder")
    parser.add_argument("--targets", default="cpu,cuda:a100,cuda:h200,cuda:l4")
    parser.add_argument("--dtypes", default="fp32,bf16,fp16")
    parser.add_argument("--share", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--jobs", type=int, default=2)
    return parser.parse_args()


def memory_of_session(session):
    """The sum of the proportional set sizes of its processes, in bytes, and how many there are."""
    total, count = 0, 0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as file:
                if int(file.read().rsplit(")", 1)[1].split()[3]) != session:
                    continue
            with open(f"/proc/{pid}/smaps_rollup") as file:
                total += sum(int(line.split()[1]) << 10 for line in file if line.startswith("Pss:"))
                count += 1
        except (OSError, ProcessLookupError):
            pass
    return total, count


class Batch:
    """A run of ampcc --batch to its end, or to a signal after some seconds."""

    def __init__(self, options, lines, out, cache, *more, seconds=float("inf"), number=signal.SIGTERM):
        pathlib.Path("list.txt").write_text("".join(line + "\n" for line in lines))
        command = [os.path.join(options.build, "frontend/ampcc"), "--batch=list.txt", f"--out-dir={out}", f"-j{options.jobs}",
                   f"--cache-dir={cache}", "--cache-size=40GB", *more]
        began = time.time()
        with open("batch.log", "a") as log:
            child = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        self.peak_sum, self.peak_count, self.done = 0, 0, threading.Event()
        sampler = threading.Thread(target=self.sample, args=(child.pid,))
        sampler.start()
        timer = threading.Timer(min(seconds, threading.TIMEOUT_MAX), child.send_signal, [number])
        timer.start()
        _, status, usage = os.wait4(child.pid, 0)
        timer.cancel()
        self.done.set()
        sampler.join()
        self.status = child.returncode = os.waitstatus_to_exitcode(status)
        self.wall, self.user, self.system, self.peak = time.time() - began, usage.ru_utime, usage.ru_stime, usage.ru_maxrss << 10

    def sample(self, session):
        while not self.done.wait(1):
            total, count = memory_of_session(session)
            self.peak_sum, self.peak_count = max(self.peak_sum, total), max(self.peak_count, count)

    def row(self, what):
        return (f"{what:<12} {self.wall:8.0f} {self.user + self.system:10.0f} {self.user:8.0f} {self.system:8.0f} {self.peak / 2**20:10.0f}"
                f" {self.peak_sum / 2**20:10.0f} {self.peak_count:6}")


def programs(folder):
    """The hash of each: all of them are too large for memory."""
    return {path.name: hashlib.sha256(path.read_bytes()).digest() for path in pathlib.Path(folder).iterdir() if path.is_file()}


def kill_and_continue(options, lines, wanted):
    """How often the batch was killed, and whether it made the same files in the end."""
    rng, kills, whole = random.Random(15), 0, Batch(options, lines, "few", "few.cache").wall
    shutil.rmtree("few")
    shutil.rmtree("few.cache")
    for _ in range(KILLS):
        stopped = Batch(options, lines, "few", "few.cache", seconds=rng.uniform(0, 2 * whole / KILLS), number=signal.SIGKILL)
        kills += stopped.status == -signal.SIGKILL
        for name, digest in programs("few").items() if os.path.isdir("few") else ():
            if digest != wanted[name]:
                sys.exit(f"{name} is there after a kill, and differs")
    last = Batch(options, lines, "few", "few.cache")
    few = programs("few")
    left = [name for name in os.listdir("few/.ampcc-batch") if not name.endswith((".log", ".json", "lock"))]
    return kills, last.status == 0 and few == {name: wanted[name] for name in few} and not left, len(few)


def sizes(report):
    """A row of the table for each target and precision."""
    groups = {}
    for program in report["programs"]:
        if program["result"] in ("made", "unchanged"):
            groups.setdefault((program["parts"][0]["target"], program["dtype"]), []).append(program)
    print(f"\n{'target':<12} {'type':<5} programs   MB in all   MB smallest, largest   kernels   casts")
    for (target, dtype), made in groups.items():
        size = [program["program_bytes"] / 1e6 for program in made]
        parts = [program["parts"][0] for program in made]
        print(f"{target:<12} {dtype:<5} {len(made):8} {sum(size):11.0f} {min(size):12.2f} {max(size):9.2f} "
              f"{sum(part['kernels'] for part in parts):9} {sum(part['casts'] for part in parts):7}")


def main():
    options = arguments()
    options.build = os.path.abspath(options.build)
    os.makedirs(options.folder, exist_ok=True)
    os.chdir(options.folder)
    if os.listdir("."):
        sys.exit(f"{options.folder} is not empty")
    subprocess.run([os.path.join(options.build, "models/ampcc-zoo"), "--all", "--out-dir=zoo"], check=True)
    models = sorted(path.stem for path in pathlib.Path("zoo").iterdir())[::options.share]
    targets, dtypes = options.targets.split(","), options.dtypes.split(",")
    # CPUs first, then GPUs in turn, so that what is made in --minutes has every model for some GPU before any has all of them.
    gpus = [(t, d) for d in dtypes for t in targets if t != "cpu"]
    order = [(m, t, d) for t in targets if t == "cpu" for d in dtypes for m in models]
    order += [(m, *gpus[(i + turn) % len(gpus)]) for turn in range(len(gpus)) for i, m in enumerate(models)]
    lines = [f"zoo/{m}.pb -o {m}.{t.replace(':', '-')}.{d} --target={t} --dtype={d}" for m, t, d in order]

    print(f"zoo_batch.py, {time.strftime('%F')}, {os.cpu_count()} processors, -j{options.jobs}: {len(models)} models x {options.dtypes} x "
          f"{options.targets}: {len(lines)} programs", flush=True)
    first = Batch(options, lines, "first", "cache", "--report=first.json", seconds=options.minutes * 60)
    if first.status == -signal.SIGTERM:
        lines = [line for line in lines if os.path.exists("first/" + line.split()[2])]
        print(f"ended after {first.wall / 60:.0f} minutes, with {len(lines)} programs", flush=True)
        Batch(options, lines, "first", "cache", "--report=first.json")
    print(f"{'run':<12} {'wall s':>8} {'processor':>10} {'user':>8} {'system':>8} {'MiB: one':>10} {'all':>10} {'processes':>6}")
    print(first.row("first"), flush=True)
    second = Batch(options, lines, "second", "cache", "--report=second.json")
    print(second.row("from cache"))
    print(Batch(options, lines, "second", "cache", "--report=second.xml").row("unchanged"))
    print(f"first / from cache: {first.wall / second.wall:.1f} in wall time, "
          f"{(first.user + first.system) / (second.user + second.system):.1f} in processor time", flush=True)
    wanted, again = programs("first"), programs("second")
    report = json.load(open("first.json"))
    cases = ET.parse("second.xml").getroot().findall(".//testcase")
    bad = [program["name"] for program in report["programs"] if program["result"] == "failed"]
    right = wanted == again and len(wanted) == len(lines) == len(cases) and not bad
    print(f"{len(wanted)} programs, {sum(program.get('program_bytes', 0) for program in report['programs']) / 1e6:.0f} MB; the same bytes from the cache: "
          f"{'yes' if wanted == again else 'NO'}; {len(cases)} cases in the JUnit file; failed: {', '.join(bad) or 'none'}", flush=True)
    few = random.Random(2).sample(lines, min(FEW, len(lines)))
    kills, same, count = kill_and_continue(options, few, wanted)
    print(f"{count} programs killed {kills} times at random moments and continued: {'the same files' if same else 'OTHER FILES'}")
    sizes(report)
    for folder in ("second", "few", "few.cache"):
        shutil.rmtree(folder)
    return 0 if right and same else 1


sys.exit(main())
