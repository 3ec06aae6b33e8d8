#!/usr/bin/env python3
"""Builds the examples of models/builds with CMake and meson: build_systems.py AMPCC AMPCC_ZOO FOLDER

The program is made once, not again while nothing has changed, and again when a file that ampcc read has changed."""
import os
import pathlib
import shutil
import sys
import tempfile

from commands import AMPCC, ZOO, expect, failed, run

EXAMPLES = os.path.abspath(sys.argv[3])


def try_example(name, source, configure, build):
    status, out, err = run(*configure)
    expect(name + ": configured", status == 0, out, err)
    program = pathlib.Path("build-" + name, "train_lenet")
    status, out, err = run(*build)
    expect(name + ": built", status == 0 and os.access(program, os.X_OK), out, err)
    if failed:
        return
    expect(name + ": the program starts", run("./" + str(program), "--help")[0] == 0)

    def made():
        before = program.stat().st_mtime_ns
        expect(name + ": built again", run(*build)[0] == 0)
        return program.stat().st_mtime_ns != before

    expect(name + ": not made again", not made())
    for file in ("precision.txt", "lenet5.pb"):
        os.utime(pathlib.Path(source, file))
        expect("%s: made again for %s" % (name, file), made())
        expect("%s: %s: not twice" % (name, file), not made())
    pathlib.Path(source, "lenet5.pb").write_bytes(b"no model")
    expect(name + ": an error of ampcc fails the build", run(*build)[0] != 0)


def main():
    if not shutil.which("ninja"):
        return 77
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.environ["XDG_CACHE_HOME"] = folder
        for name in ("cmake", "meson"):
            shutil.copytree(os.path.join(EXAMPLES, name), name)
            pathlib.Path(name, "lenet5.pb").write_bytes(run(ZOO, "lenet5")[1])
        if shutil.which("cmake"):
            try_example("cmake", "cmake", ["cmake", "-G", "Ninja", "-S", "cmake", "-B", "build-cmake", "-DAMPCC=" + AMPCC],
                        ["cmake", "--build", "build-cmake"])
        else:
            print("there is no cmake")
        if shutil.which("meson"):
            try_example("meson", "meson", ["meson", "setup", "build-meson", "meson", "-Dampcc=" + AMPCC], ["ninja", "-C", "build-meson"])
        os.chdir("/")
    print("%d failed" % len(failed))
    return 1 if failed else 0


sys.exit(main())
