#!/usr/bin/env python3
"""Tests what build systems need: depfiles, as make and ninja read them, response files, --dry-run: builds.py AMPCC AMPCC_ZOO"""
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile

from commands import AMPCC, ZOO, expect, failed, fails, run

# Names that make and ninja must be told about.
ODD = ["my model.pb", "a#b$c.pb", "back\\slash.pb", "two\\ .pb", "co:lon.pb"]
IR = ["--target=cpu", "--emit=ir", "--dtype=fp16"]


def depfiles():
    pathlib.Path("rules.txt").write_text("layer conv1 f32\n")
    flags = [*IR, "--precision-file=rules.txt", "-Wno-precision-casts"]
    os.mkdir("out.d")
    status, _, err = run(AMPCC, "lenet5.pb", *flags, "-MD", "-o", "out.d/step.amp")
    expect("-MD", (status, err) == (0, ""), err)
    expect("the depfile's name", sorted(os.listdir("out.d")) == ["step.amp", "step.d"], os.listdir("out.d"))
    expect("the depfile", open("out.d/step.d").read() == "out.d/step.amp: \\\n  lenet5.pb \\\n  rules.txt\n", open("out.d/step.d").read())
    run(AMPCC, "lenet5.pb", *IR, "-o", "-", "-MF", "x.d", "-MT", "a b", "-MP")
    expect("-MF, -MT, -MP", open("x.d").read() == "a\\ b: \\\n  lenet5.pb\n\nlenet5.pb:\n", open("x.d").read())
    run(AMPCC, "lenet5.pb", *IR, "-o", "plain", "-MD")
    expect("an output without an ending", os.path.exists("plain.d"))
    fails(2, "-MT and -MP belong to -MD", "lenet5.pb", "-MP", "-o", "x")
    fails(2, "give -MF FILE and -MT NAME", "lenet5.pb", *IR, "-MD")
    fails(2, "-MF names the output", "lenet5.pb", "-MF", "x", "-o", "x")
    fails(2, "--MF needs a value", "lenet5.pb", "-MF")
    shutil.copy("lenet5.pb", "line\nbreak.pb")
    fails(3, "cannot read the name of a file with a line break", "line\nbreak.pb", *IR, "-MD", "-o", "x.amp")
    fails(1, "error[E201]", "-", *IR, "-MF", "never.d", "-o", "never", stdin=b"no")
    expect("nothing after an error", not os.path.exists("never.d"))
    # a program: the runtime that is linked into it, tuning databases, and no file twice
    pathlib.Path("t.json").write_text('{"ampcc_tuning": 1, "capability": 90, "cudnn": 91900, "plans": {}}')
    status, _, err = run(AMPCC, "lenet5.pb", "--target=cpu", "-MD", "-o", "train", XDG_CACHE_HOME=os.path.abspath("own cache"))
    reads = open("train.d").read().replace("\\\n", "").split()[1:]
    first = open("train.d").read()
    os.remove("train.d")
    again = run(AMPCC, "lenet5.pb", "--target=cpu", "-MD", "-v", "-o", "train", XDG_CACHE_HOME=os.path.abspath("own cache"))
    expect("from the cache", "from the cache: the whole program" in again[2], again)
    expect("the same depfile where the program is in the cache", open("train.d").read() == first, first)
    expect("a program depends on the runtime", status == 0 and reads[-1] == "lenet5.pb" and len(set(reads)) == len(reads) and
           {"libamprt.a", "amprt.h"} <= {os.path.basename(p) for p in reads} and all(map(os.path.exists, reads)), reads, err)
    run(AMPCC, "lenet5.pb", "--passes=", "--tuning-db=t.json", "-o", "tuned.amp", "-MD")
    expect("a tuning database", open("tuned.d").read() == "tuned.amp: \\\n  lenet5.pb \\\n  t.json\n", open("tuned.d").read())


def with_ninja():
    """ninja builds once, then again when a file of the depfile has changed, whatever its name is."""
    if not shutil.which("ninja"):
        print("no ninja")
        return
    for name in ODD:
        if name == "two\\ .pb":
            continue  # ninja itself reads this one otherwise than make
        shutil.copy("lenet5.pb", name)
        command = shlex.join([AMPCC, name, *IR, "-o", "step.amp", "-MD"]).replace("$", "$$")
        pathlib.Path("build.ninja").write_text("rule ampcc\n  command = %s\n  depfile = step.d\n  deps = gcc\nbuild step.amp: ampcc\n" % command)
        first = run("ninja", "-d", "explain")
        expect("ninja: %s" % name, first[0] == 0, first)
        expect("ninja: %s: nothing to do" % name, b"no work to do" in run("ninja")[1], run("ninja", "-d", "explain"))
        os.utime(name, ns=(2 ** 62, 2 ** 62))
        expect("ninja: %s: built again" % name, b"no work to do" not in run("ninja", "-n")[1])
        os.remove(name)
        os.remove("step.amp")


