"""What the tests of command lines share: they run ampcc and ampcc-zoo and count what was not as expected."""
import os
import subprocess
import sys

AMPCC, ZOO = map(os.path.abspath, sys.argv[1:3])
failed = []


def run(*command, stdin=b"", **env):
    """Runs a command; returns its exit status, standard output as bytes and standard error as text."""
    done = subprocess.run(list(command), input=stdin, capture_output=True, env={**os.environ, **env})
    return done.returncode, done.stdout, done.stderr.decode(errors="replace")


def expect(what, condition, *shown):
    if not condition:
        failed.append(what)
        print("FAILED: %s" % what, *shown)


def fails(status, text, *args, **more):
    """ampcc must end with this status and print this text."""
    got = run(AMPCC, *args, **more)
    expect("%s: status %d and `%s`" % (" ".join(args), status, text), got[0] == status and text in got[2], got)
