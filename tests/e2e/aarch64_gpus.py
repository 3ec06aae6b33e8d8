#!/usr/bin/env python3
"""Tests programs for AArch64 with parts for GPUs: aarch64_gpus.py AMPCC_ZOO SOURCE JANSSON TOOL...

Such a program has the GPU's code that one for x86-64 has, and tables, launches and libraries of its own. By qemu-user: without a driver
it says so and trains on the CPU's part, to the checkpoint of a program without other parts; on the fakes of tests/cuda, compiled for
AArch64, it trains on the GPU's part to the checkpoint of an x86-64 program on them. The same compile gives the same bytes, whatever the
cache holds; depfiles and batches know the libraries; what cannot be is refused. JANSSON is its static library for AArch64, which the
fakes need; the tools are those of tests/cuda/programs/program.py. Skipped (77) without the runtime for AArch64 with GPUs or
qemu-aarch64 (README.md, Dependencies).
"""
import functools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

from shell import check, content, run

ZOO, SOURCE, JANSSON, *TOOLS = map(os.path.abspath, sys.argv[1:])
AMPCC, TOOLKIT = TOOLS[:2]
sys.path.insert(0, SOURCE + "/tests/cuda/programs")
from program import Program, Tools

RESOURCE = os.path.join(os.path.dirname(AMPCC), "../codegen")
CC = "aarch64-linux-gnu-gcc"
QEMU = ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"]
TARGET = "--target=cpu:aarch64,cuda:gh200"
SIZE = ["--batch-size=3", "--dtype=fp16"]
TRAIN = ["--use-synthetic-data", "--max-train-steps=2", "--threads=1", "--skip-eval", "-q"]


def build(name, *flags, model="model.pb"):
    return run(AMPCC, model, *SIZE, "-o", name, *flags)


def made():
    """One program: an ELF file for AArch64, whose parts say what they are for; a GPU's code is that of a program for x86-64."""
    build("both", TARGET + ",cuda:orin")
    header = run("readelf", "-hd", "both")
    good = check("an AArch64 program that needs no library of NVIDIA's", "AArch64" in header and not re.search("NEEDED.*cu", header), header)
    parts = json.loads(run(*QEMU, "./both", "--about=json"))["parts"]
    good &= check("--about=json names the parts", [p["target"] for p in parts] == ["cuda:sm_90", "cuda:sm_87", "cpu:aarch64"], parts)
    good &= check("the GPUs' parts have plans", all(len(p["plans"]) > 20 for p in parts[:2]), parts)
    for name, target in ("arm.cubin", TARGET.split(",")[1]), ("x86.cubin", "cuda:h200"):
        run(AMPCC, "model.pb", *SIZE, "--target=" + target, "--emit=cubin", "-o", name)
    return good & check("the same machine code as beside x86-64", content("arm.cubin") == content("x86.cubin"))


def without_driver():
    build("cpu", "--target=cpu:aarch64")
    said = run(*QEMU, "./both", *TRAIN[:-1], "--model-dir=both_there")
    run(*QEMU, "./cpu", *TRAIN, "--model-dir=cpu_there")
    good = check("no driver: says so, and goes on with the CPU", all(
        line in said for line in ("not cuda:sm_90, cuda:sm_87: no NVIDIA driver is installed", "device cpu:aarch64")), said)
    good &= check("no driver: the CPU's checkpoint",
                  content("both_there/ckpt-2.safetensors") == content("cpu_there/ckpt-2.safetensors"))
    said = run(*QEMU, "./both", *TRAIN, "--device=cuda", status=3)
    return good & check("no driver: --device=cuda", "this program does not run here: cuda:sm_90, cuda:sm_87: no NVIDIA driver" in said, said)


