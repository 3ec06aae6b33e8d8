#!/usr/bin/env python3
"""Tests what ampcc-tf says of wrong GraphDefs and flags: errors.py AMPCC_TF AMPCC

These are errors, notes, and the cases in which TensorFlow's pass fails and leaves the graph as it was."""
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

from wire import attr, field, matmul_graph, node

AMPCC_TF, AMPCC = map(os.path.abspath, sys.argv[1:])
GOOD = matmul_graph()
INFO = field(2, field(1, field(1, "MatMul"))) + field(4, "serve") + field(5, "2.15.0")
META = field(1, INFO) + field(2, GOOD)
SAVED = field(1, 1) + field(2, META)
ONNX = field(1, 8) + field(2, "pytorch") + field(3, "2.15.0") + field(7, field(2, "main_graph")) + field(8, field(2, 17))
MODEL = field(1, 1) + field(2, "mlp") + field(3, field(1, "image"))
TEXT = b"""node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "y" op: "MatMul" input: ["x", "x"] attr { key: "T" value { type: DT_FLOAT } } }
"""
PREFIX = "TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_"
failed = []


def run(graph, *flags, compat="--amp-compat=tf", **env):
    args = [AMPCC_TF, "-", "--tf-amp-report=json", "--amp-min-graph-nodes=-1", compat, *flags]
    done = subprocess.run([a for a in args if a], input=graph, capture_output=True, env={**os.environ, **env})
    return done.returncode, done.stdout.decode(), done.stderr.decode(errors="replace")


def expect(status, text, graph, *flags, **more):
    got = run(graph, *flags, **more)
    if got[0] != status or text not in got[1] + got[2]:
        failed.append(text)
        print("FAILED: status %d and `%s`" % (status, text), flags, got)


def fails(text, graph, *flags, **more):
    """Where TensorFlow's pass fails, ampcc-tf prints a warning and an empty report, and the graph
    comes out as it went in."""
    expect(0, "graph optimizer FAILED: " + text, graph, *flags, **more)
    expect(0, '"converted": {},', graph, *flags, **more)
    expect(1, "error: ", graph, "-Werror=tf-pass", *flags, **more)
    out = subprocess.run([AMPCC_TF, "-", "--emit=graphdef", "--amp-compat=tf", "-q", "--amp-min-graph-nodes=-1", *flags],
                         input=graph, capture_output=True).stdout
    if not graph.startswith(b"node") and out != graph:
        failed.append("unchanged: " + text)


def deep(levels):
    text = field(1, "f")
    for _ in range(levels):
        text = field(1, "f") + field(2, field(1, "a") + field(2, field(10, text)))
    return node("n", "NoOp", extra=attr("a", field(10, text)))


def files():
    for graph, text in [
        (GOOD[:-3], "the file ends too early"), (b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "a number does not end"),
        (b"\x0b", "a field is of a kind that proto3 does not have"), (b"\x02\x00", "a field has an impossible number"),
        (node("a\0b", "NoOp"), "a string holds a NUL byte"), (field(1, field(1, b"\xc3\x28") + field(2, "NoOp")), "no UTF-8"),
        (field(1, field(1, b"\xed\xa0\x80")), "no UTF-8"), (field(1, field(1, b"\xe2\x82")), "no UTF-8"),
        (deep(40), "nested more than 100 deep"), (b"\x08\x01", "a field is of another kind than it should be"),
    ]:
        expect(1, "error[E221]: this is no GraphDef", graph)
        expect(1, text, graph)
    for graph in SAVED, field(1, 1) + field(2, field(2, GOOD)), b"saved_model_schema_version: 1 meta_graphs {", SAVED[:-9]:
        expect(1, "error[E221]: this is a TensorFlow SavedModel: ampcc-tf takes its graph as a GraphDef", graph)
    for graph in META, field(1, field(4, "serve") + field(5, "1.15")) + field(2, GOOD), b"# x\n meta_info_def { tags: 'serve' }":
        expect(1, "error[E221]: this is a TensorFlow MetaGraphDef", graph)
    for graph in ONNX, ONNX[:11] + ONNX[19:], ONNX[:2] + ONNX[19:], ONNX[:2] + field(5, 1), b"ir_version: 8":
        expect(1, "error[E221]: this is an ONNX model, which is not supported", graph)
    for graph in MODEL, field(1, 1) + field(3, field(1, "image")), b"version: 1 input { }", b"// x\ngraph @train stage model {}":
        expect(1, "error[E221]: this is a model of ampcc: ampcc compiles it", graph)
    expect(1, "error[E222]: two nodes have this name", node("x", "NoOp") * 2)
    expect(1, "error[E222]: node 1 has no name", node("x", "NoOp") + node("", "NoOp"))
    expect(1, "error[E201]: no such field", b"node { nam: 'x' }")
    expect(1, "error[E201]: messages are nested more than 100 deep", b"node { attr { value { func { " + b"attr { value { func { " * 40)
    expect(1, "error[E201]: expected an integer that fits its field", b"versions { producer: 2147483648 }")
    expect(0, "Converted 1/2 nodes", TEXT)
    expect(0, "Converted 1/2 nodes", GOOD)
    expect(0, "No allowlist ops found, nothing to do", b"")