def with_make():
    if not shutil.which("make"):
        print("no make")
        return
    for name in ODD:
        shutil.copy("lenet5.pb", name)
        run(AMPCC, name, *IR, "-o", "out put.amp", "-MD", "-MP")
        pathlib.Path("Makefile").write_text("all: out\\ put.amp\nout\\ put.amp:\n\t@echo again\ninclude out\\ put.d\n")
        expect("make: %s: nothing to do" % name, b"again" not in run("make")[1], run("make"), open("out put.d").read())
        os.utime(name, (4e9, 4e9))
        expect("make: %s: built again" % name, b"again" in run("make")[1], run("make"), open("out put.d").read())
        os.remove(name)
        expect("make: %s is gone: -MP" % name, run("make")[0] == 0, run("make"))


def responses():
    text = run(AMPCC, "lenet5.pb", *IR, "--batch-size=3", "-o", "-")[1]
    shutil.copy("lenet5.pb", "a b'.pb")
    for words in ("\"a b'.pb\" --target=cpu\n--emit=ir\t--dtype=fp16 --batch-size 3", "a\\ b\\'.pb @more", "\r\n a' b'\"'\".pb  @more\n\n",
                  "'a b\\'.pb' @more"):
        pathlib.Path("args").write_text(words)
        pathlib.Path("more").write_text("--target=cpu --emit=ir --dtype='fp16' --batch-size=3")
        status, out, err = run(AMPCC, "@args")
        expect("response file %r" % words, out == text, err)
    run(AMPCC, "@args", "-MD", "-o", "r.amp")
    expect("response files are in the depfile", open("r.d").read() == "r.amp: \\\n  a\\ b'.pb \\\n  args \\\n  more\n", open("r.d").read())
    fails(2, "ampcc: @no such: No such file", "@no such")
    pathlib.Path("loop").write_text("@loop")
    fails(2, "more than 10 deep", "@loop")
    pathlib.Path("open").write_text("lenet5.pb '--emit=ir")
    fails(2, "ampcc: @open: a quote is not closed", "@open")
    pathlib.Path("nul").write_bytes(b"a\0b")
    fails(2, "a NUL byte", "@nul")
    pathlib.Path("big").write_text(" " * (1 << 20) + "x")
    fails(2, "larger than 1 MiB", "@big")
    fails(1, "@none: error[E208]", "--", "@none")
    pathlib.Path("empty").write_text("")
    fails(2, "no model given", "@empty")


def dry_runs():
    def files():
        return {str(path): path.stat().st_mtime_ns for path in pathlib.Path(".").rglob("*")}

    before = files()
    status, out, err = run(AMPCC, "lenet5.pb", "--target=cpu", "--dry-run", "-o", "dry out", "-MD", "--certify=c.json", "--cc=my-cc -Q",
                           "--diagnostics-file=d.txt", XDG_CACHE_HOME=os.path.abspath("cache"), TMPDIR=os.path.abspath("."))
    lines = out.decode().splitlines()
    expect("--dry-run writes nothing", status == 0 and not err and files() == before, status, err, set(files()) ^ set(before))
    commands = [shlex.split(line) for line in lines if line.startswith("my-cc -Q ")]
    expect("--dry-run prints the commands", len(commands) > 2 and commands[-1][commands[-1].index("-o") + 1] == "dry out", lines)
    expect("--dry-run says what it reads", "reads lenet5.pb" in lines, lines)
    expect("--dry-run says what it would write", [line for line in lines if line.startswith("writes ")] ==
           ["writes c.json", "writes dry out", "writes dry out.d", "writes d.txt"], lines)
    # the same commands as -v prints, but for the temporary folder and the program's temporary name; a compiler that does nothing
    # saves the time
    wet = ["lenet5.pb", "--target=cpu", "--cpu=haswell", "--cc=true", "-o", "wet"]
    status, _, err = run(AMPCC, *wet, "-v", "--cache-dir=")
    expect("a linker that makes nothing", status == 3 and not os.path.exists("wet"), status, err)
    ran = [line.split()[1:] for line in err.splitlines() if line.startswith("ampcc: ") and " -c " in line]
    lines = run(AMPCC, *wet, "--dry-run")[1].decode().splitlines()
    would = [" ".join(shlex.split(line)).split() for line in lines if " -c " in line]
    plain = lambda words: [os.path.basename(w) if "ampcc-" in w else w for w in words]
    expect("these are the commands that run", ran and sorted(map(plain, ran)) == sorted(map(plain, would)), ran, would)
    status, out, err = run(AMPCC, "lenet5.pb", *IR, "--dry-run", "-o", "dry.amp")
    expect("--dry-run of a text", (status, out.decode()) == (0, "reads lenet5.pb\nwrites dry.amp\n") and not os.path.exists("dry.amp"), out)
    fails(1, "error[E409]", "lenet5.pb", "--target=cpu", "--dry-run", "--max-memory=1kB")


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        pathlib.Path("lenet5.pb").write_bytes(run(ZOO, "lenet5")[1])
        depfiles()
        with_ninja()
        with_make()
        responses()
        dry_runs()
        os.chdir("/")
    print("%d failed" % len(failed))
    return 1 if failed else 0


sys.exit(main())
