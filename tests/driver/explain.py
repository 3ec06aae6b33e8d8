#!/usr/bin/env python3
"""Tests the pages that --explain prints: explain.py AMPCC AMPCC_ZOO AMPCC_TF PAGES DIAG_DEF

Every code of diag.def has a page. The example of a page is a session: `$ cat FILE` and the file's lines, or another command and
what it prints to both streams, with `...` as in sessions.py. Each is obeyed in an empty folder, must print what the page says, and
among that the page's error. With UPDATE=1 the pages are rewritten to say what was printed."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from commands import AMPCC, ZOO, expect, failed, run
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "e2e"))
from sessions import matches, steps  # noqa: E402

AMPCC_TF, PAGES, TABLE = map(os.path.abspath, sys.argv[3:6])
INDENT = "    "


class Lacking(Exception):
    """This ampcc has no CUDA, which the example needs."""


def asked(*command):
    """Exit status, standard output and standard error of a command, as text."""
    status, out, err = run(*command)
    return status, out.decode(), err


def obey(command, lines, folder):
    """Does one step of a session; returns the lines that follow it."""
    words = command.split()
    if words[0] == "cat":
        pathlib.Path(folder, words[1]).write_text("".join(line + "\n" for line in lines))
        return lines
    path = os.pathsep.join([os.path.dirname(p) for p in (AMPCC, AMPCC_TF, ZOO)] + [os.environ["PATH"]])
    done = subprocess.run(command, shell=True, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env={**os.environ, "PATH": path, "XDG_CACHE_HOME": folder})
    if done.returncode == 3 and "CUDA" in done.stdout:
        raise Lacking(done.stdout)
    expect("%s fails with status 1, not %d" % (command, done.returncode), done.returncode == (0 if "zoo" in command else 1))
    got = done.stdout.splitlines()
    return lines if matches(lines, got) else got


def session(code, block):
    """Obeys the example of a page, which is indented; returns it as it should be."""
    block = "".join(line[len(INDENT):] + "\n" for line in block.splitlines())
    out = []
    with tempfile.TemporaryDirectory() as folder:
        for command, lines in steps(block):
            out += ["$ " + command] + obey(command, lines, folder)
    expect("the example of %s makes it" % code, any("error[%s]" % code in line for line in out), *out)
    return "\n".join((INDENT + line).rstrip() for line in out)


def page(code, meaning):
    path = pathlib.Path(PAGES, code + ".txt")
    text = path.read_text()
    done = asked(AMPCC, "--explain=" + code)
    expect("--explain=" + code, done[:2] == (0, "%s: %s\n\n%s" % (code, meaning, text)), done)
    prose = [line for line in text.splitlines() if not line.startswith(INDENT)]
    expect(code + " is at most 80 wide", all(len(line) <= 80 for line in prose), prose)
    blocks = text.rstrip("\n").split("\n\n")
    examples = [i for i, block in enumerate(blocks) if block.startswith(INDENT)]
    expect(code + " has one example, text before and `What to do:` behind it", len(examples) == 1 and
           0 < examples[0] < len(blocks) - 1 and blocks[examples[0] + 1].startswith("What to do: "), blocks)
    for i in examples:
        try:
            want = session(code, blocks[i])
        except Lacking as lacking:
            print("%s: no CUDA for its example: %s" % (code, lacking))
            continue
        if os.environ.get("UPDATE") == "1":
            blocks[i] = want
            path.write_text("\n\n".join(blocks) + "\n")
        else:
            expect("the example of " + code, want == blocks[i], "\n" + blocks[i] + "\nis\n" + want)


def options(codes):
    """The index, spellings, and what is no code."""
    for program in (AMPCC, AMPCC_TF):
        name = os.path.basename(program)
        index = "".join("%s  %s\n" % row for row in codes.items())
        done = asked(program, "--explain")
        expect(name + " --explain", done[1] == index, done)
        _, right, _ = asked(program, "--explain=E221")
        for args in (["--explain=221"], ["--explain=e221"], ["--explain", "E221"], ["--explain=E221", "-q"]):
            done = asked(program, *args)
            expect("%s %s" % (name, args), done[1] == right and right, done)
        for wrong in ("E999", "E", "x", "E112x", "-1", "99999999999999999999", "E0", "0"):
            done = asked(program, "--explain=" + wrong)
            expect("%s --explain=%s" % (name, wrong), done ==
                   (2, "", "%s: --explain: no error has the code `%s`; --explain alone lists all\n" % (name, wrong)), done)


def main():
    rows = re.findall(r'^DIAG\(\w+, +(\d+), "(.*)"\)$', pathlib.Path(TABLE).read_text(), re.M)
    codes = {"E" + number: meaning for number, meaning in rows}
    expect("diag.def has codes, each once", len(rows) == len(codes) > 30, rows)
    expect("a page for each code", {p.stem for p in pathlib.Path(PAGES).glob("E*.txt")} == set(codes))
    options(codes)
    for code, meaning in codes.items():
        page(code, meaning)
    print("%d codes, %d failed" % (len(codes), len(failed)))
    return 1 if failed else 0


sys.exit(main())
