#!/usr/bin/env python3
"""Tests ampcc-diff: check.py AMPCC ZOO AMPCC_DIFF CASE

models    graphs, recipes and IR: what changed is named, and nothing else
programs  the same for two builds of one input; each kind of change between programs
trouble   files that are neither, damaged programs, command lines: status 2, never a crash"""
import json, os, pathlib, random, re, subprocess, sys, tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "e2e"))
from shell import run  # noqa: E402

AMPCC, ZOO, DIFF = map(os.path.abspath, sys.argv[1:4])


def diff(a, b, want):
    """The differences as JSON, and the lines of the text, which must agree; `want`: (topic, where, layer, name, what, a, b) of each."""
    status = 1 if want else 0
    text = run(DIFF, "--all", a, b, status=status)
    told = json.loads(run(DIFF, "--format=json", a, b, status=status))
    got = [tuple(d[k] for k in ("topic", "where", "layer", "name", "what", "a", "b")) for d in told["differences"]]
    assert told["same"] == (not want) == text.startswith("same"), text
    assert run(DIFF, "-q", a, b, status=status) == ""
    if want is not Ellipsis:
        assert got == list(want), (got, want)
        assert len(re.findall("^  ", text, re.M)) == len(got) + (told["following"] > 0), text
    return got


def change(path, out, *pairs):
    text = pathlib.Path(path).read_text()
    for old, new in pairs:
        assert text.count(old) == 1, (old, text.count(old))
        text = text.replace(old, new)
    pathlib.Path(out).write_text(text)


def models():
    run(ZOO, "resnet152", "-o", "a.pb")
    run(AMPCC, "a.pb", "--passes=", "-o", "a.amp")
    diff("a.pb", "a.amp", [])
    text = pathlib.Path("a.amp").read_text()
    weight = re.search(r"%layer3\.17\.conv2\.weight = .*", text).group()
    conv = re.search(r"%layer3\.17\.conv2 = conv2d .*", text).group()
    change("a.amp", "b.amp", (weight, weight.replace("[256,3,3,256]", "[256,5,5,256]")), (conv, conv.replace("[1,1,1,1]", "[2,2,2,2]")))
    wider = [("graph", "@train", "layer3.17.conv2", "%layer3.17.conv2.weight", "type", "f32[256,3,3,256]", "f32[256,5,5,256]"),
             ("graph", "@train", "layer3.17.conv2", "%layer3.17.conv2", "pad", "[1,1,1,1]", "[2,2,2,2]")]
    diff("a.amp", "b.amp", wider)
    diff("a.pb", "b.amp", wider)
    assert run(DIFF, "a.amp", "b.amp", status=1) == (
        "graph\n  @train layer3.17.conv2 %layer3.17.conv2.weight type: f32[256,3,3,256] -> f32[256,5,5,256]\n"
        "  @train layer3.17.conv2 pad: [1,1,1,1] -> [2,2,2,2]\n")
    # another op, which has other results of its own; a node in between; a recipe
    relu = re.search(r"%layer2\.1\.relu1 = relu (%\S+) (:.*)\n", text)
    change("a.amp", "c.amp", ("%layer2.1.relu1 = relu", "%layer2.1.relu1 = tanh"), ("momentum=0.9,", "momentum=0.8,"))
    diff("a.amp", "c.amp", [("made from", "recipe", "", "momentum", "", "0.9", "0.8"),
                            ("graph", "@train", "layer2.1.relu1", "%layer2.1.relu1", "op", "relu", "tanh")])
    extra = f'%between = tanh {relu[1]} {relu[2].rsplit(" loc", 1)[0]} loc "between"'
    change("a.amp", "d.amp", (relu[0], f"{extra}\n  {relu[0].replace(relu[1], '%between')}"))
    added = [("graph", "@train", "between", "%between", "node", None, extra),
             ("graph", "@train", "layer2.1.relu1", "%layer2.1.relu1", "operands", relu[1], "%between")]
    diff("a.amp", "d.amp", added)
    diff("d.amp", "a.amp", [(*added[0][:5], extra, None), (*added[1][:5], "%between", relu[1])])
    # the batch is another: two inputs differ, all else only follows
    run(AMPCC, "a.pb", "--passes=", "--batch-size=8", "-o", "e.amp")
    diff("a.amp", "e.amp", [("made from", "recipe", "", "batch_size", "", "32", "8"),
                            ("graph", "@train", "conv1", "%image", "type", "f32[32,224,224,3]", "f32[8,224,224,3]"),
                            ("graph", "@train", "loss", "%label", "type", "i32[32]", "i32[8]")])
    # planned graphs: types, and a count of what moved
    run(ZOO, "lenet5", "-o", "l.pb")
    pathlib.Path("rules").write_text("layer fc1 f32\n")
    for name, flags in ("p", []), ("q", ["--precision-file=rules"]):
        run(AMPCC, "l.pb", "--dtype=bf16", "--emit=ir", "-o", name + ".amp", *flags)
    got = diff("p.amp", "q.amp", Ellipsis)
    assert ("precision", "@train", "fc1", "%fc1", "type", "bf16[128,84]", "f32[128,84]") in got, got
    assert [d for d in got if d[0] == "memory" and "elsewhere" in d[6]] and not [d for d in got if d[4] in ("at", "live", "why")]


def topics(got):
    return {d[0] for d in got}


