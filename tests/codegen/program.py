#!/usr/bin/env python3
"""Tests the programs that ampcc writes: program.py AMPCC RESOURCES CASE

CASE names one of the functions below. RESOURCES is the folder of libamprt.a and amprt.h."""
import json, os, pathlib, re, resource, shutil, subprocess, sys, tempfile

ampcc, resources, case = [os.path.abspath(a) for a in sys.argv[1:3]] + sys.argv[3:]
ALLOWED = {"libc.so.6", "libm.so.6", "libgomp.so.1", "libz.so.1"}
HOSTILE = ['*/ #include "planted.h" /*', '"); system("id"); ("', "??/\\\\", "a\\x0ab", "%s%n", "\\xc3\\xbf{}",
           "// -----", "it's"]

MLP = """recipe {name="%(model)s", batch_size=4}

graph @train stage model {
  %%image = input {name="image"} : f32[4,3,3,2]
  %%label = input {name="label"} : i32[4]
  %%w = variable {kind="param", init="variance_scaling", init_args=[1.0,2.0,2.0]} : f32[3,1,1,2] loc "%(layer)s"
  %%"%(value)s" = variable {kind="param", init="zeros"} : f32[5,27]
  %%c = conv2d %%image, %%w {stride=[1,1], pad=[0,0,0,0]} : f32[4,3,3,3] loc "%(layer)s"
  %%r = relu %%c : f32[4,3,3,3] loc "%(layer)s"
  %%x = reshape %%r {shape=[4,27]} : f32[4,27]
  %%y = matmul %%x, %%"%(value)s" {trans_b=1} : f32[4,5] loc "%(layer)s"
  %%e = softmax_xent %%y, %%label : f32[4]
  %%l = reduce_mean %%e {axes=[0]} : f32[]
  %%h = in_top_k %%y, %%label {k=1} : f32[4]
  %%a = reduce_mean %%h {axes=[0]} : f32[]
  output %%l {name="loss"}
  output %%a {name="accuracy"}
  output %%y {name="logits"}
  output %%e {name="loss_each"}
  output %%h {name="hit_each"}
}
"""


def run(*args, status=0, cwd=None, **env):
    result = subprocess.run([str(a) for a in args], capture_output=True, text=True, cwd=cwd,
                            errors="backslashreplace", env={**os.environ, **env}, timeout=300)
    if result.returncode != status:
        sys.exit(f"{args}: status {result.returncode}, not {status}\n{result.stdout}{result.stderr}")
    return result


def model(folder, layer="fc", value="v", name="mlp"):
    path = folder / "model.amp"
    path.write_text(MLP % dict(model=name, layer=layer, value=value), encoding="latin-1")
    return path


def c_text(path, folder, *args):
    out = folder / "program.c"
    run(ampcc, path, "--emit=c", "-o", out, *args)
    return out


def program(path, out, *args, **more):
    """Compiles a program for the CPU alone."""
    return run(ampcc, path, "--target=cpu", "-o", out, *args, **more)


def compiles(folder):
    """In every precision, gcc and clang compile the generated C without a warning; and the convolutions, which are the same in all."""
    path = model(folder)
    for args in ["--dtype=fp32"], *(["--dtype=" + dtype, "--cpu-library=onednn"] for dtype in ("fp32", "fp16", "bf16")):
        text = c_text(path, folder, *args)
        for cc in "gcc", "clang", "clang-14":
            if shutil.which(cc):
                run(cc, "-std=gnu11", "-Wall", "-Werror", *(["-Wno-pass-failed"] if "clang" in cc else []), "-O1", "-fopenmp-simd", "-march=x86-64-v3", "-c",
                    "-I", resources, "-o", folder / "program.o", text)


def deterministic(folder):
    """Two compiles give the same bytes, wherever the program is written, the second with an empty cache. (shipped.py compiles the kernels
    anew.)"""
    path = model(folder)
    (folder / "deep").mkdir()
    if b"__asan_" in pathlib.Path(ampcc).read_bytes():  # the sanitizer puts paths into programs, so compare the generated text instead
        one, two = (c_text(path, f).read_bytes() for f in (folder, folder / "deep"))
    else:
        program(path, folder / "one")
        program("../model.amp", "two", "--cache-dir=empty", cwd=folder / "deep", TMPDIR=str(folder))
        one, two = ((folder / p).read_bytes() for p in ("one", "deep/two"))
    if one != two:
        sys.exit("two compiles of one model differ")


