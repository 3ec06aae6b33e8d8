#!/usr/bin/env python3
"""Tests which ops are fused with convolutions in the fp16 step of ResNet-50 on each kind of GPU: forms.py AMPCC AMPCC_ZOO GOLDEN

The kernels with a convolution are compared with the golden file, which UPDATE=1 rewrites. All ops that the pass norm-forms wrote for
such kernels must be in them."""
import collections
import os
import re
import subprocess
import sys
import tempfile

PASSES = ("simplify,eval-graph,autodiff,loss-scale,optimizer,simplify,amp,fold-casts,weight-copies,cse,dce,"
          "assign-layout,lower-norm,norm-forms,fuse")
NODE = re.compile(r"^  (?:%.* = )?(\w+) (.*?)\{(.*?)(?<!\[)\} ?(.*)", re.M)


def kernels(text):
    """A list of the nodes, as texts of op and operands, for each kernel of @train."""
    train = text[text.index("graph @train"):]
    found = collections.defaultdict(list)
    for op, operands, attrs, _ in NODE.findall(train[:train.index("\n}")]):
        kernel = re.search(r"kernel=(\d+)", attrs)
        if kernel:
            found[int(kernel[1])].append((op, operands))
    return found.values()


def lines(exe, pb, model, target):
    done = subprocess.run([exe, pb, "--dtype=fp16", "--batch-size=256", "--fuse-level=3", f"--target=cuda:{target}", f"--passes={PASSES}"],
                          capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    counts, alone = collections.Counter(), 0
    for nodes in kernels(done.stdout):
        ops = [op for op, _ in nodes]
        if any(op.startswith("conv2d") for op in ops):
            counts[" ".join(ops)] += 1
        else: # the vectors of a clone are rounded, all others are f32
            alone += sum(op == "bn_sums" or (op == "affine" and ".f16" in operands) for op, operands in nodes)
    for ops, n in sorted(counts.items()):
        yield f"{model} {target} {n:3} {ops}\n"
    yield f"{model} {target} {alone:3} left alone\n"


def main(exe, zoo, golden):
    with tempfile.TemporaryDirectory() as folder:
        got = ""
        for model in ("resnet50", "resnet50_v2"):
            pb = os.path.join(folder, model + ".pb")
            subprocess.run([zoo, model, "-o", pb], check=True)
            for target in ("t4", "a100", "h200", "b200"):
                got += "".join(lines(exe, pb, model, target))
    if "UPDATE" in os.environ:
        open(golden, "w").write(got)
    elif open(golden).read() != got:
        print(f"{golden} is not what ampcc makes:\n{got}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
