#!/usr/bin/env python3
"""Tests how --dtype, --fp16-implementation and --loss-scale depend on each other: coupling.py AMPCC

Each combination of the three must give the loss scale of the table, or end with the message and exit status that the table names
(specs/resnet.md 1.1, 1.3, 1.7, 3.3; specs/amp-rewrite.md 4.2)."""
import re
import subprocess
import sys

AMPCC = sys.argv[1]
DTYPES = ("fp32", "fp16", "bf16")

# `-` stands for an option that is absent. An outcome is `none` for no loss scale; `N+` for the fixed scale N with a test for Inf
# and NaN; `N` for a fixed scale without that test, as in TensorFlow, and a warning; `dyn N` for a dynamic scale that starts at N;
# or else a key of REFUSED.
TABLE = """
implementation  loss scale                fp32       fp16       bf16
-               -                         none       dyn 32768  none
-               none                      none       none       none
-               1                         1+         1+         1+
-               128                       128+       128+       128+
-               0.5                       0.5+       0.5+       0.5+
-               0                         form       form       form
-               -3                        form       form       form
-               inf                       form       form       form
-               abc                       form       form       form
-               dynamic                   dyn 32768  dyn 32768  dyn 32768
-               dynamic:init=1024         dyn 1024   dyn 1024   dyn 1024

graph_rewrite   -                         only       128        only
graph_rewrite   none                      only       none       only
graph_rewrite   1                         only       1          only
graph_rewrite   128                       only       128        only
graph_rewrite   0.5                       only       least      only
graph_rewrite   0                         only       positive   only
graph_rewrite   -3                        only       positive   only
graph_rewrite   inf                       only       positive   only
graph_rewrite   abc                       only       positive   only
graph_rewrite   dynamic                   only       dyn 32768  only
graph_rewrite   dynamic:init=1024         only       dyn 1024   only

casting         -                         none       128        none
casting         none                      none       none       none
casting         1                         none       none       none
casting         128                       128        128        128
casting         0.5                       0.5        0.5        0.5
casting         0                         positive   positive   positive
casting         -3                        positive   positive   positive
casting         inf                       positive   positive   positive
casting         abc                       positive   positive   positive
casting         dynamic                   static     static     static
casting         dynamic:init=1024         static     static     static

policy          -                         none       128        none
policy          none                      none       none       none
policy          1                         1          1          1
policy          128                       128        128        128
policy          0.5                       0.5        0.5        0.5
policy          0                         positive   positive   positive
policy          -3                        positive   positive   positive
policy          inf                       positive   positive   positive
policy          abc                       positive   positive   positive
policy          dynamic                   dyn 32768  dyn 32768  dyn 32768
policy          dynamic:init=1024         dyn 1024   dyn 1024   dyn 1024

keras           -                         none       128        none
keras           dynamic                   dyn 32768  dyn 32768  dyn 32768

Casting         -                         word       word       word
"""

TAKES = "--loss-scale takes N|dynamic[:KEY=X,..]|none, not `%s`"
REFUSED = {
    "form": TAKES,
    "only": "--fp16_implementation should not be specified unless --dtype=fp16",
    "static": "--loss_scale=dynamic is only supported when --fp16_implementation=graph_rewrite",
    "positive": "loss_scale should be a positive int/float or the string 'dynamic'.",
    "least": "loss_scale_value must be at least 1.",
    "word": "--fp16-implementation takes graph_rewrite|casting|policy, not `Casting`",
}
WARNING = ("<stdin>: warning: the fixed loss scale %s has no finite test, as in TensorFlow: gradients that overflow spoil the "
           "parameters [-Wloss-scale]\n")

