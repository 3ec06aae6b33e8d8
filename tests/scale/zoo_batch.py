#!/usr/bin/env python3
"""Every model of the zoo in every precision for every target in one batch, by hand: zoo_batch.py BUILD FOLDER [options]

1. `ampcc --batch` makes all programs with an empty cache.
2. The same once more into another folder, from that cache: the same bytes.
3. The same in that folder, where all is there already.
4. 40 of them with a cache of their own, killed (SIGKILL) at 10 random moments and continued: the same bytes. With --kill-first it is
   the whole first batch that is killed so, and all that it was made of goes on from there.
5. With --anew=N, N of them by a command and an empty cache each: the same bytes.

Prints a table of processor time (user and system, of all processes), wall time, memory (the largest process, and the sum over all
processes at one time, PSS, sampled once a second) and sizes; status 1 if any file differs or a report names a failure. Some two hours
of one processor. FOLDER must be empty or not there; it keeps the reports, JUnit and JSON, the list and the cache (some 8 GB). Of programs
it keeps hashes.

  --targets=A,B   default cpu,cuda:a100,cuda:h200,cuda:l4
  --dtypes=A,B    default fp32,bf16,fp16
  --share=N       every Nth model only
  --minutes=N     ends the first batch after so long, and goes on with the programs that are made by then
  --kill-first    kills the first batch with all of its processes, at 10 random moments spread over the run
  --anew=N        how many to compile anew, each kind of target and type in turn; default 0
  --jobs=N        default 2"""
