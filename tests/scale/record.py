#!/usr/bin/env python3
"""Records the loss scale after each of 5,000 steps, as TensorFlow and Keras compute it: record.py > traces.txt

Needs `tensorflow` 2.21 and `numpy`, and is no part of the tests, which read its output. The cases tensorflow-* run TensorFlow's
DynamicLossScale (specs/amp-rewrite.md 4.3) and keras3-* run keras.mixed_precision.LossScaleOptimizer. For keras2-* (4.5) and
pytorch-* (4.7) the rules of those sections are written out below in float32, because Keras 2 does not run beside this TensorFlow
and PyTorch scales losses only on a GPU.
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
    """The rule of section 4.5: that of 4.3 with the multiplier 2."""
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
    """The rule of section 4.7: the scale is a float32 tensor, its factors are doubles."""
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
