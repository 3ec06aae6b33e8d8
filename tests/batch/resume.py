#!/usr/bin/env python3
"""Tests batches that are stopped, and goes on with them: resume.py AMPCC AMPCC_ZOO"""
import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from common import AMPCC, ZOO, batch, content, expect, failed, models, run

MOMENTS = 6
LIST = "mlp.pb\nmlp.pb -o one --dtype=bf16\nmlp.pb -o two --batch-size=32 --dtype=fp16\n"


def write(path, text):
    with open(path, "w") as file:
        file.write(text)


def results(out, *args, **env):
    """The result of each program of list.txt: "m" made, "u" unchanged, "f" failed."""
    status, rows, err = batch("--batch=list.txt", "--out-dir=" + out, *args, **env)
    return "".join(row[-1][0] for name, row in rows.items() if name != "total")


def unchanged():
    """What is there of the same inputs is not made again; everything that a program is made of counts."""
    expect("first", results("out") == "mmm")
    first = content("out")
    expect("again", results("out") == "uuu")
    expect("what says more or less does not count", results("out", "-v", "-j1", "--cache-dir=") == "uuu")
    expect("an option for all", results("out", "--learning-rate=0.5") == "mmm")
    expect("and back", results("out") == "mmm" and content("out") == first)
    write("list.txt", LIST.replace("32", "16"))
    expect("an option of a line", results("out") == "uum")
    write("list.txt", LIST)
    expect("and back again", results("out") == "uum" and content("out") == first)
    model = open("mlp.pb", "rb").read()
    expect("another model", run(ZOO, "mlp", "--classes=11", "-o", "mlp.pb")[0] == 0 and results("out") == "mmm")
    open("mlp.pb", "wb").write(model)
    results("out")
    expect("the same bytes at another time", os.utime("mlp.pb", (1, 1)) is None and results("out") == "uuu")
    open("out/one", "ab").write(b"x")
    os.unlink("out/two")
    expect("a program that was changed, or is gone", results("out") == "umm" and content("out") == first)
    write("out/.ampcc-batch/mlp.json", "{")
    expect("a record that is damaged", results("out") == "muu")
    write("rules", "layer fc1 f32\n")
    write("list.txt", "mlp.pb --dtype=fp16 --precision-file=rules\n")
    expect("a precision file", results("rules.out") == "m" and results("rules.out") == "u")
    write("rules", "layer fc2 f32\n")
    expect("whose lines have changed", results("rules.out") == "m")
    expect("the processor of this machine", [results("rules.out", "--cpu=native") for _ in "ab"] == ["m", "m"])
    results("rules.out")
    write("cc", "#!/bin/sh\nexit 1\n")
    os.chmod("cc", 0o755)
    expect("another compiler", results("rules.out") == "u" and results("rules.out", PATH=os.getcwd() + ":" + os.environ["PATH"]) == "f")
    os.unlink("cc")
    write("list.txt", LIST)
    write("mlp.pb", "no model")
    expect("a model that cannot be read any more", results("out") == "fff" and not content("out"))
    open("mlp.pb", "wb").write(model)


def another_ampcc():
    """A program is made again by an ampcc of another build, or with another runtime."""
    shutil.copytree(os.path.join(os.path.dirname(AMPCC), os.pardir, "codegen"), "lib/ampcc",
                    ignore=lambda folder, names: [n for n in names if not n.endswith((".a", ".h"))])
    os.symlink(os.path.join(os.path.dirname(AMPCC), os.pardir, "codegen/kernels"), "lib/ampcc/kernels")  # else they are compiled
    os.mkdir("bin")
    shutil.copy(AMPCC, "bin/ampcc")

    def made():
        out = run("bin/ampcc", "--target=cpu", "--batch=mlp.pb", "--out-dir=own")[1].decode()
        return re.search(r"^mlp .* (\w+)$", out, re.M).group(1)
    expect("a copy of ampcc", [made(), made()] == ["made", "unchanged"])
    open("bin/ampcc", "ab").write(b"another")
    expect("another build", [made(), made()] == ["made", "unchanged"])
    open("lib/ampcc/amprt.h", "a").write("/* another */\n")
    expect("another runtime", [made(), made()] == ["made", "unchanged"])


