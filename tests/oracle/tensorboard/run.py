"""Tests the event files of a run against what TensorBoard's own reader found in such a run: run.py TOY EVENTS_LIST

Runs TOY with --tensorboard, reads its event files with our own reader, which tests the checksums, and compares with expect.txt
(make.py). Steps, tags, images and numbers of buckets must be equal; other numbers may differ by rounding, as compilers do."""
import glob
import math
import os
import subprocess
import sys
import tempfile

FLAGS = ["--train-epochs=2", "--tensorboard", "--summary-every=20", "--grad-histogram-every=25", "--quiet"]


def same(line, want):
    words, others = line.split(), want.split()
    if len(words) != len(others) or words[:3] != others[:3]:
        return False
    exact = words[0] == "image"
    for a, b in zip(words[3:], others[3:]):
        if exact and a != b:
            return False
        for x, y in zip(a.split(":"), b.split(":")) if not exact else ():
            if not math.isclose(float(x), float(y), rel_tol=1e-4, abs_tol=1e-5):
                return False
    return True


def listing(events_list, directory):
    (path,) = glob.glob(f"{directory}/events.out.tfevents.*")
    lines = subprocess.run([events_list, path], check=True, capture_output=True, text=True).stdout.splitlines()
    assert lines[0] == "version brain.Event:2", lines[0]
    assert ("start 0" in lines) == (not directory.endswith("eval"))
    assert sum("sec" in line for line in lines) == (0 if directory.endswith("eval") else 4), lines
    values = [line for line in lines[1:] if not line.startswith("start") and "sec" not in line]
    return sorted(values, key=lambda line: (line.split()[1], int(line.split()[2])))


def main():
    toy, events_list = sys.argv[1:]
    with open(os.path.join(os.path.dirname(__file__), "expect.txt"), encoding="utf-8") as file:
        parts = file.read().split("folder ")[1:]
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run([toy, "--write-data", scratch], check=True)
        subprocess.run([toy, f"--data-dir={scratch}", f"--model-dir={scratch}/m", *FLAGS], check=True)
        for part in parts:
            name, *want = part.splitlines()
            want.sort(key=lambda line: (line.split()[1], int(line.split()[2])))
            got = listing(events_list, f"{scratch}/{name}")
            if len(got) != len(want) or not all(map(same, got, want)):
                sys.exit("\n".join([f"{name}: got", *got, "wanted", *want]))


if __name__ == "__main__":
    main()
