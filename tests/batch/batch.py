#!/usr/bin/env python3
"""Tests what --batch makes of lists, folders and patterns: batch.py AMPCC AMPCC_ZOO"""
import os
import pty
import re
import select
import subprocess
import sys
import tempfile

from common import AMPCC, batch, content, expect, failed, fails, models, run


def write(path, text):
    with open(path, "w") as file:
        file.write(text)


def lists():
    """A list with comments, quotes, a pattern, options of its own, a name, and a model that cannot be read."""
    write("zoo.txt", "# models\n\n  mlp.pb --batch-size=16   # a line's options win\nl*5.pb -o 'le net'\nbroken.pb --dtype=fp16\n"
                     "mlp.pb -o 'mlp\\'''one --loss-scale 8 --dtype fp16\n")
    status, rows, err = batch("--batch=zoo.txt", "--dtype=fp32,bf16", "--batch-size=32", "--out-dir=out", "-j2")
    wanted = ["mlp-fp32", "mlp-bf16", "le net-fp32", "le net-bf16", "broken", "mlp\\one", "total"]
    expect("a failure is status 1", status == 1, status, err)
    expect("programs in the order of the list", list(rows) == wanted, list(rows))
    expect("one failed, and says why", rows["broken"][-1].startswith("failed: broken.pb: error[E201]"), rows)
    expect("the others were made", all(rows[name][-1] == "made" for name in wanted if name not in ("broken", "total")), rows)
    expect("totals", rows["total"][-1] == "5 made, 0 unchanged, 1 failed", rows)
    expect("where its messages are", "broken: broken.pb: error[E201]" in err and "out/.ampcc-batch/broken.log" in err, err)
    made = content("out")
    expect("the folder holds the programs", sorted(made) == sorted(set(wanted) - {"broken", "total"}), sorted(made))
    for name, command in (("mlp-bf16", ("mlp.pb", "--batch-size=16", "--dtype=bf16")),
                          ("le net-fp32", ("lenet5.pb", "--batch-size=32", "--dtype=fp32")),
                          ("mlp\\one", ("mlp.pb", "--batch-size=32", "--loss-scale=8", "--dtype=fp16"))):
        run(AMPCC, *command, "--target=cpu", "-q", "-o", "alone")
        expect(name + " is what ampcc makes alone", made[name] == open("alone", "rb").read())
        expect(name + " may be run", os.access("out/" + name, os.X_OK))
        expect(name + "'s size", rows[name][1] == "%.3f" % (len(made[name]) / 1e6), rows[name])
    expect("the sum of sizes", rows["total"][1] == "%.3f" % (sum(map(len, made.values())) / 1e6), rows["total"])
    for column in (2, 3, 4):
        total = sum(float(rows[name][column]) for name in made)
        expect("the sum of column %d" % column, abs(float(rows["total"][column]) - total) < 0.01 and total > 1, rows)
    expect("no more than programs and messages stay",
           all(re.search(r"\.(log|json)$|^lock$", name) for name in os.listdir("out/.ampcc-batch")), os.listdir("out/.ampcc-batch"))


def figures():
    """The table against what ampcc says of the same program alone."""
    said = run(AMPCC, "lenet5.pb", "--target=cpu", "--dtype=bf16", "-o", "alone", "--print-precision")
    state, arena = re.search(r"([\d.]+) MB of variables, ([\d.]+) MB of arena", said[2]).groups()
    _, rows, err = batch("--batch=lenet5.pb", "--dtype=bf16", "--out-dir=figures")
    row = rows["lenet5"]
    expect("arena and state", ["%.1f" % float(x) for x in row[2:4]] == [arena, state], row, said[2])
    train = run(AMPCC, "lenet5.pb", "--target=cpu", "--dtype=bf16", "--emit=ir")[1].decode().split("\ngraph ")[1]
    expect("casts", int(row[4]) == train.count(" = cast ") > 0, row, train.count(" = cast "))


