#!/usr/bin/env python3
"""Tests that our models' graphs have the types and shapes that TensorFlow's ResNet tests demand (specs/resnet.md 3.2, 5.1, 5.4):
precision_claims.py AMPCC AMPCC_ZOO

The official tests expect one dtype for all values that are named here. Under the graph rewrite, which ampcc follows, the head has
types of its own: in fp16 reduce_mean is on the deny list, and no low op reads the last bias_add, so both stay f32; in bf16 both are
low. After fold-casts a reduce_mean whose operands and readers are low is low: see EXCEPT.
"""
import os, re, subprocess, sys, tempfile

LOW = {"fp32": "f32", "fp16": "f16", "bf16": "bf16"}
ALLOW = {"conv2d", "conv2d_dgrad", "conv2d_wgrad", "matmul"}
DENY = {"exp", "softmax_xent", "softmax_xent_grad", "sigmoid_xent", "sigmoid_xent_grad", "squared_error",
        "squared_error_grad", "reduce_sum", "reduce_mean"}
TO_AMP = "simplify,eval-graph,autodiff,loss-scale,optimizer,simplify,amp"
# model, batch, classes, block layers, has a max pool
MODELS = [("cifar_resnet32", 128, 10, 3, False), ("cifar_resnet32_v2", 128, 10, 3, False),
          ("resnet50", 32, 1001, 4, True), ("resnet50_v2", 32, 1001, 4, True)]
NO_CASTS = ["cifar_resnet8", "fashion_resnet8_v2", "fashion_resnext11_8x4d", "resnet18", "resnet50", "resnet18_tv", "lenet5", "mlp"]
EXCEPT = {("fp16", "final_reduce_mean", TO_AMP): "f32", ("fp16", "final_dense", TO_AMP): "f32",
          ("fp16", "final_dense", None): "f32"}

bad = []


def want(what, got, expected):
    if got != expected:
        bad.append(f"{what}: {got}, not {expected}")


def run(exe, *args):
    done = subprocess.run([exe, *args], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(args)}: {done.stderr}")
    return done


class Graph:
    """One graph of the text form: name -> (op, dtype, dims), and the lines."""

    def __init__(self, text):
        self.lines = text.splitlines()
        self.value, self.args, self.output = {}, {}, {}
        for line in self.lines:
            if hit := re.match(r"  output %(\S+) \{name=\"(\S+?)\"", line):
                self.output[hit[2]] = hit[1]
            if not (hit := re.match(r"  (%.*?) = (\w+) ?(.*) : (\S+(?:, \S+)*)(?: loc \".*\")?$", line)):
                continue
            self.args.update({n[1:]: hit[3] for n in hit[1].split(", ")})
            for name, type in zip(hit[1].split(", "), hit[4].split(", ")):
                dtype, dims = re.match(r"(\w+)\[([\d,]*)\]", type).groups()
                self.value[name[1:]] = (hit[2], dtype, [int(d) for d in dims.split(",") if d])


def graphs(text):
    return {name: Graph(body)
            for name, body in re.findall(r"^graph @(\w+) .*?\{\n(.*?)^\}", text, re.M | re.S)}


def check_state(what, graph, low):
    for name, (op, dtype, _) in graph.value.items():
        if op != "variable":
            continue
        kind = re.search(r'kind="(\w+)"', graph.args[name])[1]
        if kind in ("param", "slot", "stat"):
            want(f"{what} {kind} {name}", dtype, "f32")
        if kind == "copy":
            want(f"{what} {kind} {name}", dtype, low)


def check_named(what, graph, model, dtype, passes):
    _, batch, classes, layers, pool = model
    names = ["initial_conv"] + ["initial_max_pool"] * pool
    names += [f"block_layer{i + 1}" for i in range(layers)] + ["final_reduce_mean", "final_dense"]
    for name in names:
        want(f"{what} {name}", graph.value[name][1], EXCEPT.get((dtype, name, passes), LOW[dtype]))
    want(f"{what} final_dense", graph.value["final_dense"][2], [batch, classes])


def check_outputs(what, train, evaluate, batch, classes):
    for name, dims in {"loss": [], "accuracy": [], "learning_rate": [], "logits": [batch, classes]}.items():
        want(f"{what} output {name}", train.value[train.output[name]][1:], ("f32", dims))
    for name in ("loss_each", "hit_each"):
        want(f"{what} @eval output {name}", evaluate.value[evaluate.output[name]][1:], ("f32", [batch]))


def check_classes(what, graph, dtype):
    """No allow op is left high, no deny op is made low (in bf16 sums are no deny ops)."""
    deny = DENY - ({"reduce_sum", "reduce_mean"} if dtype == "bf16" else set())
    for name, (op, type, _) in graph.value.items():
        if op in ALLOW:
            want(f"{what} {op} {name}", type, LOW[dtype])
        if op in deny:
            want(f"{what} {op} {name}", type, "f32")


def check_same_as_train(what, train, other):
    for name, (op, dtype, _) in other.value.items():
        if name in train.value:
            want(f"{what} {op} {name}", dtype, train.value[name][1])


