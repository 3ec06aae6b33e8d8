#!/usr/bin/env python3
"""Tests how ampcc and ampcc-zoo write files: files.py AMPCC AMPCC_ZOO

A file is written whole or not at all, replaces nothing but regular files, and has the mode that the umask leaves. Output that
cannot be written is an error."""
import os
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time

from commands import AMPCC, ZOO, expect, failed, fails, run

NO_FILE = "it exists and is no regular file"


def whole_or_not():
    os.mkdir("out")
    fails(3, "cannot write out: " + NO_FILE, "mlp.pb", "--passes=", "-o", "out")
    fails(3, "cannot write nowhere/x", "mlp.pb", "--passes=", "-o", "nowhere/x")
    with open("out/keep.amp", "w") as keep:
        keep.write("old")
    fails(1, "E201", "cut.pb", "--emit=ir", "-o", "out/keep.amp")
    expect("a failed compile leaves the old file", open("out/keep.amp").read() == "old")
    expect("ir to a file", run(AMPCC, "mlp.pb", "--passes=", "-o", "out/keep.amp")[0] == 0)
    expect("the file is what stdout is", open("out/keep.amp", "rb").read() == run(AMPCC, "mlp.pb", "--passes=")[1])
    expect("no temporary file stays", os.listdir("out") == ["keep.amp"], os.listdir("out"))


def writers():
    """Every way to write a file, as (name, command without the file, mode before the umask: 0666 or 0777)."""
    yield "ampcc-zoo", (ZOO, "mlp"), 0o666
    yield "--emit=ir", (AMPCC, "mlp.pb", "--emit=ir"), 0o666
    yield "program", (AMPCC, "mlp.pb", "--target=cpu", "--cpu=native", "-q"), 0o777


def device(name, number):
    """Makes a device file of our own, as a broken program that root runs would replace the machine's; None where that is not allowed."""
    try:
        os.mknod("places/" + name, stat.S_IFCHR | 0o666, os.makedev(1, number))
        open("places/" + name, "wb").close()
        return "places/" + name
    except OSError:
        return None if os.geteuid() == 0 else "/dev/" + name


def places():
    """Of what may already be at the output's path only a regular file is replaced; /dev/null is written to."""
    os.mkdir("places")
    os.mkfifo("places/fifo")
    open("places/file", "w").close()
    os.symlink("file", "places/link")
    os.symlink("nothing", "places/dangling")
    sock = socket.socket(socket.AF_UNIX)
    sock.bind("places/socket")
    null, full = device("null", 3), device("full", 7)
    before = sorted((name, os.lstat("places/" + name).st_ino) for name in os.listdir("places"))
    for what, command, _ in writers():
        for name in ("fifo", "link", "dangling", "socket"):
            status, _, err = run(*command, "-o", "places/" + name)
            expect("%s refuses a %s" % (what, name), status == 3 and NO_FILE in err, status, err)
        if null:
            status, _, err = run(*command, "-o", null)
            expect("%s to /dev/null" % what, status == 0, status, err)
        if full:
            status, _, err = run(*command, "-o", full)
            expect("%s refuses a device" % what, status == 3 and NO_FILE in err, status, err)
    after = sorted((name, os.lstat("places/" + name).st_ino) for name in os.listdir("places"))
    expect("nothing is left behind or replaced", before == after, before, after)
    sock.close()


def modes():
    for what, command, most in writers():
        for mask in (0o022, 0o077, 0o002):
            status, _, err = run("sh", "-c", 'umask %o; exec "$@"' % mask, "sh", *command, "-o", "moded")
            mode = stat.S_IMODE(os.stat("moded").st_mode)
            expect("%s with umask %o" % (what, mask), status == 0 and mode == most & ~mask, oct(mode), err)
            os.unlink("moded")


