#!/usr/bin/env python3
"""Tests the forms of diagnostics: diagnostics.py AMPCC AMPCC_ZOO AMPCC_TF

--diagnostics-format=json and =sarif must say what the text says, for inputs that make errors, warnings, notes, hostile names; SARIF
must be built as the specification of version 2.1.0 demands; colours come on terminals only."""
import json
import os
import pty
import re
import subprocess
import sys
import tempfile
import urllib.parse

from commands import AMPCC, ZOO, expect, failed, fails, run

AMPCC_TF = os.path.abspath(sys.argv[3])
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
TEXT_LINE = re.compile(r"(?P<place>.*?): ?(?P<level>error|warning|note)(?:\[(?P<code>E\d+)\])?: (?P<message>.*?)(?: \[-W(?:error=)?(?P<warning>[a-z-]+)\])?$")


def allowed(what, value, *keys, required=()):
    """An object of SARIF has these properties and no others."""
    expect("%s: %s" % (what, sorted(value)), set(required) <= set(value) <= set(keys) | set(required))


def check_sarif(what, text, status):
    """What the specification demands of every property that is there; returns the results."""
    expect(what + " is ASCII", text.isascii())
    log = json.loads(text)
    allowed(what, log, "$schema", required=("version", "runs"))
    expect(what + ": version", log["version"] == "2.1.0" and log["$schema"].endswith("sarif-2.1.0.json") and len(log["runs"]) == 1)
    one = log["runs"][0]
    allowed(what + ": run", one, "invocations", "columnKind", required=("tool", "results"))
    driver = one["tool"]["driver"]
    allowed(what + ": driver", driver, "version", "rules", required=("name",))
    expect(what + ": columns", one["columnKind"] == "unicodeCodePoints")
    invocation, = one["invocations"]
    expect(what + ": invocation", invocation == {"executionSuccessful": status == 0, "exitCode": status}, invocation)
    ids = [rule["id"] for rule in driver["rules"]]
    expect(what + ": each rule once, and all used", len(ids) == len(set(ids)) and set(ids) == {r["ruleId"] for r in one["results"] if "ruleId" in r}, ids)
    for rule in driver["rules"]:
        allowed(what + ": rule", rule, "help", "defaultConfiguration", required=("id", "shortDescription"))
        expect(what + ": texts of " + rule["id"], rule["shortDescription"]["text"] and rule.get("help", {"text": "x"})["text"])
        expect(what + ": help of " + rule["id"], ("help" in rule) == bool(re.fullmatch(r"E\d{3}", rule["id"])))
    for result in one["results"]:
        allowed(what + ": result", result, "ruleId", "ruleIndex", "locations", required=("level", "message"))
        expect(what + ": level", result["level"] in ("error", "warning", "note"))
        if "ruleId" in result:
            expect(what + ": ruleIndex", ids[result["ruleIndex"]] == result["ruleId"], result)
        for location in result.get("locations", []):
            allowed(what + ": location", location, "physicalLocation", "logicalLocations")
            physical = location.get("physicalLocation")
            if physical:
                allowed(what + ": physicalLocation", physical, "region", required=("artifactLocation",))
                uri = physical["artifactLocation"]["uri"]
                expect(what + ": " + uri, re.fullmatch(r"(file://)?([A-Za-z0-9._~/-]|%[0-9A-F]{2})+", uri))
                region = physical.get("region", {"startLine": 1})
                allowed(what + ": region", region, "startColumn", "snippet", required=("startLine",))
                expect(what + ": region counts from 1", region["startLine"] >= 1 and region.get("startColumn", 1) >= 1)
            for logical in location.get("logicalLocations", []):
                allowed(what + ": logicalLocation", logical, required=("name", "kind"))
    return one["results"]


