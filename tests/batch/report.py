#!/usr/bin/env python3
"""Tests --report and --baseline: report.py AMPCC AMPCC_ZOO"""
import copy
import hashlib
import html.parser
import json
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET

from common import AMPCC, FAILING, batch, expect, failed, fails, models, odd_model, run

FIGURES = ("arena_bytes", "state_bytes", "workspace_bytes", "traffic_bytes", "kernels", "casts", "casts_alone")
LIST = "mlp.pb\nlenet5.pb --dtype=bf16 --no-fuse\n" + FAILING


def load(path):
    with open(path) as file:
        return json.load(file)


def save(path, report):
    with open(path, "w") as file:
        json.dump(report, file)


def figures():
    """Every figure of the report against the file, what the program says of itself, and what ampcc says with other options."""
    status, rows, err = batch("--batch=list.txt", "--out-dir=out", "--report=one.json")
    report = load("one.json")
    programs = {p["name"]: p for p in report["programs"]}
    expect("all of the list", list(programs) == ["mlp", "lenet5", '<b&"ad">', "usage", "no cc"], list(programs))
    expect("counts", [report[k] for k in ("made", "unchanged", "failed", "regressed")] == [2, 0, 3, 0], report)
    expect("version", "ampcc " + report["ampcc"] == run(AMPCC, "--version")[1].decode().strip())
    for name, options in (("mlp", []), ("lenet5", ["--dtype=bf16", "--no-fuse"])):
        p, path = programs[name], "out/" + name
        got = p["parts"][0]
        data = open(path, "rb").read()
        expect("size and hash", (p["program_bytes"], p["program_sha256"]) == (len(data), hashlib.sha256(data).hexdigest()), p)
        expect("what it is of", (p["file"], p["options"], p["model"], p["dtype"], p["batch_size"], p["result"], p["status"], got["target"])
               == (name + ".pb", ["--target=cpu"] + options[1:] + options[:1], name, (options + ["=fp32"])[0][-4:].lstrip("="), 128, "made", 0, "cpu"), p)
        plan = run(path, "--print-memory-plan")[1].decode()
        arena, state = re.search(r"memory: \d+ bytes = arena (\d+) \+ state (\d+)", plan).groups()
        expect("memory as the program has it", (got["arena_bytes"], got["state_bytes"]) == (int(arena), int(state)), got, arena, state)
        about = run(path, "--about")[1].decode()
        expect("kernels as the program has them", got["kernels"] == int(re.search(r"@train, (\d+) kernels", about).group(1)), got, about)
        said = run(AMPCC, name + ".pb", "--target=cpu", *options, "--emit=ir", "-o", "x.amp", "--print-traffic", "--print-precision")[1].decode()
        row = re.search(r"^all +(\d+) +(\d+) +(\d+)", said, re.M).groups()
        expect("traffic", (got["kernels"], got["traffic_bytes"]) == (int(row[0]), int(row[1]) + int(row[2])), got, row)
        own, inside = re.search(r"@train: .*casts: (\d+) kernels of their own.*; (\d+) inside other kernels", said).groups()
        expect("casts", (got["casts"], got["casts_alone"]) == (int(own) + int(inside), int(own)), got, own, inside)
        spaces = [int(w) for w in re.findall(r"workspace=\[\d+,(\d+)\]", open("x.amp").read())]
        expect("workspace", got["workspace_bytes"] == max(spaces, default=0), got, max(spaces, default=0))
        expect("seconds", 0 < p["seconds"] <= report["seconds"], p["seconds"], report["seconds"])
    expect("casts that are kernels are among them", programs["lenet5"]["parts"][0]["casts_alone"] > 0)
    expect("a broken model", (programs['<b&"ad">']["result"], programs['<b&"ad">']["status"]) == ("failed", 1) and
           "error[E201]" in programs['<b&"ad">']["message"], programs)
    expect("a wrong option", programs["usage"]["status"] == 2 and "--cpu=nonesuch" in programs["usage"]["message"], programs["usage"])
    expect("a machine without a compiler", programs["no cc"]["status"] == 3 and status == 3, programs["no cc"], status)
    batch("--batch=list.txt", "--out-dir=out", "--report=two.json")
    again = {p["name"]: p for p in load("two.json")["programs"]}
    expect("unchanged ones have the same figures", again["mlp"].pop("result") == "unchanged" and
           all(again["mlp"][k] == programs["mlp"][k] for k in again["mlp"] if k != "seconds"), again["mlp"])


