#!/usr/bin/env python3
"""Runs ampcc, ampcc-zoo, ampcc-tf and compiled programs on hostile input:

    campaign.py [--count=N] [--seed=N] [--kind=K,K] [--keep=FOLDER] AMPCC AMPCC_ZOO [AMPCC_TF]

The kinds take turns in the N cases (default 60), and each case is made from a kind and a number. So the same seed gives the same
cases, and a case that fails is printed with the command that runs it alone. Best run on a build with sanitizers. Whatever the input, a program must

  - end by itself within 10 seconds, with status 0, 1, 2 or 3, and without a sanitizer's report;
  - if it failed, say why, in at most 4 kB of printable text;
  - leave its output whole if it succeeded, none if it failed, and nothing else at all.

To add a kind, write a function `kind_NAME(rng, tools)` that returns a Case; `mutated_bytes`, `mutated_protobuf`,
`mutated_text` and `Tools.made` do most of the work."""
import argparse
import dataclasses
import functools
import os
import pathlib
import random
import re
import shlex
import subprocess
import sys
import tempfile

SECONDS, BYTES = 10, 4096
HERE = pathlib.Path(__file__).resolve().parent
MODELS = ("mlp", "lenet5", "cifar_resnet8", "fashion_resnet8_v2")
SANITIZERS = {"ASAN_OPTIONS": "exitcode=99:hard_rss_limit_mb=3000:detect_leaks=0",
              "UBSAN_OPTIONS": "halt_on_error=1:exitcode=99:print_stacktrace=1"}


@dataclasses.dataclass
class Case:
    command: list           # the program and its arguments; files are named relative to the case's folder
    files: dict             # name -> bytes
    output: str = "out"     # the file that the command is told to write; "" if there is none


@dataclasses.dataclass(frozen=True)
class Tools:
    ampcc: str
    zoo: str
    tf: str

    @functools.lru_cache
    def made(self, *command):
        """The standard output of a command that must succeed; each command runs once per campaign."""
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout

    def model(self, rng):
        return self.made(self.zoo, rng.choice(MODELS))

    def model_text(self, rng):
        return self.made(self.zoo, rng.choice(MODELS), "--text")


# ---- what is done to good input ----

WORDS = ("0", "-1", "1", "2147483648", "9223372036854775807", "-9223372036854775808", "1e999", "-0.0", "nan", "inf", "-inf", "1e-320",
         '""', '"\\000"', '"\\033[31m"', '"\\u202e"', '"%s%n"', "true", "{", "}", "[", "]", ",", "<", ">", '"', "\\", "#", ":",
         ";", "/", "%", "4294967296", "1099511627776", "268435456", "__metadata__", "global_step", "loss_scale", "label", "image",
         "x" * 300, "\0", "\x1b[2J",
         "\xff", "é", "../../etc/passwd", "-o", "$(id)", "'", "dynamic", "f16", "f64", "bool")


def mutated_bytes(rng, data):
    """The data with a few random changes: flipped bits; runs that are overwritten, removed, repeated or inserted; a cut."""
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4, 16))):
        at, n = rng.randrange(len(data) + 1), rng.choice((1, 1, 2, 4, 8, 100))
        how = rng.randrange(7)
        if how == 0 and at < len(data):
            data[at] ^= 1 << rng.randrange(8)
        elif how == 1:
            data[at:at + n] = rng.randbytes(n)
        elif how == 2:
            del data[at:at + n]
        elif how == 3:
            data[at:at] = data[at:at + n] * rng.choice((1, 2, 50))
        elif how == 4:
            del data[at:]
        elif how == 5:
            data[at:at] = rng.choice((b"\xff" * 9 + b"\x01", b"\x00" * n, b"\x80" * 11, b"\x0a\xff\xff\xff\xff\x0f", b"\x22\x0a" * 200))
        else:
            other = rng.randrange(len(data) + 1)
            data[at:at] = data[other:other + 100]
    return bytes(data)


def varint(n):
    out = bytearray()
    while n >= 0x80:
        out.append(n & 0x7f | 0x80)
        n >>= 7
    return bytes(out + bytes([n]))