# Settings of the dynamic scale, each with what the graph then says, or with the message that refuses it.
SETTINGS = [
    ("dynamic", "32768.0 growth=2.0, backoff=0.5, interval=2000, min=1.0, max=inf"),
    ("dynamic:init=65536,min=0", "65536.0 growth=2.0, backoff=0.5, interval=2000, min=1.1754943508222875e-38, max=inf"),
    ("dynamic:init=4,growth=3,interval=2,backoff=0.25,min=0.5,max=1e6",
     "4.0 growth=3.0, backoff=0.25, interval=2, min=0.5, max=1e+06"),
    ("dynamic:max=inf", "32768.0 growth=2.0, backoff=0.5, interval=2000, min=1.0, max=inf"),
    ("dynamic:", "`` is no setting of dynamic; it has init, growth, interval, backoff, min, max"),
    ("dynamic:init=4,", "`` is no setting of dynamic; it has init, growth, interval, backoff, min, max"),
    ("dynamic:grow=3", "`grow` is no setting of dynamic; it has init, growth, interval, backoff, min, max"),
    ("dynamic:init", "init is a number above 0, not ``"),
    ("dynamic:init=0", "init is a number above 0, not `0`"),
    ("dynamic:init=1e39", "init is a number above 0, not `1e39`"),
    ("dynamic:init=nan", "init is a number above 0, not `nan`"),
    ("dynamic:growth=1", "growth is a number above 1, not `1`"),
    ("dynamic:interval=0", "interval is a whole number of steps, at least 1, not `0`"),
    ("dynamic:interval=2.5", "interval is a whole number of steps, at least 1, not `2.5`"),
    ("dynamic:interval=3000000000", "interval is a whole number of steps, at least 1, not `3000000000`"),
    ("dynamic:backoff=1", "backoff is a number between 0 and 1, not `1`"),
    ("dynamic:backoff=0", "backoff is a number between 0 and 1, not `0`"),
    ("dynamic:min=-1", "min is a number, 0 for none, not `-1`"),
    ("dynamic:max=many,init=3", "max is a number, inf for none, not `many`"),
    ("dynamic:init=0.5", "init=0.5 does not lie between min=1 and max=inf"),
    ("dynamic:max=1024", "init=32768 does not lie between min=1 and max=1024"),
]

MODEL = b"""graph @train stage model {
  %x = input {name="image"} : f32[2,4]
  %w = variable {kind="param", init="ones"} : f32[4,3]
  %y = matmul %x, %w : f32[2,3]
  %l = reduce_sum %y {axes=[0,1]} : f32[]
  output %l {name="loss"}
  output %y {name="logits"}
}
"""


def compile_with(*flags):
    done = subprocess.run([AMPCC, "-", "--passes=set-compute,autodiff,loss-scale,optimizer", *flags], input=MODEL,
                          capture_output=True)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def number(text):
    return re.sub(r"\.0$", "", text)


def outcome(graph):
    scale = re.search(r'%loss_scale = variable \{kind="scale", init="constant", init_args=\[([^]]*)\]\}', graph)
    gated = "update %w, %w.new, %finite" in graph
    if not scale:
        return "none" if not gated and "finite" not in graph else "a test without a scale"
    if "loss_scale_update" in graph:
        return "dyn " + number(scale.group(1)) if gated else "dynamic without a test"
    return number(scale.group(1)) + ("+" if gated else "")


def expected(code, scale):
    """The exit status, the outcome and the text on standard error that a row of the table demands."""
    if code in REFUSED:
        text = REFUSED[code]
        return 2, "", "ampcc: %s\n" % (text % scale if "%s" in text else text)
    return 0, code, WARNING % code if code[0].isdigit() and code[-1] != "+" else ""


def combinations():
    for line in TABLE.splitlines()[2:]:
        if line:
            implementation, scale, *codes = re.split(r"\s{2,}", line)
            for dtype, code in zip(DTYPES, codes, strict=True):
                yield dtype, implementation, scale, code


def check(flags, want, got):
    if got != want:
        print("FAILED: %s\n  wanted %s\n  got    %s" % (" ".join(flags), want, got))
    return got == want


def check_combination(dtype, implementation, scale, code):
    flags = ["--dtype=" + dtype]
    flags += ["--fp16-implementation=" + implementation] if implementation != "-" else []
    flags += ["--loss-scale=" + scale] if scale != "-" else []
    status, graph, errors = compile_with(*flags)
    return check(flags, expected(code, scale), (status, outcome(graph) if graph else "", errors))


def check_setting(scale, want):
    flags = ["--dtype=fp16", "--loss_scale=" + scale]
    status, graph, errors = compile_with(*flags)
    if status:
        return check(flags, (2, "ampcc: --loss-scale: %s\n" % want), (status, errors))
    init = re.search(r"init_args=\[([^]]*)\]", graph).group(1)
    return check(flags, want, init + " " + re.search(r"loss_scale_update .*\{([^}]*)\}", graph).group(1))


def check_compat():
    """--amp-compat=tf chooses as TensorFlow does, too."""
    flags = ["--dtype=fp16", "--loss-scale=16", "--amp-compat=tf"]
    status, graph, errors = compile_with(*flags)
    return check(flags, (0, "16", WARNING % 16), (status, outcome(graph), errors))


def main():
    results = [check_combination(*row) for row in combinations()]
    results += [check_setting(*row) for row in SETTINGS] + [check_compat()]
    print("%d combinations, %d failed" % (len(results), results.count(False)))
    return results.count(False) != 0 or len(results) < 160


sys.exit(main())
