#!/usr/bin/env python3
"""Tests the counts and shapes of the zoo's models, read from the imported graphs: check.py AMPCC AMPCC_ZOO EXPECT.txt"""
import re
import subprocess
import sys

NODE = re.compile(r"  (?:(%.*?) = )?(\w+)(.*?)(?: \{(.*?)\})?(?: : (.*?))?(?: loc \".*\")?$")


def dims(text):
    return [int(d) for d in re.findall(r"\d+", text[text.index("["):text.index("]")])]


def product(numbers):
    result = 1
    for n in numbers:
        result *= n
    return result


class Net:
    """The imported graph of one model at batch 1."""

    def __init__(self, ampcc, zoo, name):
        model = subprocess.run([zoo, name], check=True, capture_output=True).stdout
        text = subprocess.run([ampcc, "-", "--passes=", "--batch-size=1"], input=model, check=True, capture_output=True).stdout
        self.shape, self.macs = {}, 0
        self.params, self.stats, self.ops = [], [], []
        for line in text.decode().splitlines():
            node = NODE.match(line)
            if node and node.group(5):
                self.add(*node.groups())

    def add(self, results, op, operands, attrs, types):
        names = [r.strip().strip('%"') for r in results.split(",")]
        shapes = [dims(t) for t in types.split(", ")]
        self.shape.update(zip(names, shapes))
        self.ops.append(op)
        if op == "variable":
            (self.params if 'kind="param"' in attrs else self.stats).append(shapes[0])
        if op in ("conv2d", "matmul"):
            weight = self.shape[operands.split(",")[1].strip().strip('%"')]
            self.macs += product(shapes[0]) * product(weight[1:])

    def counts(self):
        return [sum(map(product, self.params)), sum(map(product, self.stats)), self.ops.count("conv2d"),
                self.ops.count("batch_norm"), len(self.params)]


def agree(want, got):
    """Integers must be equal, multiply-adds equal to as many digits as are written."""
    return want[:5] == [str(n) for n in got[:5]] and "%.*f" % (len(want[5].split(".")[1]), got[5]) == want[5]


def check(net, words):
    if words[0] == "counts":
        got = net.counts() + [net.macs / 1e9]
        return agree(words[2:], got) or got
    got = net.shape.get(words[2], [])[1:]
    return [str(d) for d in got] == words[3:] or got


def main():
    ampcc, zoo, path = sys.argv[1:]
    nets, failed = {}, 0
    for line in open(path):
        words = line.split()
        if not words or words[0] == "#":
            continue
        if words[0] in ("counts", "shape"):
            net = nets.setdefault(words[1], None) or Net(ampcc, zoo, words[1])
            nets[words[1]] = net
            got = check(net, words)
            if got is not True:
                print("%s: %s: got %s" % (path, line.strip(), got))
                failed += 1
    print("%d models" % len(nets))
    return 1 if failed or not nets else 0


sys.exit(main())