def printers():
    """Every way to write to standard output."""
    for flag in ("--help", "--version", "--list-passes", "--list-targets"):
        yield AMPCC, flag
    for flag in ("--help", "--list"):
        yield ZOO, flag
    yield ZOO, "mlp"
    yield ZOO, "resnet50", "--text"
    for emit in ("ir", "json", "dot", "c"):
        yield AMPCC, "mlp.pb", "--target=cpu", "--emit=" + emit
    for report in ("memory-plan", "traffic", "precision"):
        yield AMPCC, "mlp.pb", "--target=cpu", "--dtype=bf16", "--emit=ir", "-o", "report.amp", "--print-" + report
    for form in ("", "=json"):
        yield AMPCC, "mlp.pb", "--target=cpu", "--dtype=bf16", "--emit=ir", "-o", "report.amp", "--explain-precision" + form


def full_disk():
    if not os.path.exists("/dev/full"):
        return
    for command in printers():
        for how in (">/dev/full", ">&-"):
            status, _, err = run("sh", "-c", '"$@" ' + how, "sh", *command)
            expect("%s %s" % (" ".join(command), how),
                   status == 3 and err.count("cannot write standard output") == 1 and err.count("\n") == 1, status, err)
    status, _, err = run("sh", "-c", '"$@" >&-', "sh", AMPCC, "mlp.pb", "--emit=ir", "-o", "quiet.amp")
    expect("who prints nothing needs no standard output", status == 0 and not err, status, err)


def dies_with_all(what, command, number):
    """The signal ends the command and every process that it started, and no temporary file stays. Five objects are compiled, at
    least four at a time; a job is two processes."""
    n = 2 * min(5, max(4, os.sysconf("SC_NPROCESSORS_ONLN")))
    os.makedirs("tmp", exist_ok=True)
    with open("slowcc", "w") as script:
        script.write("#!/bin/sh\nsleep 100 & echo $! >> %s/pids; echo $$ >> %s/pids; wait\n" % (os.getcwd(), os.getcwd()))
    os.chmod("slowcc", 0o755)
    open("pids", "w").close()
    ampcc = subprocess.Popen(command, env={**os.environ, "TMPDIR": os.path.abspath("tmp")}, stderr=subprocess.PIPE)
    end = time.time() + 60
    while time.time() < end and open("pids").read().count("\n") < n:
        time.sleep(0.02)
    pids = [int(line) for line in open("pids").read().split()]
    ampcc.send_signal(number)
    err = ampcc.communicate(timeout=30)[1]
    alive = []
    for pid in pids:
        for _ in range(100): # a process that was killed may take a while to end
            try:
                if open("/proc/%d/stat" % pid).read().rsplit(")", 1)[1].split()[0] == "Z":
                    break
            except OSError:
                break
            time.sleep(0.02)
        else:
            alive.append(pid)
    expect("%s: all jobs were under way" % what, len(pids) == n, pids)
    expect("%s ends it, and all that it started" % what, ampcc.returncode == -number and not alive and not err,
           ampcc.returncode, alive, err)
    expect("%s leaves no file" % what, not os.listdir("tmp") and not [f for f in os.listdir(".") if f.startswith("ended")],
           os.listdir("tmp"), os.listdir("."))


def signals():
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)  # a signal that nohup has set to be ignored would stay ignored here
        dies_with_all(number.name, [AMPCC, "mlp.pb", "--target=cpu", "--cc=" + os.path.abspath("slowcc"), "-o", "ended"], number)


def compilers():
    """A C compiler that writes nothing, and one that does not exist."""
    for cc, says in (("true", "`true` reported success but wrote nothing"), ("false", "`false` failed: without a message"),
                     ("nonesuch", "cannot run `nonesuch`: No such file or directory; install gcc")):
        fails(3, says, "mlp.pb", "--target=cpu", "-o", "made", "--cc=" + cc)
        expect("--cc=%s makes no program" % cc, not os.path.exists("made"))


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        expect("ampcc-zoo -o", run(ZOO, "mlp", "-o", "mlp.pb")[0] == 0)
        with open("mlp.pb", "rb") as full, open("cut.pb", "wb") as cut:
            cut.write(full.read()[:-20])
        whole_or_not()
        places()
        modes()
        full_disk()
        signals()
        compilers()
        os.chdir("/")
    print("%d failed" % len(failed))
    return 1 if failed else 0


sys.exit(main())
