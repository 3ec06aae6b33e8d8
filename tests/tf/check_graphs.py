#!/usr/bin/env python3
"""Compares what ampcc-tf makes of the graphs of TensorFlow's Python tests with graphs.txt: check_graphs.py AMPCC_TF"""
import json, pathlib, re, subprocess, sys

import cases

HERE = pathlib.Path(__file__).resolve().parent
FETCHES = "out0", "out1", "out2"


def report(ampcc_tf, name, run):
    version, mode, low = cases.RUNS[run]
    file = HERE / "graphs" / f"{name}.pb"
    fetch = [f for f in FETCHES if f"\n\x04{f}".encode() in file.read_bytes()]
    flags = [f"--amp-compat=tf:{version}", f"--amp-mode={mode}", f"--dtype={'bf16' if low == 'bf16' else 'fp16'}",
             "--tf-amp-report=json", "--amp-min-graph-nodes=-1", "--fetch=" + ",".join(fetch)]
    done = subprocess.run([ampcc_tf, file, *flags], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), low


def check(ampcc_tf, name, run, counts, words):
    got, low = report(ampcc_tf, name, run)
    bad = [word for word in words if (word.lstrip("-") in got["converted"]) == (word[0] == "-")]
    found = tuple(sum(cast["to"] == to for cast in got["casts"]) for to in (low, "f32"))
    if counts and found != counts:
        bad.append(f"{found} casts, not {counts}")
    return bad


def main(ampcc_tf):
    failed = 0
    for line in open(HERE / "graphs.txt"):
        if not line.strip() or line[0] == "#":
            continue
        name, runs, counts, words = re.fullmatch(r"(\S+) ([^:]*): (?:casts (\d+ \d+)  )?(.*)\n", line).groups()
        counts = counts and tuple(map(int, counts.split()))
        for run in runs.split():
            if bad := check(ampcc_tf, name, run, counts, words.split()):
                failed += 1
                print(f"FAIL {name}, run {run}: {bad}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
