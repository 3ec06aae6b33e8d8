#!/usr/bin/env python3
"""Tests ampcc-zoo --all: zoo.py AMPCC AMPCC_ZOO"""
import os
import sys
import tempfile

from common import ZOO, content, expect, failed, run


def refused(says, *args, status=2):
    got = run(ZOO, *args)
    expect("%s: %s" % (args, says), got[0] == status and says in got[2] and not got[1], got)


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        names = [line.split()[0] for line in run(ZOO, "--list")[1].decode().splitlines()]
        for ending, more in (("pb", []), ("pbtxt", ["--text", "--classes=7"])):
            status, _, err = run(ZOO, "--all", "--out-dir=" + ending, *more)
            models = content(ending)
            expect("every model", status == 0 and sorted(models) == sorted("%s.%s" % (name, ending) for name in names), err, list(models))
            for name in ("mlp", "lenet5", "cifar_resnet110_v2", "resnet50_keras", "resnet152_tv", "resnext50_32x4d_tv"):
                expect(name + " is what it is alone", models["%s.%s" % (name, ending)] == run(ZOO, name, *more)[1])
        expect("again, over the old ones", run(ZOO, "--all", "--out-dir=pb")[0] == 0)
        refused("--all needs --out-dir=FOLDER", "--all")
        refused("leave out the name and -o", "--all", "--out-dir=x", "mlp")
        refused("leave out the name and -o", "--all", "--out-dir=x", "-o", "y")
        refused("--out-dir is where --all writes", "mlp", "--out-dir=x")
        refused("cannot make the folder none/x: No such file", "--all", "--out-dir=none/x", status=3)
        os.mkdir("taken")
        os.symlink("nowhere", "taken/mlp.pb")
        refused("cannot write taken/mlp.pb: it exists and is no regular file", "--all", "--out-dir=taken", status=3)
        expect("nothing else was made", sorted(os.listdir()) == ["pb", "pbtxt", "taken"], os.listdir())
        os.chdir("/")
    print("%d failed" % len(failed))
    return 1 if failed else 0


sys.exit(main())
