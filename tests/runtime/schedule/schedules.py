#!/usr/bin/env python3
"""Tests every learning-rate schedule against its formula in double precision: schedules.py RATES

The rates are those of specs/resnet.md 3.1, 3.4 and 6.2 and of each kind of schedule, at every boundary and around it. The formulas are
those of the programs that the schedules come from. RATES is the program of rates.c."""
import math, subprocess, sys

IMAGENET, CIFAR = 1281167, 50000
BOUND = 3e-7  # relative; the entries of the schedule vector are f32


def piecewise(boundaries, factors):
    """TensorFlow's piecewise_constant: steps up to and including a boundary have the value before
    it."""
    return lambda base, step, steps: base * factors[sum(step > int(steps(e)) for e in boundaries)]


def cosine(epochs, end):
    def rate(base, step, steps, warm):
        total = math.ceil(steps(epochs))
        return end + (base - end) * (1 + math.cos(math.pi * min(1, (step - warm) / (total - warm)))) / 2
    return rate


def polynomial(epochs, end, power):
    """poly_rate_fn of the official program and lars_util of MLPerf: from the step after the
    warm-up, decays over one step more than are left."""
    def rate(base, step, steps, warm):
        decay = steps(epochs) - warm + 1
        return (base - end) * (1 - min(max(1, step - warm), decay) / decay) ** power + end
    return rate


def exponential(rate, epochs, stairs):
    """tf.train.exponential_decay, with slim's decay_steps = int(images * epochs / batch)."""
    def at(base, step, steps):
        decays = step / int(steps(epochs))
        return base * rate ** (math.floor(decays) if stairs else decays)
    return at


def expected(step, base, warmup, steps, formula):
    """A linear warm-up from 0 to `base`, then the formula. TensorFlow's LARS uses the warm-up's
    formula at its last step, too, with the same value."""
    warm = int(steps(warmup))
    if step < warm:
        return base * step / warm
    if step == warm and formula.__qualname__.startswith("polynomial"):
        return base
    return formula(base, step, steps, warm) if formula.__code__.co_argcount == 4 else formula(base, step, steps)


def flags(name, *more):
    return [f"--lr-schedule={name}", *more]


A_IMAGENET = (piecewise([30, 60, 80, 90], [1, .1, .01, .001, 1e-4]), flags("piecewise", "--lr-boundaries=30,60,80,90", "--lr-multipliers=1,.1,.01,.001,1e-4"))
KERAS = (piecewise([30, 60, 80], [1, .1, .01, .001]), flags("piecewise", "--lr-boundaries=30,60,80", "--lr-multipliers=1,.1,.01,.001"))


def lars_peak(batch):
    return 5 if batch < 8192 else 10 if batch < 16384 else 25 if batch < 32768 else 32