def check_skipped(what, graph):
    """A skipped step changes the loss scale and nothing else: not the moving statistics either."""
    updates = [re.match(r"  update %(\S+?), %\S+?(, %finite)?(?: \{.*)?$", line)
               for line in graph.lines if line.startswith("  update ")]
    want(f"{what} updates", len(updates) > 20 and all(updates), True)
    free = sorted(hit[1] for hit in updates if hit and not hit[2])
    want(f"{what} updates of skipped steps", free, ["good_steps", "loss_scale"])


def check_updates(what, graph, low):
    """Unscale, clip, update and low copy are one kernel: nothing that an optimizer makes passes through
    memory on its way to its variable. Finite test and norm read the gradients as they are."""
    copies = 0
    for name, (op, _, _) in graph.value.items():
        if op.startswith("opt_"):
            place = re.search(r"at=\[([-\d,]+)\]", graph.args[name])[1]
            want(f"{what} {op} {name} goes to its variable", set(place.split(",")), {"-2"})
            copies += place.count(",") == 2
        if op == "all_finite":
            read = re.findall(r"%([\w.]+)", graph.args[name])
            want(f"{what} the finite test reads casts", [r for r in read if graph.value[r][0] == "cast"], [])
    want(f"{what} optimizers that write a copy", copies > 20, low != "f32")


def check_stored(what, graph):
    """What only low readers want is in memory in the low type: no f32 result has a place there whose
    readers all cast it."""
    readers = {}
    for name, args in graph.args.items():
        for arg in re.findall(r"%([\w.]+)", args.split("{")[0]):
            readers.setdefault(arg, []).append(name)
    seen = 0
    for name, (op, dtype, dims) in graph.value.items():
        place = re.search(r"at=\[(-?\d+)", graph.args[name])
        if dtype != "f32" or op in ("variable", "input") or not place or int(place[1]) < 0:
            continue
        seen += 1
        read = [graph.value[r][:2] for r in readers.get(name, [])]
        if read and all(r[0] == "cast" and r[1] != "f32" for r in read):
            bad.append(f"{what} {op} {name} {dims} is stored f32 for low readers only")
    want(f"{what} f32 results with a place", seen > 5, True)


def without_reasons(text):
    return re.sub(r',? ?(why|from|to)="[^"]*"', "", text).replace(" {}", "")


def check_model(ampcc, pb, model, dtype):
    for passes in (TO_AMP, None):
        what = f"{model[0]} {dtype} {'after amp' if passes else 'planned'}:"
        args = ["--emit=ir", f"--dtype={dtype}", f"--batch-size={model[1]}", "-o", "-"]
        text = run(ampcc, *args, *([f"--passes={passes}"] if passes else []), pb).stdout
        module = graphs(text)
        for graph in module.values():
            check_state(what, graph, LOW[dtype])
            check_same_as_train(what, module["train"], graph)
        check_named(what, module["train"], model, dtype, passes)
        check_outputs(what, module["train"], module["eval"], model[1], model[2])
        if not passes:
            check_stored(what, module["train"])
            check_updates(what, module["train"], LOW[dtype])
        if dtype == "fp16":
            check_skipped(what, module["train"])
        if passes:
            check_classes(what, module["train"], dtype)
            again = run_text(ampcc, text, "--passes=amp", f"--dtype={dtype}")
            want(f"{what} amp twice", without_reasons(again) == without_reasons(text), True)


def run_text(ampcc, text, *args):
    with tempfile.NamedTemporaryFile("w", suffix=".amp") as f:
        f.write(text)
        f.flush()
        return run(ampcc, "--emit=ir", *args, f.name).stdout


def check_casts(ampcc, pb, name, dtype):
    done = run(ampcc, "--emit=ir", f"--dtype={dtype}", "--batch-size=4", "--distributed=on", "--print-precision",
               "-o", "-", pb)
    shard, err = graphs(done.stdout)["train_dp"], done.stderr
    # gradients travel as f32
    summed = [shard.args[name].split()[0][1:] for name, value in shard.value.items() if value[0] == "all_reduce"]
    widened = sum(shard.value[name][0] == "cast" for name in summed)
    want(f"{name} {dtype}: sums over shards", len(summed) > 0, True)
    counts = re.findall(r"@(\w+): .*casts: (\d+) kernels of their own, (\d+) of weights", err)
    want(f"{name} {dtype}: graphs with counts", len(counts) >= 2, True)
    for graph, own, weights in counts:
        most = widened if graph == "train_dp" else 0
        want(f"{name} {dtype} @{graph}: no more than {most} casts of their own", int(own) <= most, True)
        want(f"{name} {dtype} @{graph}: casts of weights", weights, "0")


def main(ampcc, zoo):
    with tempfile.TemporaryDirectory() as folder:
        pb = {m: os.path.join(folder, m + ".pb") for m in [m[0] for m in MODELS] + NO_CASTS}
        for name, path in pb.items():
            run(zoo, name, "-o", path)
        for dtype in LOW:
            for model in MODELS:
                check_model(ampcc, pb[model[0]], model, dtype)
            for name in NO_CASTS:
                check_casts(ampcc, pb[name], name, dtype)
    for line in bad:
        print("FAIL", line)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