def again():
    """Equal bytes from an empty cache, from one with the x86-64 program's plans and kernels, and from the cached program. The model is one
    that is soon compiled."""
    make = functools.partial(build, model="lenet5.pb")
    make("first", TARGET, "--cache-dir=cold", "-MD")
    make("x86", "--target=cpu,cuda:h200", "--cpu=native")
    said = make("second", TARGET, "-v")
    good = check("the same bytes, whatever the cache holds", content("first") == content("second"), said)
    said = make("second", TARGET, "-v", "-MD")
    good &= check("the whole program is in the cache", "from the cache: the whole program" in said and content("first") == content("second"), said)
    for how, rule in ("compiled", "first.d"), ("from the cache", "second.d"):
        good &= check("-MD names the libraries, " + how, all(
            "aarch64/" + library in content(rule).decode() for library in ("libamprt.a", "libamprt_cuda.a", "libcudart_static.a")), rule)
    make("obj.o", TARGET, "--emit=obj")
    return good & check("--emit=obj", "AArch64" in run("readelf", "-h", "obj.o"))


def copy_runtime(folder, *left_out):
    shutil.copytree(RESOURCE, folder, ignore=lambda _, names: [
        n for n in names if n in left_out or (n != "aarch64" and not n.endswith((".a", ".h")))])
    if os.path.isdir(RESOURCE + "/kernels"):
        os.symlink(RESOURCE + "/kernels", folder + "/kernels")  # else they are compiled


def batch():
    """cuda:orin alone is for AArch64, too, so a batch must notice another runtime for that."""
    def result():
        return re.search(r"1 (made|unchanged|failed)", run(
            AMPCC, "--batch=lenet5.pb", "--out-dir=batch", "--target=cuda:orin", "--resource-dir=runtime", *SIZE))[1]
    copy_runtime("runtime")
    got = [result(), result()]
    open("runtime/aarch64/new.h", "w").close()
    got += [result(), result()]
    return check("--batch: another runtime", got == ["made", "unchanged", "made", "unchanged"], got)


def refused():
    copy_runtime("bare", "libcudart_static.a")
    good = True
    for flags, status, said in [
        (["--target=cpu,cuda:gh200"], 2, "cuda:gh200 is only found beside AArch64 CPUs: give cpu:aarch64 in the place of cpu"),
        (["--target=cuda:sm_87,cuda:h200,cpu"], 2, "cuda:orin is only found beside AArch64 CPUs: give cpu:aarch64 in the place of cpu"),
        (["--target=cpu,cuda:h200,cpu:aarch64"], 2, "one program is for one kind of CPU, cpu or cpu:aarch64; make two"),
        ([TARGET, "--cpu=haswell"], 2, "--cpu=haswell: no AArch64 CPU is known by this name"),
        ([TARGET, "--static"], 1, "NVIDIA's driver is a shared library: give --target=cpu:aarch64"),
        ([TARGET, "--resource-dir=bare"], 3, "bare/aarch64: there is no libcudart_static.a: this ampcc was built without what programs for cuda:sm_90 beside cpu:aarch64 are"),
        (["--target=cuda:nano"], 2, "sm_87 orin"),
    ]:
        text = run(AMPCC, "model.pb", *flags, *SIZE, "-o", "never", status=status)
        good &= check("refused: " + " ".join(flags), said in text and not os.path.exists("never"), text)
    build("h200", "--target=cuda:h200,cpu:aarch64")
    targets = [part["target"] for part in json.loads(run(*QEMU, "./h200", "--about=json"))["parts"]]
    return good & check("a GPU that is found beside both", targets == ["cuda:sm_90", "cpu:aarch64"], targets)


def compile_fakes():
    """The fakes of tests/cuda for AArch64: libraries in the folder fakes, and in runtime_there the runtime with their cudart. Returns the
    objects of the shim."""
    tests, convert = SOURCE + "/tests/cuda/", SOURCE + "/runtime/base/convert.c"
    headers = [arg for path in ("include", "nvidia/cu13/include", "nvidia/cudnn/include", "include/cccl", "nvidia/cu13/include/cccl")
               if os.path.isdir(os.path.join(TOOLKIT, path)) for arg in ("-isystem", os.path.join(TOOLKIT, path))]
    flags = [CC, "-std=c11", "-O1", "-w", "-fPIC", "-ffp-contract=off", "-D_POSIX_C_SOURCE=200809L", "-D_DEFAULT_SOURCE", "-I", SOURCE,
             "-I", SOURCE + "/runtime", *headers]

    def objects(kind, names, *more):
        os.makedirs("fakes/" + kind)
        for name in names:
            run(*flags, *more, "-c", tests + name + ".c", "-o", "fakes/%s/%s.o" % (kind, os.path.basename(name)))
        return ["fakes/%s/%s.o" % (kind, os.path.basename(name)) for name in names]

    shim = objects("shim", ["shim/" + name for name in ("atomic", "check", "fiber", "launch", "meet", "shared", "undefined")],
                   "-fvisibility=hidden")
    copy_runtime("runtime_there", "libcudart_static.a")
    run("ar", "qcsD", "runtime_there/aarch64/libcudart_static.a", *objects("cudart", ["fake/kernel", "fake/memory", "fake/stream"]))
    run(*flags, "-shared", "-o", "fakes/libcudnn_graph.so.9", convert, *(
        tests + "fake/" + name for name in ("conv.c", "graph.c", "graph_run.c", "cudnn.c", "cudnn_plan.c")), JANSSON, "-lm")
    run(*flags, "-shared", "-o", "fakes/libcublasLt.so.13", convert, tests + "fake/cublaslt.c", "-lm")
    return shim