def hostile(folder):
    """Names chosen by the model cannot leave their string literals in the generated C."""
    for text in HOSTILE:
        written = text.replace('"', '\\"')
        # Names of the model and of variables are stored in checkpoints, so they may have no
        # control characters.
        named = "\\x0a" not in written
        path = model(folder, layer=written, **({"value": written, "name": written} if named else {}))
        c = c_text(path, folder).read_text(encoding="latin-1")
        bare = re.sub(r'"(\\.|[^"\\\n])*"', '""', c)
        inner = re.sub(r"[^A-Za-z#]+", "", text)
        if "system(" in bare or "planted.h" in bare or "??/" in c or (len(inner) > 3 and inner in bare):
            sys.exit(f"{text!r} left its string literal")
        run("gcc", "-std=gnu11", "-trigraphs", "-Wall", "-Werror", "-O0", "-fopenmp-simd", "-march=x86-64-v3",
            "-fsyntax-only", "-I", resources, folder / "program.c")
    about = folder / "train"
    program(path, about, "--cpu=native")
    run(about, "--about")


def links(folder):
    """A program needs only the libraries that the README lists, has less than a megabyte, and
    prints the memory plan as ampcc does."""
    out = folder / "train"
    plan = program(model(folder), out, "--print-memory-plan").stdout
    if run(out, "--print-memory-plan").stdout != plan or plan.count(" " * 10) < 5:
        sys.exit("the program's memory plan is not the compiler's")
    if b"__asan_" in out.read_bytes():
        return  # a build with sanitizers has other libraries and sizes
    if str(folder) in out.read_bytes().decode("latin-1"):
        sys.exit("the program names a folder of this machine")
    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-d", out).stdout))
    if not needed <= ALLOWED:
        sys.exit(f"needs {needed - ALLOWED}")
    if out.stat().st_size > 1 << 20:
        sys.exit(f"{out.stat().st_size} bytes")


def refused(folder, *args, **env):
    """A compile that fails ends with status 3 and one line, and leaves no file behind."""
    before = sorted(folder.rglob("*"))
    err = run(ampcc, folder / "model.amp", "--target=cpu", *args, status=3, TMPDIR=str(folder), **env).stderr
    if err.count("\n") != 1 or not err.startswith("ampcc: "):
        sys.exit(f"{args}: not one line:\n{err}")
    if before != sorted(folder.rglob("*")):
        sys.exit(f"{args}: left {set(folder.rglob('*')) - set(before)}")
    return err


def failures(folder):
    model(folder)
    (folder / "taken").mkdir()
    (folder / "old").write_text("kept")
    bad = folder / "bad-cc"
    bad.write_text("#!/bin/sh\necho warning: hm >&2\necho program.c:1: error: no >&2\nexit 1\n")
    bad.chmod(0o755)
    bad_link = folder / "bad-ld"
    bad_link.write_text('#!/bin/sh\ncase "$*" in *" -c "*) exec cc "$@";; esac\nkill -9 $$\n')
    bad_link.chmod(0o755)
    assert "taken" in refused(folder, "-o", folder / "taken")
    assert "No such file" in refused(folder, "-o", folder / "nowhere" / "x")
    assert "cannot run `no-such-cc`" in refused(folder, "-o", folder / "x", "--cc=no-such-cc")
    assert "error: no" in refused(folder, "-o", folder / "x", CC=str(bad))
    assert "signal 9" in refused(folder, "-o", folder / "old", CC=str(bad_link))
    assert "libamprt.a" in refused(folder, "-o", folder / "x", f"--resource-dir={folder}")
    assert (folder / "old").read_text() == "kept"