def compare(what, *command, stdin=b""):
    """The three forms of the same run say the same."""
    status, out, text = run(*command, "--all-errors", stdin=stdin)
    lines = [match for match in map(TEXT_LINE.match, text.splitlines()) if match]
    expect(what + ": there is something to say", lines, text)
    for form in ("json", "sarif"):
        got = run(*command, "--diagnostics-format=" + form, stdin=stdin)
        expect("%s: %s changes only the messages" % (what, form), got[:2] == (status, out), got)
        messages = [json.loads(line) for line in got[2].splitlines()] if form == "json" else check_sarif(what, got[2], status)
        expect("%s: %s has as many messages" % (what, form), len(messages) == len(lines), got[2], text)
        for line, message in zip(lines, messages):
            if form == "json":
                rule, words = message.get("code", message.get("warning")), message["message"]
                expect(what + ": keys", set(message) <= {"level", "code", "warning", "file", "line", "column", "kind", "name", "message"}, message)
                place = message["file"] + (":%d:%d" % (message["line"], message["column"]) if "line" in message else
                                           ":%s '%s'" % (message["kind"], message["name"]) if "name" in message else "")
                expect("%s: %s" % (what, place), line["place"] == place or not place.isprintable(), line["place"])
            else:
                rule, words = message.get("ruleId"), message["message"]["text"]
                place = message["locations"][0]["physicalLocation"]
                file = urllib.parse.unquote(place["artifactLocation"]["uri"])
                at = ":%d:" % place["region"]["startLine"] if "region" in place else ""
                expect("%s: %s" % (what, file), line["place"].startswith(file + at) and bool(at) == bool(re.search(r":\d+:\d+$", line["place"])), line)
            expect("%s: %s says the same" % (what, form), (message["level"], rule, words) ==
                   (line["level"], line["code"] or line["warning"], line["message"]), message, line)


