"""Tests programs of several parts, and other output for one: parts.py AMPCC ZOO TINY TOOLKIT RESOURCE SANITIZE

TINY is a small model; RESOURCE the folder that programs are linked from, built with -fsanitize=SANITIZE or none.
The machine needs no GPU."""
import filecmp
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from program import link_toolkit

ampcc, zoo, tiny, toolkit, resource = map(os.path.abspath, sys.argv[1:6])
sanitize = [] if sys.argv[6] == "none" else ["-fsanitize=" + sys.argv[6]]
TRAIN = ["--use-synthetic-data", "--max-train-steps=2", "--threads=1"]
LINK = [*sanitize, "-no-pie", "-fopenmp", f"{resource}/libamprt_cuda.a", f"{resource}/libamprt_dnn.a", f"{resource}/libamprt.a",
        f"{resource}/libprotobuf-c.a"]
LIBRARIES = ["-ldnnl", "-lz", "-lm", "-ldl", "-lrt", "-lpthread"]
TARGETS = "cpu,cuda:sm_75,cuda:h200,cpu,cuda:h100"
HAS_DRIVER = os.path.exists("/dev/nvidiactl")


def run(*args, status=0, stdin=None, **env):
    done = subprocess.run([str(a) for a in args], input=stdin, capture_output=True, env={**os.environ, **env})
    err = done.stderr.decode(errors="replace")
    assert done.returncode == status, (args, done.returncode, err)
    return done.stdout, err


def compile(name, targets, *more, **env):
    _, err = run(ampcc, tiny, f"--target={targets}", "--cache-dir=cache", "-o", name, *more, **env)
    return pathlib.Path(name), err


def lists():
    """A program has each part once, the newest GPU first and the CPU last, whatever the order of
    --target."""
    train, err = compile("train", TARGETS)
    lines = [line.split()[1] for line in err.splitlines()[1:]]
    assert lines == ["cuda:sm_90", "cuda:sm_75", "cpu"], err
    assert "launches of" in err and "KB)" in err and "MB of arena" in err, err
    about, _ = run("./train", "--about")
    parts = [line.split()[0] for line in about.splitlines() if line.startswith((b"cuda:", b"cpu "))]
    assert parts == [b"cuda:sm_90", b"cuda:sm_75", b"cpu"], about
    return train


def defaults():
    """Without --target a program is for the CPU and the GPUs marked in --list-targets, and all
    other output for the CPU alone. Without the toolkit the program is for the CPU, and a line
    says so."""
    for flags, parts in (["--cache-dir=cache"], ["cuda:sm_90", "cuda:sm_89", "cuda:sm_80", "cpu"]), (["--cuda-path=cache"], ["cpu"]):
        _, err = run(ampcc, tiny, "-o", "default", *flags)
        assert [line.split()[1] for line in err.splitlines()[-len(parts):]] == parts, err
        assert ("ampcc: no parts for GPUs: no libnvrtc.so.13 in cache; --cuda-path" in err) == (parts == ["cpu"]), err
    # but for the list of flags that ampcc was given, which programs keep for their answers
    ours, cpu = (re.sub(rb'manifest_size = \d+|\\"--target=cpu\\"', b"", run(ampcc, tiny, "--emit=c", *flags)[0].replace(
        b"  {\"target\", \"cpu\"},\n", b"").replace(b"n_given = 1", b"n_given = 0")) for flags in ([], ["--target=cpu"]))
    assert ours == cpu
    run(ampcc, tiny, "--emit=ir", "-o", "planned.amp")
    assert "sm_" not in run(ampcc, "planned.amp", "-o", "default")[1]


LARGE = """recipe {name="large", batch_size=1048576, learning_rate=0.5}
graph @train stage model {
  %x = input {name="image"} : f32[1048576,8192]
  %label = input {name="label"} : i32[1048576]
  %w = variable {kind="param", init="ones"} : f32[3,8192]
  %y = matmul %x, %w {trans_b=1} : f32[1048576,3]
  %each = softmax_xent %y, %label : f32[1048576]
  %loss = reduce_mean %each {axes=[0]} : f32[]
  output %loss {name="loss"}
  output %each {name="loss_each"}
}
"""


def left_out():
    """A default GPU that cannot run the model gets no part; one that was named on the command line
    is an error."""
    pathlib.Path("large.amp").write_text(LARGE)
    _, err = run(ampcc, "large.amp", "-o", "large", "--cache-dir=cache")
    assert "no part for cuda:sm_89: large.amp: error[E409]: @train needs 32.0" in err, err
    assert [line.split()[1] for line in err.splitlines()[-3:]] == ["cuda:sm_90", "cuda:sm_80", "cpu"], err
    _, err = run(ampcc, "large.amp", "-o", "named", "--target=cpu,cuda:l4", status=1)
    assert "error[E409]" in err and not pathlib.Path("named").exists(), err
    pathlib.Path("wrong.amp").write_text(LARGE.replace("8192]", "8192", 1))
    _, err = run(ampcc, "wrong.amp", "-o", "wrong", status=1)
    assert err.count("wrong.amp:3:") == 1 and "no part" not in err, err


def runs(train):
    """A program runs the first part that fits, and says why those before it do not."""
    if HAS_DRIVER:
        return
    _, err = run("./train", *TRAIN)
    assert "train: not cuda:sm_90, cuda:sm_75: no NVIDIA driver is installed\ntrain: device cpu\n" in err, err
    _, err = run("./train", "--device=cuda", *TRAIN, status=3)
    assert "does not run here: cuda:sm_90, cuda:sm_75: no NVIDIA driver is installed" in err, err
    compile("alone", "cuda:h200")
    assert "no NVIDIA driver" in run("./alone", *TRAIN, status=3)[1]
    hidden = ["unshare", "-rm", "sh", "-c", f'mount -t tmpfs none "{toolkit}" && exec "$@"', "sh"]
    if subprocess.run(hidden + ["true"], capture_output=True).returncode == 0:
        run(*hidden, train.absolute(), *TRAIN)
    else:
        print("cannot hide the toolkit here: no private mounts")