def temps(folder):
    """--save-temps keeps the generated text and the objects; -v prints the commands. Only own kernels
    in bf16 are compiled for CPUs that multiply it."""
    err = program(model(folder), folder / "train", "-v", f"--save-temps={folder}/kept", f"--cache-dir={folder}/cache").stderr
    assert "-march=x86-64-v4" in err and "-march=x86-64-v3" in err, err
    for dtype in "fp32", "bf16":
        err = program(model(folder), folder / "own", "-v", "--cpu-library=own", f"--dtype={dtype}", f"--cache-dir={folder}/cache").stderr
        assert ("amp_bf16_kernels.o" in err) == (dtype == "bf16"), err
    for name in "cpu.c", "amp_v3.o", "amp_v3_kernels.o", "amp_v4.o", "amp_v4_kernels.o", "cpu.o":
        assert (folder / f"kept.{name}").exists(), name
    program(folder / "model.amp", folder / "native", "--cpu=native")
    run(folder / "native", "--about")


def json_and_dot(folder):
    path = model(folder, layer=HOSTILE[1].replace('"', '\\"'), value="\\xc3\\xbf")  # names must be UTF-8
    tree = json.loads(run(ampcc, path, "--emit=json").stdout)
    train = next(g for g in tree["graphs"] if g["name"] == "train")
    assert train["stage"] == "planned" and tree["state_bytes"] > 0
    convs = [n for n in train["nodes"] if n["op"] == "conv2d"]
    assert convs and convs[0]["attrs"]["stride"] == [1, 1] and convs[0]["layer"] == HOSTILE[1]
    dot = run(ampcc, path, "--emit=dot").stdout
    assert dot.startswith("digraph") and dot.count("{") == dot.count("}") and "conv2d" in dot
    if shutil.which("dot"):
        (folder / "x.dot").write_text(dot)
        run("dot", "-Tsvg", "-o", "/dev/null", folder / "x.dot")


NUMBERS = """recipe {name="numbers", batch_size=4}

graph @train stage model {
  %image = input {name="image"} : f32[4,4,4,3]
  %label = input {name="label"} : i32[4]
  %w = variable {kind="param", init="variance_scaling", init_args=[1.0,2.0,2.0]} : f32[8,3,3,3]
  %g = variable {kind="param", init="ones"} : f32[8]
  %b = variable {kind="param", init="zeros"} : f32[8]
  %m = variable {kind="stat", init="zeros"} : f32[8]
  %v = variable {kind="stat", init="ones"} : f32[8]
  %f = variable {kind="param", init="variance_scaling", init_args=[1.0,2.0,2.0]} : f32[5,128]
  %c = conv2d %image, %w {stride=[1,1], pad=[1,1,1,1]} : f32[4,4,4,8] loc "conv"
  %n, %n.mean, %n.var = batch_norm %c, %g, %b, %m, %v {epsilon=0.001, momentum=0.9} : f32[4,4,4,8], f32[8], f32[8] loc "norm"
  %s = add %n, %c : f32[4,4,4,8] loc "sum"
  %r = relu %s : f32[4,4,4,8] loc "cut"
  %x = reshape %r {shape=[4,128]} : f32[4,128]
  %y = matmul %x, %f {trans_b=1} : f32[4,5] loc "fc"
  %e = softmax_xent %y, %label : f32[4] loc "loss"
  %l = reduce_mean %e {axes=[0]} : f32[] loc "loss"
  output %l {name="loss"}
  output %y {name="logits"}
}
"""


def stored_floats(plan):
    """[name, op, layer, at, kernel] of each stored float of @train, from the text of the plan."""
    found = []
    for line in plan.splitlines():
        node = re.match(r"  (%.*?) = (\w+) .*\bkernel=(\d+), at=\[(.*?)\].*?} : (.*?)(?: loc \"(.*)\")?$", line)
        if node:
            names, op, kernel, places, types, layer = node.groups()
            for name, at, dtype in zip(names.split(", "), places.split(","), re.findall(r"(\w+)\[", types)):
                if int(at) >= 0 and dtype in ("f32", "f16"):
                    found.append([name[1:], op, layer or "", int(at), int(kernel)])
    return found


