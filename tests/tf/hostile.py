#!/usr/bin/env python3
"""Runs ampcc-tf on hostile GraphDefs: hostile.py AMPCC_TF DATA [N [SEED]]

Whatever the bytes, ampcc-tf ends within
seconds, with status 0 to 3, says no more than 4 kB, prints no control character, and leaves either a whole graph that reads
back or no file at all. First the graphs built here, then N random mutations of real ones from DATA (default 40)."""
import os
import pathlib
import random
import subprocess
import sys
import tempfile

from wire import attr, field, matmul_graph, node, varint

MOST_SAID = 4096
# a quadratic algorithm takes longer even on an idle machine, a linear one less even with sanitizers
# on a busy one
MOST_SECONDS = 100
LARGE = 50000  # nodes of the large graphs
F32 = field(6, 1)
SETTINGS = [[], ["--dtype=bf16"], ["--amp-mode=cpu"], ["--amp-level=UNSAFE_FORCE_ALL"], ["--amp-compat=tf:2.15"],
            ["--amp-mode=fp16-cpu", "--amp-compat=tf:2.21"], ["--amp-level=TREAT_INFER_AS_DENY", "--tf-amp-report=json"]]


# ---- built by hand ----

def typed(name, op, *inputs, **attrs):
    """A node whose attribute T is f32, with further attributes given as AttrValues."""
    return node(name, op, *inputs, extra=attr("T", F32) + b"".join(attr(k, v) for k, v in attrs.items()))


def placeholder(name="x"):
    return node(name, "Placeholder", extra=attr("dtype", F32))


def chain(n, op="Relu", last="MatMul"):
    nodes = [placeholder("n0")] + [typed("n%d" % i, op, "n%d" % (i - 1)) for i in range(1, n)]
    return b"".join(nodes) + typed("end", last, "n%d" % (n - 1), "n%d" % (n - 1))


def types(n):
    return field(1, field(6, b"\x01" * n))


def nested(levels):
    """An attribute that is a function with an attribute that is a function, and so on."""
    value = field(10, field(1, "f"))
    for _ in range(levels):
        value = field(10, field(1, "f") + field(2, field(1, "a") + field(2, value)))
    return node("n", "NoOp", extra=attr("a", value))


def library(*functions):
    return field(2, b"".join(field(1, f) for f in functions))


def signature(name, n_args, extra=b""):
    args = b"".join(field(2, field(1, "a%d" % i) + field(3, 1)) for i in range(n_args))
    return field(1, field(1, name) + args + extra)


def loop(n):
    """A loop in which one NextIteration feeds n Merges."""
    merges = b"".join(typed("m%d" % i, "Merge", "x", "next", N=field(3, 2)) for i in range(n))
    return placeholder() + merges + typed("y", "MatMul", "m0", "m0") + typed("next", "NextIteration", "y")


def lists(n):
    """A chain of n TensorLists that form one cluster, each with a reader."""
    element = attr("element_dtype", F32)
    out = placeholder() + node("i", "Const", extra=attr("dtype", field(6, 3)))
    out += node("l0", "EmptyTensorList", "i", "i", extra=element + attr("shape_type", field(6, 3)))
    for i in range(1, n):
        out += node("l%d" % i, "TensorListPushBack", "l%d" % (i - 1), "y", extra=element)
        out += node("r%d" % i, "TensorListPopBack", "l%d" % i, "i", extra=element)
    return out + typed("y", "MatMul", "x", "x")


