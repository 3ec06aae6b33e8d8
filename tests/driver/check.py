#!/usr/bin/env python3
"""Tests the command lines of ampcc and ampcc-zoo, their exit status and messages, and the forms of models: check.py AMPCC AMPCC_ZOO"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from commands import AMPCC, ZOO, expect, failed, fails, run


def usage():
    fails(2, "no model given")
    fails(2, "unknown option `--bach-size=3`; did you mean `--batch-size`", "--bach-size=3", "mlp.pb")
    fails(2, "unknown option `--zzzzzzzzzz`; see --help", "--zzzzzzzzzz")
    fails(2, "unknown option `-x`", "-x", "mlp.pb")
    fails(2, "--fuse-level takes 1|2|3, not `4`", "mlp.pb", "--fuse-level=4")
    fails(2, "--dtype takes fp32|fp16|bf16, not `fp64`", "mlp.pb", "--dtype=fp64")
    fails(2, "--loss-scale takes", "mlp.pb", "--loss-scale=-1")
    fails(2, "--loss-scale takes", "mlp.pb", "--loss_scale=nan")
    fails(2, "--batch-norm-momentum takes", "mlp.pb", "--batch-norm-momentum=2")
    fails(2, "unknown pass `nope`", "mlp.pb", "--passes=dce,nope")
    fails(2, "unknown pass `nope`", "mlp.pb", "--skip=nope")
    fails(2, "--emit takes ir|json|dot|c|cuda|ptx|cubin|obj|exe, not `wasm`", "mlp.pb", "--emit=wasm")
    for cpu in ("armv8", "", "x86-64", "haswel", "$(id)"):
        fails(2, "ampcc: --cpu=%s: no x86-64 CPU with AVX2 is known by this name" % cpu, "mlp.pb", "--target=cpu", "--cpu=" + cpu)
    fails(2, "did you mean `haswell`?", "mlp.pb", "--cpu=haswel")
    fails(2, "--quiet takes no value", "mlp.pb", "--quiet=1")
    fails(2, "--batch-size needs a value", "mlp.pb", "--batch-size")
    fails(2, "--tf32 is of fp32, not of --dtype=bf16", "mlp.pb", "--tf32", "--dtype=bf16")
    fails(2, "--sync-batch-norm is of the step that --distributed=off leaves out", "mlp.pb", "--sync-batch-norm", "--distributed=off")
    fails(2, "--bucket takes SIZE, not `8furlongs`", "mlp.pb", "--bucket=8furlongs")
    fails(2, "--tf32 is for GPUs", "mlp.pb", "--tf32", "--target=cpu")
    fails(2, "--require-tuned is for GPUs", "mlp.pb", "--require-tuned", "--emit=c")
    fails(2, "belong to --certify", "mlp.pb", "--max-error=0.1")
    fails(2, "belong to --certify", "mlp.pb", "--certify-batch=2")
    fails(2, "--certify-batch takes N, not `1.5`", "mlp.pb", "--certify", "--certify-batch=1.5")
    fails(2, "--max-error takes X, not `nan`", "mlp.pb", "--certify", "--max-error=nan")
    fails(2, "give it as a file", "-", "--certify")
    fails(2, "one model at a time", "mlp.pb", "other.pb")
    fails(2, "would overwrite the model", "mlp.pb", "--emit=ir", "-o", "mlp.pb")
    fails(2, "cannot go to standard output", "mlp.pb", "-o", "-")
    # a wrong flag of the recipe is no fault of the model (tests/import has the model's own)
    for flag, takes in (("--batch-size=0", "a whole number from 1 to 1048576, not `0`"), ("--batch_size", "a whole number from 1 to 1048576, not `x`"),
                        ("--momentum=nan", "a number from 0 to 1, not `nan`"), ("--optimizer=sgb", "sgd, "), ("--augment-pad=4097", "a whole number from 0 to 4096"),
                        ("--lr-boundaries=2,1", "rising numbers from 0 to 1000000 with commas between, not `2,1`"), ("--metrics=top1,top9", "a comma list of top1, top5"),
                        ("--decay-spares=", "a comma list of batch_norm, bias, none, not ``"), ("--dataset=mnist", "fashion_mnist, cifar10")):
        name = flag.split("=")[0].replace("_", "-")
        fails(2, "ampcc: %s takes %s" % (name, takes), "mlp.pb", flag, *([] if "=" in flag else ["x"]))
    fails(2, "ampcc: clip_value and clip_norm do not go together", "mlp.pb", "--clip-value=1", "--clip-norm=1")
    expect("the same bounds as in programs", run(AMPCC, "mlp.pb", "--passes=", "--augment-pad=4096")[0] == 0)
    expect("ampcc-zoo: usage", run(ZOO)[0] == 2 and run(ZOO, "--nope")[0] == 2)
    expect("ampcc-zoo: unknown model", run(ZOO, "resnet19")[0] == 1)


def texts():
    status, out, _ = run(AMPCC, "--help")
    for flag in (b"--batch-size=N", b"--passes=A,B", b"-o, --output=FILE", b"--lr-boundaries"):
        expect("--help names %s" % flag, status == 0 and flag in out)
    expect("--version", run(AMPCC, "--version")[1].startswith(b"ampcc "))
    for name, first, last in (("official", "0.128", "top1,top5,l2"), ("keras-ctl", "0.1", "top1"), ("dle", "0.256", "top1"), ("mlperf", "11.0", "top1"),
                              ("torchvision", "0.1", "top1,top5")):
        small = str(pathlib.Path(__file__).parent.parent / "scale/small.pbtxt")
        status, out, said = run(AMPCC, small, "--momentum=0.25", f"--recipe={name}", "--print-recipe", "--seed=7")
        lines = out.decode().splitlines()
        rate = [line for line in lines if line.startswith("--learning-rate=")]
        expect(f"--recipe={name}", status == 0 and rate[0].startswith(f"--learning-rate={first}  # --recipe={name} ["), out, said)
        expect(f"--recipe={name}: metrics", any(line.startswith(f'--metrics="{last}"') for line in lines), out)
        expect(f"--recipe={name}: who", "--seed=7  # a flag" in lines and not any(line.startswith("--momentum=0.25") for line in lines), out)
        status, out, said = run(AMPCC, small, f"--recipe={name}", "--learning-rate=3", "--print-recipe")
        expect(f"--recipe={name}: a flag behind it", status == 0 and b"--learning-rate=3.0  # a flag" in out, out, said)
    fails(2, "--recipe takes official|keras-ctl|dle|mlperf|torchvision, not `none`", "x.pb", "--recipe=none")
    passes = [line.split()[0] for line in run(AMPCC, "--list-passes")[1].splitlines()]
    expect("--list-passes", passes[:2] == [b"simplify", b"set-compute"] and b"plan-memory" in passes, passes)


def readme():
    """Every flag that frontend/README.md speaks of exists; all of them are in --help, which is printed from the tables."""
    text = (pathlib.Path(__file__).resolve().parents[2] / "frontend/README.md").read_text()
    known = set(re.findall("--[a-z][a-z0-9-]*", run(AMPCC, "--help")[1].decode()))
    for flag in sorted(set(re.findall("--[a-z][a-z0-9-]*", text)) - known):
        expect("frontend/README.md: %s is in --help" % flag, False)
    long = [line for line in text.splitlines() if len(line) > 100 and not line.startswith(("|", "    "))]
    expect("frontend/README.md is wrapped at 100", not long, long)


def targets():
    for wrong, text in (("gpu", "unknown target `gpu`"), ("h200", "did you mean `cuda:h200`"),
                        ("cuda:h20", "no GPU `h20`; there are:"), ("cuda:v100", "v100 is not supported: CUDA 13"),
                        ("cpu,cuda:sm_70", "sm_70 is not supported"), ("cuda:", "no GPU ``"), (",", "names nothing")):
        fails(2, text, "mlp.pb", "--target=" + wrong)
    status, out, _ = run(AMPCC, "--list-targets")
    names = [line.split()[0] for line in out.decode().splitlines()]
    expect("--list-targets", status == 0 and names[0] == "cpu" and "cuda:h200" in names and names[-1] == "cuda", names)


def bad_input():
    fails(1, "nope.pb: error[E208]: cannot be opened", "nope.pb")
    fails(1, "error[E208]: cannot be read", ".")
    fails(1, "error[E201]: this is no ModelDef", "-", stdin=b"\x07\xff\x00garbage")
    fails(1, "error[E201]", "-", stdin=b"just words")
    fails(1, "error[E201]", "cut.pb")
    fails(1, "<stdin>: error[E201]: the file is empty", "-")
    fails(1, "<stdin>: error[E202]: the model has version 7", "-", stdin=b"version: 7")
    fails(1, "error[E101]", "-", stdin=b"graph @x stage model {")
    fails(1, "needs every pass up to plan-memory", "mlp.pb", "--emit=c", "--skip=plan-memory,check-plan")
    fails(1, "mlp.pb: error[E401]: a program trains, and this graph updates no parameter", "mlp.pb", "--emit=c", "--skip=optimizer")


def is_printable(text):
    """Is there no byte in the text that a terminal would take as a command?"""
    return all(c == "\n" or c.isprintable() for c in text.decode())


def store(name, data):
    with open(name, "wb") as out:
        out.write(data)


def foreign_text():
    """Models of bytes that are no text, and names with commands for terminals: every diagnostic and report is printable and says where."""
    whole = open("mlp.pbtxt", "rb").read()
    line = whole.count(b"\n") + 1
    fails(1, "<stdin>:%d:1: error[E201]: a NUL byte" % line, "-", "--passes=", stdin=whole + b"\0")
    store("odd.amp", b"// no\nmodel\0")
    fails(1, "odd.amp:2:6: error[E101]: a NUL byte", "odd.amp")
    store("odd.amp", b'graph @train stage model {\n  %"caf\xe9" = input {name="x"} : f32[4]\n}\n')
    fails(1, "odd.amp:2:4: error[E101]: expected a string in UTF-8", "odd.amp")
    for name, as_text in ((b"\x1b[31mred", "\\x1b[31mred"), (b"a\xc2\x9b31mb", "a\\xc2\\x9b31mb"),
                          ("\u202eevil".encode(), "\\xe2\\x80\\xaeevil"), ("prüfung".encode(), "prüfung")):
        graph = b'graph @train stage model {\n  %"' + name + b'" = relu %nope : f32[4]\n}\n'
        store("odd.amp", graph)
        done = subprocess.run([AMPCC, "odd.amp"], capture_output=True)
        expect("a name in a message: %s" % as_text, done.returncode == 1 and is_printable(done.stderr) and
               as_text in done.stderr.decode(), done.stderr)
        caret = done.stderr.decode().splitlines()[1:3]
        expect("the caret stands below %nope", caret[0][caret[1].index("^"):].startswith("%nope"), caret)
        graph = open("mlp.amp", "rb").read().replace(b"%relu1", b'%"' + name + b'"').replace(b'loc "fc1"', b'loc "' + name + b'"')
        store("odd.amp", graph)
        for report in ("--print-memory-plan", "--print-precision", "--explain-precision", "--print-traffic"):
            done = subprocess.run([AMPCC, "odd.amp", "--dtype=bf16", "--target=cpu", "--emit=ir", "-o", "out.amp", report],
                                  capture_output=True)
            expect("a name in %s: %s" % (report, as_text), done.returncode == 0 and is_printable(done.stdout) and
                   is_printable(done.stderr), done)
    for flag in ("--passes=", "--max-memory=", "--seed=", "--target=", "--loss-scale=", "--nope=", "-W"):
        done = subprocess.run([AMPCC, "mlp.pb", flag + "\x1b[2J\u202e"], capture_output=True)
        expect("an argument in a message: " + flag, done.returncode == 2 and is_printable(done.stderr) and
               b"\\x1b[2J" in done.stderr, done.stderr)
    done = subprocess.run([AMPCC, "odd.amp", "--target=cpu", "--cpu=native", "-o", "odd", "--certify"], capture_output=True)
    expect("a name in --certify", done.returncode == 0 and "prüfung" in done.stdout.decode(), done)


def many_errors():
    """At most a screenful of errors is printed; the others are counted."""
    def model(n, name=b"n"):
        return b"version: 1" + b"".join(b' node { op: "zz" output: "%s%d" }' % (name, i) for i in range(n))
    for n, most in ((17, "20 errors"), (18, "and 1 more error;"), (400, "and 383 more errors;")):
        status, out, err = run(AMPCC, "-", stdin=model(n)) # these errors, and three more: two inputs and a loss are missing
        lines = err.splitlines()
        expect("%d errors are counted" % n, status == 1 and most in lines[-1] and len(lines) <= 21, lines)
    status, out, err = run(AMPCC, "-", "--all-errors", stdin=model(400))
    expect("--all-errors", err.splitlines()[-1] == "403 errors" and err.count("error[") == 403, err[-200:])
    err = run(AMPCC, "-", stdin=model(400, b"\\001" * 60))[2]
    expect("no flood", len(err) < 4096, len(err))


def tuning_files():
    """Files that are no tuning files are refused, also without CUDA; tests/cuda/programs/tuning.py tests those that are."""
    head = '{"ampcc_tuning": 1, "capability": 90, "cudnn": 91900, "plans": '
    for text, says in (("", "t.json:1:1: error[E407]: '[' or '{' expected"), ("[]", "no tuning file, or one of another version"),
                       ('{"ampcc_tuning": 2}', "no tuning file, or one of another version"), ('{"a": 1,\n  "a": 2}', "t.json:2:5: error[E407]: duplicate object key"),
                       ('{"ampcc_tuning": 1, "capability": "90"}', "`capability` is missing or no number"), (head[:-11] + "}", "`plans` is missing"),
                       (head + '{"k": [], "l": [{"engine": 3}], "m": {}}}', "`l` has no list of engines"), ("[" * 5000, "maximum parsing depth reached")):
        with open("t.json", "w") as out:
            out.write(text)
        fails(1, says, "mlp.pb", "--passes=", "--tuning-db=t.json")
    fails(1, "no.json: error[E208]", "mlp.pb", "--passes=", "--tuning-db=no.json")


def forms():
    """A model as binary protobuf, as text and as a graph is the same, from a file and from standard input."""
    graph = run(AMPCC, "mlp.pb", "--passes=")[1]
    for name in ("mlp.pb", "mlp.pbtxt", "mlp.amp"):
        data = open(name, "rb").read()
        expect(name, run(AMPCC, name, "--emit=ir", "--passes", "")[1] == graph)
        expect(name + " by stdin", run(AMPCC, "-", "--passes=", stdin=data)[1] == graph)
        expect(name + " without its ending", run(AMPCC, name + ".x", "--passes=")[1] == graph)
    a = run(AMPCC, "mlp.pb", "--passes=", "--batch_size=5", "--learning_rate", "0.5")[1]
    b = run(AMPCC, "mlp.pb", "--passes=", "--batch-size", "5", "--learning-rate=0.5")[1]
    expect("underscores", a == b and b"f32[5,28,28,1]" in a and b"learning_rate=0.5" in a)
    fails(1, "error[E401]: --batch-size cannot change", "mlp.amp", "--passes=", "--batch-size=3")
    fails(1, "error[E401]: --label-smoothing cannot change", "mlp.amp", "--passes=", "--label-smoothing=0.1")
    momentum = run(AMPCC, "-", "--passes=", "--batch-norm-momentum=0.75", stdin=run(ZOO, "cifar_resnet8")[1])[1]
    expect("--batch-norm-momentum", momentum.count(b"momentum=0.75") == 10)


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name in ("mlp.pb", "mlp.pbtxt"):
            expect("ampcc-zoo -o " + name, run(ZOO, "mlp", "-o", name)[0] == 0)
        with open("mlp.amp", "wb") as amp:
            amp.write(run(AMPCC, "mlp.pb", "--passes=")[1])
        for name in ("mlp.pb", "mlp.pbtxt", "mlp.amp"):
            os.link(name, name + ".x")
        with open("mlp.pb", "rb") as whole, open("cut.pb", "wb") as cut:
            cut.write(whole.read()[:-20])
        usage()
        texts()
        readme()
        targets()
        bad_input()
        tuning_files()
        foreign_text()
        many_errors()
        forms()
        os.chdir("/")
    print("%d failed" % len(failed))
    return 1 if failed else 0


sys.exit(main())