def wire_fields(data):
    """The fields of a protobuf message as (number, wire type, value); None if the bytes are no message."""
    fields, at = [], 0

    def number():
        nonlocal at
        value = shift = 0
        while True:
            value |= (data[at] & 0x7f) << shift
            at, shift = at + 1, shift + 7
            if data[at - 1] < 0x80:
                return value

    try:
        while at < len(data):
            tag = number()
            n = {0: 0, 1: 8, 5: 4}.get(tag & 7, -1)
            if tag >> 3 == 0 or n < 0 and tag & 7 != 2:
                return None
            n = number() if n < 0 else n
            fields.append((tag >> 3, tag & 7, number() if tag & 7 == 0 else data[at:at + n]))
            at += n
        return fields if at == len(data) else None
    except IndexError:
        return None


def mutated_message(rng, data):
    """A well-formed protobuf message in which one value, on any level, was changed, dropped, doubled or moved."""
    fields = wire_fields(data)
    if not fields:
        return rng.choice(WORDS).encode() if rng.random() < 0.5 else mutated_bytes(rng, data or b"x")
    at = rng.randrange(len(fields))
    number, kind, value = fields[at]
    how = rng.randrange(12)
    if how == 0:
        del fields[at]
    elif how == 1:
        fields[at:at] = [fields[at]] * rng.choice((1, 2, 300))
    elif how == 2:
        fields.append(fields.pop(rng.randrange(len(fields))))
    elif how == 3:
        fields[at] = (rng.choice((number + 1, max(1, number - 1), 99)), kind, value)
    elif kind == 0:
        fields[at] = (number, kind, rng.choice((0, 1, value + 1, max(0, value - 1), 2**31, 2**32, 2**40, 2**63, 2**64 - 1, 200)))
    elif kind == 2:
        fields[at] = (number, kind, mutated_message(rng, value))
    else:
        n = len(value)
        fields[at] = (number, kind, rng.choice((bytes(n), b"\xff" * n, b"\x00\x00\xf0\x7f".rjust(n, b"\x00"), rng.randbytes(n))))
    data = b""
    for number, kind, value in fields:
        data += varint(number << 3 | kind) + (varint(value) if kind == 0 else varint(len(value)) + value if kind == 2 else value)
    return data


def mutated_protobuf(rng, data):
    if rng.random() < 0.25:
        return mutated_bytes(rng, data)
    for _ in range(rng.choice((1, 1, 2, 5))):
        data = mutated_message(rng, data)
    return data


NUMBER, STRING, WORD = re.compile(r"-?[\d.]+([eE][-+]?\d+)?$"), re.compile(r'"'), re.compile(r"\w")


def mutated_text(rng, text, words=WORDS):
    """Replaces numbers by other numbers, strings by other strings and words by other words; in a third of the cases anything by anything;
    runs are removed, repeated or swapped, and now and then single bytes change."""
    if rng.random() < 0.1:
        return mutated_bytes(rng, text)
    parts = re.findall(r'"[^"\n]*"|[-+\w.]+|\s+|.', text.decode("latin-1"))
    like = {kind: [part for part in [*parts, *words] if kind.match(part)] for kind in (NUMBER, STRING, WORD)}
    wild = rng.random() < 0.33
    for _ in range(rng.choice((1, 1, 2, 3, 8))):
        values = [i for i, part in enumerate(parts) if (NUMBER if rng.random() < 0.6 else STRING).match(part)]
        at = rng.choice(values) if values and rng.random() < 0.8 else rng.randrange(len(parts) or 1)
        how = rng.randrange(8) if wild else 0
        kinds = [kind for kind in like if at < len(parts) and kind.match(parts[at])]
        if not wild and kinds:
            parts[at] = rng.choice(like[kinds[0]])
        elif how < 4:
            parts[at:at + 1] = [rng.choice(words)]
        elif how == 4:
            del parts[at:at + rng.choice((1, 2, 20))]
        elif how == 5:
            n = rng.choice((1, 5, 40))
            parts[at:at] = parts[at:at + n] * rng.choice((1, 3, 200))
        elif how == 6:
            other = rng.randrange(len(parts) or 1)
            parts[at:at + 1], parts[other:other + 1] = parts[other:other + 1], parts[at:at + 1]
        else:
            parts[at:at] = rng.choice("{[<(\"") * rng.choice((1, 200, 5000))
    return "".join(parts).encode("latin-1", "replace")


