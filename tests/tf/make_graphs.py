#!/usr/bin/env python3
"""Writes graphs/NAME.pb, the graphs of TensorFlow's Python tests of the pass (specs/amp-rewrite.md 3.3): make_graphs.py [NAME..]

Each is built with TensorFlow's Python and taken at the point where TensorFlow's other optimizers hand it to the pass. This is run
by hand; TensorFlow 2.21.0 was used. graphs.txt says what the pass must make of each."""
import glob, os, pathlib, sys, tempfile

import tensorflow_pass as ours
from tensorflow.core.framework import graph_pb2
from tensorflow.core.protobuf import config_pb2, meta_graph_pb2, rewriter_config_pb2
from tensorflow.python.framework import function
from tensorflow.python.grappler import tf_optimizer

import cases

tf, v1 = ours.tf, ours.tf.compat.v1
FOLDER = pathlib.Path(__file__).resolve().parent / "graphs"
GRAPHS = {}


def graph(build):
    """Decorates a function that builds a graph and returns its fetches."""
    GRAPHS[build.__name__] = build
    return build


def placeholder(*shape):
    return v1.placeholder(tf.float32, shape)


def variable(*shape, resource=True):
    name = f"v{len(v1.global_variables())}"
    return v1.get_variable(name, shape, initializer=v1.zeros_initializer(), use_resource=resource)


def batch_norm(x):
    n = int(x.shape[-1])
    moving = tf.constant([], tf.float32)
    kind = tf.raw_ops.FusedBatchNormV3
    return kind(x=x, scale=variable(n), offset=variable(n), mean=moving, variance=moving, epsilon=0.001, is_training=True,
                data_format="NDHWC" if len(x.shape) == 5 else "NHWC")[0]


def conv_bn(x):
    x = tf.reshape(x, [-1, 8, 8, 1])
    return tf.identity(batch_norm(tf.nn.conv2d(x, variable(3, 3, 1, 6), 1, "SAME")))


def conv3d_bn(x):
    x = tf.reshape(x, [-1, 8, 8, 8, 1])
    return tf.identity(batch_norm(tf.nn.conv3d(x, variable(3, 3, 3, 1, 6), [1] * 5, "SAME")))


def conv_pool(x):
    x = tf.nn.bias_add(tf.nn.conv2d(x, variable(3, 3, int(x.shape[-1]), 6), 1, "SAME"), variable(6))
    return v1.nn.max_pool(tf.nn.relu(x), 2, 2, "SAME")


def fetches(*tensors):
    """Identities of tensors to fetch, so that the pass may change the tensors themselves."""
    return [tf.identity(t, f"out{i}").op.name for i, t in enumerate(tensors)]


@graph
def test_conv_bn():
    return fetches(conv_bn(conv_bn(placeholder(2, 8, 8, 1))))


@graph
def test_conv3d_bn():
    return fetches(conv3d_bn(conv3d_bn(placeholder(2, 8, 8, 8, 1))))


@graph
def test_conv3d():
    x, f = placeholder(2, 8, 8, 8, 1), variable(3, 3, 3, 1, 6)
    y = tf.nn.conv3d(x, f, [1] * 5, "SAME")
    return fetches(y, *v1.gradients(y, [x, f]))


@graph
def test_conv_bn_dropout():
    x = placeholder(2, 8, 8, 1)
    y = tf.add(v1.nn.dropout(conv_bn(x), rate=0.5), 1.0, name="addition")
    y = tf.identity(conv_bn(y))
    return fetches(y, *v1.gradients(y, [x]))


@graph
def test_conv_pool():
    return fetches(conv_pool(conv_pool(placeholder(2, 8, 8, 1))))


@graph
def test_depthwise_conv2d():
    x, f = placeholder(2, 8, 8, 3), variable(3, 3, 3, 2)
    y = tf.nn.depthwise_conv2d(x, f, [1] * 4, "SAME")
    return fetches(y, *v1.gradients(y, [x, f]))


def matmul_relu(x, w):
    return tf.nn.relu(tf.matmul(tf.reshape(x, [8, 8]), w))


@graph
def test_simple_loop():
    x, w = placeholder(8, 8), variable(8, 8)
    y = tf.while_loop(lambda i, x: i < 4, lambda i, x: (i + 1, matmul_relu(x, w)), [0, x])[1]
    return fetches(y, *v1.gradients(y, [x]))


@graph
def test_loop_with_vars_intertwined():
    x, a, b = placeholder(8, 8), variable(8, 8), variable(8, 8)
    body = lambda i, x, y: (i + 1, matmul_relu(y, a), matmul_relu(x, b))
    _, y, z = tf.while_loop(lambda i, x, y: i < 4, body, [0, x, x])
    return fetches(y, z, *v1.gradients(y, [x]))


@graph
def test_multi_paths():
    x = placeholder(2, 8, 8, 3)
    y = tf.concat([conv_pool(conv_pool(part)) for part in tf.split(x, 3, axis=3)], axis=3)
    return fetches(y, *v1.gradients(y, [x]))


@graph
def test_multi_paths_2():
    x = placeholder(8, 8)
    y = tf.nn.relu(tf.matmul(x, variable(8, 8)))
    z = tf.nn.relu(tf.matmul(x, variable(8, 8)))
    return fetches(y + z + x, *v1.gradients(y + z + x, [x]))


