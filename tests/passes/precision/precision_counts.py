#!/usr/bin/env python3
"""Counts the casts and types of a ResNet-50 step for each way to choose precisions: precision_counts.py AMPCC AMPCC_ZOO GOLDEN

The batch size is 8. The counts, as amp leaves the graph and as it is compiled, must be those of the golden file, which UPDATE=1
rewrites."""
import os
import re
import subprocess
import sys
import tempfile

TO_AMP = "simplify,eval-graph,autodiff,loss-scale,optimizer,simplify,amp"
MODES = {"own": [], "tf:2.15": ["--amp-compat=tf:2.15"], "tf:2.19": ["--amp-compat=tf:2.19"],
         "tf:2.21": ["--amp-compat=tf:2.21"]}
HEAD = """# A ResNet-50 step, batch 8: `after amp` is the graph with the casts that amp inserted, `compiled` the program.
# TensorFlow's own pipeline: 57 casts to f16, 54 of them of weights, 56 to f32; from 2.20 on 58 and 56 (specs/amp-rewrite.md
# 7.4), 318 MB of traffic a step. Here folded + inside other kernels + copies of weights are the casts of `after amp`.
"""


def ampcc(exe, *args):
    done = subprocess.run([exe, "--batch-size=8", "--emit=ir", "-o", "-", *args], capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    return done


def count(exe, pb, dtype, mode):
    after = ampcc(exe, pb, "--passes=" + TO_AMP, "--dtype=" + dtype, "--print-precision", *MODES[mode])
    train = after.stdout.split("\ngraph @eval")[0]
    casts = re.findall(r"^  %\S+ = cast %(\S+) : (\w+)", train, re.M)
    weights = set(re.findall(r"^  %(\S+) = variable \{kind=\"param\"", train, re.M))
    low = [c for c in casts if c[1] != "f32"]
    totals = re.search(r"^@train: (\d+ ops low, \d+ f32)", after.stderr, re.M)[1]
    yield "%s %-7s after amp: %s; casts: %d to low, %d of them of weights, %d to f32" % (
        dtype, mode, totals, len(low), sum(c[0] in weights for c in low), len(casts) - len(low))
    full = ampcc(exe, pb, "--dtype=" + dtype, "--print-precision", *MODES[mode])
    for line in re.findall(r"^@train:.*", full.stderr, re.M):
        yield "%s %-7s compiled %s" % (dtype, mode, line)


def main(exe, zoo, golden):
    with tempfile.TemporaryDirectory() as folder:
        pb = os.path.join(folder, "resnet50.pb")
        subprocess.run([zoo, "resnet50", "-o", pb], check=True)
        got = HEAD + "".join(line + "\n" for dtype in ("fp16", "bf16") for mode in MODES
                             for line in count(exe, pb, dtype, mode))
    if "UPDATE" in os.environ:
        open(golden, "w").write(got)
    elif open(golden).read() != got:
        print("%s is not what ampcc counts:\n%s" % (golden, got))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
