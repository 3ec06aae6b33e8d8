#!/usr/bin/env python3
"""Compares ampcc-tf, and the expectations in the .cases files, with TensorFlow's own mixed precision pass. It is run by hand, with
the pip package `tensorflow` of one of the versions in RUNS (2.21.0 and 2.15.1 were used); without it the test is skipped (77).

    against_tensorflow.py AMPCC_TF cases FILE.cases..     TensorFlow against what the files say
    against_tensorflow.py AMPCC_TF random N [SEED]        ampcc-tf against TensorFlow on N random graphs, every run of RUNS that
                                                       this version can do; a difference is cut down and printed as a case

IGNORE_PERFORMANCE is read once per process: cases that set it run if the environment does."""
import json, os, random, subprocess, sys, tempfile

try:
    import tensorflow_pass
except ImportError as error:
    print("skipped:", error)
    sys.exit(77)
import cases, check

IGNORE = os.environ.get(tensorflow_pass.PREFIX + "IGNORE_PERFORMANCE", "0")
VERSION = ".".join(tensorflow_pass.tf.__version__.split(".")[:2])


def runs_here():
    """The runs that this version of TensorFlow can do. 2.15 is of era A, but has bfloat16 lists of
    its own; half on CPUs needs a CPU that supports it."""
    later = ("A", "emuA", "bfA")
    era_a = {"2.15": ("A", "emuA", "bf15"), "2.17": later, "2.18": later, "2.19": later}
    return era_a.get(VERSION, ("B", "emu", "bf"))


def ask_tensorflow(case, run):
    """Runs the pass in a process of its own, because some graphs abort TensorFlow."""
    inward, outward = os.pipe()
    if (child := os.fork()) == 0:
        graph = tensorflow_pass.parse(cases.graph_text(case))
        record = tensorflow_pass.run_pass(graph, case.fetches(), cases.RUNS[run][1], case.settings, case.edits)
        with os.fdopen(outward, "w") as file:
            json.dump(record, file)
            file.flush()
            os._exit(0)
    os.close(outward)
    with os.fdopen(inward) as file:
        text = file.read()
    _, status = os.waitpid(child, 0)
    return {"failed": "aborted"} if status else json.loads(text)


def ask_ampcc(ampcc_tf, case, run):
    with tempfile.NamedTemporaryFile("w", suffix=".pbtxt") as file:
        file.write(cases.graph_text(case))
        file.flush()
        done = subprocess.run([ampcc_tf, file.name, *check.flags_of(case, run)], capture_output=True, text=True)
    if done.returncode:
        return {"failed": f"exit status {done.returncode}: {done.stderr}"}
    record = json.loads(done.stdout)
    record["failed"] = record["log"] if "FAILED" in (record["log"] or "") else ""
    return record


# ---- TensorFlow against the cases ----

def check_cases(paths):
    count = bad = unknown = 0
    for case in [case for path in paths for case in cases.read(path)]:
        for run, want in cases.runs(case):
            if run not in runs_here() or want.rejected or case.settings["ignore_performance"] != IGNORE:
                continue
            got = ask_tensorflow(case, run)
            if "not registered" in got["failed"] and "not registered" not in want.failed:
                unknown += 1
                continue
            loud = want.log.startswith(("Converted", "No allowlist"))
            lines = check.compare(run, want._replace(log=want.log if loud else "", failed=""), got)
            if bool(want.failed) != bool(got["failed"]) or want.failed.split(": ")[-1] not in got["failed"]:
                lines.append(f"failed:\n    expected {want.failed}\n    found    {got['failed']}")
            count += 1
            bad += bool(lines)
            for line in lines:
                print(f"{case.place}: {case.name}, run {run}: {line}")
    print(f"TensorFlow {VERSION}: {count - bad} of {count} runs as expected; {unknown} with ops it does not have")
    return bad


# ---- ampcc-tf against TensorFlow ----

