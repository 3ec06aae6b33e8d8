#!/usr/bin/env python3
"""Tests that whole programs come from the cache, and only for the same input: whole.py AMPCC RESOURCES

Whatever a program is made of is changed once, and it must be made again: model, flags, files that options name, variables, headers,
libraries, the folders that these are searched in, the compiler, ampcc. Where anything but a program is asked for, or anything was said
about the model, nothing is kept. --cache-stats, --cache-verify and --cache-mode. Skipped (77) with sanitizers."""
import os, pathlib, re, shutil, subprocess, sys, tempfile, time

import caches
from caches import AMPCC, RESOURCES, check, failed, skip_if_sanitized

MODEL = caches.small_model(2)


def command(*flags, **more):
    return caches.command(*flags, resources="resources", **more)


def make(*flags, env={}, stdin=None, **more):
    """Returns whether the whole program came from the cache, and what was said."""
    done = subprocess.run(command(*flags, **more), capture_output=True, env=dict(os.environ, **env), input=stdin)
    said = done.stderr.decode()
    if done.returncode:
        sys.exit(said)
    return "from the cache: the whole program" in said, said


def program(name="out"):
    return pathlib.Path(name).read_bytes()


def again(what, *flags, **more):
    """Something has changed: the program is made again, and then kept; it is what a compile with a report gives, which makes it."""
    whole, _ = make(*flags, **more)
    made = program()
    kept, _ = make(*flags, **more)
    same = program() == made
    make("--time-report", *flags, **more)
    check(what, not whole and kept and same and program() == made, whole, kept, same)


def never(what, *flags, **more):
    check(what, not make(*flags, **more)[0] and not make(*flags, **more)[0])


def hits():
    whole, said = make()
    first = program()
    check("the first time it is made", not whole and " -c " in said)
    os.umask(0o027)
    whole, said = make(out="two")
    os.umask(0o022)
    check("the second time it is there", whole and " -c " not in said and " -E " not in said and program("two") == first, said)
    check("with its mode", os.stat("two").st_mode & 0o777 == 0o750, oct(os.stat("two").st_mode))
    lines = [re.sub(r"\d+\.\d s", "", re.sub("out|two|ampcc: cache: .*\n", "", text)).splitlines()[-2:] for text in (make("--time-report")[1], said)]
    check("the same is said of it", lines[0] == lines[1] and "variables" in lines[0][1], lines)
    done = subprocess.run(command("-q")[:-1] + ["-q"], capture_output=True, text=True)
    check("and nothing with -q", "variables" not in done.stderr, done.stderr)
    subprocess.run(["./two", "--about"], check=True, stdout=subprocess.DEVNULL)
    make("--figures=one.json")
    check("with its figures", make("--figures=two.json", out="two")[0] and program("one.json") == program("two.json") and program("two") == first)
    os.mkdir("elsewhere")
    shutil.copy("small.amp", "elsewhere/small.amp")
    check("the same model elsewhere", make(model="elsewhere/small.amp")[0] and program() == first)
    os.utime("resources/amprt.h")
    check("a header of the same content and another time", make()[0])
    check("and again", make()[0])
    for at in (0, 60, 200, -1):
        for path in pathlib.Path("cache").iterdir():
            content = bytearray(path.read_bytes())
            content[at] ^= 4
            path.write_bytes(content)
        check("a bit of every entry flipped at %d" % at, not make()[0] and program() == first and make()[0] and program() == first)
    os.chmod("cache", 0o555)
    check("a cache that can only be read", make()[0])
    os.chmod("cache", 0o755)
    os.remove("out")
    os.symlink("two", "out")
    done = subprocess.run(command(), capture_output=True, text=True)
    check("a link in the place of the program is refused", done.returncode == 3 and program("two") == first, done.returncode)
    os.remove("out")


