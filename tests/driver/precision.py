#!/usr/bin/env python3
"""Tests the flags that explain and change precisions: precision.py AMPCC AMPCC_ZOO

These are --explain-precision, --precision-file, -W and --excess-precision: what they print, what they change in the graph, and all
errors that they can give."""
import json
import os
import re
import subprocess
import sys
import tempfile

import commands
from commands import ZOO, expect, failed, fails

# This graph rounds twice in a row, once between elementwise ops, and once before a product.
CASTS = """graph @train stage train {
  %x = input {name="image"} : f32[8,8]
  %w = variable {kind="param", init="ones"} : f32[8,8]
  %a = tanh %x : f32[8,8]
  %b = cast %a : f16[8,8]
  %c = cast %b : f32[8,8]
  %d = sqrt %c : f32[8,8]
  %m = reduce_mean %w {axes=[0]} : f32[8]
  %n = cast %m : bf16[8]
  %o = cast %n : f16[8]
  %p = reduce_sum %d {axes=[0]} : f32[8]
  %q = cast %p : f16[8]
  %r = cast %q : f32[8]
  output %d {name="d"}
  output %o {name="o"}
  output %r {name="r"}
}
"""
# 16 channels in and out, but 4 of them in each group
GROUPED = """graph @train stage train {
  %x = input {name="image"} : f32[2,8,8,16]
  %w = variable {kind="param", init="ones"} : f32[16,3,3,4]
  %y = conv2d %x, %w {stride=[1,1], pad=[1,1,1,1], groups=4} : f32[2,8,8,16]
  output %y {name="y"}
}
"""
# in f16, 1e-9 is 0 and 1e6 is infinite
CONSTANTS = """graph @train stage train {
  %x = input {name="image"} : f32[8,8]
  %tiny = const {value=1e-09} : f32[8,8]
  %huge = const {data=[1.0, 1000000.0]} : f32[2]
  %big = broadcast %huge {shape=[8,2], axes=[0]} : f32[8,2]
  %y = matmul %x, %tiny : f32[8,8]
  %z = matmul %y, %big : f32[8,2]
  output %z {name="z"}
}
"""
# no op in a low type reads the sigmoid, so it is computed in one only if a rule asks for it
LOW = """graph @train stage train {
  %x = input {name="image"} : f32[4096]
  %t = sigmoid %x : f32[4096]
  %s = reduce_sum %t {axes=[0]} : f32[]
  output %s {name="s"}
}
"""
# one reader wants the image in a low type and one in f32, and no loop can do the cast between them
TWO_TYPES = """graph @train stage train {
  %x = input {name="image"} : f32[8,8]
  %y = matmul %x, %x : f32[8,8]
  %s = reduce_sum %x {axes=[0]} : f32[8]
  output %y {name="y"}
  output %s {name="s"}
}
"""
HOSTILE = r"""graph @train stage train {
  %x = input {name="image"} : f32[8]
  %a = relu %x {why="clear:", from="b"} : f32[8]
  %b = relu %a {why="allow: ", from="a"} : f32[8]
  %c = relu %b {why=": between", from="nobody", folded="f16 exact, 48 bytes: yes; f16 exact, 99999999999999999999"} : f32[8]
  %"\x1b[31mred" = relu %c {why="; ", to="x", folded="; ;"} : f32[8]
  output %"\x1b[31mred" {name="y"}
}
"""


def run(*args, stdin=""):
    status, out, err = commands.run(commands.AMPCC, *args, stdin=stdin.encode())
    return status, out.decode(), err


def says(text, *args, **more):
    got = run(*args, **more)
    expect("%s: `%s`" % (" ".join(args), text), got[0] == 0 and text in got[1] + got[2], got)


def quiet(*args, **more):
    got = run(*args, **more)
    expect("%s: nothing to say" % " ".join(args), got[0] == 0 and not got[2], got)


def rules(text):
    with open("rules.txt", "w") as f:
        f.write(text)
    return "--precision-file=rules.txt"


FP16 = ["resnet.pb", "--dtype=fp16", "--emit=ir", "-o", "out.amp"]


