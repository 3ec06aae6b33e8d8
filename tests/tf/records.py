#!/usr/bin/env python3
"""Compares ampcc-tf's report with records of TensorFlow's own pass: records.py AMPCC_TF DATA

DATA/amp-tf holds what the pass did to four training graphs, with three versions and types; the report must be the same text. The
test is skipped (77) where DATA is absent."""
import json
import pathlib
import subprocess
import sys

RUNS = {"A": ("tf:2.15", "fp16"), "B": ("tf:2.21", "fp16"), "bf16": ("tf:2.21", "bf16")}
PARTS = ("log", "converted", "renamed", "casts")


def recorded(text, key):
    """The recorded lines of one key, indented as in the report."""
    block = text.split('\n "%s": {\n' % key)[1].split("\n }")[0].split("\n")
    other = tuple('  "%s":' % name for name in ("tensorflow", "casts_to_low", "casts_to_f32"))
    return [line[1:] for line in block if not line.startswith(other)]


def main(ampcc_tf, data):
    folder, failed = pathlib.Path(data) / "amp-tf", 0
    if not folder.is_dir():
        print("skipped: no", folder)
        return 77
    for file in sorted((folder / "expected").glob("*.json")):
        text = file.read_text()
        record = json.loads(text)
        for key, (compat, dtype) in RUNS.items():
            run = subprocess.run([ampcc_tf, folder / record["graph"], "--tf-amp-report=json", "--quiet",
                                  "--amp-compat=" + compat, "--dtype=" + dtype, "--fetch=" + ",".join(record["fetch"])],
                                 capture_output=True, text=True)
            got, want = run.stdout.split("\n"), recorded(text, key)
            same = run.returncode == 0 and not run.stderr and got == ["{", *want, "}", ""]
            values = run.returncode == 0 and json.loads(run.stdout) == {part: record[key][part] for part in PARTS}
            if not same or not values:
                failed += 1
                first = next((i for i, pair in enumerate(zip(got[1:], want)) if pair[0] != pair[1]), -1)
                print("FAILED:", file.name, key, run.returncode, run.stderr, got[first + 1:first + 3], want[first:first + 2])
    return 1 if failed else 0


sys.exit(main(*sys.argv[1:]))