def kernels(stem, shim):
    """The text of a part's kernels as C, as tests/cuda/shim/kernels.c compiles it."""
    run(CC, "-x", "c", "-std=gnu11", "-w", "-O1", "-fPIC", "-fno-strict-aliasing", "-ffp-contract=off", "-include",
        SOURCE + "/tests/cuda/shim/shim.h", "-c", stem + ".cu", "-o", stem + ".o")
    run(CC, "-shared", stem + ".o", *shim, "-lm", "-o", stem + ".so")
    return os.path.abspath(stem + ".so")


def emulated(program, *args, **env):
    """The command that runs a program on the fakes for AArch64: by -E, as qemu's own libraries are this machine's."""
    env = {"LD_LIBRARY_PATH": os.path.abspath("fakes"), **env}
    return [*QEMU, *(arg for key, value in env.items() for arg in ("-E", key + "=" + value)), program, *args]


def fakes():
    """Both programs train on the GPU's part, which other code computes here; each must end with the same checkpoint."""
    if not os.path.exists(JANSSON):
        print("no jansson for AArch64 (.ci/aarch64): the GPU's part did not train")
        return True
    train = [*TRAIN[:-1], "--max-train-steps=1"]
    shim = compile_fakes()
    build("there", TARGET, "--resource-dir=runtime_there")
    build("there.cu", "--target=cuda:gh200", "--resource-dir=runtime_there", "--emit=cuda")
    done = subprocess.run(emulated("./there", *train, "--device=cuda", "--model-dir=trained_there", FAKE_CUDA_KERNELS=kernels("there", shim)),
                          capture_output=True, text=True)
    here = Program(Tools(os.getcwd(), *TOOLS), "model.pb", "here", *SIZE).run("cuda", *train, "--model-dir=trained_here")
    good = True
    for name, (status, said) in ("AArch64", (done.returncode, done.stderr)), ("x86-64", here):
        good &= check("fakes: trains on " + name, status == 0 and "device cuda:sm_90: Fake GPU" in said, status, said)
    build("a100", "--target=cpu:aarch64,cuda:a100,cuda:h100", "--resource-dir=runtime_there", model="mlp.pb")
    for capability, said in ("87", "compute capability 8.7, this is for 8.0"), ("86", "cuda:sm_80   Fake GPU"):
        text = run(*emulated("./a100", "--about", FAKE_CUDA_CAPABILITY=capability))
        good &= check("fakes: machine code for 8.0 and a GPU with %s" % capability, said in text, text)
    return good and check("fakes: the same checkpoint on both CPUs",
                          content("trained_here/ckpt-1.safetensors") == content("trained_there/ckpt-1.safetensors"))


if not os.path.exists(RESOURCE + "/aarch64/libamprt_cuda.a") or not shutil.which(QEMU[0]):
    print("skipped: ampcc was built without the runtime for GPUs beside AArch64, or there is no qemu-aarch64")
    sys.exit(77)
with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    for name, file in ("cifar_resnet8", "model.pb"), ("lenet5", "lenet5.pb"), ("mlp", "mlp.pb"):
        run(ZOO, name, "-o", file)
    sys.exit(0 if made() & without_driver() & again() & batch() & refused() & fakes() else 1)
