"""Runs commands in interleaved rounds: waits for an idle machine, runs them in turn, prints the
table. With TURNS=n they take turns after a few steps instead, n times (turns.py)."""
import datetime, functools, os, pathlib, re, statistics, subprocess, time

import turns

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("BUILD", ROOT / "build"))
IDLE_SHARE = 0.08  # of one processor: the machine counts as idle if other processes use less
PATIENCE = float(os.environ.get("PATIENCE", "60"))  # seconds to wait for an idle machine
NOISE = 0.3  # processors: a run during which other processes used more is repeated


def heading(what, *more):
    """What a result file begins with: the script, the day, the commit, the CPU."""
    commit = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty"], capture_output=True, text=True).stdout.strip()
    cpu = re.search(r"model name\s*: (.*)", open("/proc/cpuinfo").read())
    return "; ".join([f"tests/bench/{what}, {datetime.date.today()}, at {commit or 'no commit'}",
                     f"{os.cpu_count()} processors of {cpu[1] if cpu else os.uname().machine}", *more])


def busy_jiffies():
    fields = [int(v) for v in open("/proc/stat").readline().split()[1:9]]
    return sum(fields) - fields[3] - fields[4]  # all fields but idle and iowait


@functools.cache
def built(name):
    """A program of this folder that is built only when it is asked for."""
    subprocess.run(["ninja", "-C", BUILD, f"tests/bench/{name}"], stdout=subprocess.DEVNULL, check=True)
    return BUILD / "tests/bench" / name


def cache_rate():
    """Says at which rate a thread reads what another one wrote (cache_to_cache.c); nothing on one processor."""
    rate = subprocess.run([built("cache_to_cache")], capture_output=True, text=True, check=True).stdout.strip()
    return f"; a thread reads what another one wrote at {rate} GB/s" if rate else ""


def wait_until_idle():
    """Waits for a second in which the machine is idle; gives up after PATIENCE seconds."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        before = busy_jiffies()
        time.sleep(1)
        if (busy_jiffies() - before) / os.sysconf("SC_CLK_TCK") < IDLE_SHARE:
            return True
    return False


def run(command, env=None, waits=True):
    """Runs a command and returns (stdout, peak MiB, processors that other processes used
    meanwhile). Exits if it fails."""
    if waits:
        wait_until_idle()
    before, start = busy_jiffies(), time.monotonic()
    with subprocess.Popen([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env={**os.environ, **(env or {})}) as process:
        out = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    wall = time.monotonic() - start
    mine = usage.ru_utime + usage.ru_stime
    others = max(0.0, (busy_jiffies() - before) / os.sysconf("SC_CLK_TCK") - mine) / wall
    if process.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}: exit {process.returncode}\n{out}")
    return out, usage.ru_maxrss / 1024, others


class Contestant:
    """A command, and a function that reads the milliseconds of a step from its output; `live` starts it as a turns.Live, where
    it can take turns."""

    def __init__(self, name, command, read, env=None, live=None):
        self.name, self.command, self.read, self.env, self.live = name, command, read, env, live
        self.ms, self.mib = [], []

    def play(self):
        for attempt in range(3):
            out, mib, others = run(self.command, self.env)
            if others <= NOISE:
                break
            print(f"  {self.name:24} done again: others used {others:.2f} cpu", flush=True)
        self.ms.append(self.read(out))
        self.mib.append(mib)
        print(f"  {self.name:24} {self.ms[-1]:9.1f} ms  {mib:7.0f} MiB  others used {others:.2f} cpu", flush=True)


def read_regex(pattern):
    return lambda out: float(re.search(pattern, out).group(1))


def chosen(contestants):
    """The contestants whose names match the regular expression in ONLY; all if it is not set."""
    return [c for c in contestants if re.search(os.environ.get("ONLY", ""), c.name)]


def play_rounds(contestants, n_rounds):
    if turns.TURNS:
        print(f"{turns.TURNS} turns{cache_rate()}", flush=True)
        turns.play(contestants)
        print(f"the end of these turns{cache_rate()}")
        return
    for r in range(n_rounds):
        print(f"round {r + 1} of {n_rounds}{cache_rate()}")
        turn = r % len(contestants)
        for c in contestants[turn:] + contestants[:turn]:
            c.play()


def table(contestants, base, images):
    """Prints the speed of each contestant relative to `base`: above 1 is faster."""
    print(f"\n{'':24} {'ms/step':>9} {'img/s':>8} {'MiB':>6}  speed / {base.name}: median [{turns.RANGE}]")
    for c in contestants:
        ratios = [b / m for b, m in zip(base.ms, c.ms)]
        ms, (least, most) = statistics.median(c.ms), turns.spread(ratios)
        print(f"{c.name:24} {ms:9.1f} {images / ms * 1e3:8.2f} {max(c.mib):6.0f}  "
              f"{statistics.median(ratios):.3f} [{least:.3f}..{most:.3f}]")


def ratio(measured, of, to):
    """Median [min..max] over rounds of one figure divided by another of the same round."""
    ratios = [m[of] / m[to] for m in measured]
    return f"{statistics.median(ratios):.2f} [{min(ratios):.2f}..{max(ratios):.2f}]"
