#!/usr/bin/env python3
"""Tests --target=cpu:aarch64 by qemu-user: aarch64.py AMPCC AMPCC_ZOO MAKE_FOLDER

Programs for AArch64 train 3 steps of cifar_resnet8 to the losses of x86-64 within 1e-5 in fp32 and 1e-2 in bf16 and fp16; where the
x86-64 program does not multiply in bf16, to the very checkpoint. That program goes on from the other's checkpoint, and both train
together as two processes. A static one, which runs without a library of that CPU, reads photographs. The same compile gives the same
bytes, and what clang compiles the same values. What cannot be is refused. Skipped (77)
without the runtime for AArch64 or qemu-aarch64 (README.md, Dependencies).
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

from shell import check, content, run

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))
from ports import free_port

AMPCC, ZOO, MAKE_FOLDER = map(os.path.abspath, sys.argv[1:4])
TARGET = "--target=cpu:aarch64"
QEMU = ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"]
TRAIN = ["--log-every=1", "--threads=1", "--skip-eval"]
STEPS = 3
# A model without products, for what is about the cache or flags alone: kernels take most of the time to compile a program.
SMALL = """recipe {name="small", batch_size=2}

graph @train stage model {
  %x = input {name="image"} : f32[2,3]
  %label = input {name="label"} : i32[2]
  %w = variable {kind="param", init="zeros"} : f32[3]
  %y = bias_add %x, %w : f32[2,3] loc "bias"
  %e = softmax_xent %y, %label : f32[2]
  %l = reduce_mean %e {axes=[0]} : f32[]
  output %l {name="loss"}
}
"""


def build(name, *flags, model="model.pb", batch=3):
    run(AMPCC, model, "--batch-size=%d" % batch, "-o", name, *flags)
    return "./" + name


def losses(folder):
    with open(folder + "/log.jsonl") as log:
        return [r["loss"] for r in map(json.loads, log) if r["event"] == "train"]


def begin(*program, folder, steps=STEPS, env=None):
    return subprocess.Popen([*program, "--use-synthetic-data", "--max-train-steps=%d" % steps, "--model-dir=" + folder, *TRAIN],
                            stdout=subprocess.DEVNULL, env=env)


def train():
    """Programs for AArch64 multiply no bf16. Where this CPU does, another program is compared with theirs in bf16, one for Haswell, which
    does not."""
    multiplies = b"avx512_bf16" in content("/proc/cpuinfo")
    emulated = {}
    for dtype in ("fp32", "bf16", "fp16"):
        emulated[dtype] = begin(*QEMU, build(dtype, TARGET, "--dtype=" + dtype), folder=dtype + "_there")
    good = True
    for dtype, process in emulated.items():
        begin(build(dtype + "_x86", "--target=cpu", "--cpu=native", "--dtype=" + dtype), folder=dtype + "_here").wait()
        alike = dtype + "_here"
        if dtype == "bf16" and multiplies:
            alike = "bf16_alike"
            begin(build("haswell", "--target=cpu", "--cpu=haswell", "--dtype=bf16"), folder=alike).wait()
        status = process.wait()
        if not check("%s: trains" % dtype, status == 0, status):
            return False
        here, there = losses(dtype + "_here"), losses(dtype + "_there")
        worst = max(abs(x - y) for x, y in zip(here, there))
        good &= check("%s: losses are those of x86-64 within %.2g" % (dtype, worst),
                      len(here) == len(there) == STEPS and worst <= (1e-5 if dtype == "fp32" else 1e-2), here, there)
        last = "/ckpt-%d.safetensors" % STEPS
        good &= check("%s: the checkpoint is that of x86-64 without instructions for bf16" % dtype,
                      content(dtype + "_there" + last) == content(alike + last))
    for folder in ("fp32_there", "fp32_here"):
        begin("./fp32_x86", "--resume", folder=folder, steps=STEPS + 5).wait()
    last = "/ckpt-%d.safetensors" % (STEPS + 5)
    return good & check("x86-64 goes on from it", content("fp32_there" + last) == content("fp32_here" + last))


def together():
    """Two processes that meet by torchrun's variables; one on each kind of CPU sum to the same as both on x86-64."""
    world = dict(os.environ, WORLD_SIZE="2", LOCAL_WORLD_SIZE="2", MASTER_ADDR="localhost", MASTER_PORT=str(free_port()))
    last, good = [], True
    for folder, there in ("mixed", [*QEMU, "./fp32"]), ("alone", ["./fp32_x86"]):
        ranks = [begin(*program, folder=folder, steps=2, env=dict(world, RANK=str(rank), LOCAL_RANK=str(rank)))
                 for rank, program in enumerate((["./fp32_x86"], there))]
        status = [rank.wait() for rank in ranks]
        good &= check("two processes: " + folder, status == [0, 0], status)
        last.append(content(folder + "/ckpt-2.safetensors") if good else folder)
    return good & check("x86-64 and AArch64 train together", last[0] == last[1])