def usage():
    expect(0, "Converted 1/2", GOOD, compat="")
    for version in ("tf:2.16", "tf:1.15", "tf:", "torch", "tf:2.19.x"):
        expect(2, "--amp-compat takes tf or tf:VERSION", GOOD, compat="--amp-compat=" + version)
    expect(0, "Converted 1/2", GOOD, compat="--amp-compat=tf:2.20.0")
    for flag, text in [("--dtype=fp32", "--dtype takes fp16|bf16, not `fp32`"), ("--amp-mode=mkl", "--amp-mode takes"),
                       ("--amp-level=ALL", "--amp-level takes"), ("--gpu-arch=fast", "--gpu-arch takes"),
                       ("--cuda-version=x", "--cuda-version takes N, not `x`"), ("--cudnn-version=-1", "--cudnn-version takes"),
                       ("--amp-emulate-fp16=maybe", "--amp-emulate-fp16 takes 0, 1"), ("--amp-min-graph-nodes=-2", "takes a number"),
                       ("--amp-simulate-gpu=2", "--amp-simulate-gpu takes"), ("--tf-amp-report=text", "--tf-amp-report takes json")]:
        expect(2, text, GOOD, flag)
    expect(2, "--amp-mode=cuda does not go with --dtype=bf16", GOOD, "--amp-mode=cuda", "--dtype=bf16")
    expect(1, "error[E223]: --fetch: no node is called `nope`", GOOD, "--fetch=y,nope")
    for flag in ("--passes=dce", "--loss-scale=2", "--target=cpu", "--time-report", "--cc=gcc", "--batch-size=2"):
        expect(2, flag.split("=")[0] + " is an option of ampcc, which compiles models", GOOD, flag)
    expect(2, "--emit takes graphdef, not `ir`", GOOD, "--emit=ir")
    expect(2, "unknown warning `loss`; see --help", GOOD, "-Wloss")
    expect(2, "one model at a time: `-`, `x.pb`", GOOD, "x.pb")


def help_text():
    """--help names every option, and every environment variable of TensorFlow's that has an effect,
    as README.md does."""
    text = subprocess.run([AMPCC_TF, "--help"], capture_output=True, text=True).stdout
    wanted = ["--amp-compat=tf[:VERSION]", "--fetch=A,B", "--amp-denylist-remove=A,B", "tf-pass", "tf-type", PREFIX]
    wanted += [name + "LIST_" + do for name in ("WHITE", "GRAY", "BLACK", "CLEAR") for do in ("ADD", "REMOVE")]
    failed.extend("--help: " + word for word in wanted + ["LEVEL", "SIMULATE_GPU"] if word not in text)
    readme = (pathlib.Path(__file__).parents[2] / "frontend" / "tf" / "README.md").read_text()
    named = set(re.findall(r"`--([a-z0-9-]+)", readme)) | set(re.findall(r"`([A-Z]+_[A-Z_]+)`", readme))
    have = set(re.findall(r"^  (?:-., )?--([a-z0-9-]+)", text, re.M)) | set(re.findall(r"^  ([A-Z]+_[A-Z_]+) ", text, re.M))
    named -= {"LOG_PATH", PREFIX, "amp-"}  # these have no effect, or are prefixes of others
    failed.extend("frontend/tf/README.md against --help: " + word for word in sorted(have ^ named))
    if "  GRAYLIST_REMOVE             as --amp-inferlist-remove (old name)\n" not in text or "learning-rate" in text:
        failed.append("--help: " + text)