def by_hand():
    good, x = matmul_graph(), placeholder()
    control = "".join(map(chr, range(1, 32))) + "\x7f\x1b[2J\x9b"
    yield "nothing", b""
    yield "every byte", bytes(range(256))
    yield "no nodes", field(4, field(1, 27))
    for size in (1, 2, 5, len(good) // 2, len(good) - 1):
        yield "cut at %d" % size, good[:size]
    yield "twice", good + good
    yield "empty names", node("", "", "") + node("", "")
    yield "5,000 empty names", node("", "NoOp") * 5000
    yield "5,000 times one name", node("x" * 300, "NoOp") * 5000
    yield "no op", x + node("y", "", "x")
    yield "empty input", x + typed("y", "Relu", "")
    yield "inputs that are marks", x + typed("y", "Relu", "^") + typed("z", "Relu", ":") + typed("w", "Relu", ":0") + typed("v", "Relu", "x:")
    yield "port beyond int", x + typed("y", "Relu", "x:99999999999999999999")
    yield "control input alone", x + typed("y", "Relu", "^x") + node("z", "NoOp", "^nope", "^", "^^x")
    yield "reads itself", typed("y", "MatMul", "y", "y")
    yield "reads itself unknown", node("y", "Zap", "y", "y:3")
    yield "ring", typed("a", "Relu", "c") + typed("b", "MatMul", "a", "a") + typed("c", "Relu", "b")
    yield "ring of Enter", x + typed("a", "Enter", "b") + typed("b", "Enter", "a") + typed("y", "MatMul", "a", "x")
    yield "ring of NextIteration", typed("a", "NextIteration", "b") + typed("b", "NextIteration", "a") + good
    yield "Merge without NextIteration", loop(1).replace(b"NextIteration", b"PreventGradie")
    yield "Merge of no inputs", x + typed("m", "Merge", N=field(3, 0)) + typed("y", "MatMul", "m", "m:1")
    yield "control characters", node(control, "Zap", extra=attr(control, field(2, control))) + typed("\x1b]0;a\x07", "Relu", control)
    yield "control characters, unknown ops", b"".join(node("n%d" % i, "Op\x1b[3%dm" % i) for i in range(9)) + good
    yield "control characters, failing", x + typed("\x1b[2J", "MatMul", "x")
    yield "device", x + b"".join(typed("y%d" % i, "Relu", "x") + field(4, d) for i, d in enumerate(["", "/", "gpu", "/gpu:", "/gpu:99999999999"]))
    yield "long device", field(1, field(1, "y") + field(2, "NoOp") + field(4, "/device:" + "G" * 70000 + ":0")) + good
    yield "long name", placeholder("x" * 1000000) + typed("y", "MatMul", "x" * 1000000, "x" * 1000000)
    yield "long op", x + node("y", "O" * 1000000, "x") + good.replace(b"x", b"z")
    yield "long names, failing", b"".join(typed("n" * 3000 + str(i), "MatMul", "x" * 3000) for i in range(50))
    yield "5,000 unknown ops", x + b"".join(node("n%d" % i, "Zap%d" % i, "x") for i in range(5000))
    yield "huge attribute", x + typed("y", "MatMul", "x", "x", _big=field(2, b"\xff" * 3000000))
    yield "100,000 attributes", x + node("y", "MatMul", "x", "x", extra=b"".join(attr("a%d" % i, F32) for i in range(100000)) + attr("T", F32))
    yield "T twice", x + node("y", "MatMul", "x", "x", extra=attr("T", F32) + attr("T", field(6, 19)))
    yield "T of a strange type", x + b"".join(node("y%d" % i, "Relu", "x", extra=attr("T", field(6, t))) for i, t in enumerate([0, 11, 64, 101, 1000, 2 ** 31, 2 ** 64 - 1]))
    yield "T is no type", x + node("y", "Relu", "x", extra=attr("T", field(2, "f32")))
    yield "T has no value", x + node("y", "Relu", "x", extra=attr("T", b""))
    yield "attribute without value", x + node("y", "Relu", "x", extra=field(5, field(1, "T")))
    yield "list without types", x + node("y", "IdentityN", "x", extra=attr("T", types(0)))
    yield "list of a million types", x + node("y", "IdentityN", "x", extra=attr("T", types(1000000)))
    yield "list read by ports", x + node("y", "IdentityN", *["x"] * 2000, extra=attr("T", types(2000))) + typed("z", "AddN", *["y:%d" % i for i in range(2000)], N=field(3, 2000))
    for n in (0, -1, 1, 2, 2 ** 20, 2 ** 31, 2 ** 62, -2 ** 63):
        yield "N = %d" % n, x + typed("y", "AddN", "x", "x", N=field(3, n % 2 ** 64)) + typed("z", "Split", "y", num_split=field(3, n % 2 ** 64))
    for levels in (10, 24, 25, 100, 3000):
        yield "nested %d" % levels, nested(levels) + good
    yield "function without signature", library(b"", field(1, b"")) + good
    yield "two functions of one name", library(signature("f", 1), signature("f", 2)) + x + node("y", "f", "x")
    yield "function named as an op", library(signature("MatMul", 9)) + good
    yield "function of an unknown attribute", library(signature("f", 0, field(2, field(1, "a") + field(4, "Q") + field(5, "R")))) + x + node("y", "f", "x")
    yield "function with a list", library(signature("f", 0, field(2, field(1, "a") + field(6, "Q")) + field(4, field(1, "Q") + field(2, "list(type)")))) + x + node("y", "f", "x", extra=attr("Q", F32))
    yield "2,000 functions, each called", library(*[signature("f%d" % i, 1) for i in range(2000)]) + x + b"".join(node("c%d" % i, "f%d" % i, "x") for i in range(2000)) + good.replace(b"x", b"z")
    yield "cast names taken", x + b"".join(node("x-0-CastToFp16-%d-AutoMixedPrecision" % i, "NoOp") for i in range(3000)) + typed("y", "MatMul", "x", "x")
    yield "loop", loop(300)
    yield "lists", lists(300)
    yield "NaN and friends", x + typed("y", "MatMul", "x", "x", a=b"\x25\x00\x00\xc0\x7f", b=field(5, 7), c=field(7, field(2, field(1, 2 ** 63))))
    yield "unknown fields", field(1000, "a") + good + field(536870911, 1) + field(15, b"")
    yield "fields of wrong kinds", field(1, 5) + field(2, 5) + field(4, 5)
    yield "groups", b"\x0b\x0c" + good
    yield "text: open", b"node {" * 2000
    yield "text: a NUL", b'node { name: "a\\000b" op: "NoOp" }'
    yield "text: raw NUL", b'node { name: "a\0b" op: "NoOp" }'
    yield "text: Latin-1", b'node { name: "\xe9" op: "NoOp" }'
    yield "text: 3,000 mistakes", b'node { nam: "x" }\n' * 3000
    yield "text: a long line", b'node { name: "' + b"a" * 500000 + b'" op: 5 }'
    yield "text: names with escapes", b'node { name: "\\033[2J\\a" op: "Zap" input: "nope" }'


def large():
    """Graphs that take minutes if names are searched one by one, or if a chain is walked for each
    of its nodes."""
    n, x = LARGE, placeholder()
    ring = b"".join(typed("n%d" % i, "Enter", "n%d" % ((i - 1) % n)) for i in range(n))
    layers = [("Relu", 1), ("MatMul", 2), ("Add", 2), ("Exp", 1)]
    net = [typed("n%d" % i, layers[i % 4][0], *["n%d" % (i - 1)] * layers[i % 4][1]) for i in range(1, n)]
    fan = b"".join(typed("n%d" % i, "MatMul", "x", "x") for i in range(n))
    calls = b"".join(node("c%d" % i, "f%d" % i, "x") for i in range(n)) + matmul_graph().replace(b"x", b"z")
    yield "a net", placeholder("n0") + b"".join(net), []
    yield "a net, emulated", placeholder("n0") + b"".join(net), ["--amp-mode=cpu"]
    yield "a net, backwards", b"".join(reversed(net)) + placeholder("n0"), []
    yield "a chain of Enter", chain(n, "Enter"), []
    yield "a ring of Enter", x + ring + typed("y", "MatMul", "n0", "x"), []
    yield "unknown ops", x + b"".join(node("n%d" % i, "Zap%d" % i, "x") for i in range(n)), []
    yield "functions", library(*[signature("f%d" % i, 1) for i in range(n)]) + x + calls, []
    yield "readers of one port, emulated", x + fan, ["--amp-mode=cpu"]
    yield "fetches", x + fan, ["--fetch=" + ",".join("n%d" % i for i in range(10000))]
    yield "names of casts taken", x + b"".join(node("x-0-CastToFp16-%d-AutoMixedPrecision" % i, "NoOp") for i in range(n)) + fan, []
    yield "TensorLists", lists(n // 8), []


# ---- mutated ----

def fields(data):
    """(number, wire type, value) of each field of a protobuf message; None if the bytes are not a
    message."""
    out, at = [], 0
    def number():
        nonlocal at
        value = shift = 0
        while at < len(data) and shift < 70:
            value |= (data[at] & 0x7F) << shift
            at, shift = at + 1, shift + 7
            if data[at - 1] < 0x80:
                return value
        raise ValueError
    try:
        while at < len(data):
            tag = number()
            kind = tag & 7
            if kind == 0:
                out.append((tag >> 3, 0, number()))
            elif kind in (1, 5):
                out.append((tag >> 3, kind, data[at:at + (8 if kind == 1 else 4)]))
                at += 8 if kind == 1 else 4
            elif kind == 2:
                size = number()
                out.append((tag >> 3, 2, data[at:at + size]))
                at += size
            else:
                return None
            if tag >> 3 == 0 or at > len(data):
                return None
    except ValueError:
        return None
    return out


def packed(parts):
    return b"".join(varint(n << 3 | k) + (varint(v) if k == 0 else v if k in (1, 5) else varint(len(v)) + v) for n, k, v in parts)


def mutated(rng, data, depth=0):
    """A copy of the message with one random change, most often a few levels down."""
    parts = fields(data)
    if not parts or (depth > 0 and rng.random() < 0.1):
        return mutated_bytes(rng, data)
    i = rng.randrange(len(parts))
    number, kind, value = parts[i]
    choice = rng.random()
    if kind == 2 and choice < 0.6:
        parts[i] = (number, 2, mutated(rng, value, depth + 1))
    elif choice < 0.7:
        del parts[i]
    elif choice < 0.8:
        parts.insert(rng.randrange(len(parts) + 1), parts[i])
    elif choice < 0.85:
        rng.shuffle(parts)
    elif choice < 0.9:
        parts[i] = (rng.choice([number + 1, max(1, number - 1), 19, 2 ** 28]), kind, value)
    elif kind == 0:
        parts[i] = (number, 0, rng.choice([0, 1, 2 ** 31, 2 ** 63, 2 ** 64 - 1, rng.randrange(30)]))
    else:
        other = parts[rng.randrange(len(parts))]
        parts[i] = (number, other[1], other[2])
    return packed(parts)


def mutated_bytes(rng, data):
    if not data or rng.random() < 0.2:
        return rng.choice([b"", b"\0", b"x", b"\x1b[2J", b"\xff" * 9, b"y:0", b"^x", b"MatMul", b"Merge", b"NextIteration"])
    data = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 8])):
        i = rng.randrange(len(data))
        data[i] = rng.choice([0, 0x7F, 0x80, 0xFF, data[i] ^ 1 << rng.randrange(8)])
    if rng.random() < 0.2:
        del data[rng.randrange(len(data)):]
    return bytes(data)