def places():
    """A folder, a pattern, one model; what may stand in the program's place."""
    os.mkdir("models")
    for name in ("b.pb", "a.pb", "notes.txt"):
        os.link("mlp.pb", "models/" + name)
    for what in ("models", "models/*.pb", "models/[ab].pb"):
        status, rows, err = batch("--batch=" + what, "--out-dir=places")
        expect(what, status == 0 and list(rows) == ["a", "b", "total"], status, rows, err)
    expect("one model", list(batch("--batch=models/b.pb", "--out-dir=places")[1]) == ["b", "total"])
    os.unlink("places/a")
    os.symlink("b", "places/a")
    status, rows, err = batch("--batch=models", "--out-dir=places")
    expect("a link in its place is refused", status == 3 and "it exists and is no regular file" in err and os.path.islink("places/a"),
           status, rows)
    status, rows, err = batch("--batch=models/b.pb", "--out-dir=objects", "--emit=obj")
    expect("objects", status == 0 and open("objects/b", "rb").read(4) == b"\x7fELF", status, err)


def refused():
    """Every mistake is found before anything is made, with its place."""
    out = "--out-dir=refused"
    for lines, says in (("mlp.pb --nonesuch\n", "ampcc: list.txt:1: this line of the list is wrong"),
                        ("mlp.pb\n--dtype=fp16 # no model\n", "ampcc: list.txt:2: this line of the list names no model"),
                        ("mlp.pb\nmlp.pb --dtype=fp16\n", "list.txt:2: there is another program `mlp`, of list.txt:1"),
                        ("none*.pb", "ampcc: list.txt:1: no file is named by `none*.pb`"),
                        ("mlp.pb -o a/b", "this cannot be the name of a program: `a/b`"),
                        ("mlp.pb 'x", "a quote is not closed"),
                        ("mlp.pb --help", "not with --batch: option `help`"),
                        ("mlp.pb --jobs=2", "not in a list: option `jobs`"),
                        ("mlp.pb -MD", "not with --batch: option `MD`"),
                        ("mlp.pb --emit=ir", "--batch makes programs and objects, not --emit= `ir`"),
                        ("# nothing\n", "there is no model in `list.txt`")):
        write("list.txt", lines)
        fails(2, says, "--batch=list.txt", out)
    fails(2, "--batch needs --out-dir=FOLDER", "--batch=mlp.pb")
    fails(2, "`lenet5.pb` is one too many", "--batch=mlp.pb", "lenet5.pb", out)
    fails(2, "--jobs takes N, not `0`", "--batch=mlp.pb", out, "-j0")
    fails(2, "--out-dir is an option of --batch", "mlp.pb", out)
    fails(2, "-o names a program in a list", "--batch=mlp.pb", "-o", "x", out)
    fails(2, "there is no model in `empty`", "--batch=empty", out)
    fails(2, "--dtype takes fp32|fp16|bf16, not `fp32,bf16`", "mlp.pb", "--dtype=fp32,bf16")
    expect("nothing was made", not os.path.exists("refused"))
    fails(3, "cannot make the folder none/out", "--batch=mlp.pb", "--out-dir=none/out")


def terminal():
    """On a terminal there is a bar with the time left; it is gone from the line where a program is named."""
    master, slave = pty.openpty()
    child = subprocess.Popen([AMPCC, "--batch=zoo.txt", "--out-dir=terminal", "-j1", "--target=cpu"], stdout=slave, stderr=slave)
    os.close(slave)
    seen = b""
    while select.select([master], [], [], 60)[0]:
        try:
            piece = os.read(master, 4096)
        except OSError:  # the last of the other side has closed it
            break
        seen += piece
    child.wait()
    os.close(master)
    text = seen.decode()
    expect("a bar", re.search(r"\r\[#{7} {23}\] 1 of 4, 0:\d\d left\x1b\[K", text), text)
    expect("lines of their own", re.search(r"\r\x1b\[Kmlp +\d", text), text)


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.mkdir("empty")
        models("mlp", "lenet5")
        lists()
        figures()
        places()
        refused()
        terminal()
        os.chdir("/")
    print("%d failed" % len(failed))
    return 1 if failed else 0


sys.exit(main())