def how_to_compile(rng):
    emit, dtype = rng.choice(("ir", "ir", "ir", "json", "dot", "c")), rng.choice(("fp32", "fp16", "bf16"))
    flags = ["--target=cpu", "--emit=" + emit, "--dtype=" + dtype]
    for flag in ("--no-fuse", "--max-memory=1MB", "--explain-precision", "--print-memory-plan", "--print-traffic", "-Wall",
                 "--optimizer=lars", "--optimizer=adam", "--optimizer=rmsprop", "--passes=", "--batch-size=2", "-v"):
        if rng.random() < 0.1:
            flags.append(flag)
    return flags


# ---- kinds ----

def kind_pb(rng, tools):
    return Case([tools.ampcc, "x.pb", "-o", "out", *how_to_compile(rng)], {"x.pb": mutated_protobuf(rng, tools.model(rng))})


def kind_pbtxt(rng, tools):
    return Case([tools.ampcc, "x.pbtxt", "-o", "out", *how_to_compile(rng)], {"x.pbtxt": mutated_text(rng, tools.model_text(rng))})


def kind_amp(rng, tools):
    """Graphs as they are before all passes, after all, and between two passes."""
    model = rng.choice(("mlp", "lenet5"))
    with tempfile.TemporaryDirectory() as folder:
        name = os.path.join(folder, model + ".pb")
        pathlib.Path(name).write_bytes(tools.made(tools.zoo, model))
        passes = rng.choice((["--passes="], ["--dtype=fp16"], ["--passes=eval-graph,autodiff,loss-scale,optimizer", "--dtype=fp16"]))
        graph = subprocess.run([tools.ampcc, name, "--emit=ir", *passes], check=True, capture_output=True).stdout
    return Case([tools.ampcc, "x.amp", "-o", "out", *how_to_compile(rng)], {"x.amp": mutated_text(rng, graph)})


def kind_precision(rng, tools):
    rules = b'# mixed\nop reduce_mean infer\nlayer fc* f32\nvalue "fc1" low\nlayer "my layer 1" f32\nop matmul deny\nvalue [a-z]* allow\n'
    words = WORDS + ("[", "[!", "*" * 500, "op", "layer", "f32", "low")
    files = {"x.pb": tools.made(tools.zoo, "mlp"), "rules": mutated_text(rng, rules, words)}
    return Case([tools.ampcc, "x.pb", "--emit=ir", "--dtype=fp16", "-o", "out", "--precision-file=rules"], files)


def kind_tuning(rng, tools):
    text = b'{"ampcc_tuning": 1, "capability": 90, "cudnn": 91900, "plans": ' \
           b'{"k": [{"engine": {"id": 3}, "ms": 0.5}], "l": [{"engine": 3}]}}'
    files = {"x.pb": tools.made(tools.zoo, "mlp"), "t.json": mutated_text(rng, text)}
    return Case([tools.ampcc, "x.pb", "--passes=", "-o", "out", "--tuning-db=t.json"], files)


def kind_flags(rng, tools):
    """Any flags of --help with any values, but for those that run a command or write another file."""
    flags = re.findall(r"--([a-z0-9-]+)(\[?=?\S*)", tools.made(tools.ampcc, "--help").decode())
    given = []
    for _ in range(rng.choice((1, 1, 2, 4))):
        flag, argument = rng.choice(flags)
        if flag in ("output", "cc", "certify", "figures", "diagnostics-file", "report", "save-temps", "cache-dir", "help", "version",
                    "list-passes", "list-targets"):
            continue
        words = [word for word in re.split(r"[|=\[\],]", argument) if word]
        value = rng.choice(list(WORDS) + words).replace("\0", "")
        given.append("--" + flag + ("=" + value if argument and rng.random() < 0.9 else rng.choice(("", "", "=", "=" + value))))
    flags = ["--target=cpu", *given, "--emit=ir", "-o", "out"]
    output = "" if {"--print-recipe", "--cache-stats", "--cache-verify", "--dry-run"} & set(given) else "out"  # these write nothing
    return Case([tools.ampcc, "x.pb", *flags], {"x.pb": tools.made(tools.zoo, "mlp")}, output=output)


def kind_zoo(rng, tools):
    words = [rng.choice(WORDS + MODELS + ("--classes=", "--bn-momentum=", "--text")).replace("\0", "") for _ in range(rng.randrange(4))]
    words = [word + rng.choice(WORDS).replace("\0", "") if word.endswith("=") else word for word in words]
    return Case([tools.zoo, *[word for word in words if word != "-o"], "-o", "out"], {})