def forms():
    graph = 'graph @train stage model {\n  %x = input {name="x"} : f32[2,3]\n  %"prüf" = rellu %nope : f32[2,3]\n  %x = relu %x : f16[2,3]\n}\n'
    many = b"version: 1" + b"".join(b' node { op: "zz" output: "n%d" }' % i for i in range(100))
    compare("places in a text", AMPCC, "-", "--passes=", stdin=graph.encode())
    compare("more than a screenful", AMPCC, "-", stdin=many)
    compare("names of a model", AMPCC, "-", stdin=b'version: 1 parameter { name: "a\\001\\\\b\\"" dim: 0 } node { op: "x" layer: "conv 1" output: "y" }')
    compare("a file", AMPCC, "no such file.pb")
    lenet = run(ZOO, "lenet5")[1]
    compare("warnings", AMPCC, "-", "--dtype=fp16", "-Wprecision-dims", "--emit=ir", "-o", "out.amp", stdin=lenet)
    compare("warnings as errors", AMPCC, "-", "--dtype=fp16", "-Wprecision-dims", "-Werror", "--emit=ir", "-o", "out.amp", stdin=lenet)
    compare("ampcc-tf", AMPCC_TF, "-", "--fetch=nope", "-o", "out.pb", stdin=b'node { name: "x" op: "Odd" }')
    compare("notes", AMPCC_TF, "-", "-o", "out.pb", stdin=b'node { name: "x" op: "Odd" } node { name: "y" op: "NoOp" }')
    # characters are counted, not bytes, and a name that is no UTF-8 can still be read
    results = check_sarif("columns", run(AMPCC, "-", "--passes=", "--diagnostics-format=sarif", stdin=graph.encode())[2], 1)
    region = results[0]["locations"][0]["physicalLocation"]["region"]
    expect("columns are those of the snippet", region["snippet"]["text"][region["startColumn"] - 1:].startswith("rellu"), region)
    os.makedirs("ein Ordner", exist_ok=True)
    path = os.path.abspath("ein Ordner") + "/ä#%.pbtxt"
    open(path, "w").write("version: 7")
    results = check_sarif("absolute", run(AMPCC, path, "--diagnostics-format=sarif")[2], 1)
    uri = results[0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    expect("an absolute path", uri == "file://" + urllib.parse.quote(path), uri)
    odd = os.fsencode("odd") + b"\xff\x1b"
    message = json.loads(run(AMPCC, odd, "--diagnostics-format=json")[2])
    expect("a name that is no UTF-8", message["file"] == "odd\\xff\\x1b", message)


def destinations():
    """--diagnostics-file; nothing else is on standard error where programs read it."""
    open("lenet5.pb", "wb").write(run(ZOO, "lenet5")[1])
    status, _, err = run(AMPCC, "lenet5.pb", "--target=cpu", "--cpu=native", "-o", "lenet", "--diagnostics-format=json")
    expect("json: nothing but messages", (status, err) == (0, ""), err)
    status, _, err = run(AMPCC, "lenet5.pb", "--target=cpu", "--cpu=native", "-o", "lenet", "--diagnostics-format=sarif", "--diagnostics-file=d.sarif")
    expect("--diagnostics-file: the rest is said", status == 0 and "lenet5, fp32, batch 128" in err, err)
    expect("a SARIF log without results", check_sarif("none", open("d.sarif").read(), 0) == [])
    status, _, err = run(AMPCC, "no.pb", "--diagnostics-file=d.txt", "--color=always")
    text = open("d.txt").read()
    expect("text in a file", status == 1 and not err and "error[E208]" in text and ESCAPE.search(text), text, err)
    status, _, err = run(AMPCC, "lenet5.pb", "--target=cpu", "--emit=ir", "-o", "out.amp", "--diagnostics-file=no/folder")
    expect("a file that cannot be written", status == 3 and "no/folder" in err, status, err)
    status, _, err = run(AMPCC, "lenet5.pb", "--target=cpu", "-o", "x", "--cc=false", "--diagnostics-format=sarif", "--cache-dir=")
    document = err[err.index("{"):]
    expect("an error of the environment is said before", status == 3 and not check_sarif("environment", document, 3) and len(document) < len(err), err)
    fails(2, "--diagnostics-format takes text|json|sarif, not `xml`", "lenet5.pb", "--diagnostics-format=xml")
    fails(2, "--color takes [auto|always|never], not `blue`", "lenet5.pb", "--color=blue")


def on_terminal(*command, **env):
    """What the command prints to standard error if that is a terminal."""
    outer, inner = pty.openpty()
    environment = {k: v for k, v in os.environ.items() if k != "NO_COLOR"}
    subprocess.run(command, stderr=inner, stdin=subprocess.DEVNULL, env={**environment, "TERM": "xterm", **env})
    os.close(inner)
    text = b""
    try:
        while part := os.read(outer, 65536):
            text += part
    except OSError:
        pass  # the other end is closed
    os.close(outer)
    return text.decode().replace("\r\n", "\n")


def colours():
    open("wrong.amp", "w").write('graph @train stage model {\n  %x = rellu : f32[2]\n}\n')
    command = [AMPCC, "wrong.amp", "--passes="]
    plain = run(*command)[2]
    expect("no colours where nobody looks", not ESCAPE.search(plain) and "\n         ^\n" in plain, plain)
    for what, text, coloured in (
            ("a terminal", on_terminal(*command), True), ("NO_COLOR", on_terminal(*command, NO_COLOR="1"), False),
            ("an empty NO_COLOR", on_terminal(*command, NO_COLOR=""), True), ("TERM=dumb", on_terminal(*command, TERM="dumb"), False),
            ("--color=never", on_terminal(*command, "--color=never"), False), ("--color=always", run(*command, "--color=always")[2], True),
            ("--color", run(*command, "--color", NO_COLOR="1")[2], True), ("json", on_terminal(*command, "--diagnostics-format=json"), False)):
        expect("colours: " + what, bool(ESCAPE.search(text)) == coloured, repr(text))
        expect("the text is the same: " + what, what == "json" or ESCAPE.sub("", text) == plain, repr(text))
    expect("what is coloured", run(*command, "--color=always")[2].startswith(
        "\x1b[1mwrong.amp:2:8:\x1b[0m \x1b[1;31merror[E102]:\x1b[0m unknown op"), run(*command, "--color=always")[2])


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        forms()
        destinations()
        colours()
        os.chdir("/")
    print("%d failed" % len(failed))
    return 1 if failed else 0


sys.exit(main())
