#!/usr/bin/env python3
"""Tells whether a change of the compiler changes what it writes: same_code.py [--jobs N] OLD_TREE NEW_TREE [MODEL ...]

Both trees are built in their folder build/. Every model that both zoos name (or the MODELs), in fp32 and fp16, is
compiled by both as C for the CPU, as CUDA for the H200, and as the planned graph for each; each tree compiles the
file that its own zoo writes. Comments are stripped. Differences are printed in classes: lines in which only numbers or
names of values differ count as one. Ctrl-C ends it with what was found so far. Exits 1 if anything differs, or if
one of the trees refuses a model."""
import argparse
import collections
import concurrent.futures
import os
import re
import subprocess
import sys
import tempfile

KINDS = {"c": ("cpu", "c"), "cuda": ("cuda:h200", "cuda"), "ir, cpu": ("cpu", "ir"), "ir, cuda": ("cuda:h200", "ir")}
DTYPES = ["fp32", "fp16"]
# strings stay as they are, comments become blanks
COMMENT = re.compile(r'("(?:\\.|[^"\\\n])*")|/\*.*?\*/|//[^\n]*', re.DOTALL)


def zoo(tree):
    return os.path.join(tree, "build/models/ampcc-zoo")


def names_of(tree):
    listed = subprocess.run([zoo(tree), "--list"], capture_output=True, text=True, check=True).stdout
    return [line.split()[0] for line in listed.splitlines()]


def written(tree, model, dtype, kind, folder):
    """The lines that the tree's compiler writes, or None and what it says."""
    target, emit = KINDS[kind]
    run = subprocess.run([os.path.join(tree, "build/frontend/ampcc"), model, "--dtype=" + dtype, "--target=" + target,
                          "--emit=" + emit, "--cache-dir=" + folder, "-o", "-"], capture_output=True, text=True)
    if run.returncode:
        return None, run.stderr
    text = run.stdout if emit == "ir" else COMMENT.sub(lambda found: found.group(1) or " ", run.stdout)
    return [line for line in (" ".join(line.split()) for line in text.splitlines()) if line], ""


def class_of(line):
    line = re.sub(r"%[\w.]+", "%_", line)
    line = re.sub(r"-?\b0[xX][0-9a-fA-F.]+(p[+-]?\d+)?[uUlLf]*|-?\b\d+(\.\d*)?(e[+-]?\d+)?[uUlLf]*", "0", line)
    return re.sub(r"(\b0, ?)+0\b", "0...", line)[:240]


def hunks(old, new, folder):
    """The pairs (lines that went, lines that came) of diff."""
    paths = [os.path.join(folder, side) for side in ("old", "new")]
    for path, lines in zip(paths, (old, new)):
        with open(path, "w", encoding="utf-8") as f:
            f.write("\n".join(lines) + "\n")
    out = subprocess.run(["diff", *paths], capture_output=True, text=True).stdout.splitlines()
    went, came = [], []
    for line in out + ["0"]:
        if line[0].isdigit() and (went or came):
            yield went, came
            went, came = [], []
        elif line[0] == "<":
            went.append(line[2:])
        elif line[0] == ">":
            came.append(line[2:])


def compare(trees, model):
    """Returns {(kind, class): example}, and how many files of each kind are equal."""
    found, equal = {}, collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for side, tree in zip(("a", "b"), trees):
            files.append(os.path.join(folder, side + ".pb"))
            subprocess.run([zoo(tree), model, "-o", files[-1]], check=True)
        for dtype in DTYPES:
            for kind in KINDS:
                where = "%s %s" % (model, dtype)
                both = [written(tree, path, dtype, kind, folder) for tree, path in zip(trees, files)]
                if None in (both[0][0], both[1][0]):
                    found[kind, "refused: " + (both[0][1] or both[1][1]).strip()[:200]] = where
                elif both[0][0] == both[1][0]:
                    equal[kind] += 1
                else:
                    for went, came in hunks(both[0][0], both[1][0], folder):
                        was, now = [class_of(x) for x in went], [class_of(x) for x in came]
                        if was == now:
                            for same, x, y in zip(was, went, came):
                                found.setdefault((kind, "= " + same), "%s\n      %.200s\n      %.200s" % (where, x, y))
                        else:
                            for line in [x for x in was if x not in now]:
                                found.setdefault((kind, "< " + line), where)
                            for line in [x for x in now if x not in was]:
                                found.setdefault((kind, "> " + line), where)
                            if sorted(was) == sorted(now):
                                found.setdefault((kind, "order: " + was[0]), where)
    return found, equal


def main():
    parser = argparse.ArgumentParser(usage="same_code.py [--jobs N] OLD_TREE NEW_TREE [MODEL ...]")
    parser.add_argument("trees", nargs=2)
    parser.add_argument("models", nargs="*")
    parser.add_argument("--jobs", type=int, default=1)
    args = parser.parse_args()
    old, new = (names_of(tree) for tree in args.trees)
    models = args.models or [name for name in old if name in new]
    print("%d models of %d and %d, %s" % (len(models), len(old), len(new), " and ".join(DTYPES)))
    classes, equal, example, done = collections.Counter(), collections.Counter(), {}, 0
    pool = concurrent.futures.ThreadPoolExecutor(args.jobs)
    running = [pool.submit(compare, args.trees, model) for model in models]
    try:
        for one in concurrent.futures.as_completed(running):
            found, same = one.result()
            done += 1
            print("\r%d of %d " % (done, len(models)), end="", file=sys.stderr, flush=True)
            equal += same
            classes.update(found.keys())
            for key, where in found.items():
                example.setdefault(key, where)
    except KeyboardInterrupt:
        pool.shutdown(wait=False, cancel_futures=True)
        print("\nstopped after %d models" % done)
    for kind in KINDS:
        print("%-8s  %d of %d files are equal" % (kind, equal[kind], done * len(DTYPES)))
        for (of, line), n in classes.most_common():
            if of == kind:
                print("  %4d models: %s\n    e.g. %s" % (n, line, example[of, line]))
    sys.exit(1 if classes or done < len(models) or not models else 0)


if __name__ == "__main__":
    main()