def clang():
    """Another compiler rounds alike: a step has the same values, down to the last bit."""
    if not shutil.which("clang"):
        print("no clang here: programs are those of gcc alone")
        return True
    other = build("clang", TARGET, "--dtype=fp16", "--cc=clang --target=aarch64-linux-gnu")
    for name, program in ("fp16.step", "./fp16"), ("clang.step", other):
        run(*QEMU, program, "--use-synthetic-data", "--threads=1", "--dump-step=" + name, "--dump-values", "--quiet")
    return check("clang's program computes the same", content("fp16.step") == content("clang.step"))


def static():
    run(ZOO, "cifar_resnet8", "--classes=3", "-o", "photos.pb")
    run(MAKE_FOLDER, "folder")
    flags = ["--dataset=folder", "--data-dir=folder", "--max-train-steps=2", *TRAIN]
    run(*QEMU[:1], build("photos", TARGET, "--static", "--preprocessing=official", model="photos.pb"), *flags, "--model-dir=photos_there")
    run(build("photos_x86", "--target=cpu", "--cpu=native", "--preprocessing=official", model="photos.pb"), *flags,
        "--model-dir=photos_here")
    checkpoint = "/ckpt-2.safetensors"
    return check("a static program reads photographs", content("photos_there" + checkpoint) == content("photos_here" + checkpoint))


def compiled():
    """Programs, objects and texts. The usual cache holds objects of both CPUs, the other none at first."""
    first, again = (content(build("a", TARGET, *cache)) for cache in (["--cache-dir=cache"], []))
    good = check("the same bytes, whatever the cache holds", first == again)
    needed = run("readelf", "-hd", "a")
    good &= check("needs libc and libm alone", "AArch64" in needed and not any(
        library in needed for library in ("libz", "protobuf", "jpeg", "png")), needed)
    about = json.loads(run(*QEMU, "./a", "--about=json"))["parts"][0]
    good &= check("--about names the CPU", about["target"] == "cpu:aarch64" and about["cpu"] == "armv8-a", about)
    build("o.o", TARGET, "--emit=obj")
    good &= check("--emit=obj", "AArch64" in run("readelf", "-h", "o.o"))
    build("o.c", TARGET, "--emit=c")
    run("aarch64-linux-gnu-gcc", "-w", "-fsyntax-only", "-I", RESOURCE, "o.c")
    return good


def models():
    """--cpu=NAME: with SVE's vectors of 256 bits, and without them, the same values; what a CPU lacks is said. The model has
    no products: tests/ops/own_aarch64.c runs their kernels with SVE."""
    def step(name, *cpu, status=0):
        return run(*QEMU, *cpu, "./" + name, "--use-synthetic-data", "--threads=1", "--dump-step=%s.step" % name, "--dump-values", "--quiet",
                   status=status)

    for name, *flags in ("v1", "--cpu=neoverse-v1"), ("v2", "--cpu=neoverse-v2"), ("all",):
        run(AMPCC, "small.amp", "-o", name, TARGET, "--dtype=bf16", *flags)
        step(name)
    wanted = content("all.step")
    good = check("neoverse-v1, neoverse-v2: the same values", content("v1.step") == wanted == content("v2.step"))
    good &= check("neoverse-v1 has SVE", "ptrue" in run("aarch64-linux-gnu-objdump", "-d", "v1"))
    for cpu, said in ("cortex-a76", "needs a CPU with SVE;"), ("max,sve256=off", "needs a CPU with SVE vectors of 256 bits;"):
        text = step("v1", "-cpu", cpu, status=3)
        good &= check("neoverse-v1 on %s: refused" % cpu, said in text, text)
    return good


