#!/usr/bin/env python3
"""Tests that compiling takes time in proportion to the size of the model, however many nodes read one weight: readers.py AMPCC

Models in which 5,000 and 20,000 nodes read one parameter go through all passes. Four times the nodes may take at most
twelve times the processor time, of which the least of three runs counts. A quadratic pass takes sixteen times. Four times
the instructions, which is what callgrind counts, took 6 to 8.2 times: 20,000 nodes take 150 MB, which no near cache holds.
"""
import os
import resource
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
small, large = model(5000), model(20000)
for name, flags in (("autodiff", ["--passes=autodiff"]), ("all passes, fp16", ["--dtype=fp16"])):
    a = min(seconds(small, *flags) for _ in range(3))
    b = min(seconds(large, *flags) for _ in range(3))
    fits = b <= 12 * max(a, 0.05)
    good &= fits
    print("%s: 5,000 readers %.2f s, 20,000 readers %.2f s %s" % (name, a, b, "ok" if fits else "FAILED"))
sys.exit(not good)