def compared(*args, tolerance=None):
    """Regressions against base.json, as {program: [what grew]}, and the status."""
    more = [] if tolerance is None else ["--tolerance=%g" % tolerance]
    status, rows, err = batch("--batch=two.txt", "--out-dir=two", "--baseline=base.json", "--report=now.json", *more, *args)
    lines = [tuple(line[7:].split(": ", 1)) for line in err.splitlines() if " grew " in line or " is gone" in line]
    report = load("now.json")
    wrote = [(p["name"], text) for p in report["programs"] for text in p["regressions"]]
    expect("said as written", lines == wrote, lines, wrote)
    expect("status", status == (1 if lines else 0) and report["regressed"] == len({name for name, _ in lines}), status, err)
    return wrote


def baselines():
    with open("two.txt", "w") as file:
        file.write("mlp.pb\nlenet5.pb --dtype=bf16\n")
    batch("--batch=two.txt", "--out-dir=two", "--report=base.json")
    base = load("base.json")
    expect("nothing has grown", not compared())
    for name in FIGURES + ("program_bytes",):  # each figure alone: one less in the baseline is found, one more is none
        for less, tolerance in ((1, None), (-1, None), (1, 1)):
            changed = copy.deepcopy(base)
            of, place = (" of cpu", changed["programs"][1]["parts"][0]) if name in FIGURES else ("", changed["programs"][1])
            now = place[name]
            place[name] -= less
            save("base.json", changed)
            got = compared(tolerance=tolerance)
            grown = less > 0 and not (tolerance and now <= (now - less) * (1 + tolerance / 100))
            want = [("lenet5", "%s%s grew from %d to %d" % (name, of, now - less, now))] if grown else []
            expect("%s %+d" % (name, less), [(n, t.split(" (")[0]) for n, t in got] == want, got, want)
    save("base.json", base)
    real = {"size": (["--dtype=bf16"], None), "memory": (["--batch-size=256"], "arena_bytes"), "kernels": (["--no-fuse"], "kernels"),
            "casts": (["--dtype=bf16"], "casts")}  # what an engineer might do to the programs
    for what, (options, figure) in real.items():
        got = [text.split(" of cpu")[0] for name, text in compared(*options) if name == "mlp"]
        expect("a regression of " + what, figure in got if figure else any(t.startswith("program_bytes grew") for t in got), got)
    got = compared("--batch-size=256", tolerance=300)
    expect("within a tolerance", not got, got)
    changed = copy.deepcopy(base)
    changed["programs"][0]["parts"].append({**base["programs"][0]["parts"][0], "target": "cuda:sm_90"})
    changed["programs"].append({**base["programs"][0], "name": "of another batch"})
    save("base.json", changed)
    expect("a part that is gone", compared() == [("mlp", "the part for cuda:sm_90 is gone")])
    out = ("--batch=two.txt", "--out-dir=two")
    for text, says in (("{", "--baseline: bad.json: line 1:"), ("[]", "this is no report"), ("{}", "this is no report")):
        with open("bad.json", "w") as file:
            file.write(text)
        fails(1, says, *out, "--baseline=bad.json")
    fails(1, "--baseline: none.json", *out, "--baseline=none.json")
    fails(2, "--tolerance takes PERCENT, not `-1`", *out, "--tolerance=-1")
    fails(2, "--tolerance takes PERCENT, not `nan`", *out, "--tolerance=nan")
    fails(2, "its name must end in .json, .xml (JUnit) or .html", *out, "--report=report.txt")
    fails(3, "cannot write none/report.xml", *out, "--target=cpu", "--report=none/report.xml")


# What Jenkins's schema of JUnit (junit-10.xsd of its xunit plugin) allows: attributes (! required) and children of each element.
JUNIT = {
    "testsuites": ("name time tests failures errors", "testsuite"),
    "testsuite": ("name! tests! failures! errors! group time skipped timestamp hostname id package file log url",
                  "testsuite properties testcase system-out system-err"),
    "properties": ("", "property"),
    "property": ("name! value!", ""),
    "testcase": ("name! time classname group", "skipped error failure system-out system-err"),
    "failure": ("type message", ""), "error": ("type message", ""), "skipped": ("type message", ""),
    "system-out": ("", ""), "system-err": ("", ""),
}
TIME = r"(([0-9]{0,3},)*[0-9]{3}|[0-9]{0,3})*(\.[0-9]*)?"