def changes():
    model = pathlib.Path("small.amp")
    model.write_text(MODEL.replace("0", "0 ", 1))
    again("another model")
    model.write_text(MODEL)
    check("the first one again", make()[0])
    shutil.copy("small.amp", "other.amp")
    again("a model of another name", model="other.amp")
    again("a flag", "--fuse-level=1")
    again("a field of the recipe", "--train-epochs=5")
    again("another value", "--train-epochs=6")
    rules = pathlib.Path("rules")
    for line in ("layer bias f32", "layer bias low"):
        rules.write_text(line + "\n")
        again("a precision file: " + line, "--dtype=bf16", "--precision-file=rules", "-Wno-all")
    for value in ("1", "2"):
        again("SOURCE_DATE_EPOCH=" + value, env={"SOURCE_DATE_EPOCH": value})
    os.makedirs("include/bits")
    again("a folder for headers", env={"C_INCLUDE_PATH": os.path.abspath("include")})
    pathlib.Path("include/math.h").write_text("#include_next <math.h>\n")
    again("a header appears in it", env={"C_INCLUDE_PATH": os.path.abspath("include")})
    os.mkdir("lib")
    env = {"LIBRARY_PATH": os.path.abspath("lib")}
    again("a folder for libraries", env=env)
    libm = subprocess.run(["cc", "-print-file-name=libm.so"], capture_output=True, text=True).stdout.strip()
    shutil.copy(libm, "lib/libm.so")
    again("a library appears in it", env=env)
    with open("lib/libm.so", "a") as out:
        out.write("/* a comment */\n")
    again("and changes", env=env)


def tools():
    header = pathlib.Path("resources/amprt.h")
    with header.open("a") as out:
        out.write("/* a comment */\n")
    again("a header of the runtime")
    pathlib.Path("x.c").write_text("int amprt_nothing;\n")
    subprocess.run("cc -c x.c && ar q resources/libamprt.a x.o", shell=True, check=True, stderr=subprocess.DEVNULL)
    again("the runtime")
    pathlib.Path("resources/new.h").write_text("")
    again("a file appears beside it")
    shutil.copytree("resources", "moved")
    os.rename("resources/libprotobuf-c.a", "resources/x")
    check("a file that is gone", subprocess.run(command(), capture_output=True).returncode == 3)
    os.rename("resources/x", "resources/libprotobuf-c.a")
    again("the runtime in another folder", "--resource-dir=moved")
    shutil.copy(AMPCC, "ampcc")
    again("ampcc elsewhere", ampcc="./ampcc")
    with open("ampcc", "ab") as out:
        out.write(b"1")
    again("another ampcc", ampcc="./ampcc")
    os.mkdir("bin")
    shutil.copy(os.path.realpath(shutil.which("as")), "bin/as")
    env = {"PATH": os.path.abspath("bin") + ":" + os.environ["PATH"]}
    again("an assembler comes first in PATH", env=env)
    with open("bin/as", "ab") as out:
        out.write(b"1")
    again("and changes", env=env)
    real = shutil.which("cc")
    pathlib.Path("script").write_text('#!/bin/sh\nexec %s "$@"\n' % real)
    os.chmod("script", 0o755)
    never("a script as compiler", "--cc=./script")
    never("a compiler with arguments", env={"CC": real + " -pipe"})


def more_than_a_program():
    never("--cpu=native", "--cpu=native")
    never("a report", "--print-memory-plan")
    never("kept files", "--save-temps=kept")
    never("--skip", "--skip=cse")
    never("standard input", model="-", stdin=MODEL.encode())
    os.mkfifo("pipe.amp")
    writer = subprocess.Popen("cat small.amp > pipe.amp", shell=True)
    check("a pipe", not make(model="pipe.amp")[0] and writer.wait() == 0)
    never("no cache", cache="")
    pathlib.Path("rules").write_text("op reduce_mean low\n")
    low = ["--dtype=fp16", "--precision-file=rules", "-Wno-precision-casts"]
    first, second = (make(*low) for _ in range(2))
    check("warnings come again", not second[0] and all(said.count("[-Wprecision-override]") == 1 for _, said in (first, second)), first, second)
    never("also where they are off", *low, "-q")
    make(*low, "-Wno-precision-override")
    check("unless by their name", make(*low, "-Wno-precision-override")[0] and not make(*low)[0])


def ask(*flags):
    done = subprocess.run([AMPCC, "--cache-dir=cache", *flags], capture_output=True, text=True)
    return done.returncode, done.stdout


