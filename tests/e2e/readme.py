#!/usr/bin/env python3
"""Tests the examples of READMEs: readme.py AMPCC README...

Runs the commands that start with `$ ` in the console blocks of these files and compares what they print with the lines below. A
line `...` stands for any number of lines."""
import os
import re
import subprocess
import sys


def matches(want, got):
    """Do the lines `got` match the lines `want`? As the pieces between `...` are in order, taking the first match of each is enough."""
    if not want:
        return not got
    if want[0] == "...":
        return any(matches(want[1:], got[i:]) for i in range(len(got) + 1))
    return bool(got) and want[0] == got[0] and matches(want[1:], got[1:])


def sessions(text):
    for block in re.findall(r"```console\n(.*?)```", text, re.S):
        for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
            command, _, output = part.partition("\n")
            yield command, output.splitlines()


def main():
    ampcc, *readmes = map(os.path.abspath, sys.argv[1:])
    os.chdir(os.path.dirname(os.path.abspath(__file__)))
    path = os.path.dirname(ampcc) + os.pathsep + os.environ["PATH"]
    failed = count = 0
    for readme in readmes:
        for command, want in sessions(open(readme).read()):
            got = subprocess.run(command, shell=True, capture_output=True, text=True, env={**os.environ, "PATH": path})
            count += 1
            if not matches(want, got.stdout.splitlines()):
                failed += 1
                print("%s: $ %s\n%s%s" % (readme, command, got.stdout, got.stderr))
    print("%d sessions, %d differ" % (count, failed))
    return 1 if failed or not count else 0


sys.setrecursionlimit(10000)
sys.exit(main())
