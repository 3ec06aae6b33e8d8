#!/usr/bin/env python3
"""Tests the import of models: check.py AMPCC FILE.pbtxt imports each part of the file and compares with its directives.

  # RUN: FLAGS     more flags for ampcc (always with --passes=)
  # ERROR: TEXT    the next error line holds TEXT; without any, the import must succeed
  # CHECK: TEXT    the next printed line that holds TEXT comes after the last one found
  # -----          ends a part
"""
import re
import subprocess
import sys


def directives(part, name):
    return re.findall(r"^\s*# %s: (.*)$" % name, part, re.M)


def check_lines(want, lines, what):
    """Looks for each wanted text in a line of its own, in this order; returns the texts that are missing."""
    at = 0
    for text in want:
        while at < len(lines) and text not in lines[at]:
            at += 1
        if at == len(lines):
            return "%s: no line with `%s`" % (what, text)
        at += 1
    return None


def check_part(ampcc, part):
    flags = " ".join(directives(part, "RUN")).split()
    run = subprocess.run([ampcc, "-", "--passes="] + flags, input=part.encode(), capture_output=True)
    out, err = run.stdout.decode(), run.stderr.decode(errors="replace")
    errors = [line for line in err.splitlines() if "error[" in line]
    want = directives(part, "ERROR")
    if run.returncode != (1 if want else 0):
        return "exit status %d" % run.returncode + "\n" + err
    wrong = check_lines(want, errors, "errors") or check_lines(directives(part, "CHECK"), out.splitlines(), "graph")
    if not wrong and len(errors) != len(want):
        wrong = "%d errors, %d expected" % (len(errors), len(want))
    return wrong and wrong + "\n" + err + out


def main():
    ampcc, path = sys.argv[1:]
    failed = 0
    for number, part in enumerate(open(path).read().split("# -----\n"), 1):
        wrong = check_part(ampcc, part)
        if wrong:
            print("%s, part %d: %s" % (path, number, wrong))
            failed += 1
    return 1 if failed else 0


sys.exit(main())