import argparse, collections, hashlib, json, os, pathlib, random, shutil, signal, subprocess, sys, threading, time
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
    parser.add_argument("--kill-first", action="store_true")
    parser.add_argument("--anew", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    return parser.parse_args()


def stats_of_session(session):
    """What /proc says of each of its processes, behind the name: by their numbers."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as file:
                stat = file.read().rsplit(")", 1)[1].split()
        except (OSError, ProcessLookupError):
            continue
        if int(stat[3]) == session:
            found[pid] = stat
    return found


def memory_of_session(session):
    """The sum of the proportional set sizes of its processes, in bytes, and how many there are."""
    total, count = 0, 0
    for pid in stats_of_session(session):
        try:
            with open(f"/proc/{pid}/smaps_rollup") as file:
                total += sum(int(line.split()[1]) << 10 for line in file if line.startswith("Pss:"))
                count += 1
        except (OSError, ProcessLookupError):
            pass
    return total, count


def seconds_of_session(session):
    """The processor time of its processes and of those that they have waited for, user and system."""
    stats = stats_of_session(session).values()
    return [sum(int(stat[i]) + int(stat[i + 2]) for stat in stats) / os.sysconf("SC_CLK_TCK") for i in (11, 12)]


def kill_session(leader):
    """Kills all of its processes, which are in several groups, and none of which learns of the death of another before its own."""
    for number in (signal.SIGSTOP, signal.SIGKILL):
        stats = stats_of_session(leader)
        while any(stat[0] not in ("T" if number == signal.SIGSTOP else "") + "Z" for stat in stats.values()):
            for pid in stats:
                try:
                    os.kill(int(pid), number)
                except ProcessLookupError:
                    pass
            time.sleep(0.01)
            stats = stats_of_session(leader)


class Batch:
    """A run of ampcc --batch to its end, to a signal after some seconds, or to the death of all of its processes when `doom` says so."""

    def __init__(self, options, lines, out, cache, *more, seconds=float("inf"), number=signal.SIGTERM, doom=None):
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
        killed = [0, 0]
        while doom and os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
            if doom(time.time() - began):
                killed = seconds_of_session(child.pid)
                kill_session(child.pid)
                break
            time.sleep(0.1)
        _, status, usage = os.wait4(child.pid, 0)
        timer.cancel()
        self.done.set()
        sampler.join()
        self.status = child.returncode = os.waitstatus_to_exitcode(status)
        self.wall, self.peak = time.time() - began, usage.ru_maxrss << 10
        self.user, self.system = map(max, (usage.ru_utime, usage.ru_stime), killed)

    def add(self, before):
        """Counts a run that this one went on from."""
        for figure in ("wall", "user", "system"):
            setattr(self, figure, getattr(self, figure) + getattr(before, figure))
        for figure in ("peak", "peak_sum", "peak_count"):
            setattr(self, figure, max(getattr(self, figure), getattr(before, figure)))

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


def first_batch(options, lines):
    """The first batch, which ends by itself or after --minutes, killed on the way or not; the number of kills; what was there at a kill."""
    rng, there, limit = random.Random(time.time()), {}, options.minutes * 60
    moments = sorted(rng.random() for _ in range(KILLS)) if options.kill_first else []
    left, run, kills, delay = moments[:], None, 0, 0

    def doom(seconds):
        nonlocal delay
        past = seconds + (run.wall if run else 0)
        names = os.listdir("first") if os.path.isdir("first") else ()
        made = sum(not name.startswith(".") for name in names)
        if max(made / len(lines), past / limit) < left[0]:
            return False
        delay = delay or seconds + rng.uniform(0.01, 5)
        return seconds >= delay

    while True:
        spent = run.wall if run else 0
        piece = Batch(options, lines, "first", "cache", "--report=first.json", seconds=max(limit - spent, 0.1), doom=doom if left else None)
        if run:
            piece.add(run)
        run, delay = piece, 0
        if run.status != -signal.SIGKILL:
            return run, kills, moments, there
        kills += 1
        left.pop(0)
        now = programs("first") if os.path.isdir("first") else {}
        for name in now.keys() & there.keys():
            if now[name] != there[name]:
                sys.exit(f"{name} has changed after kill {kills}")
        there = now
        print(f"killed after {run.wall:.0f} s with {len(now)} programs", file=sys.stderr, flush=True)


def made_anew(options, lines, wanted):
    """How many programs of a sample, in which every kind has its turn, have other bytes when a command alone makes them."""
    kinds, rng, other = collections.defaultdict(list), random.Random(3), []
    for line in lines:
        kinds[tuple(line.split()[3:])].append(line)
    for each in kinds.values():
        rng.shuffle(each)
    turns = [each[turn] for turn in range(options.anew) for each in kinds.values() if turn < len(each)][: options.anew]
    began = time.time()
    os.mkdir("anew")
    for line in turns:
        model, _, name, *flags = line.split()
        command = [os.path.join(options.build, "frontend/ampcc"), model, "-o", f"anew/{name}", *flags, "--cache-dir=anew/cache", "-q"]
        made = subprocess.run(command, stdout=subprocess.DEVNULL).returncode == 0
        if not made or hashlib.sha256(pathlib.Path("anew", name).read_bytes()).digest() != wanted[name]:
            other.append(name)
        shutil.rmtree("anew")
        os.mkdir("anew")
    os.rmdir("anew")
    print(f"{len(turns)} programs of {len(kinds)} kinds made anew, each by a command and an empty cache: {len(turns) - len(other)} the same bytes; "
          f"other: {', '.join(other) or 'none'} ({time.time() - began:.0f} s)", flush=True)
    return not other


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
    first, kills, moments, there = first_batch(options, lines)
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
    shutil.rmtree("first")
    report = json.load(open("first.json"))
    cases = ET.parse("second.xml").getroot().findall(".//testcase")
    bad = [program["name"] for program in report["programs"] if program["result"] == "failed"]
    right = wanted == again and len(wanted) == len(lines) == len(cases) and not bad
    print(f"{len(wanted)} programs, {sum(program.get('program_bytes', 0) for program in report['programs']) / 1e6:.0f} MB; the same bytes from the cache: "
          f"{'yes' if wanted == again else 'NO'}; {len(cases)} cases in the JUnit file; failed: {', '.join(bad) or 'none'}", flush=True)
    shutil.rmtree("second")
    same = True
    if options.kill_first:
        shares = ", ".join(f"{moment:.2f}" for moment in moments)
        same = all(wanted[name] == digest for name, digest in there.items())
        print(f"the first batch was killed {kills} times, near {shares} of its way, and continued: {'the same files' if same else 'OTHER FILES'}", flush=True)
    else:
        few = random.Random(2).sample(lines, min(FEW, len(lines)))
        kills, same, count = kill_and_continue(options, few, wanted)
        print(f"{count} programs killed {kills} times at random moments and continued: {'the same files' if same else 'OTHER FILES'}")
        for folder in ("few", "few.cache"):
            shutil.rmtree(folder)
    if options.anew:
        same = made_anew(options, lines, wanted) and same
    sizes(report)
    return 0 if right and same and kills == KILLS else 1


sys.exit(main())
