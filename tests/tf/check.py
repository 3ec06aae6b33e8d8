#!/usr/bin/env python3
"""Compares ampcc-tf's report on each case with what the case expects: check.py AMPCC_TF [--short] FILE.cases..

cases.py describes the form of the cases. With --short only the first run of each `want` is tested."""
import json, re, subprocess, sys, tempfile

import cases


def flags_of(case, run):
    version, mode, low = cases.RUNS[run]
    s = case.settings
    arch = s["arch"] if s["gpu"] == "1" else "none"
    flags = ["--tf-amp-report=json", f"--amp-compat=tf:{version}", f"--amp-mode={mode}", "--fetch=" + ",".join(case.fetches()),
             f"--dtype={'bf16' if low == 'bf16' else 'fp16'}", f"--amp-level={s['level']}", f"--amp-simulate-gpu={s['simulate']}",
             f"--amp-ignore-performance={s['ignore_performance']}", f"--amp-emulate-fp16={s['emulate']}",
             f"--amp-min-graph-nodes={s['min_nodes']}", f"--cuda-version={s['cuda']}", f"--cudnn-version={s['cudnn']}"]
    if mode == "cuda":
        flags.append(f"--gpu-arch={arch}")
    return flags + [f"--amp-{name}list-{'add' if add else 'remove'}={ops}" for name, add, ops in case.edits]


def numbers_off(casts):
    """In emulation several casts of one kind come from one port, and it is open which gets which
    number; so the numbers are removed."""
    off = lambda text: re.sub(r"-\d+-AutoMixed", "-k-AutoMixed", text)
    return sorted(off(f"{c['name']}: {c['src']} {c['to']} {sorted(map(off, c['consumers']))}") for c in casts)


def only(a, b):
    """The items of a list or dict that another one does not have."""
    parts = lambda x: x.items() if isinstance(x, dict) else x
    return [part for part in parts(a) if part not in parts(b)]


def compare(run, want, got):
    """The differences between two records, as lines."""
    casts = [cast._asdict() for cast in sorted(want.casts)]
    have = sorted(got["casts"], key=lambda cast: cast["name"])
    if cases.RUNS[run][1] == "cpu":
        casts, have = numbers_off(casts), numbers_off(have)
    pairs = [("converted", want.converted, got["converted"]), ("renamed", want.renamed, got["renamed"]),
             ("casts", casts, have)]
    lines = [f"{name}:\n    missing {only(a, b)}\n    too much {only(b, a)}"
             for name, a, b in pairs if a != b]
    if want.log != got["log"] and not (want.failed and want.log in got["log"]):
        lines.append(f"log:\n    expected {want.log}\n    found    {got['log']}")
    return lines


def check(ampcc_tf, case, run, want):
    with tempfile.NamedTemporaryFile("w", suffix=".pbtxt") as file:
        file.write(cases.graph_text(case))
        file.flush()
        got = subprocess.run([ampcc_tf, file.name, *flags_of(case, run)], capture_output=True, text=True, timeout=60)
    if want.rejected:
        bad = got.returncode not in (1, 2) or want.rejected not in got.stderr
        return [f"expected to be rejected with: {want.rejected}\n{got.stderr}"] if bad else []
    if got.returncode:
        return [f"exit status {got.returncode}: {got.stderr}"]
    lines = compare(run, want, json.loads(got.stdout))
    if want.failed not in got.stderr or bool(want.failed) != ("graph optimizer FAILED" in got.stderr):
        lines.append(f"expected to fail with: {want.failed}\n{got.stderr}")
    return lines


def main(ampcc_tf, *args):
    failed = total = 0
    for path in args:
        for case in cases.read(path) if path != "--short" else []:
            for want in case.wants if "--short" in args else []:
                del want["runs"][1:]
            for run, want in cases.runs(case):
                total += 1
                if bad := check(ampcc_tf, case, run, want):
                    failed += 1
                    print(f"FAIL {case.place}: {case.name}, run {run}:", *bad, sep="\n  ")
    print(f"{total - failed} of {total} runs as TensorFlow")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