def programs():
    run(ZOO, "lenet5", "-o", "l.pb")
    pathlib.Path("rules").write_text("layer conv1 f32\n")

    def make(out, *flags, model="l.pb"):
        run(AMPCC, model, "--target=cpu", "--cpu=native", "--batch-size=4", "-q", "-o", out, *flags)
    make("a")
    os.mkdir("other")
    make("other/b")
    diff("a", "other/b", [])
    assert run(DIFF, "a", "other/b") == "same\n"
    flag = "--no-fuse" if b"__asan_" in pathlib.Path("a").read_bytes() else "--static"  # sanitizers are shared libraries
    make("flagged", flag)
    assert ("made from", "flags", "", flag, "", None, "true") in diff("a", "flagged", Ellipsis)
    # each topic: a type, a kernel, memory, sizes, a file
    make("low", "--dtype=bf16")
    got = diff("a", "low", Ellipsis)
    assert topics(got) >= {"made from", "precision", "kernels", "memory", "sizes"} and "graph" not in topics(got), got
    low = re.findall(r"^(f32|bf16) ", run("./low", "--print-precision"), re.M)
    assert ("made from", "", "", "dtype", "", "fp32", "bf16") in got
    assert [d[5:] for d in got if d[:4] == ("precision", "cpu", "", "ops")] == [("all f32", f"{low.count('bf16')} bf16, {low.count('f32')} f32")], got
    make("half", "--dtype=fp16", "--loss-scale=none")
    make("some", "--dtype=fp16", "--loss-scale=none", "--precision-file=rules")
    got = diff("half", "some", Ellipsis)
    assert ("precision", "cpu", "", "conv1 conv2d", "", "f16", "f32") in got and "graph" not in topics(got), got
    assert not [d for d in got if "conv3 conv2d" in d], got
    make("unfused", "--no-fuse")
    got = diff("a", "unfused", Ellipsis)
    kernels = {d[2]: d[5:] for d in got if d[:2] == ("kernels", "cpu @train")}
    assert "conv1" in kernels and all(kernels["conv1"]) and "precision" not in topics(got), got
    run(AMPCC, "l.pb", "--passes=", "--batch-size=4", "-o", "l.amp")
    make("amp", model="l.amp")
    got = diff("a", "amp", Ellipsis)
    assert topics(got) <= {"made from", "sizes"} and got[0][:4] == ("made from", "files", "", "model"), got
    assert re.match(r"l\.pb \(SHA-256 [0-9a-f]{12}\.\.\.\)", got[0][5]), got
    # a program and what it was made from; an object; a program that cannot run here
    diff("a", "l.pb", [("made from", "recipe", "", "batch_size", "", "4", "128"),
                       ("graph", "@train", "conv1", "%image", "type", "f32[4,28,28,1]", "f32[128,28,28,1]"),
                       ("graph", "@train", "loss", "%label", "type", "i32[4]", "i32[128]"),
                       ("graph", "@train", "flatten", "%flatten", "shape", "[4,120]", "[128,120]")])
    assert run(DIFF, "a", "a") == "same\n"
    pathlib.Path("ir.amp").write_text(run("./a", "--dump-ir"))
    assert run(DIFF, "a", "ir.amp") == "same graph and recipe, which is all that a model has\n"
    make("a.o", "--emit=obj")
    assert "sizes" in topics(diff("a", "a.o", Ellipsis))
    content = bytearray(pathlib.Path("a").read_bytes())
    content[18] = 183  # EM_AARCH64
    pathlib.Path("far").write_bytes(content)
    os.chmod("far", 0o644)
    diff("a", "far", [("sizes", "", "", "bytes", "", None, "the files differ in what no manifest says")])


def trouble():
    run(ZOO, "lenet5", "-o", "l.pb")
    run(AMPCC, "l.pb", "--target=cpu", "--cpu=native", "-q", "-o", "a")
    pathlib.Path("text").write_text("graph @x {")
    content = pathlib.Path("a").read_bytes()
    pathlib.Path("cut").write_bytes(content[:len(content) // 2])
    note = content.index(b"AMPNOTE\0ir\0")
    pathlib.Path("bad").write_bytes(content[:note + 60] + b"\xff" * 40 + content[note + 100:])
    for args, says in ((["a"], "give two files"), (["a", "a", "a"], "more than two"), (["--nope", "a", "a"], "unknown option `--nope`"),
                       (["--format=xml", "a", "a"], "unknown option"), (["a", "none"], "cannot be opened"), (["none", "a"], "cannot be opened"),
                       (["a", "text"], "E1"), (["a", "/bin/true"], "no program of ampcc"), (["a", "cut"], "damaged"), (["bad", "a"], "damaged")):
        done = subprocess.run([DIFF, *args], capture_output=True, text=True)
        assert done.returncode == 2 and says in done.stderr and not done.stdout, (args, done)
    assert run(DIFF, "--help").startswith("usage: ampcc-diff") and "ampcc-diff" in run(DIFF, "--version")
    full = subprocess.run([DIFF, "a", "l.pb"], stdout=open("/dev/full", "w"), stderr=subprocess.PIPE)
    assert full.returncode == 2, full
    dice = random.Random(7)
    notes = [m.start() for m in re.finditer(b"AMPNOTE\0", content)]
    table = int.from_bytes(content[40:48], "little")
    for i in range(120):
        broken = bytearray(content)
        for _ in range(dice.randint(1, 4)):
            at = dice.choice([dice.randrange(64), dice.randrange(table, len(content)), dice.choice(notes) + dice.randrange(80)])
            broken[at] = dice.choice([0, 1, 0x7f, 0x80, 0xff, dice.randrange(256)])
        pathlib.Path("broken").write_bytes(broken)
        done = subprocess.run([DIFF, "a", "broken"], capture_output=True, timeout=60)
        assert done.returncode in (0, 1, 2), (i, done)
        assert (done.returncode == 2) == bool(done.stderr), (i, done)


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    globals()[sys.argv[4]]()