def kind_graphdef(rng, tools):
    text = (HERE / "../tf/seed.pbtxt").read_bytes()
    how = ["--amp-compat=tf", "--amp-mode=" + rng.choice(("cuda", "bf16", "cpu", "fp16-cpu"))]
    how += rng.choice(([], ["--tf-amp-report=json"], ["--amp-level=UNSAFE_FORCE_ALL"], ["--fetch=" + rng.choice(WORDS).replace("\0", "")]))
    if rng.random() < 0.5:
        return Case([tools.tf, "x.pbtxt", "-o", "out", *how], {"x.pbtxt": mutated_text(rng, text)})
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "seed.pb")
        subprocess.run([tools.tf, HERE / "../tf/seed.pbtxt", "--amp-compat=tf", "--emit=graphdef", "-q", "-o", out], check=True)
        data = pathlib.Path(out).read_bytes()
    return Case([tools.tf, "x.pb", "-o", "out", *how], {"x.pb": mutated_protobuf(rng, data)})


KINDS = {name[5:]: make for name, make in sorted(globals().items()) if name.startswith("kind_")}


# ---- running and judging ----

def printable(text):
    """Is the text UTF-8 without characters that a terminal takes as commands (ir/base/text.h)?"""
    try:
        return not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]", text.decode())
    except UnicodeDecodeError:
        return False


def judge(case, folder):
    """Runs the case in its folder; returns its status, a list of what it did wrong, and what it printed."""
    for name, data in case.files.items():
        (folder / name).write_bytes(data)
    (folder / ".tmp").mkdir()
    env = {**os.environ, **SANITIZERS, "TMPDIR": str(folder / ".tmp")}
    with subprocess.Popen(case.command, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as process:
        try:
            out, err = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            return None, ["still running after %d s" % SECONDS], b""
    status, wrong = process.returncode, []
    if status not in (0, 1, 2, 3):
        wrong.append("status %d" % status)
    if b"runtime error:" in err or b"Sanitizer" in err:
        wrong.append("a sanitizer's report")
    if status and not err:
        wrong.append("failed without a word")
    if status and len(out) + len(err) > BYTES:
        wrong.append("%d bytes of messages" % (len(out) + len(err)))
    if not printable(err):
        wrong.append("a message that is not printable")
    left = sorted(set(os.listdir(folder)) - set(case.files) - {".tmp"})
    if left != ([case.output] if case.output and status == 0 else []):
        wrong.append("left behind: %s" % left)
    if case.output in left and os.path.getsize(folder / case.output) == 0:
        wrong.append("an empty output")
    if os.listdir(folder / ".tmp"):
        wrong.append("temporary files: %s" % os.listdir(folder / ".tmp"))
    return status, wrong, err


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--kind", default="")
    parser.add_argument("--keep", type=pathlib.Path, help="a folder that gets the files of what failed")
    parser.add_argument("tools", nargs="+", type=os.path.abspath)
    args = parser.parse_args()
    tools = Tools(*(args.tools + [""])[:3])
    kinds = args.kind.split(",") if args.kind else [kind for kind in KINDS if kind != "graphdef" or tools.tf]
    failed, ended = 0, {}
    for number in range(args.first, args.first + args.count):
        kind = kinds[number % len(kinds)]
        case = KINDS[kind](random.Random("%d/%s/%d" % (args.seed, kind, number)), tools)
        with tempfile.TemporaryDirectory() as folder:
            status, wrong, err = judge(case, pathlib.Path(folder))
        ended.setdefault(kind, []).append(status)
        if wrong:
            failed += 1
            again = [sys.argv[0], "--seed=%d" % args.seed, "--kind=" + ",".join(kinds), "--first=%d" % number, "--count=1", *args.tools]
            print("FAILED %s %d: %s\n  %s\n  again: %s" % (kind, number, "; ".join(wrong), shlex.join(case.command), shlex.join(again)))
            print("  " + err[:2000].decode(errors="backslashreplace").replace("\n", "\n  "))
            if args.keep:
                place = args.keep / ("%s-%d" % (kind, number))
                place.mkdir(parents=True, exist_ok=True)
                for name, data in case.files.items():
                    (place / name).write_bytes(data)
    for kind, statuses in sorted(ended.items()):
        print("%-10s %4d cases, %d accepted" % (kind, len(statuses), statuses.count(0)))
    print("%d cases, %d failed" % (args.count, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
