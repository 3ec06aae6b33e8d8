#!/usr/bin/env python3
"""Tests --batch under GNU make's jobserver, and -j: jobserver.py AMPCC AMPCC_ZOO

The C compiler is a script that sleeps and fails, so that the processes of a batch last long enough to be counted."""
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from common import AMPCC, expect, failed, fails, models

N_PROGRAMS = 5


def children(pid):
    """How many processes of ampcc have this one as parent."""
    n = 0
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            name, rest = open("/proc/%s/stat" % entry).read().split("(", 1)[1].rsplit(")", 1)
            state, parent = rest.split()[:2]
            n += int(parent) == pid and state != "Z" and name in ("ampcc", "exe")  # it runs /proc/self/exe
        except OSError:
            pass
    return n


def batch_of(pid):
    """The process below `pid` that is the batch itself: make is above it."""
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            name, rest = open("/proc/%s/stat" % entry).read().split("(", 1)[1].rsplit(")", 1)
            if int(rest.split()[1]) == pid and name == "ampcc":
                return int(entry)
        except OSError:
            pass
    return None


COMMAND = ["--batch=list.txt", "--out-dir=out", "--target=cpu", "--cache-dir=", "--cc=./slowcc", "-q"]


def most_at_once(what, want, *args, command=None, fds=(), flags=None, stop=False):
    env = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL")}
    if flags:
        env["MAKEFLAGS"] = flags
    child = subprocess.Popen(command or [AMPCC, *COMMAND, *args], env=env, pass_fds=fds, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    pid, most = None if command else child.pid, 0
    while child.poll() is None:
        pid = pid or batch_of(child.pid)
        most = max(most, children(pid) if pid else 0)
        if stop and most == want:
            child.send_signal(signal.SIGTERM)
        time.sleep(0.01)
    err = child.stderr.read().decode()
    expect(what, most == want, most, want, err)
    expect(what + ": all were tried", stop or err.count("slowcc") >= N_PROGRAMS, err)
    return err


def fifo(name, tokens):
    os.mkfifo(name)
    fd = os.open(name, os.O_RDWR | os.O_NONBLOCK)
    os.write(fd, tokens)
    return fd


def drained(fd):
    try:
        return bytes(sorted(os.read(fd, 100)))
    except BlockingIOError:
        return b""


def by_hand():
    most_at_once("-j4", 4, "-j4")
    for tokens, args, want in ((b"abc", ["-j9"], 4), (b"", ["-j9"], 1), (b"abcdef", ["-j2"], 2)):
        fd = fifo("fifo%d" % len(tokens), tokens)
        most_at_once("a FIFO with %d tokens" % len(tokens), want, *args, flags="k --jobserver-auth=fifo:%s/fifo%d" % (os.getcwd(), len(tokens)))
        expect("all tokens are back, as they were", drained(fd) == tokens)
        os.close(fd)
    fd = fifo("stopped", b"xyz")
    most_at_once("stopped", 4, "-j9", flags="--jobserver-auth=fifo:stopped", stop=True)
    expect("tokens are back after a signal", drained(fd) == b"xyz")
    os.close(fd)
    for flag in ("auth", "fds"):
        read, write = os.pipe()
        os.write(write, b"+-")
        most_at_once("a pipe", 3, "-j9", flags="s -j --jobserver-%s=%d,%d" % (flag, read, write), fds=(read, write))
        expect("reading still blocks for make", not fcntl.fcntl(read, fcntl.F_GETFL) & os.O_NONBLOCK)
        expect("both are back", drained(read) == b"+-")
        os.close(read)
        os.close(write)
    err = most_at_once("a pipe that is closed", 1, "-j9", flags="--jobserver-auth=77,78")
    expect("which it says", "the jobserver that MAKEFLAGS names (77,78) is not open" in err, err)
    most_at_once("a jobserver that make has not passed on", 4, "-j4", flags="--jobserver-auth=-2,-2")


def memory():
    """Programs are counted with 512 MiB at the least, and one is always made."""
    for size, want in (("1", 1), ("511MiB", 1), ("1025MiB", 2), ("2GiB", 4)):
        most_at_once("--batch-memory=" + size, want, "-j4", "--batch-memory=" + size)
    fd = fifo("memory", b"abc")
    most_at_once("beside a jobserver", 2, "-j9", "--batch-memory=1GiB", flags="--jobserver-auth=fifo:memory")
    expect("tokens that memory has no use for are left", drained(fd) == b"abc")
    os.close(fd)
    fails(2, "--batch-memory takes SIZE, not `much`", *COMMAND, "--batch-memory=much")


def compilers(what, want, *command, flags=None, fds=()):
    """How many compilers run at a time: each says when it begins and ends."""
    open("log", "w").close()
    env = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL")}
    subprocess.run(command, env={**env, "MAKEFLAGS": flags} if flags else env, pass_fds=fds, stderr=subprocess.DEVNULL)
    now, most = 0, 0
    for line in open("log"):
        now += 1 if line == "begin\n" else -1
        most = max(most, now)
    expect(what + ": compilers at a time", most == want and now == 0, most, want)


def of_compilers():
    """The compilers that one program needs take tokens; those of a batch are counted together."""
    with open("loudcc", "w") as file:
        file.write("#!/bin/sh\necho begin >>log\nsleep 0.3\necho end >>log\nexit 1\n")
    os.chmod("loudcc", 0o755)
    one = [AMPCC, "mlp.pb", "--target=cpu", "--cache-dir=cache", "--cc=./loudcc", "-q", "-o", "one"]  # with a cache, each text is preprocessed first
    for tokens in (b"", b"x", b"xyz"):
        fd = fifo("cc%d" % len(tokens), tokens)
        compilers("a FIFO with %d tokens" % len(tokens), min(4, 1 + len(tokens)), *one, flags="--jobserver-auth=fifo:cc%d" % len(tokens))
        expect("tokens of compilers are back", drained(fd) == tokens)
        os.close(fd)
    read, write = os.pipe()
    os.write(write, b"+")
    compilers("a pipe", 2, *one, flags="-j --jobserver-auth=%d,%d" % (read, write), fds=(read, write))
    expect("the pipe's token is back", os.read(read, 10) == b"+")
    os.close(read)
    os.close(write)
    compilers("a jobserver that is closed", 1, *one, flags="--jobserver-auth=77,78")
    for jobs in (1, 3):
        compilers("a batch -j%d" % jobs, jobs, *[AMPCC, *COMMAND[:-2], "--cc=./loudcc", "-q", "-j%d" % jobs])
    with open("Makefile", "w") as file:
        file.write("all:\n\t+@%s\n" % " ".join(one))
    if shutil.which("make"):
        compilers("make -j2", 2, "make", "-j2")


def by_make():
    """Under make itself, where there is one: the rule has one job of three, and two are left."""
    if not shutil.which("make"):
        return
    with open("Makefile", "w") as file:
        file.write("all:\n\t+@%s %s -j9\n" % (AMPCC, " ".join(COMMAND)))
    most_at_once("make -j3", 3, command=["make", "-j3"])


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        models("mlp")
        with open("list.txt", "w") as file:
            file.write("".join("mlp.pb -o %d\n" % i for i in range(N_PROGRAMS)))
        with open("slowcc", "w") as file:
            file.write("#!/bin/sh\nsleep 0.2\nexit 1\n")
        os.chmod("slowcc", 0o755)
        by_hand()
        by_make()
        memory()
        of_compilers()
        os.chdir("/")
    print("%d failed" % len(failed))
    return 1 if failed else 0


sys.exit(main())