def fault():
    """A fatal signal is a bug of ampcc-tf, which prints a line that says so and ends with status
    70."""
    process = subprocess.Popen([AMPCC_TF, "-"], stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdin.write("x" * (1 << 17))  # more than a pipe holds: once written, handlers are installed and the program reads
    process.stdin.flush()
    process.send_signal(signal.SIGSEGV)
    said = process.communicate()[1]
    if "Sanitizer" not in said and (process.returncode != 70 or "Please report it with the GraphDef" not in said):
        failed.append("a fault: status %d, %s" % (process.returncode, said))


def ampcc_says():
    """ampcc that is given a GraphDef or an option of ampcc-tf names ampcc-tf. Both programs say
    what other kind of file they were given."""
    for args, graph, status, text in [
        ("-", GOOD, 1, "<stdin>: error[E201]: this is a TensorFlow GraphDef: ampcc-tf rewrites it"),
        ("-", TEXT, 1, "<stdin>: error[E201]: this is a TensorFlow GraphDef"),
        ("-", b"# by hand\nnode: {\n  # x\n  name : 'x' }", 1, "this is a TensorFlow GraphDef"),
        ("-", b"node { op: 'relu' }", 1, "E202"), ("-", b"\n", 1, "E201]: the file is empty"), ("-", b"\x0a\x02\x08\x01", 1, "no ModelDef"),
        ("- --tf_amp_report=json", GOOD, 2, "--tf-amp-report is an option of ampcc-tf, which rewrites TensorFlow's GraphDefs"),
        ("- --amp-level=UNSAFE_FORCE_ALL", GOOD, 2, "--amp-level is an option of ampcc-tf"),
        ("-", SAVED, 1, "error[E201]: this is a TensorFlow SavedModel: "), ("-", META, 1, "error[E201]: this is a TensorFlow MetaGraphDef"),
        ("-", ONNX, 1, "error[E201]: this is an ONNX model, which is not supported"),
        ("-", b"# x\nsaved_model_schema_version: 1", 1, "SavedModel"), ("-", b"meta_info_def {", 1, "MetaGraphDef"),
        ("- --emit=graphdef", GOOD, 2, "--emit=graphdef is an option of ampcc-tf"),
    ]:
        done = subprocess.run([AMPCC, *args.split()], input=graph, capture_output=True)
        if done.returncode != status or text not in done.stderr.decode():
            failed.append(text)
            print("FAILED: ampcc", args, graph, done)
    if "tf-pass" in subprocess.run([AMPCC, "--help"], capture_output=True, text=True).stdout:
        failed.append("ampcc lists warnings of ampcc-tf")


def environment():
    allow = {PREFIX + "ALLOWLIST_REMOVE": "MatMul"}
    expect(0, "note: the environment says %sALLOWLIST_REMOVE=MatMul\n" % PREFIX, GOOD, **allow)
    expect(0, "No allowlist ops found", GOOD, **allow)
    expect(0, "No allowlist ops found", GOOD, **{PREFIX + "WHITELIST_REMOVE": "MatMul"})
    expect(0, "Converted 1/2", GOOD, "--amp-allowlist-add=MatMul", **allow)
    expect(0, "Converted 1/2", GOOD, **{PREFIX + "ALLOWLIST_REMOVE": "MatMul", PREFIX + "WHITELIST_ADD": "MatMul"})
    expect(0, "which has no effect", GOOD, **{PREFIX + "LEVEL": "EVERYTHING"})
    expect(0, "LOG_PATH=/tmp, which has no effect", GOOD, **{PREFIX + "LOG_PATH": "/tmp"})
    expect(2, "SIMULATE_GPU takes 0, 1, true or false, not `yes`", GOOD, **{PREFIX + "SIMULATE_GPU": "yes"})
    expect(0, "No (suitable) GPUs detected", GOOD, "--gpu-arch=none")
    expect(0, "Converted 1/2", GOOD, "--gpu-arch=none", **{PREFIX + "SIMULATE_GPU": "True"})
    expect(0, "No (suitable) GPUs detected", GOOD, "--gpu-arch=6.1")
    expect(0, "Converted 1/2", GOOD, "--gpu-arch=6.1", "--amp-ignore-performance")
    expect(0, "graph has less than 4 nodes", GOOD, "--amp-min-graph-nodes=4")
    quiet = run(GOOD, "-q", **allow)
    if quiet[2]:
        failed.append("quiet: " + quiet[2])


def lists():
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "lists"
        for text, status, want in [
            ("# no MatMul\nallowlist-remove = MatMul  # at all\n\n", 0, "No allowlist ops found"),
            ("level = UNSAFE_FORCE_ALL\r\n", 0, "Converted 1/2"),
            ("allowlist-remove MatMul", 1, ":1:1: error[E224]: expected `KEY = VALUE`"),
            ("\nwhitelist-remove = MatMul", 1, ":2:1: error[E224]: no setting has this name"),
            ("level = ALL", 1, ":1:1: error[E224]: the setting has no such value"),
            ("min-graph-nodes = 1\n\0", 1, ":2:1: error[E208]: a NUL byte: this is no text"),
        ]:
            file.write_text(text)
            expect(status, want, GOOD, "--amp-lists=%s" % file)
    expect(1, "nope: error[E208]", GOOD, "--amp-lists=nope")
    expect(0, "a list is edited for `Matmul`, which is no op of the table", GOOD, "--amp-denylist-add=Matmul")
    expect(0, "note: lists are edited for 22 more names that are no ops", GOOD, "--amp-denylist-add=" + ",".join("Op%d" % i for i in range(30)))
    expect(0, "` MatMul`, which is no op of the table: a blank is part of the name", GOOD, "--amp-allowlist-remove=Exp, MatMul")
    fails("INVALID_ARGUMENT: Op lists have conflicting entries: MatMul", GOOD, "--amp-denylist-add=MatMul")


def failures():
    f32 = field(6, 1)
    x = node("x", "Placeholder", extra=attr("dtype", f32))
    for graph in (x + node("y", "MatMul", "x", extra=attr("T", f32)), x + node("y", "Relu", "x:1", extra=attr("T", f32)),
                  GOOD + node("z", "Relu", "y") + node("y2", "IdentityN", "y", extra=attr("T", f32)),
                  GOOD + node("n", "NextIteration", "y", extra=attr("T", f32)) + node("r", "Relu", "n", extra=attr("T", f32))):
        if not re.match("<stdin>:node '[yzn]': warning: auto_mixed_precision graph optimizer FAILED", run(graph)[2]):
            failed.append("a failure names its node: " + run(graph)[2])
    fails("INVALID_ARGUMENT: node y (op MatMul) has 1 inputs, expected 2",
          node("x", "Placeholder", extra=attr("dtype", f32)) + node("y", "MatMul", "x", extra=attr("T", f32)))
    fails("INVALID_ARGUMENT: input nope of node y does not exist", node("y", "Relu", "nope", extra=attr("T", f32)))
    fails("INVALID_ARGUMENT: input x:1 of node y: op Placeholder has 1 outputs",
          node("x", "Placeholder", extra=attr("dtype", f32)) + node("y", "Relu", "x:1", extra=attr("T", f32)))
    fails("INVALID_ARGUMENT: type attribute T of node y (op MatMul) is missing", GOOD.replace(attr("T", f32), attr("t", f32)))
    fails("INVALID_ARGUMENT: attribute N of node y (op AddN) is missing or out of range",
          node("y", "AddN", extra=attr("T", f32) + attr("N", field(3, 2 ** 63))))
    fails("INVALID_ARGUMENT: attribute T of node y is no list of types", node("y", "IdentityN", extra=attr("T", f32)))
    fails("FAILED_PRECONDITION: Expected Merge node after NextIteration, got Relu",
          GOOD + node("n", "NextIteration", "y", extra=attr("T", f32)) + node("r", "Relu", "n", extra=attr("T", f32)))
    fails("INTERNAL: node y comes after its reader z", node("x", "Placeholder", extra=attr("dtype", f32)) +
          node("z", "MatMul", "y", "y", extra=attr("T", f32)) + node("y", "MatMul", "x", "x", extra=attr("T", f32)), "--amp-mode=cpu")
    for mode in ("bf16", "fp16-cpu"):
        fails("INVALID_ARGUMENT: TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_LEVEL cannot be set to UNSAFE_FORCE_ALL", GOOD,
              "--amp-mode=" + mode, "--amp-level=UNSAFE_FORCE_ALL")


def forced():
    """UNSAFE_FORCE_ALL lowers types that an op does not allow: one warning, with the number of
    further ones."""
    norm = b"".join(b'node { name: "b%d" op: "FusedBatchNorm" %s attr { key: "T" value { type: DT_FLOAT } } }' % (i, b'input: "x" ' * 5)
                    for i in range(3))
    want = "node 'b0': warning: U of FusedBatchNormV2 becomes f16, which it does not admit: TensorFlow will not load this " \
           "graph (attributes like it: 2 more) [-Wtf-type]\n"
    expect(0, want, TEXT + norm, "--amp-level=UNSAFE_FORCE_ALL")
    expect(0, '"U": "f16"', TEXT + norm, "--amp-level=UNSAFE_FORCE_ALL")
    expect(1, "[-Werror=tf-type]", TEXT + norm, "--amp-level=UNSAFE_FORCE_ALL", "-Werror=tf-type")
    for flags in ([], ["--amp-level=UNSAFE_FORCE_ALL", "-Wno-tf-type"]):
        if "tf-type" in run(TEXT + norm, *flags)[2]:
            failed.append("tf-type without cause")


def unknown():
    """An op that is not in the table is left alone, and its ports have the types of what they are
    connected to."""
    graph = TEXT + b'node { name: "z" op: "Zap" input: "y" input: "y:0" } node { name: "w" op: "Zap" input: "^z" }' + \
        b'node { name: "v" op: "MatMul" input: "w:7" input: "z" attr { key: "T" value { type: DT_FLOAT } } }' + \
        b'library { function { signature { name: "F" input_arg { name: "a" type: DT_FLOAT } } } }' + \
        b'node { name: "f" op: "F" input: "y" }'
    expect(0, "node 'z': note: op `Zap` is not in the table: left as it is", graph)
    many = b"".join(node("n%d" % i, "Zap%d" % (i // 2)) for i in range(40))
    expect(0, "note: 12 more ops are not in the table", GOOD + many)
    if run(GOOD + many)[2].count("Zap") != 8:
        failed.append("8 of 20 unknown ops are named, each once")
    expect(0, "the bodies of 1 library functions are left as they are", graph)
    expect(0, '"src": "w:7",\n   "to": "f16",\n   "consumers": ["v:0"]', graph)
    expect(0, '"src": "y:0",\n   "to": "f32",\n   "consumers": ["f:0", "z:0", "z:1"]', graph)
    if "`F`" in run(graph)[2]:
        failed.append("a function is no unknown op")


for part in (files, usage, help_text, fault, ampcc_says, environment, lists, failures, forced, unknown):
    part()
for line in failed:
    print("FAILED:", line)
sys.exit(1 if failed else 0)
