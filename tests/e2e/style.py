#!/usr/bin/env python3
"""Finds faults of style that clang-format does not: style.py ROOT

These are tabs, trailing blanks, a missing newline at the end, a TODO without a name, lines of C past 100 columns (clang-format
leaves comments alone, so that figures stay), and files that are too long, among those that git tracks."""
import os
import re
import subprocess
import sys

MOST_LINES = 600
MOST_COLUMNS = 100
root = sys.argv[1]
try:
    names = subprocess.run(["git", "-C", root, "ls-files"], check=True, capture_output=True, text=True).stdout.split("\n")
except (OSError, subprocess.CalledProcessError):
    sys.exit(77)
wrong = 0
for name in filter(re.compile(r"\.(c|h|def|py|build|md|amp|proto|sh)$|^(check|quickstart|\.ci/run)$").search, names):
    path = os.path.join(root, name)
    if not os.path.isfile(path):
        continue
    text = open(path, encoding="utf-8").read()
    for number, line in enumerate(text.split("\n"), 1):
        if "\t" in line or line != line.rstrip() or re.search(r"\bTODO\b(?! by )", line) and "style.py" not in name:
            print("%s:%d: %r" % (name, number, line))
            wrong += 1
        if len(line) > MOST_COLUMNS and name.endswith((".c", ".h")):
            print("%s:%d: %d columns" % (name, number, len(line)))
            wrong += 1
    if text and not text.endswith("\n"):
        print("%s: no newline at the end" % name)
        wrong += 1
    if name.endswith((".c", ".h")) and text.count("\n") > MOST_LINES:
        print("%s: %d lines" % (name, text.count("\n")))
        wrong += 1
sys.exit(1 if wrong else 0)
