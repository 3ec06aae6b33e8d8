"""Contestants that are all in memory at once, of which one runs while the others are stopped (SIGSTOP): each in turn makes a few
steps. Neighbours whose load changes within seconds then meet all of them alike, where a run of its own for each contestant takes
longer than such a load lasts. Ratios are taken within a turn, and their range is that of the middle half."""
import os, pathlib, re, signal, statistics, subprocess, time

TURNS = int(os.environ.get("TURNS", "0"))
KEPT_MS = 600  # of the steps that count in a turn, at least one; the first one after a stop does not
RANGE = "quartiles" if TURNS else "min..max"


def spread(ratios):
    """The ends of the range to print: quartiles of the turns, the least and the most of rounds."""
    if not TURNS:
        return min(ratios), max(ratios)
    low, _, high = statistics.quantiles(ratios, n=4) if len(ratios) > 1 else ratios * 3
    return low, high


class Live:
    """A process whose steps can be followed: `ms` makes of a line the milliseconds of a step, or None of any other line. The
    lines are those of a log that the process appends to or, without a log, of its output."""

    def __init__(self, command, ms, log=None):
        self.ms = ms
        if log:
            pathlib.Path(log).write_text("")
        self.process = subprocess.Popen([str(c) for c in command], stdout=subprocess.DEVNULL if log else subprocess.PIPE, text=True)
        self.lines = open(log) if log else self.process.stdout

    def step(self):
        """Waits for the end of a step."""
        line = ""
        while True:
            line += self.lines.readline()
            if line.endswith("\n"):
                ms, line = self.ms(line), ""
                if ms is not None:
                    return ms
            elif self.process.poll() is not None:
                raise SystemExit(f"{self.process.args[0]}: exit {self.process.returncode}")
            else:
                time.sleep(0.001)

    def peak_mib(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s*(\d+) kB", status)[1]) / 1024


def play(contestants):
    """Fills the times of all contestants, one for each turn, and their peak memory."""
    unable = [c.name for c in contestants if not c.live]
    if unable:
        raise SystemExit(f"these cannot take turns: {', '.join(unable)}")
    live = []
    try:
        for c in contestants:
            live.append(c.live())
            for _ in range(3):
                ms = live[-1].step()
            live[-1].kept = max(1, round(KEPT_MS / ms))
            live[-1].process.send_signal(signal.SIGSTOP)
        pairs = list(zip(contestants, live))
        for turn in range(TURNS):
            first = turn % len(pairs)
            for c, a in pairs[first:] + pairs[:first]:
                a.process.send_signal(signal.SIGCONT)
                a.step()
                c.ms.append(statistics.median(a.step() for _ in range(a.kept)))
                a.process.send_signal(signal.SIGSTOP)
        for c, a in pairs:
            c.mib.append(a.peak_mib())
    finally:
        for a in live:
            a.process.kill()
            a.process.wait()
