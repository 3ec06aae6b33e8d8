"""Tests --tune of a program, and --tuning-db and --require-tuned of the next compilation: tuning.py MODEL TOOL...

MODEL is a small net in text form, the rest as in program.py."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from program import Program, Tools

TRAIN = ["--use-synthetic-data", "--model-dir=", "--max-train-steps=3", "--synthetic-examples=40", "--log-every=1"]
wrong = []


def expect(good, what, text=""):
    if not good:
        wrong.append(what)
        print(f"FAIL {what}\n{text}")


def plans_of(text):
    """Reads a part's C text into a dict from a plan's key to its engine and candidates."""
    found = {}
    for candidates, body, key in re.findall(r"candidates_\d+\[\] = \{(.*?)\};.*?\.json = (.*?),\n.*?\.key = \"([^\"]*)\"", text, re.S):
        strings = [json.loads(s) for s in re.findall(r'"(?:[^"\\]|\\.)*"', candidates)]
        plan = json.loads("".join(json.loads(s) for s in re.findall(r'"(?:[^"\\]|\\.)*"', body)))
        found[key] = json.dumps(plan["engine"], separators=(",", ":")), strings
    return found


class Compiler:
    def __init__(self, tools, model):
        self.tools, self.model, self.cache = tools, model, f"--cache-dir={tools.scratch}/cache"

    def run(self, *flags):
        done = subprocess.run([self.tools.ampcc, self.model, "--target=cuda:h200", f"--cuda-path={self.tools.toolkit}", "--dtype=fp16",
                               self.cache, *flags], cwd=self.tools.scratch, capture_output=True, text=True)
        return done.returncode, done.stdout, done.stderr

    def plans(self, *flags):
        status, text, errors = self.run("--emit=c", *flags)
        expect(status == 0, f"compile {flags}", errors)
        return plans_of(text), text, errors

    def program(self, name, *flags, cpu=False):
        return Program(self.tools, self.model, name, "--dtype=fp16", self.cache, *flags, cpu=cpu)


def read(folder, name):
    db = json.loads((folder / name).read_text())
    expect((db["ampcc_tuning"], db["capability"], db["cudnn"]) == (1, 90, 91900), "what it is for", str(db)[:200])
    return db["plans"]


def tunes(compiler, program, folder):
    """--tune finds the engine that is fast in the fake; the next compile takes it, and its program
    has it."""
    plain, _, _ = compiler.plans()
    key = next(key for key, (_, candidates) in plain.items() if len(candidates) > 3)
    fast = plain[key][1][3]
    status, text = program.run("cuda", "--tune=a.json", FAKE_CUDNN_FAST=fast)
    expect(status == 0 and text.count(" candidates, ") == len(plain) and "convolutions of a step: " in text, "--tune", text)
    found = read(folder, "a.json")
    expect(set(found) == set(plain), "keys", str(set(found) ^ set(plain)))
    for name, (own, candidates) in plain.items():
        timed = {json.dumps(c["engine"], separators=(",", ":")): c["microseconds"] for c in found[name]}
        expect(set(timed) == set(candidates) and own == candidates[0], f"candidates of {name}")
        expect(all((us < 5e5) == (e == fast) for e, us in timed.items()), f"times of {name}", str(timed))
    tuned, tuned_text, notes = compiler.plans("--tuning-db=a.json", "--require-tuned")
    _, again, _ = compiler.plans("--tuning-db=a.json", "--require-tuned")
    expect(tuned_text == again and not notes, "the same db, the same text", notes)
    expect(tuned[key][0] == fast != plain[key][0], f"the engine of {key}", tuned[key][0])
    expect(all(tuned[name][1] == plain[name][1] for name in plain), "candidates of a tuned program")
    return key, fast, tuned_text


def runs(compiler, program, key, fast):
    tuned = compiler.program("tuned", "--tuning-db=a.json", "--require-tuned")
    status, _, errors = compiler.run("--tuning-db=a.json", "-o", "free")
    expect(status == 0 and (compiler.tools.scratch / "free").read_bytes() == pathlib.Path(tuned.path).read_bytes(),
           "--require-tuned changes nothing in the program", errors)
    status, text = tuned.run("cuda", *TRAIN)
    expect(status == 0 and "made anew" not in text and text.count(" loss ") == program.run("cuda", *TRAIN)[1].count(" loss ") > 0, "a tuned run", text)
    status, text = tuned.run("cuda", "--tune=b.json", "-q", FAKE_CUDNN_FAST=fast)
    total = re.fullmatch(r"convolutions of a step: ([0-9.]+) ms as compiled, ([0-9.]+) ms with the fastest\n", text)
    expect(status == 0 and total and float(total[1]) < float(total[2]) + 900, "nothing is left to gain", text)


def damaged(compiler, folder, key, tuned_text):
    """--tuning-db with files that are damaged or of another kind."""
    good = (folder / "a.json").read_text()
    some = json.loads(good)
    del some["plans"][key]
    odd = {**some, "plans": {**some["plans"], key: [{"microseconds": 1, "engine": {"engineId": 999}}]}}
    version = {**json.loads(good), "cudnn": 92000}
    cases = [  # text, flags, exit status, message
        (good[:300], [], 1, ": error[E407]: premature end of input near"),
        ("{\"a\": 1}\n", [], 1, "x.json: error[E407]: no tuning file"),
        (good.replace("\"capability\": 90,", "\"capability\": \"90\","), [], 1, "x.json: error[E407]: `capability` is missing or no number"),
        (good.replace("\"engine\"", "\"motor\"", 1), [], 1, "` has no list of engines"),
        (json.dumps(some), [], 0, "note: cuda:sm_90: 7 of 8 plans are as timed"),
        (json.dumps(odd), [], 0, "note: cuda:sm_90: 7 of 8 plans are as timed"),
        (json.dumps(some), ["-q"], 0, ""),
        (json.dumps(some), ["--require-tuned"], 1, "error[E408]: cuda:sm_90: no file of --tuning-db has a choice for " + key),
        (json.dumps(version), [], 0, "note: cuda:sm_90: no file of --tuning-db is of sm_90 and cuDNN 9.19.0"),
    ]
    for i, (text, flags, wanted, says) in enumerate(cases):
        (folder / "x.json").write_text(text)
        status, _, errors = compiler.run("--emit=ir", "--tuning-db=x.json", *flags)
        expect(status == wanted and says in errors and bool(says) == bool(errors), f"case {i}: status {status}", errors)
    (folder / "x.json").write_text(json.dumps(version))
    _, text, errors = compiler.plans("--tuning-db=x.json,a.json", "--require-tuned")
    text, alone = (re.sub(r"manifest_size = \d+|.*inputs.*\n", "", t) for t in (text, tuned_text))  # but for the names of the files
    expect(not errors and text == alone, "two files", errors)
    expect(compiler.run("--emit=ir", "--require-tuned")[2].count("E408") == 8, "--require-tuned alone")
    expect(compiler.run("--emit=ir", "--tuning-db=no.json")[0] == 1, "no such file")
    status, _, errors = compiler.run("--emit=ir", "--target=cpu", "--tuning-db=a.json", "--print-traffic")
    expect(status == 2 and "--tuning-db is for GPUs" in errors, "for the CPU", errors)


def failing(program, folder):
    """Failures during --tune: the program prints one line, and the file is unchanged."""
    cases = [  # device, flags, environment, exit status, message
        ("cpu", [], {}, 2, "--tune: part cpu has nothing to choose among"),
        ("cuda", [], {"FAKE_CUDNN_VERSION": "92000"}, 3, "plans are for cuDNN 9.19.0, here is 9.20.0"),
        ("cuda", [], {"FAKE_CUDA_CAPABILITY": "91"}, 3, "compile with --target=cuda:sm_91 to tune it"),
        ("cuda", [], {"FAKE_CUDA_FAIL": "cudaGraphLaunch:9=700"}, 3, "the GPU failed: cudaGraphLaunch"),
        ("cuda", [], {"FAKE_CUDA_FAIL": "cudaMalloc:2=2"}, 3, "the GPU failed: cudaMalloc"),
        ("cuda", ["--tune=no/such/folder"], {}, 3, "no/such"),
    ]
    (folder / "c.json").write_text("old")
    for device, flags, environment, wanted, says in cases:
        status, text = program.run(device, "--tune=c.json", *flags, **environment)
        expect(status == wanted and says in text and text.count("error:") == 1, f"{says}: status {status}", text)
    for fail, says in (("cudnnBackendExecute:1", "CUDNN_STATUS_INTERNAL_ERROR"), ("cudnnBackendExecute:5", "captured: CUDNN_STATUS_INTERNAL_ERROR"),
                       ("cudaStreamEndCapture:1=901", "captured: ")):
        status, text = program.run("cuda", "--tune=d.json", FAKE_CUDA_FAIL=fail)
        expect(status == 0 and f"11 of 12 candidates ({says}" in text, f"a candidate that does not run: {fail}", text)
        expect(sorted(len(list_) for list_ in read(folder, "d.json").values())[0] == 11, "it is left out")
    status, text = program.run("cuda", "--tune=d.json", FAKE_CUDNN_WORKSPACE=str(3 << 30), FAKE_CUDA_FAIL="cudaMalloc:2=2")
    expect(status == 3, "workspaces larger than the GPU", text)


def killed(program, folder):
    running = program.start("cuda", "--tune=c.json")
    line = running.stdout.readline()
    while " candidates" not in line and line:
        line = running.stdout.readline()
    running.kill()
    running.communicate()
    expect(running.returncode == -9, "it was killed", str(running.returncode))
    expect((folder / "c.json").read_text() == "old" and not list(folder.glob("c.json?*")), "half a file")


def main(model, *tools):
    with tempfile.TemporaryDirectory() as scratch:
        made = Tools(scratch, *tools)
        compiler = Compiler(made, os.path.abspath(model))
        program = compiler.program("plain", cpu=True)
        key, fast, tuned_text = tunes(compiler, program, made.scratch)
        runs(compiler, program, key, fast)
        damaged(compiler, made.scratch, key, tuned_text)
        failing(program, made.scratch)
        killed(program, made.scratch)
    print(f"{len(wrong)} wrong")
    return bool(wrong)


sys.exit(main(*sys.argv[1:]))
