"""What check.py and precision.py share: both programs, what ran, what was not as expected."""
import os
import subprocess
import sys

AMPCC, ZOO = map(os.path.abspath, sys.argv[1:3])
failed = []


def run(*command, stdin=b"", **env):
    """Exit status, standard output in bytes, standard error as text."""
    done = subprocess.run(list(command), input=stdin, capture_output=True, env={**os.environ, **env})
    return done.returncode, done.stdout, done.stderr.decode(errors="replace")


def expect(what, condition, *shown):
    if not condition:
        failed.append(what)
        print("FAILED: %s" % what, *shown)


def fails(status, text, *args, **more):
    """ampcc ends with this status and says the text."""
    got = run(AMPCC, *args, **more)
    expect("%s: status %d and `%s`" % (" ".join(args), status, text), got[0] == status and text in got[2], got)