def valid(element):
    allowed, children = JUNIT[element.tag]
    names = [name.rstrip("!") for name in allowed.split()]
    expect("<%s>: attributes" % element.tag, set(element.attrib) <= set(names) and
           all(name[:-1] in element.attrib for name in allowed.split() if name[-1] == "!"), element.attrib)
    if "time" in element.attrib:
        expect("<%s>: time" % element.tag, re.fullmatch(TIME, element.get("time")), element.get("time"))
    for child in element:
        expect("<%s> in <%s>" % (child.tag, element.tag), child.tag in children.split())
        valid(child)


def junit():
    save("base.json", {"programs": [{**p, "program_bytes": 1} for p in load("two.json")["programs"] if p["name"] == "mlp"]})
    batch("--batch=list.txt", "--out-dir=out", "--report=report.xml", "--baseline=base.json")
    root = ET.parse("report.xml").getroot()
    valid(root)
    cases = {case.get("name"): case for case in root.iter("testcase")}
    expect("a case for each program", list(cases) == ["mlp", "lenet5", '<b&"ad">', "usage", "no cc"], list(cases))
    tags = {name: [(c.tag, c.get("type")) for c in case if c.tag != "system-out"] for name, case in cases.items()}
    expect("what went wrong", tags == {"mlp": [("failure", "regression")], "lenet5": [], '<b&"ad">': [("failure", "E201")],
                                       "usage": [("failure", "usage")], "no cc": [("error", "environment")]}, tags)
    for element in (root, root[0]):
        expect("counts", [element.get(k) for k in ("tests", "failures", "errors")] == ["5", "3", "1"], element.attrib)
    expect("figures", "\ncpu kernels " in cases["mlp"].find("system-out").text)
    expect("all that it said", "error[E201]" in cases['<b&"ad">'].find("failure").text)
    if run("sh", "-c", "command -v xmllint")[0] == 0:
        expect("xmllint", run("xmllint", "--noout", "report.xml")[0] == 0)


def bytes_of_any_kind():
    """A file's name may hold anything; both reports still are what they should be."""
    odd_model()
    for form in ("xml", "json", "html"):
        done = subprocess.run([AMPCC, "--batch=odd", "--out-dir=odd.out", "--report=odd." + form, "--target=cpu"], capture_output=True)
        expect("status", done.returncode == 1, done)
        expect("nothing for a terminal", b"\x1b[31m" not in done.stdout + done.stderr, done.stdout, done.stderr)
    case = ET.parse("odd.xml").getroot()[0].find("testcase").get("name")
    expect("XML", case == "a\\x01\\x1b[31m\\xff\\xc2\\x85\\xef\\xbf\\xbe<&\u00e9", case)
    expect("JSON", "31m" in load("odd.json")["programs"][0]["name"])


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.rows, self.wrong = [], [], []

    def handle_starttag(self, tag, attrs):
        if tag in ("meta", "br"):
            return
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)

    def handle_data(self, data):
        if self.open and self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data


def page():
    batch("--batch=list.txt", "--out-dir=out", "--report=report.html", "--baseline=base.json")
    page = Page()
    page.feed(open("report.html", encoding="utf-8").read())
    page.close()
    expect("every element is closed", not page.open and not page.wrong, page.open, page.wrong)
    expect("a table", len({len(row) for row in page.rows}) == 1 and page.rows[0][4:-1] == list(FIGURES), page.rows)
    rows = {row[0]: row for row in page.rows}
    mlp = {p["name"]: p for p in load("two.json")["programs"]}["mlp"]
    expect("a row", rows["mlp"][2:-1] == [str(mlp["program_bytes"]), "cpu"] + [str(mlp["parts"][0][f]) for f in FIGURES], rows["mlp"])
    expect("what has grown", "unchangedprogram_bytes grew from 1 to" in rows["mlp"][-1], rows["mlp"])
    expect("a failure", rows['<b&"ad">'][-1].startswith("failed: broken.pb"), rows)


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        models("mlp", "lenet5")
        with open("list.txt", "w") as file:
            file.write(LIST)
        figures()
        baselines()
        junit()
        bytes_of_any_kind()
        page()
        os.chdir("/")
    print("%d failed" % len(failed))
    return 1 if failed else 0


sys.exit(main())
