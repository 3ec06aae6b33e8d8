#!/usr/bin/env python3
"""Tests the programs of --static: static.py AMPCC AMPCC_ZOO MAKE_FOLDER

They have no dynamic section and link without a warning. In an empty folder that is their root (as root or in a user namespace;
else the programs run outside, and a line says so) they train on synthetic data, on Fashion-MNIST's files (if Debian's package is
there) and on photographs, and end with the checkpoint of the program that is linked dynamically. What they lack, MPI and the
name service, they name. Parts that cannot be static are refused. Skipped (77) where ampcc makes programs with sanitizers.
"""
import os
import shlex
import shutil
import subprocess
import sys
import tempfile

from shell import check, content, run

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))
from ports import free_port

AMPCC, ZOO, MAKE_FOLDER = map(os.path.abspath, sys.argv[1:4])
FASHION = "/usr/share/datasets/fashion-mnist"
TRAIN = ["--max-train-steps=6", "--learning-rate=1e-4", "--threads=2"]


def build(model, name, *flags, zoo=()):
    run(ZOO, model, *zoo, "-o", model + ".pb")
    return run(AMPCC, model + ".pb", "--target=cpu", "--cpu=native", "--cpu-library=own", "--batch-size=8", "-o", name, *flags)


def refusals():
    run(ZOO, "mlp", "-o", "mlp.pb")
    good = True
    for flags, status, said in [
        (["--target=cpu", "--cpu-library=onednn"], 1, "error[E401]: --static: a program for cpu cannot be static: oneDNN"),
        (["--target=cpu", "--emit=obj"], 2, "--static is how a program is linked"),
        (["--target=cpu", "--emit=c"], 2, "--static is how a program is linked"),
    ]:
        text = run(AMPCC, "mlp.pb", "--static", *flags, "-o", "never", status=status)
        good &= check("refused: " + " ".join(flags), said in text and not os.path.exists("never"), text)
    if "cuda:" in run(AMPCC, "--list-targets"):
        done = subprocess.run([AMPCC, "mlp.pb", "--static", "--target=cuda:h200", "-o", "never"], capture_output=True, text=True)
        good &= check("refused: a GPU", done.returncode == 1 and "NVIDIA's driver" in done.stderr or done.returncode == 3, done.stderr)
    return good


def linked(verbose):
    """Links the kept objects once more, as ampcc's linker has no say when it succeeds."""
    command = shlex.split([line for line in verbose.splitlines() if "-static" in line][-1].removeprefix("ampcc: "))
    command[command.index("-o") + 1] = "again"
    said = subprocess.run(command, capture_output=True, text=True).stderr
    sections = run("readelf", "-lW", "whole")
    return check("links without a warning", said == "" and content("again") == content("whole"), said) & \
        check("no interpreter, nothing dynamic", "INTERP" not in sections and "DYNAMIC" not in sections, sections)


def root_command():
    """What runs a command with the folder `root` as its root, or None."""
    os.mkdir("root")
    for command in (["chroot", "root"], ["unshare", "-r", "chroot", "root"]):
        # A root that is empty can run nothing, and says so: status 127.
        try:
            if subprocess.run([*command, "/nothing"], capture_output=True).returncode == 127:
                return command
        except FileNotFoundError:
            pass
    return None


def trains():
    verbose = build("fashion_resnet8", "whole", "--static", "-v", "--save-temps=kept")
    build("fashion_resnet8", "shared")
    build("cifar_resnet8", "photos", "--static", "--preprocessing=official", zoo=["--classes=3"])
    build("cifar_resnet8", "photos_shared", "--preprocessing=official", zoo=["--classes=3"])
    good = linked(verbose)
    command = root_command()
    if not command:
        print("no chroot here: neither root nor user namespaces; the programs run outside")
    for name in ("whole", "photos"):
        shutil.copy(name, "root")
    run(MAKE_FOLDER, "root/folder")
    cases = [("synthetic data", "whole", "shared", ["--use-synthetic-data"]),
             ("photographs", "photos", "photos_shared", ["--dataset=folder", "--data-dir=folder"])]
    if os.path.isdir(FASHION):
        shutil.copytree(FASHION, "root/fashion")
        cases.append(("Fashion-MNIST", "whole", "shared", ["--data-dir=fashion"]))
    else:
        print("no %s: Debian's dataset-fashion-mnist is not installed" % FASHION)
    for number, (what, name, shared, flags) in enumerate(cases):
        flags = [*flags, *TRAIN, "--model-dir=out%d" % number]
        if command:
            run(*command, "/" + name, *flags)
        else:
            subprocess.run(["./" + name, *flags], cwd="root", check=True)
        alone = content("root/out%d/ckpt-6.safetensors" % number)
        shutil.rmtree("root/out%d" % number)
        subprocess.run(["../" + shared, *flags], cwd="root", check=True, stdout=subprocess.DEVNULL)
        good &= check("%s: the same checkpoint as with libraries" % what, content("root/out%d/ckpt-6.safetensors" % number) == alone)
    return good


def lacks():
    """Several processes: what static programs cannot do, they say; by torchrun's variables they meet and train."""
    flags = ["--use-synthetic-data", *TRAIN]
    torchrun = dict(WORLD_SIZE="2", LOCAL_WORLD_SIZE="2", MASTER_PORT=str(free_port()))
    good = True
    for what, status, env, more, said in [
        ("mpirun's processes", 3, dict(OMPI_COMM_WORLD_SIZE="2", OMPI_COMM_WORLD_RANK="0", OMPI_COMM_WORLD_LOCAL_RANK="0",
                                       OMPI_COMM_WORLD_LOCAL_SIZE="2"), [], "cannot open an MPI library, as it is static"),
        ("--processes", 2, {}, ["--processes=2"], "this program cannot open as it is static"),
        ("a host by name", 3, dict(torchrun, RANK="1", LOCAL_RANK="1", MASTER_ADDR="machine.example"), [], "takes localhost and numbers"),
    ]:
        text = run("./whole", *flags, *more, status=status, **env)
        good &= check("says what it lacks: " + what, said in text, text)
    ranks = [subprocess.Popen(["./whole", *flags, "--model-dir=ranks"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              env={**os.environ, **torchrun, "RANK": str(r), "LOCAL_RANK": str(r), "MASTER_ADDR": "localhost"}) for r in (0, 1)]
    said = [rank.communicate()[0] for rank in ranks]
    return good & check("two processes that meet at localhost", [rank.returncode for rank in ranks] == [0, 0], *said)


if "sanitizers" in subprocess.run([AMPCC, "/dev/null", "--static", "--target=cpu", "--cpu-library=own", "-o", "/dev/null"],
                                  capture_output=True, text=True).stderr:
    print("skipped: this ampcc makes programs with sanitizers")
    sys.exit(77)
with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    sys.exit(0 if refusals() & trains() & lacks() else 1)