@graph
def test_recurrent_lstm():
    x, w, b = placeholder(4, 2, 8), variable(16, 32), variable(32)
    steps = tf.TensorArray(tf.float32, 4).unstack(x)

    def cell(i, h, c, out):
        both = tf.matmul(tf.concat([steps.read(i), h], 1), w)
        update, new, forget, output = tf.split(both + b, 4, axis=1)
        c = c * tf.sigmoid(forget) + tf.sigmoid(update) * tf.tanh(new)
        h = tf.tanh(c) * tf.sigmoid(output)
        return i + 1, h, c, out.write(i, h)

    zero = tf.zeros([2, 8])
    last = tf.while_loop(lambda i, *_: i < 4, cell, [0, zero, zero, tf.TensorArray(tf.float32, 4)])
    y = last[3].stack()
    return fetches(y, *v1.gradients(y, [x]))


def chain(text, x, place, w):
    """Passes x through one op for each letter: w MatMul, g add, c Relu, b a pair of powers, which
    is on the denylist."""
    for k, letter in enumerate(text.lower()):
        name = f"{place}{k}"
        if letter == "w":
            x = tf.matmul(x, w, name=name)
        elif letter == "g":
            x = tf.add(x, 0.1, name=name)
        elif letter == "c":
            x = tf.nn.relu(x, name=name)
        else:
            x = tf.pow(tf.pow(x, 2.0, name=name), 0.5, name=name + "b")
    return x


LOOPS = ["W C C", "C C W", "W G W", "W gbg W", "b gWC c", "b CWCG C", "C GWCG C", "C CgbgWC g"]


def propagation(texts):
    before, body, after = texts.split()

    def build():
        x, w = placeholder(8, 8), variable(8, 8)
        y = chain(before, x, "in", w)
        y = tf.while_loop(lambda i, y: i < 4, lambda i, y: (i + 1, chain(body, y, "body", w)), [0, y])[1]
        return fetches(chain(after, y, "after", w))
    return build


for number, texts in enumerate(LOOPS, 1):
    GRAPHS[f"test_propagation_through_simple_loop_{number}"] = propagation(texts)


@graph
def test_noninlined_funcdef():
    @function.Defun(tf.float32, func_name="swish_grad", noinline=True)
    def swish_grad(x):
        s = tf.sigmoid(x)
        return s * (1.0 + x * (1.0 - s))

    @function.Defun(tf.float32, func_name="swish", noinline=True, python_grad_func=lambda op, g: g * swish_grad(op.inputs[0]))
    def swish(x):
        return x * tf.sigmoid(x)

    x = placeholder(8, 8)
    y = swish(matmul_relu(x, variable(8, 8)))
    y.set_shape([8, 8])
    return fetches(y, *v1.gradients(y, [x]))


@graph
def test_ingraph_train_loop():
    x, labels = placeholder(8, 16), v1.placeholder(tf.int32, [8])
    w, b = variable(16, 10, resource=False), variable(10, resource=False)
    optimizer = v1.train.AdamOptimizer()

    def step(i, _):
        with v1.name_scope("dense"):
            logits = tf.nn.bias_add(tf.matmul(x, w), b)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
        with tf.control_dependencies([optimizer.minimize(loss)]):
            return i + 1, tf.identity(loss)

    return fetches(tf.while_loop(lambda i, _: i < 100, step, [0, 0.0])[1])


def seen_by_pass(definition, fetch):
    """The GraphDef that the pass is given in TensorFlow's whole pipeline, without the remapper and
    the arithmetic optimizer."""
    config, meta = config_pb2.ConfigProto(), meta_graph_pb2.MetaGraphDef()
    rewrite, off = config.graph_options.rewrite_options, rewriter_config_pb2.RewriterConfig.OFF
    rewrite.min_graph_nodes = -1
    rewrite.auto_mixed_precision = rewriter_config_pb2.RewriterConfig.ON
    rewrite.remapping = rewrite.arithmetic_optimization = off
    meta.graph_def.CopyFrom(definition)
    meta.collection_def["train_op"].node_list.value.extend(fetch)
    with tempfile.TemporaryDirectory() as folder:
        os.environ[ours.PREFIX + "LOG_PATH"] = folder
        tf_optimizer.OptimizeGraph(config, meta, cluster=ours.make_cluster(cases.SETTINGS, "cuda"), verbose=False)
        os.environ[ours.PREFIX + "LOG_PATH"] = ""
        dumps = [graph_pb2.GraphDef.FromString(pathlib.Path(f).read_bytes()) for f in glob.glob(folder + "/graphdef_preop_*.pb")]
    return max(dumps, key=lambda g: len(g.node))


def main(*names):
    v1.disable_v2_behavior()
    FOLDER.mkdir(exist_ok=True)
    for name in names or GRAPHS:
        with tf.Graph().as_default() as whole:
            v1.set_random_seed(1)
            fetch = GRAPHS[name]()
        before = seen_by_pass(whole.as_graph_def(), fetch)
        (FOLDER / f"{name}.pb").write_bytes(before.SerializeToString(deterministic=True))
        print(name, len(before.node), *fetch, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
