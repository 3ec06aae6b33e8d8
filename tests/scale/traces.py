"""Reads and writes loss-scale traces as text: which steps were finite, and the scale after each, both run-length encoded."""
import itertools
import random
import re

# name, settings of --loss-scale=dynamic, chance that a step is not finite, bad steps at the start, seed
CASES = [
    ("tensorflow-default", "", 1 / 2500, 5, 1),
    ("tensorflow-short", "init=1024,interval=7", 0.12, 14, 2),
    ("tensorflow-third", "init=81,growth=3,backoff=0.3333333333333333,interval=4", 0.21, 0, 3),
    ("keras2-default", "interval=40", 0.02, 2, 4),
    ("keras3-short", "init=4,interval=9,min=0", 0.05, 20, 5),
    ("pytorch-default", "init=65536,min=0", 1 / 2500, 4, 6),
    ("pytorch-short", "init=65536,growth=1.5,backoff=0.75,interval=5,min=0", 0.11, 30, 7),
]
STEPS = 5000


def settings_of(text):
    values = {"init": 2.0**15, "growth": 2.0, "interval": 2000, "backoff": 0.5, "min": 1.0}
    values.update((key, float(value)) for key, value in re.findall(r"(\w+)=([^,]+)", text))
    return values


def steps_of(chance, bad_first, seed):
    """A list that says of each step whether it is finite; steps that are not sometimes follow one another."""
    draw, steps = random.Random(seed), [False] * bad_first
    while len(steps) < STEPS:
        steps += [True] if draw.random() >= chance else [False] * draw.choice((1, 1, 1, 2, 3))
    return steps[:STEPS]


def pack_steps(steps):
    return "".join("%d%s" % (len(list(run)), "T" if good else "F") for good, run in itertools.groupby(steps))


def unpack_steps(text):
    return [kind == "T" for n, kind in re.findall(r"(\d+)([TF])", text) for _ in range(int(n))]


def pack_scales(scales):
    return " ".join("%s*%d" % (scale, len(list(run))) for scale, run in itertools.groupby(map("%.9g".__mod__, scales)))


def unpack_scales(text):
    return [float(scale) for scale, n in re.findall(r"(\S+)\*(\d+)", text) for _ in range(int(n))]


def read(path):
    """A dict from the name of a case to its settings, steps and scales, and to good_steps at the end."""
    cases = {}
    for block in open(path).read().split("\n\n"):
        fields = dict(re.findall(r"^(\w+): (.*)$", block, re.M))
        if fields:
            cases[fields["name"]] = {"settings": fields.get("settings", ""), "good_steps": int(fields["good_steps"]),
                                     "steps": unpack_steps(fields["steps"]), "scales": unpack_scales(fields["scales"])}
    return cases