def difference(ampcc_tf, case, run):
    """How the answer of ampcc-tf differs from TensorFlow's: None if it does not, "" if TensorFlow
    has no answer."""
    want = ask_tensorflow(case, run)
    if any(text in want["failed"] for text in ("aborted", "Failed to import", "not registered", "std::", "bad_alloc")):
        return ""
    got = ask_ampcc(ampcc_tf, case, run)
    if want["failed"] or got["failed"]:
        same = want["failed"] and want["failed"].split(": ")[-1].split(" for ")[0][:40] in got["failed"]
        return None if same else f"failed: TensorFlow `{want['failed']}`, ampcc-tf `{got['failed']}`"
    casts = [cases.Cast(**cast) for cast in want["casts"]]
    lines = check.compare(run, cases.Want(want["converted"], want["renamed"], casts, want["log"], "", ""), got)
    return "\n".join(lines) or None


def without(case, name):
    """The case without one node. Its readers lose that input, or get a constant of the type that
    they read elsewhere."""
    nodes = {}
    for node in case.nodes.values():
        if node.name != name:
            used = [i for i in node.inputs if i.lstrip("^").split(":")[0] == name]
            if any(i[0] != "^" for i in used):
                return None
            nodes[node.name] = node._replace(inputs=[i for i in node.inputs if i not in used])
    smaller = copy(case)
    smaller.nodes, smaller.fetch = nodes, [f for f in case.fetch if f != name]
    return smaller if smaller.fetch else None


def bypassed(case, name):
    """The case in which readers of the node read an f32 constant instead."""
    smaller = copy(case)
    if name in case.fetch:
        return None
    smaller.nodes = {"k": cases.Node("k", "Const", [], cases.make_attrs("Const", {"dtype": "f32"}, 0), "")}
    for node in case.nodes.values():
        if node.name not in (name, "k"):
            inputs = ["k" if i.split(":")[0] == name else i for i in node.inputs if i != "^" + name]
            smaller.nodes[node.name] = node._replace(inputs=inputs)
    return smaller


def copy(case):
    twin = cases.Case("random", 0, case.name)
    twin.settings, twin.edits, twin.fetch = dict(case.settings), list(case.edits), list(case.fetch)
    twin.nodes, twin.functions = dict(case.nodes), dict(case.functions)
    return twin


def shrink(ampcc_tf, case, run):
    """A smallest case that still differs, found by removing nodes one after the other."""
    again = True
    while again:
        again = False
        for name in list(case.nodes):
            for cut in (without, bypassed):
                smaller = cut(case, name) if name in case.nodes else None
                if smaller and len(smaller.nodes) < len(case.nodes) and difference(ampcc_tf, smaller, run):
                    case, again = smaller, True
                    break
    return case


def case_text(case, run):
    lines = [f"case found (run {run})"]
    sets = [f"{k}={v}" for k, v in case.settings.items() if v != cases.SETTINGS[k]]
    sets += [f"{name}{'+' if add else '-'}={ops}" for name, add, ops in case.edits]
    lines += ["  set " + " ".join(sets)] if sets else []
    lines += [f"  library {name}({','.join(types)})" for name, types in case.functions.items()]
    lines.append("  fetch " + " ".join(case.fetch))
    for node in case.nodes.values():
        attrs = " ".join(f"{k}={v}" for k, v in node.attrs.items())
        lines.append(f"  {node.name} = {node.op}({', '.join(node.inputs)}) {attrs}{' @' + node.device if node.device else ''}")
    return "\n".join(lines)


def check_random(ampcc_tf, n, seed, first=0):
    import random_graphs
    ops, bad, count, no_answer = random_graphs.usable(), 0, 0, 0
    for number in range(first, first + n):
        rng = random.Random(seed * 1000003 + number)
        case = random_graphs.make(rng, ops)
        for run in runs_here():
            if cases.RUNS[run][1] == "cpu" and not case.ordered:
                continue
            count += 1
            found = difference(ampcc_tf, case, run)
            no_answer += found == ""
            if found:
                bad += 1
                small = shrink(ampcc_tf, case, run)
                print(f"graph {number} of seed {seed}, run {run}:", case_text(small, run), difference(ampcc_tf, small, run),
                      sep="\n", end="\n\n", flush=True)
    print(f"TensorFlow {VERSION}: {count} runs of {n} graphs, {bad} differ, {no_answer} without an answer of TensorFlow's")
    return bad


def main(ampcc_tf, what, *args):
    bad = check_cases(args) if what == "cases" else check_random(ampcc_tf, int(args[0]), int((args[1:] or ["1"])[0]))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
