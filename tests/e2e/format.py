#!/usr/bin/env python3
"""Tests that all C that git tracks is formatted as clang-format 14 does it with .clang-format: format.py ROOT

Other versions format otherwise, so the test is skipped where there is no version 14."""
import shutil
import subprocess
import sys


def found():
    """The path of clang-format 14, which has two possible names."""
    for name in ["clang-format-14", "clang-format"]:
        if shutil.which(name):
            version = subprocess.run([name, "--version"], check=True, capture_output=True, text=True).stdout
            if "version 14." in version:
                return name
    return None


root = sys.argv[1]
formatter = found()
if not formatter:
    print("skipped: no clang-format 14 here")
    sys.exit(77)
try:
    names = subprocess.run(["git", "-C", root, "ls-files", "-z", "*.c", "*.h"], check=True, capture_output=True,
                           text=True).stdout.split("\0")[:-1]
except (OSError, subprocess.CalledProcessError):
    print("skipped: %s is no checkout of git" % root)
    sys.exit(77)
run = subprocess.run([formatter, "--dry-run", "-Werror"] + names, cwd=root, capture_output=True, text=True)
print("\n".join(line for line in run.stderr.split("\n") if "error:" in line))
print("%d files" % len(names))
sys.exit(1 if run.returncode or not names else 0)