def same_bytes(train):
    """A cold cache, a warm cache and no cache give the same bytes."""
    again, _ = compile("again", TARGETS)
    assert filecmp.cmp(train, again, shallow=False)
    for cache in "cache", "":
        run(ampcc, tiny, "--target=cuda:h200", "--emit=cubin", f"--cache-dir={cache}", "-o", f"cubin{cache}")
    assert filecmp.cmp("cubin", "cubincache", shallow=False)
    assert open("cubin", "rb").read(4) == b"\x7fELF"


def links_what_it_needs(train):
    """A program without a CUDA part names no library of CUDA, and no program is linked with one."""
    plain, _ = compile("plain", "cpu")
    for path, has in (train, True), (plain, False):
        assert (b"libcublasLt.so.13" in path.read_bytes()) == has, path
    for path in train, plain:
        assert b"cuda" not in run("ldd", path.absolute())[0], path


def texts():
    """--emit= of one part as C, CUDA C, PTX and an object; C and object link to whole programs."""
    compile("part.cu", "cuda:h200", "--emit=cuda")
    text = open("part.cu").read()
    assert "AMP_KERNEL(" in text and "#include" not in text
    compile("part.ptx", "cuda:h200", "--emit=ptx")
    assert ".target sm_90" in open("part.ptx").read()
    compile("part.c", "cuda:h200", "--emit=c")
    cudart = next(pathlib.Path(toolkit).glob("**/libcudart_static.a"))
    run("cc", "-O1", "-w", "-I", resource, "part.c", "-o", "from_c", *LINK, cudart, *LIBRARIES)
    assert b"target       cuda:sm_90\n" in run("./from_c", "--about")[0]
    compile("part.o", "cuda:h200,cpu", "--emit=obj")
    run("cc", "part.o", "-o", "from_o", *LINK, cudart, *LIBRARIES)
    assert b"\ncpu " in run("./from_o", "--about")[0]
    run(ampcc, "-", "--target=cuda:h200,cpu", "--cache-dir=cache", "-o", "from_stdin", stdin=open(tiny, "rb").read())
    assert not [name for name in os.listdir(".") if name.startswith("ampcc-")]


def temps():
    """--save-temps keeps texts and machine code, and no other file."""
    os.mkdir("tmp")
    compile("kept", "cuda:h200", "--save-temps", TMPDIR=os.path.abspath("tmp"))
    for ending in "c", "cu", "cubin", "o":
        assert os.path.getsize(f"kept.cuda_sm_90.{ending}") > 0
    assert os.listdir("tmp") == [], os.listdir("tmp")


def refusals():
    """Command lines that must be refused, each with its status and message."""
    for name in "cifar_resnet8", "mlp":
        run(zoo, name, "-o", name + ".pb")
    resnet, mlp = "cifar_resnet8.pb", "mlp.pb"
    os.mkdir("empty")
    for status, words, more, model in (
            (1, "node 'conv1': error[E402]: cuda:sm_75 cannot run `fprop bf16", ["--target=cuda:t4", "--dtype=bf16"], resnet),
            (1, "error[E402]: cuda:sm_75 cannot run `matmul`", ["--target=cuda:t4,cpu", "--dtype=bf16"], mlp),
            (3, "no libnvrtc.so.13 in empty; --cuda-path names", ["--target=cpu,cuda:t4", "--cuda-path=empty"], mlp),
            (1, "error[E408]: cuda:sm_90: no file of --tuning-db has a choice for fprop f32", ["--require-tuned"], resnet),
            (2, "--target: one at a time", ["--target=cpu,cuda:t4", "--emit=c"], mlp),
            (2, "--emit=ptx is for GPUs", ["--emit=ptx"], mlp),
            (2, "--target must have cpu in it", ["--target=cuda:t4", "--certify"], mlp)):
        _, err = run(ampcc, model, "-o", "refused", "--cache-dir=cache", *more, status=status)
        assert words in err and not os.path.exists("refused"), (more, err)


def newer_gpus():
    """A part has PTX for newer GPUs, unless it has fused plans for which newer GPUs have no
    engines."""
    for flags, has in (["--dtype=fp16"], True), (["--dtype=fp16", "--fuse-level=3"], False), (["--dtype=bf16"], True):
        text, _ = run(ampcc, "cifar_resnet8.pb", "--target=cuda:h200", "--emit=c", "--cache-dir=cache", *flags)
        assert (b"char ptx[]" in text) == has and (b".newest = 90" in text) != has, flags


def broken_compiler():
    """If the toolkit's libnvrtc is not a library, no output is written, not even an empty file."""
    usual = pathlib.Path(toolkit, "lib64/libnvrtc.so.13")
    nvrtc = usual if usual.exists() else next(pathlib.Path(toolkit).glob("**/libnvrtc.so.13"))
    link_toolkit(toolkit, nvrtc, "broken").write_bytes(b"")
    for form in "cubin", "exe":
        _, err = run(ampcc, "mlp.pb", "--target=cuda:t4", f"--emit={form}", "--cuda-path=broken", "--cache-dir=", "-o", "torn", status=3)
        assert "libnvrtc.so.13" in err and not [name for name in os.listdir(".") if name.startswith("torn")], (form, err)


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    program = lists()
    defaults()
    left_out()
    runs(program)
    same_bytes(program)
    links_what_it_needs(program)
    texts()
    temps()
    refusals()
    newer_gpus()
    broken_compiler()
    os.chdir("/")