# name, images, batch sizes, base rate, the batch size that it is for (0: it is not scaled), warm-up epochs, does an epoch have a real
# number of steps?, epochs at which the rate changes, formula, flags
CASES = [("A ImageNet", IMAGENET, [256, 1024], .1, 256, 0, True, [30, 60, 80, 90], *A_IMAGENET),
         ("B ImageNet", IMAGENET, [256, 512, 1024, 2048], .128, 256, 5, True, [30, 60, 80, 90], *A_IMAGENET),
         ("C", IMAGENET, [256, 512, 1024, 2048], .1, 256, 5, False, [30, 60, 80], *KERAS),
         ("A CIFAR", CIFAR, [128], .1, 128, 0, True, [100, 150, 200], piecewise([100, 150, 200], [1, .1, .01, .001]),
          flags("piecewise", "--lr-boundaries=100,150,200", "--lr-multipliers=1,.1,.01,.001")),
         ("B CIFAR", CIFAR, [128], .1, 128, 0, True, [91, 136, 182], piecewise([91, 136, 182], [1, .1, .01, .001]),
          flags("piecewise", "--lr-boundaries=91,136,182", "--lr-multipliers=1,.1,.01,.001")),
         *[("B LARS", IMAGENET, [batch], lars_peak(batch), 0, 14 if batch >= 32768 else 5, True, [30, 60, 89, 90], polynomial(90, 1e-4, 2),
            flags("polynomial", "--lr-power=2", "--end-learning-rate=1e-4", "--train-epochs=90")) for batch in [4096, 8192, 16384, 32768]],
         ("MLPerf", IMAGENET, [3200], 11, 0, 2, False, [4, 20, 36, 37], polynomial(37, 1e-4, 2),
          flags("polynomial", "--lr-power=2", "--end-learning-rate=1e-4", "--train-epochs=37")),
         ("polynomial of power 1/2", CIFAR, [128], .2, 0, 3, True, [4, 9, 10, 11], polynomial(10, .01, .5),
          flags("polynomial", "--lr-power=.5", "--end-learning-rate=.01", "--train-epochs=10")),
         ("cosine", IMAGENET, [256], .256, 256, 8, True, [30, 60, 89, 90], cosine(90, 0), flags("cosine", "--train-epochs=90")),
         ("cosine, floored", IMAGENET, [256], .256, 256, 8, False, [30, 60, 89, 90], cosine(90, .001),
          flags("cosine", "--train-epochs=90", "--end-learning-rate=.001")),
         ("exponential", CIFAR, [128], .1, 0, 0, True, [2.5, 5, 7.5, 50], exponential(.94, 2.5, False),
          flags("exponential", "--lr-decay-rate=.94", "--lr-decay-epochs=2.5")),
         ("exponential in stairs", CIFAR, [128], .1, 0, 4, True, [2.5, 5, 7.5, 50], exponential(.94, 2.5, True),
          flags("exponential", "--lr-decay-rate=.94", "--lr-decay-epochs=2.5", "--lr-staircase=1")),
         ("exponential in stairs, floored", CIFAR, [128], .1, 0, 4, False, [2.5, 5, 7.5, 50], exponential(.94, 2.5, True),
          flags("exponential", "--lr-decay-rate=.94", "--lr-decay-epochs=2.5", "--lr-staircase=1"))]
# specs/resnet.md 3.1: batch -> warm-up of B, boundaries of B, warm-up of C, boundaries of C
TABLE = {256: (25022, [150136, 300273, 400364, 450410], 25020, [150120, 300240, 400320]),
         512: (12511, [75068, 150136, 200182, 225205], 12510, [75060, 150120, 200160]),
         1024: (6255, [37534, 75068, 100091, 112602], 6255, [37530, 75060, 100080]),
         2048: (3127, [18767, 37534, 50045, 56301], 3125, [18750, 37500, 50000])}


def main(rates):
    bad, compared = [], 0
    for name, images, batches, base, scaled, warmup, real, epochs, formula, said in CASES:
        for batch in batches:
            per_epoch = images / batch if real else images // batch
            steps = lambda e: per_epoch * e
            marks = [int(steps(warmup))] + [int(steps(e)) for e in epochs]
            if name in ("B ImageNet", "C"):
                warm, boundaries = TABLE[batch][:2] if real else TABLE[batch][2:]
                if marks != [warm] + boundaries:
                    bad.append(f"{name}, batch {batch}: this test has steps {marks}, specs/resnet.md {[warm] + boundaries}")
            at = sorted({s + d for s in [0] + marks for d in (-1, 0, 1, 2, 100) if s + d >= 0})
            got = subprocess.run([rates, str(images), str(batch), ",".join(map(str, at)), f"--learning-rate={base}", f"--learning-rate-batch={scaled}",
                                  f"--warmup-epochs={warmup}", f"--epoch-steps={'real' if real else 'floor'}", *said],
                                 check=True, capture_output=True, text=True).stdout.split()
            peak = base * (batch / scaled if scaled else 1)
            for step, rate in zip(at, map(float, got), strict=True):
                want = expected(step, peak, warmup, steps, formula)
                compared += 1
                # near the end of a smooth decay the rounding of the last step is relative to the
                # peak
                if not abs(rate - want) <= BOUND * (want if "piecewise" in said[0] else peak):
                    bad.append(f"{name}, batch {batch}, step {step}: {rate:.9g}, expected {want:.9g}")
    print(f"{compared} rates compared")
    for line in bad:
        print("FAIL", line)
    return 1 if bad or not compared else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