def session_is_empty(session):
    """Waits for all processes of a session to end; those that are left."""
    end = time.time() + 10
    while True:
        left = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                state, _, _, sid = open("/proc/%s/stat" % pid).read().rsplit(")", 1)[1].split()[:4]
                if int(sid) == session and state != "Z":
                    left.append(pid)
            except OSError:
                pass
        if not left or time.time() > end:
            return left
        time.sleep(0.02)


def stopped(out, number, moment, *args):
    """Starts a batch and ends it by a signal after so many seconds; its status and standard error."""
    child = subprocess.Popen([AMPCC, "--target=cpu", "--batch=list.txt", "--out-dir=" + out, "-j2", *args], start_new_session=True,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    moment(child)
    child.send_signal(number)
    err = child.communicate()[1].decode()
    expect("%s: no process is left" % number.name, not session_is_empty(child.pid), session_is_empty(child.pid))
    return child.returncode, err


def moments():
    """Ended at any moment and continued, a batch makes the same files as one that was not disturbed."""
    start = time.time()
    results("whole", "-j2")
    lasted = time.time() - start
    want = content("whole")
    for i in range(MOMENTS):
        number = signal.SIGKILL if i % 2 else signal.SIGTERM
        out = "moment%d" % i
        status, err = stopped(out, number, lambda child: time.sleep(lasted * (i + 0.5) / MOMENTS))
        there = content(out) if os.path.exists(out) else {}
        expect("what is there is whole", all(want[name] == bytes_ for name, bytes_ in there.items()), out, list(there))
        if status == -signal.SIGTERM and err:
            expect("it says how far it came", re.search(r"stopped by signal 15 .* with \d of 3 programs done; the same command", err), err)
        expect("ended by the signal, or done before", status in (-number, 0), status)
        got = results(out, "-j2")
        expect("none of those is made again", got.count("u") >= len(there) - 1, got, list(there))
        expect("the same files as undisturbed", content(out) == want)
        stays = [name for name in os.listdir(out + "/.ampcc-batch") if not re.search(r"\.(log|json)$|^lock$", name)]
        expect("nothing half written stays", not stays, stays)


def slow_compilers():
    """Signals while two processes wait for compilers that take long: all of them end."""
    write("slowcc", "#!/bin/sh\necho $$ >>%s/pids\nsleep 60\n" % os.getcwd())
    os.chmod("slowcc", 0o755)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL):
        open("pids", "w").close()
        signal.signal(number, signal.SIG_DFL) if number != signal.SIGKILL else None

        def under_way(child):
            end = time.time() + 60
            while time.time() < end and open("pids").read().count("\n") < 2:
                time.sleep(0.02)
        status, err = stopped("slow", number, under_way, "--cache-dir=", "--cc=" + os.path.abspath("slowcc"))
        expect("%s ends it" % number.name, status == -number, status, err)
        left = os.listdir("slow") + [n for n in os.listdir("slow/.ampcc-batch") if not n.endswith((".log", "lock"))]
        expect("%s: no file is left" % number.name, left == [".ampcc-batch"], left)


def one_at_a_time():
    with open("whole/.ampcc-batch/lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        status, _, err = batch("--batch=list.txt", "--out-dir=whole")
    expect("one batch at a time in a folder", status == 3 and "another ampcc --batch is at work in this folder" in err, status, err)


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.environ["TMPDIR"] = folder  # an ampcc that is killed leaves its temporary folder
        models("mlp")
        write("list.txt", LIST)
        unchanged()
        another_ampcc()
        moments()
        slow_compilers()
        one_at_a_time()
        os.chdir("/")
    print("%d failed" % len(failed))
    return 1 if failed else 0


sys.exit(main())