def by_chance(data, n, seed):
    files = sorted([*pathlib.Path(data).glob("amp-tf/*.pb"), *pathlib.Path(data).glob("graphdef/*.pb"),
                    *pathlib.Path(data).glob("graphdef/*/*/expected_graph")])
    graphs = [f.read_bytes() for f in files] + [matmul_graph(), loop(3), lists(3), chain(9)]
    for k in range(n):
        rng = random.Random(seed * 1000003 + k)
        graph = rng.choice(graphs)
        for _ in range(rng.choice([1, 1, 2, 5, 20])):
            graph = mutated(rng, graph)
        yield "mutation %d of seed %d" % (k, seed), graph


# ---- held to the promise ----

def run(ampcc_tf, folder, graph, flags):
    """Runs ampcc-tf; returns a list of what is wrong with the run."""
    source, target = folder / "in", folder / "out.pb"
    source.write_bytes(graph)
    try:
        done = subprocess.run([ampcc_tf, source, "-o", target, "--amp-min-graph-nodes=-1", "--emit=graphdef", *flags], capture_output=True,
                              timeout=MOST_SECONDS)
    except subprocess.TimeoutExpired:
        return ["hangs"]
    wrong = [] if done.returncode in (0, 1) else ["status %d" % done.returncode]
    said = done.stderr
    if len(said) > MOST_SAID:
        wrong.append("says %d bytes" % len(said))
    if any(c < 32 and c != 10 or c == 127 for c in said):
        wrong.append("prints control characters")
    if done.returncode and not said:
        wrong.append("says nothing")
    left = sorted(p.name for p in folder.iterdir())
    if left != (["in", "out.pb"] if done.returncode == 0 else ["in"]):
        wrong.append("leaves %s" % left)
    if done.returncode == 0:
        again = subprocess.run([ampcc_tf, target, "--amp-min-graph-nodes=1000000000", "-q"], capture_output=True)
        if again.returncode or again.stdout != target.read_bytes():
            wrong.append("does not read back: %s" % again.stderr[:300])
        target.unlink()
    if wrong:
        wrong.append(said[-600:].decode(errors="replace"))
    for p in folder.iterdir():
        p.unlink()
    return wrong


def main(ampcc_tf, data, n=40, seed=1):
    failed = count = 0
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        graphs = [(name, graph, SETTINGS[i % len(SETTINGS)]) for i, (name, graph) in enumerate([*by_hand(), *by_chance(data, int(n), int(seed))])]
        for name, graph, flags in [*graphs, *large()]:
            wrong = run(os.path.abspath(ampcc_tf), folder, graph, flags)
            count += 1
            if wrong:
                failed += 1
                print("FAILED:", name, [f[:40] for f in flags], *wrong, sep="\n  ", flush=True)
    print("%d graphs, %d failed" % (count, failed))
    return 1 if failed else 0


sys.exit(main(*sys.argv[1:]))