def batch():
    """A batch makes a program again when the runtime or the compiler for that CPU is another."""
    def made(**env):
        said = run(AMPCC, "--batch=small.amp", "--out-dir=batch", TARGET, "--resource-dir=runtime", status=3 if env else 0, **env)
        return re.search(r"1 (made|unchanged|failed)", said)[1]
    os.mkdir("bin")
    os.symlink("/bin/false", "bin/aarch64-linux-gnu-gcc")
    shutil.copytree(RESOURCE, "runtime", ignore=lambda folder, names: [n for n in names if n != "aarch64" and not n.endswith((".a", ".h"))])
    got = [made(), made()]
    open("runtime/aarch64/new.h", "w").close()
    got += [made(), made(), made(PATH=os.path.abspath("bin") + ":" + os.environ["PATH"])]
    return check("--batch: another runtime, another compiler", got == ["made", "unchanged", "made", "unchanged", "failed"], got)


def whole():
    """A whole program comes from the cache until the linker for that CPU has changed."""
    linker = os.path.join("bin", "aarch64-linux-gnu-ld")
    shutil.copy(os.path.realpath(shutil.which(os.path.basename(linker))), linker)

    def cached():
        said = run(AMPCC, "small.amp", TARGET, "-v", "-o", "a", "--cache-dir=whole", "--cc=" + shutil.which("aarch64-linux-gnu-gcc"),
                   PATH=os.path.abspath("bin") + ":" + os.environ["PATH"])
        return "from the cache: the whole program" in said
    got = [cached(), cached()]
    with open(linker, "ab") as file:
        file.write(b"1")
    got.append(cached())
    return check("another linker", got == [False, True, False], got)


def refused():
    os.mkdir("bare")
    for name in os.listdir(RESOURCE):
        if name != "aarch64":
            os.symlink(os.path.join(RESOURCE, name), "bare/" + name)
    good = True
    for flags, status, said in [
        (["--target=cpu,cpu:aarch64"], 2, "one program is for one kind of CPU, cpu or cpu:aarch64; make two"),
        (["--target=cpu:arch64"], 2, "unknown target `cpu:arch64`; did you mean `cpu:aarch64`?"),
        ([TARGET, "--cpu=neoverse-v3"], 2, "--cpu=neoverse-v3: no AArch64 CPU is known by this name; did you mean `neoverse-v2`"),
        ([TARGET, "--cpu-library=onednn"], 2, "--cpu-library=onednn is not for --target=cpu:aarch64"),
        ([TARGET, "--certify"], 2, "--certify runs the step here"),
        ([TARGET, "--resource-dir=bare"], 3, "bare/aarch64: there is no libamprt.a: this ampcc was built without"),
        ([TARGET, "--cc=no-such-compiler"], 3, "no-such-compiler"),
    ]:
        text = run(AMPCC, "model.pb", *flags, "-o", "never", status=status)
        good &= check("refused: " + " ".join(flags), said in text and not os.path.exists("never"), text)
    return good


RESOURCE = os.path.join(os.path.dirname(AMPCC), "../codegen")
if not os.path.exists(RESOURCE + "/aarch64/libamprt.a") or not shutil.which(QEMU[0]):
    print("skipped: ampcc was built without the runtime for AArch64, or there is no qemu-aarch64")
    sys.exit(77)
with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    run(ZOO, "cifar_resnet8", "-o", "model.pb")
    with open("small.amp", "w") as out:
        out.write(SMALL)
    sys.exit(0 if compiled() & models() & batch() & whole() & refused() & static() & train() & together() & clang() else 1)