def explained():
    says("%layer1.0.relu1 = relu in @train: f16, layer `layer1.0.relu1`", *FP16, "--explain-precision=layer1.0.relu1")
    says("  rule    between: it is on a path between two allow ops", *FP16, "--explain-precision=layer1.0.relu1")
    says("  chain   layer1.0.conv1 (allow, f16) > layer1.0.bn1 (infer, f16) > [layer1.0.relu1] (clear, f16) > "
         "layer1.0.conv2 (allow, f16)\n", *FP16, "--explain-precision=layer1.0.relu1")
    says("  chain   final_dense.grad (deny, f32) > [fc.bias.grad] (infer, f32)", *FP16, "--explain-precision=%fc.bias.grad")
    says("  folded  its cast to f32, exact, ", *FP16, "--explain-precision=conv1.weight.grad")
    says("  then    done in f16, which its operands and readers have", *FP16, "--explain-precision=final_reduce_mean")
    says("  cast    reads %fc.f32, f32 of %fc, 7680 bytes, 1 readers, kernel ", *FP16, "--explain-precision=final_dense")
    says("@train: ", *FP16, "--explain-precision")
    says("casts: 0 kernels of their own, 0 of weights", *FP16, "-v")
    says("%layer3.0.conv1 = conv2d in @train", *FP16, "--explain-precision=layer?.0.conv1")
    # the text of the graph has the same explanations
    run(*FP16)
    again = run("out.amp", "--passes=", "-o", "again.amp", "--explain-precision")[1]
    expect("from text the same", again and again == run(*FP16, "--explain-precision")[1])
    fails(1, "error[E403]: no op or layer is called `layer1.0.relu9`; did you mean `layer1.0.relu1`", *FP16,
          "--explain-precision=layer1.0.relu9")
    fails(1, "error[E403]: `conv1.weight` has no precision that ampcc chose", *FP16, "--explain-precision=conv1.weight")
    # in a graph that is read from text the notes may be wrong: they may lead in a circle or name no op
    says("%\\x1b[31mred = relu in @train", "-", "--passes=", "--explain-precision", "--explain-precision=?*red", stdin=HOSTILE)
    says("rule    other: as the text says", "-", "--passes=", "--explain-precision=b", stdin=HOSTILE)
    says("chain   a (clear, f32) > b (allow, f32) > a (clear, f32) > ", "-", "--passes=", "--explain-precision=a", stdin=HOSTILE)
    says("chain   nobody > [c] (none, f32)\n", "-", "--passes=", "--explain-precision=c", stdin=HOSTILE)
    says("1 folded exactly", "-", "--passes=", "--explain-precision", stdin=HOSTILE)


def for_machines():
    status, out, err = run(*FP16, "--explain-precision=json")
    graphs = json.loads(out) if status == 0 else []
    expect("json: every graph", [g["graph"] for g in graphs] == ["train", "eval", "stats", "train_dp"], err)
    ops = {op["name"]: op for op in graphs[0]["ops"]} if graphs else {}
    relu = ops.get("layer1.0.relu1", {})
    expect("json: an op", (relu.get("class"), relu.get("rule"), relu.get("dtype")) == ("clear", "between", "f16"), relu)
    expect("json: its chain", relu.get("chain") == ["layer1.0.conv1", "layer1.0.bn1", "layer1.0.relu1", "layer1.0.conv2"])
    expect("json: a fold", ops.get("conv1.weight.grad", {}).get("folded", [{}])[0].get("class") == "exact")
    cast = ops.get("final_dense", {}).get("casts", [{}])[0]
    expect("json: a cast", (cast.get("of"), cast.get("bytes"), cast.get("alone")) == ("fc", 7680, False), cast)
    expect("json: totals", graphs and graphs[0]["totals"]["casts_own"] == 0 and graphs[0]["totals"]["weight_copies"] > 5)


def overridden():
    def dtype(name):
        found = re.search(r"^  %%%s = .* : (\w+)\[" % re.escape(name), open("out.amp").read(), re.M)
        return found and found[1]

    run(*FP16)
    expect("before", (dtype("layer1.0.conv1"), dtype("layer2.0.conv1"), dtype("final_dense")) == ("f16", "f16", "f32"))
    quiet(*FP16, "-q", rules("# the first block\n\nlayer layer1.0.conv? f32  # both\nvalue \"final_dense\" low\r\n"))
    expect("after", (dtype("layer1.0.conv1"), dtype("layer2.0.conv1"), dtype("final_dense")) == ("f32", "f16", "f16"))
    says("reason  allow: kept f32 as asked", *FP16, rules("layer layer1.0.conv1 f32"), "--explain-precision=layer1.0.conv1")
    says("reason  infer: as asked", *FP16, rules("value final_dense low"), "--explain-precision=final_dense")
    says("class as asked", *FP16, rules("op add deny\nop add infer"), "--explain-precision=layer1.0.add")
    run(*FP16, rules("layer layer1.0.conv1 f32\nlayer layer1.* low"))
    expect("the last rule counts", dtype("layer1.0.conv1") == "f16")
    run(*FP16, rules("op conv2d deny"))
    expect("deny spreads", dtype("layer1.0.bn1") == "f32" and dtype("layer1.0.conv1") == "f32")
    for text, code in {"layer x": "1:8: error[E404]: a rule has three words",
                       "op add low low": "1:12: error[E404]: more than three words",
                       "op \"add low": "1:4: error[E404]: the quote is not closed",
                       "opp add low": "1:1: error[E404]: `opp` is none of op, layer, value; did you mean `op`?",
                       "op add half": "1:8: error[E404]: `half` is none of low, f32, allow, infer, clear, deny",
                       "\nop ad low": "2:4: error[E405]: no op is called `ad`; did you mean `add`",
                       "layer layer1.0.convs low": "1:7: error[E405]: no layer is called `layer1.0.convs`; did you mean "
                                                   "`layer1.0.conv1`",
                       "value fc.weight low": "1:7: error[E405]: value `fc.weight` cannot be low: `variable` keeps the type",
                       "op opt_* allow": "1:4: error[E405]: op `opt_*` cannot be allow"}.items():
        fails(1, "rules.txt:" + code, *FP16, rules(text))
    fails(1, "rules.txt: error[E401]: --precision-file has nothing to choose in fp32", "resnet.pb", "--emit=ir",
          "-o", "out.amp", rules("op add low"))
    fails(1, "nope.txt: error[E208]: cannot be opened", *FP16, "--precision-file=nope.txt")
    fails(1, ": error[E208]: cannot be read", *FP16, "--precision-file=.")
    fails(1, "rules.txt:1:11: error[E208]: a NUL byte: this is no text", *FP16, rules("op add low\0"))
    fails(1, "rules.txt: error[E117]: the file is larger than 1 MiB", *FP16, rules("#" * (1 << 20)))
    fails(1, "-: error[E208]: cannot be opened", *FP16, "--precision-file=-")


