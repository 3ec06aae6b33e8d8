#!/usr/bin/env python3
"""Tests that compiling takes time in proportion to the size of the model, however many nodes read one weight: readers.py AMPCC

Models of which many nodes read one parameter go through some passes. Four times the nodes may take at most eight times
the processor time (a quadratic pass takes sixteen times) in the median of five turns of a small and a large model. Four
times the instructions, as callgrind counts them, take longer than four times, as the large model does not fit the caches:
through all passes 20,000 nodes, of 150 MB, took up to 9.7 times as long as 5,000, and 10,000 up to 6.7 times 2,500.
"""
import os
import resource
import statistics
import subprocess
import sys

AMPCC = os.path.abspath(sys.argv[1])
LIMIT = 120 # seconds of processor time; sanitizers take ten times what a release takes
HEAD = """recipe {name="readers", batch_size=4}

graph @train stage model {
  %image = input {name="image"} : f32[4,2,2,1]
  %label = input {name="label"} : i32[4]
  %x0 = reshape %image {shape=[4,4]} : f32[4,4]
  %w = variable {kind="param", init="zeros"} : f32[4]
"""
TAIL = """  %loss_each = softmax_xent %LAST, %label {smoothing=0.0} : f32[4]
  %loss = reduce_mean %loss_each {axes=[0]} : f32[]
  %hit_each = in_top_k %LAST, %label {k=1} : f32[4]
  %accuracy = reduce_mean %hit_each {axes=[0]} : f32[]
  output %loss {name="loss"}
  output %accuracy {name="accuracy"}
  output %LAST {name="logits"}
  output %loss_each {name="loss_each"}
  output %hit_each {name="hit_each"}
}
"""


def model(n):
    path = "readers_%d.amp" % n
    with open(path, "w") as out:
        out.write(HEAD)
        for i in range(n):
            out.write("  %%x%d = bias_add %%x%d, %%w : f32[4,4]\n" % (i + 1, i))
        out.write(TAIL.replace("LAST", "x%d" % n))
    return path


def limit():
    resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, LIMIT))


def seconds(path, *flags):
    """The processor time of one compilation in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([AMPCC, path, "--emit=ir", "-o", path + ".out", "--target=cpu", *flags], preexec_fn=limit,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        sys.exit("%s: status %d\n%s" % (path, done.returncode, done.stdout[-2000:]))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime


good = True
for name, small, flags in ("autodiff", 5000, ["--passes=autodiff"]), ("all passes, fp16", 2500, ["--dtype=fp16"]):
    paths = model(small), model(4 * small)
    turns = [[seconds(path, *flags) for path in paths] for _ in range(5)]
    ratio = statistics.median(b / max(a, 0.05) for a, b in turns)
    fits = ratio <= 8
    good &= fits
    print("%s: %d readers took %.2f times as long as %d %s" % (name, 4 * small, ratio, small, "ok" if fits else "FAILED"))
sys.exit(not good)