def values(folder):
    """The program's table of values that can be examined after each kernel: it must have every
    stored float of @train, at its place in the plan, with the ops of its kernel that can make
    Inf or NaN. tests/e2e/injections.py tests how programs use it."""
    path = folder / "model.amp"
    path.write_text(NUMBERS)
    text = c_text(path, folder, "--dtype=fp16").read_text()
    table = re.search(r"AmprtValue values_train\[\] = \{\n(.*?)  \{0\}\};", text, re.S).group(1)
    rows = [json.loads(re.sub(r"^  \{(.*), AMPRT_\w+\},$", r"[\1]", row).replace("NULL", "null")) for row in table.splitlines()]
    plan = run(ampcc, path, "--dtype=fp16", "--emit=ir").stdout.split("\n}\n")[0]
    written = [[name, op, layer, at, kernel] for name, op, layer, _, at, _, kernel in rows]
    if sorted(written) != sorted(stored_floats(plan)) or len(rows) < 20:
        sys.exit(f"the table differs from the plan:\n{written}\n{stored_floats(plan)}")
    assert [row[6] for row in rows] == sorted(row[6] for row in rows), "not in the order of kernels"
    makers = {row[0]: row[3] for row in rows}
    assert makers["c"] is None and makers["y"] is None, makers  # each is the only op of its kernel
    assert makers["r"] == "affine of norm or add of sum", makers  # relu cannot make Inf by itself
    first = int(re.search(r"first_update_train = (\d+)", text).group(1))
    updates = [int(k) for k in re.findall(r"update %(?!m,|v,)\S+ .*kernel=(\d+)", plan)]
    assert first == min(updates), (first, updates)


PICTURES = """recipe {name="pictures", batch_size=2}

graph @train stage model {
  %%image = %s
  %%x = reshape %%image {shape=[2,6]} : f32[2,6]
  %%label = input {name="label"} : i32[2]
  %%w = variable {kind="param", init="zeros"} : f32[6]
  %%y = bias_add %%x, %%w : f32[2,6]
  %%e = softmax_xent %%y, %%label : f32[2]
  %%l = reduce_mean %%e {axes=[0]} : f32[]
  output %%l {name="loss"}
}
"""


def pictures(folder):
    """Pictures may have fewer axes than N,H,W,C, but must be an input."""
    path, out, losses = folder / "model.amp", folder / "train", []
    train = [out, "--use-synthetic-data", "--max-train-steps=2", "--log-every=1", "--skip-eval", "--model-dir="]
    for shape in "2,1,1,6", "2,1,6", "2,6":
        path.write_text(PICTURES % f'input {{name="image"}} : f32[{shape}]')
        program(path, out, "--cpu=native")
        losses.append(re.findall(r"loss (\S+)", run(*train).stdout))
    assert len(losses[0]) == 2 and losses[0] == losses[1] == losses[2], losses
    for source, said in (("const {value=0.5} : f32[2,1,1,6]", "it has no input `image`"),
                         ('input {name="features"} : f32[2,6]', "its input `features` is given nothing, as images go to `image`")):
        path.write_text(PICTURES % source)
        program(path, out, "--cpu=native")
        assert "this program cannot run: " + said in run(*train, status=3).stderr, said
    shifted = PICTURES.replace("  %%y = bias_add %%x, %%w", '  %%q = input {name="mix"} : f32[6]\n  %%z = bias_add %%x, %%q : f32[2,6]\n  %%y = bias_add %%z, %%w')
    path.write_text(shifted % 'input {name="image"} : f32[2,6]')
    program(path, out, "--cpu=native")
    assert "this program cannot run: its input `mix` is of a shape or type that no data has" in run(*train, status=3).stderr


def low_memory(folder):
    """Under any limit of memory a program either trains or says how much memory is missing; no
    library crashes."""
    out = folder / "train"
    program(model(folder), out, "--cpu=native")
    if b"__asan_" in out.read_bytes():
        return  # AddressSanitizer needs terabytes of address space
    flags = ["--use-synthetic-data", "--max-train-steps=1", "--model-dir=", "--threads=2", "--data-threads=1"]
    ended = []
    for mib in range(48, 240, 8):
        done = subprocess.run([out, *flags], capture_output=True, text=True, timeout=300,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (mib << 20, mib << 20)))
        if done.returncode == 127:
            continue  # not even the program's libraries could be loaded
        if done.returncode not in (0, 3) or (done.returncode == 3 and not re.search(r"no memory for .*MiB", done.stderr)):
            sys.exit(f"{mib} MiB: status {done.returncode}\n{done.stderr}")
        ended.append(done.returncode)
    if not {0, 3} <= set(ended):
        sys.exit(f"nothing was tried: {ended}")


with tempfile.TemporaryDirectory() as name:
    globals()[case](pathlib.Path(name))