def commands():
    """--cache-stats, --cache-verify, --cache-mode, and what -v says."""
    ask("--cache-verify")  # what hits() has damaged
    files = list(pathlib.Path("cache").iterdir())
    status, said = ask("--cache-stats")
    rows = dict(re.findall(r"^(\w[\w ]*?) +(\d+ +\d+)$", said, re.M))
    total = "%d %d" % (len(files), sum(p.stat().st_size for p in files))
    check("--cache-stats", status == 0 and " ".join(rows["all"].split()) == total and {"program", "file list", "object"} < set(rows), said)
    check("--cache-verify", ask("--cache-verify") == (0, "%d entries, 0 damaged\n" % len(files)))
    content = bytearray(files[0].read_bytes())
    content[len(content) // 2] ^= 16
    files[0].write_bytes(content)
    os.rename(files[1], files[1].with_name("0" * 64))
    status, said = ask("--cache-verify", "--cache-mode=read")
    check("finds a flipped bit and a wrong name", status == 1 and said.count("is damaged\n") == 2 and files[0].name in said and "0" * 64 in said, said)
    check("and removes both", ask("--cache-verify")[0] == 1 and not files[0].exists() and ask("--cache-verify") == (0, "%d entries, 0 damaged\n" % (len(files) - 2)))
    make()
    check("-v says what was found", "cache: program: 1 found, 0 missed\n" in make()[1])
    before = sorted((p.name, p.stat().st_mtime_ns) for p in pathlib.Path("cache").iterdir())
    check("--cache-mode=read finds a program", make("--cache-mode=read")[0])
    never("and keeps none", "--train-epochs=7", "--cache-mode=read")
    check("nothing has changed", before == sorted((p.name, p.stat().st_mtime_ns) for p in pathlib.Path("cache").iterdir()))
    never("--cache-mode=off", "--cache-mode=off")
    check("another word", subprocess.run(command("--cache-mode=on"), capture_output=True).returncode == 2)


def entries(folder):
    return sorted((p.name, p.stat().st_mtime_ns, p.read_bytes()) for p in pathlib.Path(folder).iterdir())


def shared():
    """--cache-shared: what is there is used, and never changed; what is new goes into the own folder."""
    with_theirs = {"cache": "mine"}
    make(cache="theirs")
    right, theirs = program(), entries("theirs")
    os.utime("theirs", (1, 1))
    found, said = make("--cache-shared=theirs", **with_theirs)
    check("a program of the shared cache", found and program() == right and "cache: program: 1 found, 0 missed, 1 of theirs\n" in said, said)
    check("is not copied", not os.path.exists("mine"))
    found, said = make("--cache-shared=theirs", "--time-report", **with_theirs)
    check("objects of the shared cache", not found and "from the cache: " in said and program() == right and not os.path.exists("mine"), said)
    check("another program is made", not make("--cache-shared=theirs", "--train-epochs=9", **with_theirs)[0])
    check("and kept in the own one", make("--train-epochs=9", **with_theirs)[0])
    for path in pathlib.Path("mine").iterdir():
        os.truncate(path, 60)
    make(cache="mine", model="small.amp")
    for path in pathlib.Path("mine").iterdir():
        os.truncate(path, 60)
    check("where the own entry is damaged, the shared one is taken", make("--cache-shared=theirs", **with_theirs)[0] and program() == right)
    check("nothing has changed in the shared one", entries("theirs") == theirs)
    for path in pathlib.Path("theirs").iterdir():
        os.truncate(path, 60)
    theirs = entries("theirs")
    shutil.rmtree("mine")
    check("a damaged shared entry", not make("--cache-shared=theirs", **with_theirs)[0] and program() == right and entries("theirs") == theirs)
    with open("resources/amprt.h", "a") as out:
        out.write("/* newer */\n")
    shutil.rmtree("theirs")
    make(cache="theirs")
    check("where the own entry is of older files", make("--cache-shared=theirs", **with_theirs)[0])
    check("a shared folder that is not there", make("--cache-shared=none", **with_theirs)[0] is False and not os.path.exists("none"))
    check("--cache-mode=off", not make("--cache-shared=theirs", "--cache-mode=off", cache="empty")[0])
    done = subprocess.run(command("--cache-shared=theirs", cache=""), capture_output=True, text=True)
    check("without an own one", done.returncode == 2 and "--cache-shared is a folder behind that of --cache-dir" in done.stderr, done)


def changed_meanwhile():
    """A file that changes while the program is made: nobody knows which content was read."""
    shutil.rmtree("cache")
    running = subprocess.Popen(command(), stderr=subprocess.DEVNULL)
    time.sleep(0.1)
    with open("resources/amprt.h", "a") as out:
        out.write("/* another comment */\n")
    running.wait()
    check("a header that changed meanwhile", not make()[0])
    check("and not since", make()[0])


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    os.umask(0o022)
    os.environ.pop("CC", None)
    os.mkdir("resources")
    for name in os.listdir(RESOURCES):
        if name.endswith((".a", ".h")) and not name.startswith("libcodegen"):
            shutil.copy(os.path.join(RESOURCES, name), "resources")
    pathlib.Path("small.amp").write_text(MODEL)
    make(cache="")
    skip_if_sanitized(program())
    for case in (hits, changes, tools, more_than_a_program, commands, shared, changed_meanwhile):
        case()
sys.exit(1 if failed else 0)
