#!/usr/bin/env python3
"""Tests what `meson install` makes: installed.py MESON BUILD

With DESTDIR and --strip, and the folder moved afterwards: ampcc finds its runtime beside it and makes the program that it makes in the build
tree, byte for byte, with the kernels that were installed. `pkg-config --libs ampcc` links an object of `--emit=obj` to a program that trains
the same, and `ampcc-aarch64` one for AArch64, where there are the cross compiler and qemu.
"""
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "e2e"))
from shell import check, content, run

MESON, BUILD = sys.argv[1], os.path.abspath(sys.argv[2])


QEMU = ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"]


def train(program, *emulator):
    run(*emulator, "./" + program, "--use-synthetic-data", "--max-train-steps=3", "--skip-eval", "-q", "--model-dir=" + program + ".dir")
    return content(program + ".dir/ckpt-3.safetensors")


def aarch64(ampcc, pkg_config):
    """A program of a small model by ampcc, and by the cross compiler from its object."""
    if not all(map(shutil.which, ("aarch64-linux-gnu-gcc", QEMU[0]))):
        print("AArch64: not without the cross compiler and qemu")
        return True
    run(str(ampcc.parent / "ampcc-zoo"), "mlp", "-o", "mlp.pb")
    run(str(ampcc), "mlp.pb", "--target=cpu:aarch64", "-q", "-o", "arm")
    run(str(ampcc), "mlp.pb", "--target=cpu:aarch64", "-q", "--emit=obj", "-o", "arm.o")
    run("aarch64-linux-gnu-gcc", "arm.o", *shlex.split(pkg_config("ampcc-aarch64")), "-o", "arm_linked")
    return check("an object for AArch64 linked as pkg-config says trains the same", train("arm_linked", *QEMU) == train("arm", *QEMU))


def shipped(ampcc):
    """The kernels that ampcc comes with are those of `cc`."""
    done = subprocess.run([str(ampcc), "lenet5.pb", "--target=cpu", "--dtype=bf16", "-v", "-o", "quick", "--cache-dir=new"], capture_output=True,
                          text=True, env={name: value for name, value in os.environ.items() if name != "CC"})
    return check("a first compile takes its kernels from what was installed", "3 that came with ampcc" in done.stderr)


def main():
    run(MESON, "install", "-C", BUILD, "--no-rebuild", "--quiet", "--strip", DESTDIR=os.path.abspath("first"))
    os.rename("first", "moved")
    (ampcc,) = pathlib.Path("moved").rglob("bin/ampcc")
    (pc,) = pathlib.Path("moved").rglob("ampcc.pc")
    prefix = ampcc.resolve().parent.parent
    run(str(ampcc.parent / "ampcc-zoo"), "lenet5", "-o", "lenet5.pb")
    run(BUILD + "/frontend/ampcc", "lenet5.pb", "--target=cpu", "-q", "-o", "built")
    run(str(ampcc), "lenet5.pb", "--target=cpu", "-q", "-o", "installed")
    good = check("installed under DESTDIR and moved: the same program", content("installed") == content("built"))
    good &= shipped(ampcc)
    run(str(ampcc), "lenet5.pb", "--target=cpu", "-q", "--emit=obj", "-o", "lenet5.o")

    def pkg_config(name):
        return run("pkg-config", "--libs", "--define-variable=prefix=%s" % prefix, name, PKG_CONFIG_PATH=str(pc.parent.resolve()))
    run(*shlex.split(os.environ.get("CC", "cc")), "lenet5.o", *shlex.split(pkg_config("ampcc")), "-o", "linked")
    good &= check("an object linked as pkg-config says trains the same", train("linked") == train("installed"))
    if list(pathlib.Path("moved").rglob("ampcc-aarch64.pc")):
        good &= aarch64(ampcc, pkg_config)
    tools, pages = {path.name for path in ampcc.parent.iterdir()}, {path.stem for path in pathlib.Path("moved").rglob("man1/*.1")}
    good &= check("every tool has a manual page", tools == pages and len(tools) >= 5)
    good &= check("no file that was installed names the build folder",
                  not [path for path in prefix.rglob("*") if path.is_file() and path.suffix != ".a" and BUILD.encode() in path.read_bytes()])
    return good


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    sys.exit(0 if main() else 1)
