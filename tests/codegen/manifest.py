#!/usr/bin/env python3
"""Tests what a program says of its making: manifest.py AMPCC ZOO CASE FOLDER...

content   --about=json has every file, flag and part, for the CPU and, in an ampcc with CUDA, for a GPU
graph     --dump-ir is a graph that compiles to the same program again
paths     no output names a FOLDER, the folder it is made in, or the home folder"""
import hashlib, json, os, pathlib, re, subprocess, sys, tempfile

AMPCC, ZOO = map(os.path.abspath, sys.argv[1:3])
RULES = "layer conv1 f32\n"


def run(*args, status=0):
    done = subprocess.run([str(a) for a in args], capture_output=True, timeout=300)
    if done.returncode != status:
        sys.exit(f"{args}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def about(program):
    return json.loads(run(program, "--about=json"))


def has_cuda():
    return not subprocess.run([AMPCC, "model.pb", "--target=cuda:h200", "--emit=cuda", "-q", "-o", "/dev/null"], capture_output=True).returncode


def check_part(part, program, fields):
    for field in ("target", "state_bytes", "arena_bytes", "passes", "kernel_text_sha256", "graphs", *fields):
        assert part[field] or part[field] == [], (part["target"], field)
    assert part["passes"][0] == "simplify" and part["passes"][-1] == "check-plan" and "amp" in part["passes"]
    train = part["graphs"][0]
    named = re.findall(r"^graph +@(\w+), (\d+) kernels$", run(program, "--about", "--device=" + part["target"]).decode(), re.M)
    assert [(g["name"], str(len(g["kernels"]))) for g in part["graphs"]] == named and named[0][0] == "train", named
    assert train["types"]["conv2d"] == {"f32": 1, "f16": 2}, train["types"]
    assert train["casts"]["own"] + train["casts"]["inside_kernels"] > 0
    assert ["conv1"] in [k[1:] for k in train["kernels"]]
    plan = run(program, "--device=" + part["target"], "--print-memory-plan").decode()
    for graph in part["graphs"]:
        assert f"@{graph['name']}: peak {graph['arena_bytes']} bytes;" in plan, plan


def content():
    pathlib.Path("rules.txt").write_text(RULES)
    flags = ["--dtype=fp16", "--precision-file=" + os.path.abspath("rules.txt"), "--batch-size=4", "-Wno-all"]
    targets = "cpu" + (",cuda:h200" if has_cuda() else "")
    run(AMPCC, os.path.abspath("model.pb"), "--target=" + targets, *flags, "-q", "-o", "train")
    told = about("./train")
    assert told["model"] == "lenet5" and told["dtype"] == "fp16" and told["ampcc"] in run("./train", "--version").decode()
    assert told["flags"] == ["--target=" + targets, "--dtype=fp16", "--precision-file=FILE", "--batch-size=4"], told["flags"]
    want = [{"what": what, "name": name, "bytes": os.path.getsize(name), "sha256": hashlib.sha256(pathlib.Path(name).read_bytes()).hexdigest()}
            for what, name in (("precision file", "rules.txt"), ("model", "model.pb"))]
    assert told["inputs"] == want, told["inputs"]
    assert told["fingerprint"].encode() in run("./train", "--about")
    assert told["recipe"]["batch_size"] == 4 and told["recipe"]["name"] == "lenet5"
    version = run("cc", "-dumpfullversion", "-dumpversion").decode().strip()
    assert version in told["cc"] and told["libraries"]["zlib"] and told["libc"].startswith("glibc "), told
    assert [p["target"] for p in told["parts"]] == (["cuda:sm_90", "cpu"] if "cuda" in targets else ["cpu"])
    for part in told["parts"]:
        check_part(part, "./train", ["toolkit", "plans"] if "cuda" in part["target"] else ["library", "cpu"])
    if "cuda" in targets:
        gpu = told["parts"][0]
        assert gpu["toolkit"]["cudnn"].startswith("9.") and gpu["toolkit"]["nvrtc"].startswith("13."), gpu["toolkit"]
        assert gpu["plans"] and all(p["key"] and p["engine"] >= 0 for p in gpu["plans"])
    assert run("./train", "--manifest") == run("./train", "--about=json") != run("./train", "--about")
    pathlib.Path("rules.txt").write_text(RULES + "# another\n")
    run(AMPCC, "model.pb", "--target=cpu", *flags, "-q", "-o", "other")
    assert about("./other")["inputs"][0] != want[0] and about("./other")["inputs"][1] == want[1]


def bare(path, *flags):
    """The C text of a program without what it says of the files it was made from."""
    text = run(AMPCC, path, *flags, "--emit=c").decode()
    begin, end = text.index('\\"inputs\\"'), text.index('\\"recipe\\"')
    size = text.index("enum { manifest_size = ")
    return text[:size] + text[text.index("\n", size):begin] + text[end:]


def graph():
    """An importer makes the first graph of a .pb; the others are of the text, whose hash stays the same."""
    for flags in ["--dtype=fp16", "--batch-size=4"], ["--dtype=bf16", "--optimizer=adam", "--accumulate=2", "--ema-decay=0.99"]:
        run(AMPCC, "model.pb", "--target=cpu", *flags, "-q", "-o", "train")
        os.makedirs("a", exist_ok=True)
        os.makedirs("b", exist_ok=True)
        text = run("./train", "--dump-ir")
        assert text == run(AMPCC, "model.pb", "--passes=", *flags)
        pathlib.Path("a/model.amp").write_bytes(text)
        assert bare("a/model.amp", *flags) == bare("model.pb", *flags)
        for source, program in ("a/model.amp", "again"), ("b/model.amp", "twice"):
            run(AMPCC, source, "--target=cpu", *flags, "-q", "-o", program)
            pathlib.Path("b/model.amp").write_bytes(run("./" + program, "--dump-ir"))
        assert pathlib.Path("again").read_bytes() == pathlib.Path("twice").read_bytes()
        first, second = about("./train"), about("./again")
        assert first.pop("inputs") != second.pop("inputs") and first == second


def paths():
    folders = [f for f in (*sys.argv[4:], os.getcwd(), os.path.expanduser("~")) if len(f) > 1]
    forms = {form: ["--target=cpu", "--emit=" + form] for form in ("ir", "json", "dot", "c", "obj", "exe")}
    forms["static"] = ["--target=cpu", "--static"]
    if has_cuda():
        forms.update({form + " for a GPU": ["--target=cuda:h200", "--emit=" + form] for form in ("c", "cuda", "ptx", "cubin", "exe")})
    for form, flags in forms.items():
        done = subprocess.run([AMPCC, os.path.abspath("model.pb"), *flags, "-q", "-o", os.path.abspath("out")], capture_output=True)
        content = pathlib.Path("out").read_bytes() if done.returncode == 0 else b""
        if b"__asan_" in content or b"__ubsan_" in content or (form == "static" and b"sanitizers" in done.stderr):
            continue  # sanitizers name source files
        assert done.returncode == 0, (form, done.stderr)
        assert not [f for f in folders if os.fsencode(f) in content], form
        for report in (["--about"], ["--about=json"], ["--dump-ir"], ["--print-precision"], ["--help"]) if form == "exe" else ():
            told = run("./out", *report)
            assert not [f for f in folders if os.fsencode(f) in told], report


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    run(ZOO, "lenet5", "-o", "model.pb")
    globals()[sys.argv[3]]()
