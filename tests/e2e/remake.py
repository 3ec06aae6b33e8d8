#!/usr/bin/env python3
"""Tests the commands that programs print when they get a flag of the compiler: remake.py AMPCC AMPCC_ZOO

A program that is asked for what it was not compiled with prints a command. That command must make a program that takes the flags."""
import os
import subprocess
import sys
import tempfile

AMPCC, ZOO = map(os.path.abspath, sys.argv[1:3])
os.environ["PATH"] = os.pathsep.join([os.path.dirname(AMPCC), os.path.dirname(ZOO), os.environ["PATH"]])
STEP = ["--use_synthetic_data", "-mts=1", "--learning-rate=1e-4", "-q"]


def run(command, status=0):
    done = subprocess.run(command, shell=isinstance(command, str), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    text = done.stdout.decode(errors="replace")
    assert done.returncode == status, "%s: status %d, not %d\n%s" % (command, done.returncode, status, text)
    return text


def remake(program, flags, made):
    """Gives the flags to `program`, which must refuse them; runs the command that it prints, and gives them to the new program `made`."""
    answer = run(["./" + program, *flags], status=2)
    command = answer.split("): ", 1)[1].strip()
    print(command)
    run(command.replace(" MODEL ", " mlp.pb ").replace(" PROGRAM", " " + made))
    run(["./" + made, *flags, *STEP])
    return command


with tempfile.TemporaryDirectory() as scratch:
    os.chdir(scratch)
    run([ZOO, "mlp", "-o", "mlp.pb"])
    run([AMPCC, "mlp.pb", "--target=cpu", "--cpu=native", "--no-fuse", "-o", "first"])
    run(["./first", "--dtype=fp32", "--loss_scale=1", "--batch_size=128", *STEP])

    rewrite = ["--dtype=fp16", "--fp16_implementation=graph_rewrite", "--loss_scale=dynamic", "-bs=8"]
    assert "--no-fuse" in remake("first", rewrite, "second")
    run(["./first", "--dtype=fp16", "--fp16_implementation=keras", "--loss_scale=0"], status=2)

    casting = ["--fp16_implementation=casting", "--loss_scale=64", "--label_smoothing=.1", "--weight_decay=3e-5"]
    command = remake("second", casting, "third")
    assert "--dtype=fp16" in command and "--batch-size=8" in command

    lars = ["--enable_lars", "--optimizer-epsilon=1e-6", "--batch_size", "16"]
    remake("third", lars, "fourth")
    run(["./fourth", *casting, *STEP, "--nofine_tune"])
    assert "--train='fc3.*'" in remake("fourth", ["--fine_tune"], "fifth")

    # the flags may name the loss scale that --fp16-implementation=casting has chosen
    run([AMPCC, "mlp.pb", "--target=cpu", "--cpu=native", "--dtype=fp16", "--fp16-implementation=casting", "-o", "sixth"])
    run(["./sixth", "--loss_scale=128", "--fp16_implementation=casting", "--dtype=fp16", *STEP])
    run(["./sixth", "--loss_scale=128", "--fp16_implementation=graph_rewrite"], status=2)

    # size and version name another model of the zoo
    run([ZOO, "fashion_resnet14", "-o", "net.pb"])
    run([AMPCC, "net.pb", "--target=cpu", "--cpu=native", "--batch-size=4", "-o", "net"])
    run(["./net", "--resnet_size=14", "--version=1", *STEP])
    remake("net", ["--resnet_size=8", "-rv=2"], "net8")
print("ok")
