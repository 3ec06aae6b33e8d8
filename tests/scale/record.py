#!/usr/bin/env python3
"""record.py > traces.txt: the scale after each of 5,000 steps, as TensorFlow and Keras themselves compute it.

Needs `tensorflow` 2.21 and `numpy`; not part of the tests, which read its output. tensorflow-*: DynamicLossScale
(specs/amp-rewrite.md 4.3); keras3-*: keras.mixed_precision.LossScaleOptimizer. keras2-* (4.5) and pytorch-* (4.7) are
the rules of those sections in float32, written out below: their releases do not run beside this TensorFlow, or not
without a GPU. A case that comes out as it should by both is recorded once.
"""
import sys

import numpy as np

import traces

f32 = np.float32


def by_tensorflow(set_, steps):
    import tensorflow as tf
    from tensorflow.python.training.experimental import loss_scale
    assert set_["min"] == 1
    rule = loss_scale.DynamicLossScale(set_["init"], int(set_["interval"]), set_["growth"])
    good, bad = tf.constant([1.0]), tf.constant([float("nan")])
    for step in steps:
        _, apply = rule.update([good if step else bad])
        assert bool(apply) == step
        yield float(rule()), int(rule._num_good_steps.numpy())


def by_keras3(set_, steps):
    import keras
    variable = keras.Variable([1.0])
    rule = keras.mixed_precision.LossScaleOptimizer(keras.optimizers.SGD(0.0), initial_scale=set_["init"],
                                                    dynamic_growth_steps=int(set_["interval"]))
    rule.build([variable])
    for step in steps:
        rule.apply([keras.ops.array([1.0 if step else float("nan")])])
        yield float(rule.dynamic_scale), int(rule.step_counter)


def by_keras2(set_, steps):
    """4.5: the rule of 4.3 with multiplier 2."""
    scale, good = f32(set_["init"]), 0
    for step in steps:
        if not step:
            scale, good = max(scale / f32(2), f32(1)), 0
        elif good + 1 >= set_["interval"]:
            scale, good = scale * f32(2) if np.isfinite(scale * f32(2)) else scale, 0
        else:
            good += 1
        yield float(scale), good


def by_pytorch(set_, steps):
    """4.7: the scale is a float32 tensor, the factors are doubles."""
    scale, tracker = f32(set_["init"]), 0
    for step in steps:
        if not step:
            scale, tracker = f32(float(scale) * set_["backoff"]), 0
        else:
            tracker += 1
            if tracker == set_["interval"]:
                larger = f32(float(scale) * set_["growth"])
                scale, tracker = larger if np.isfinite(larger) else scale, 0
        yield float(scale), tracker


def main():
    maker = {"tensorflow": by_tensorflow, "keras3": by_keras3, "keras2": by_keras2, "pytorch": by_pytorch}
    for name, settings, chance, bad_first, seed in traces.CASES:
        steps = traces.steps_of(chance, bad_first, seed)
        states = list(maker[name.split("-")[0]](traces.settings_of(settings), steps))
        scales = [scale for scale, _ in states]
        assert max(scales) < 2.0**100, "gradients of the test program would overflow"
        print("name: %s\nsettings: %s\ngood_steps: %d\nsteps: %s\nscales: %s\n" % (
            name, settings, states[-1][1], traces.pack_steps(steps), traces.pack_scales(scales)))
        print(name, len(set(scales)), min(scales), max(scales), steps.count(False), file=sys.stderr)


main()
