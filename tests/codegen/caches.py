"""What the tests of the cache share: a model whose program is soon made, the command that makes it, and a line for each check."""
import os
import sys

AMPCC, RESOURCES = map(os.path.abspath, sys.argv[1:3])
failed = []


def small_model(batch):
    """A model without products, as most of the time to compile a program is that of the kernels for them."""
    return """recipe {name="small", batch_size=%(n)d}

graph @train stage model {
  %%x = input {name="image"} : f32[%(n)d,3]
  %%label = input {name="label"} : i32[%(n)d]
  %%w = variable {kind="param", init="zeros"} : f32[3]
  %%y = bias_add %%x, %%w : f32[%(n)d,3] loc "bias"
  %%e = softmax_xent %%y, %%label : f32[%(n)d]
  %%l = reduce_mean %%e {axes=[0]} : f32[]
  output %%l {name="loss"}
}
""" % {"n": batch}


def model_with_product(behind):
    """A model with a product, and the op `behind` that follows it."""
    return """recipe {name="small", batch_size=2}

graph @train stage model {
  %%x = input {name="image"} : f32[2,3]
  %%label = input {name="label"} : i32[2]
  %%w = variable {kind="param", init="variance_scaling", init_args=[1.0,2.0,2.0]} : f32[3,3]
  %%z = matmul %%x, %%w : f32[2,3] loc "product"
  %%y = %s %%z : f32[2,3] loc "behind"
  %%e = softmax_xent %%y, %%label : f32[2]
  %%l = reduce_mean %%e {axes=[0]} : f32[]
  output %%l {name="loss"}
}
""" % behind


def command(*flags, cache="cache", model="small.amp", out="out", ampcc=AMPCC, resources=RESOURCES):
    return [ampcc, model, "--target=cpu", "--cpu=haswell", "--resource-dir=" + resources, "--cache-dir=" + cache, "-v", "-o", out, *flags]


def check(what, condition, *shown):
    print("%-76s %s" % (what, "ok" if condition else " ".join(map(str, ("FAILED", *shown)))))
    if not condition:
        failed.append(what)


def skip_if_sanitized(program):
    if b"__asan_" in program:
        print("skipped: the sanitizer puts paths into the program, so no two are equal")
        sys.exit(77)