def warned():
    for model in ("resnet.pb", "mlp.pb", "lenet5.pb"):
        for dtype in ("fp32", "fp16", "bf16"):
            quiet(model, "--dtype=" + dtype, "--emit=ir", "-o", "out.amp")
    says("'fc': warning: `matmul` fc has 64 channels in and 10 out: multiples of 8 run faster in f16 [-Wprecision-dims]",
         *FP16, "-Wprecision-dims")
    fails(1, "'conv1': error: `conv2d` initial_conv has 3 channels in and 16 out", *FP16, "-Werror=precision-dims")
    says("warning: `conv2d` y has 4 channels in and 4 out in each group: multiples of 8 run faster in f16",
         "-", "--passes=amp", "--dtype=fp16", "-Wprecision-dims", stdin=GROUPED)
    fails(1, "[-Werror=precision-dims]", *FP16, "--warn=all", "-Werror")
    quiet(*FP16, "-Wall", "-Wno-precision-dims")
    says("warning: `conv2d`", *FP16, "-Wall", "-Werror", "-Wno-error=precision-dims")
    fails(2, "unknown warning `precision-dim`; did you mean `precision-dims`?", *FP16, "-Wprecision-dim")
    fails(2, "unknown warning `zzzzzzz`; see --help", *FP16, "-Wno-zzzzzzz")
    says("precision-double-rounding", "--help")
    says("reduce_sum` is kept f32 for its numerics", "-", "--passes=amp", "--dtype=fp16", rules("op reduce_sum low"), stdin=LOW)
    says("[-Wprecision-override]", "-", "--passes=amp", "--dtype=fp16", rules("op reduce_sum low"), stdin=LOW)
    got = run("-", "--passes=amp", "--dtype=fp16", stdin=CONSTANTS)[2]
    expect("constants out of range", "constant tiny: 1e-09 is 0 in f16 [-Wprecision-range]" in got and
           "constant huge: 1e+06 is infinite in f16" in got, got)
    quiet("-", "--passes=amp", "--dtype=bf16", stdin=CONSTANTS)
    says("gradients of up to 131072 do not fit f16 [-Wprecision-range]", *FP16, "--loss-scale=16777216")
    quiet(*FP16, "--loss-scale=1024")
    says("%o is rounded from f32 to bf16 and then to f16 [-Wprecision-double-rounding]", "-", "--passes=fold-casts", stdin=CASTS)
    says("%x.f16, a cast of %x to f16, is a kernel of its own: 384 bytes a step [-Wprecision-casts]", "-", "--dtype=fp16",
         "--emit=ir", stdin=TWO_TYPES)


def excess():
    def casts(level):
        out = run("-", "--passes=fold-casts", "--excess-precision=" + level, stdin=CASTS)
        return re.findall(r"%(\w+) = cast %(\w+)", out[1]), out

    every = [("b", "a"), ("c", "b"), ("n", "m"), ("o", "n"), ("q", "p"), ("r", "q")]
    expect("exact: all stay", casts("exact")[0] == every, casts("exact"))
    expect("fused: only within a loop", casts("fused")[0] == every[2:], casts("fused"))
    expect("fast: all roundings but the last", casts("fast")[0] == [("o", "m")], casts("fast"))
    expect("fast: the class is noted", 'folded="f16 fast, 48 bytes: the rounding to the low type is left out' in casts("fast")[1][1])
    expect("fused: the class is noted", 'folded="f16 fused, 384 bytes' in casts("fused")[1][1], casts("fused"))
    says("so values change [-Wprecision-excess]", "-", "--passes=fold-casts", "--excess-precision=fast",
         "-Wprecision-excess", stdin=CASTS)
    fails(2, "--excess-precision takes exact|fused|fast, not `slow`", *FP16, "--excess-precision=slow")


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for model, file in {"cifar_resnet8": "resnet.pb", "mlp": "mlp.pb", "lenet5": "lenet5.pb"}.items():
            expect("ampcc-zoo " + model, subprocess.run([ZOO, model, "-o", file]).returncode == 0)
        explained()
        for_machines()
        overridden()
        warned()
        excess()
        os.chdir("/")
    print("%d failed" % len(failed))
    return 1 if failed else 0


sys.exit(main())
