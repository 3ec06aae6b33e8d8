#!/usr/bin/env python3
"""Tests that objects from the cache make the same program, byte for byte, as without it: cached.py AMPCC RESOURCES

Whatever an object depends on is changed once, and must be compiled again: batch, level of the CPU, a header, the compiler. Entries
are damaged, several ampcc share one cache, one is killed, the folder cannot be written. Skipped (77) with sanitizers."""
import os, pathlib, shutil, signal, subprocess, sys, tempfile, time

from caches import RESOURCES, check, command as whole_command, failed, model_with_product, skip_if_sanitized, small_model

# Parts alone come from the cache where reports are asked for; whole.py tests whole programs.
NOT_WHOLE = ["--time-report"]

def command(*flags, **more):
    return whole_command(*NOT_WHOLE, *flags, **more)


def make(*flags, **more):
    """Returns the program, how many texts were compiled and how many objects came from the cache."""
    done = subprocess.run(command(*flags, **more), capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    lines = done.stderr.splitlines()
    return (pathlib.Path(more.get("out", "out")).read_bytes(), sum(" -c " in line for line in lines), sum("from the cache" in line for line in lines))


def entries(folder="cache"):
    return sorted(p for p in pathlib.Path(folder).iterdir())


def damages(plain):
    for at in (0, 60, -1):
        for path in entries():
            content = bytearray(path.read_bytes())
            content[at] ^= 4
            path.write_bytes(content)
        program, compiled, kept = make()
        check("a bit of every entry flipped at %d: compiled anew" % at, (compiled, kept) == (2, 0) and program == plain, compiled, kept)
        check("and replaced", make() == (plain, 0, 2))
    for path in entries():
        os.truncate(path, 1000)
    check("cut short", make() == (plain, 2, 0) and make() == (plain, 0, 2))


def changes(plain):
    pathlib.Path("four.amp").write_text(small_model(4))
    program, compiled, kept = make(model="four.amp")
    check("another batch: its tables alone are compiled", (compiled, kept) == (1, 1) and program != plain, compiled, kept)
    check("as without the cache", make(model="four.amp", cache="")[0] == program)
    for name in ("relu", "tanh"):
        pathlib.Path(name + ".amp").write_text(model_with_product(name))
    check("products: their kernels are an object of their own", make(model="relu.amp")[1:] == (3, 0))
    _, compiled, kept = make(model="tanh.amp")
    check("which is the same for all models", (compiled, kept) == (2, 1), compiled, kept)
    program, compiled, kept = make("--cpu=x86-64-v4")
    check("another CPU", compiled == 2 and program == make("--cpu=x86-64-v4", cache="")[0], compiled, kept)
    os.mkdir("resources")
    for name in os.listdir(RESOURCES):
        if name.endswith((".a", ".h")):
            shutil.copy(os.path.join(RESOURCES, name), "resources")
    check("the runtime in another folder", make("--resource-dir=resources") == (plain, 0, 2))
    header = pathlib.Path("resources/amprt.h")
    text = header.read_text()
    header.write_text(text + "/* a comment */\n")
    check("a comment in a header", make("--resource-dir=resources") == (plain, 0, 2))
    header.write_text(text + "typedef int AmprtNew;\n")
    check("a type in a header", make("--resource-dir=resources")[1:] == (2, 0))
    compiler = pathlib.Path("compiler")
    real = shutil.which(os.environ.get("CC", "cc").split()[0])
    compiler.write_text('#!/bin/sh\nexec %s "$@"\n' % real)
    compiler.chmod(0o755)
    check("another compiler", make("--cc=./compiler")[1:] == (2, 0) and make("--cc=./compiler") == (plain, 0, 2))
    os.mkdir("searched")
    os.environ.update(LIBRARY_PATH=os.path.abspath("searched"), C_INCLUDE_PATH=os.path.abspath("searched"))
    check("folders to search in, which have nothing", make() == (plain, 0, 2))
    del os.environ["LIBRARY_PATH"], os.environ["C_INCLUDE_PATH"]
    os.utime(compiler, (1, 1))
    check("a compiler of another time", make("--cc=./compiler")[1:] == (2, 0))
    compiler.write_text('#!/bin/sh\n[ "$1" = -E ] && exit 1\nexec %s "$@"\n' % real)
    check("a compiler that does not preprocess", make("--cc=./compiler") == (plain, 2, 0))


def shared(plain):
    running = [subprocess.Popen(command(cache="shared", out="out%d" % i), stderr=subprocess.PIPE, text=True) for i in range(4)]
    lines = "".join(p.communicate()[1] for p in running).splitlines()
    check("four ampcc at once", [p.returncode for p in running] == [0] * 4 and all(pathlib.Path("out%d" % i).read_bytes() == plain for i in range(4)))
    check("one of them compiles an object", sum(" -c " in line for line in lines) == 2 and sum("from the cache" in line for line in lines) == 6, *lines)
    check("leave whole entries", make(cache="shared") == (plain, 0, 2) and len(entries("shared")) == 2)
    for i in range(6):
        victim = subprocess.Popen(command(cache="killed", out="never"), stderr=subprocess.DEVNULL)
        time.sleep(0.05 + 0.1 * i)
        victim.send_signal(signal.SIGKILL)
        victim.wait()
    check("after six that were killed", make(cache="killed")[0] == plain and make(cache="killed") == (plain, 0, 2))


def folders(plain):
    check("nowhere", make(cache="") == (plain, 2, 0))
    check("a folder that cannot be made", make(cache="/proc/none") == (plain, 2, 0))
    pathlib.Path("file").write_text("")
    check("a file in its place", make(cache="file") == (plain, 2, 0) and pathlib.Path("file").read_text() == "")
    shutil.copytree("cache", "fixed")
    os.chmod("fixed", 0o555)
    check("a folder that is only read", make(cache="fixed") == (plain, 0, 2))
    os.chmod("fixed", 0o755)
    check("kept files", make("--save-temps=kept") == (plain, 0, 2) and pathlib.Path("kept.cpu.o").exists())
    relocatable = make("--emit=obj", "--save-temps=other", cache="")[0]
    check("one object of kept files", relocatable == make("--emit=obj")[0] == make("--emit=obj", "--save-temps=kept")[0])
    make("--cache-size=1kB", cache="tiny")
    check("a cache of 1 kB", sum(p.stat().st_size for p in entries("tiny")) <= 1000)
    os.environ.update(XDG_CACHE_HOME=os.path.abspath("xdg"))
    subprocess.run([arg for arg in command() if "--cache-dir" not in arg], check=True, stderr=subprocess.DEVNULL)
    check("the usual folder", len(entries("xdg/ampcc")) == 2)


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    os.environ["TMPDIR"] = folder  # an ampcc that is killed leaves its temporary folder
    pathlib.Path("small.amp").write_text(small_model(2))
    plain, compiled, kept = make(cache="")
    skip_if_sanitized(plain)
    check("without a cache", (compiled, kept) == (2, 0), compiled, kept)
    check("the first time", make() == (plain, 2, 0))
    check("the second time", make() == (plain, 0, 2))
    for case in (damages, changes, shared, folders):
        case(plain)
sys.exit(1 if failed else 0)
