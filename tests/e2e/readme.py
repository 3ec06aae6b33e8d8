#!/usr/bin/env python3
"""Tests the examples of READMEs: readme.py BUILD README...

Runs the commands that start with `$ ` in the console blocks of these files and compares what they print with the lines below. A
line `...` stands for any number of lines, and `...` within a line for any text. The commands of a file run one after the
other in one folder, which has tiny.pbtxt, with all tools of the build folder on PATH."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

from sessions import matches, steps


def main():
    build, *readmes = map(os.path.abspath, sys.argv[1:])
    tools = ["frontend", "frontend/tf", "frontend/diff", "models", "runtime/pack"]
    path = os.pathsep.join([os.path.join(build, tool) for tool in tools] + [os.environ["PATH"]])
    tiny = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tiny.pbtxt")
    failed = count = 0
    for readme in readmes:
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(tiny, folder)
            blocks = re.findall(r"```console\n(.*?)```", open(readme).read(), re.S)
            for command, want in (step for block in blocks for step in steps(block)):
                got = subprocess.run(command, shell=True, capture_output=True, text=True, cwd=folder, env={**os.environ, "PATH": path})
                count += 1
                if not matches(want, got.stdout.splitlines()):
                    failed += 1
                    print("%s: $ %s\n%s%s" % (readme, command, got.stdout, got.stderr))
    print("%d sessions, %d differ" % (count, failed))
    return 1 if failed or not count else 0


sys.exit(main())
