#!/usr/bin/env python3
"""Tests the objects that ampcc comes with, which the build makes: shipped.py AMPCC RESOURCES COMPILE_KERNELS HEADERS

Every program for the usual CPUs takes its kernels from there, and is the same, byte for byte, as without them; what is damaged or of
another compiler is compiled anew. They are the same wherever they are made, and made again only if something has changed. Skipped (77)
where the build has made none, for lack of `cc`."""
import os, pathlib, re, shutil, subprocess, sys, tempfile

from caches import AMPCC, RESOURCES, check, failed, model_with_product

MAKE, HEADERS = map(os.path.abspath, sys.argv[3:5])
SHIPPED = pathlib.Path(RESOURCES, "kernels")
BOTH = {"amp_v3_kernels", "amp_v4_kernels"}


def command(*flags, cache="", resources="resources", target="cpu"):
    model, out, resources, cache = (p and os.path.abspath(p) for p in ("small.amp", "out", resources, cache))
    return [AMPCC, model, "--target=" + target, "--resource-dir=" + resources, "--cache-dir=" + cache, "-v", "--time-report", "-o", out, *flags]


def kernels_compiled(said):
    return re.findall(r" -c .*-DAMPCC_KERNELS=(\w+)", said)


def make(*flags, cwd=".", **more):
    """Returns the program, how many of its kernels were compiled, and what -v says of objects: found, missed and the rest of the line."""
    done = subprocess.run(command(*flags, **more), capture_output=True, text=True, cwd=cwd)
    if done.returncode:
        sys.exit(done.stderr)
    said = re.findall(r"^ampcc: cache: object: (\d+) found, (\d+) missed(.*)$", done.stderr, re.M) or [("0", "0", "")]
    return pathlib.Path("out").read_bytes(), len(kernels_compiled(done.stderr)), said[0]


def begun(*flags, **more):
    """The kernels that it begins to compile. It is stopped then, as that takes most of a compile's time: by SIGTERM, as it ends its
    compilers itself, which are in process groups of their own."""
    ampcc = subprocess.Popen(command(*flags, **more), stderr=subprocess.PIPE, text=True)
    kernels = set()
    for line in ampcc.stderr:  # the linker's is the last command
        kernels |= set(kernels_compiled(line))
        if kernels == BOTH or "libamprt.a" in line:
            break
    ampcc.terminate()
    ampcc.communicate()
    return kernels


def fresh(*flags, **more):
    """With an empty cache."""
    shutil.rmtree("cache", ignore_errors=True)
    return make(*flags, cache="cache", **more)


def state(folder):
    return sorted((str(p), p.stat().st_mtime_ns, p.read_bytes()) for p in pathlib.Path(folder).rglob("*") if p.is_file())


def compiled_here(*flags, **more):
    """As it is made without them, with a cache of its own, which compiles each kernel once."""
    return make(*flags, cache="compiled", resources="bare", **more)[0]


def programs():
    for flags, n in ((["--dtype=bf16"], 3), (["--dtype=fp32"], 2), (["--winograd=off"], 2), (["--emit=obj"], 2)):
        program, compiled, (found, missed, rest) = fresh(*flags)
        check("%s: no kernels are compiled" % flags[0], (compiled, int(found), rest) == (0, n, ", %d that came with ampcc" % n), compiled, found, rest)
        check("and not copied", len(list(pathlib.Path("cache").iterdir())) == int(missed))
        # Those for bf16 and AArch64 are made by the same code; to compile them here as well would take half a minute.
        check("the same program as without", n > 2 or compiled_here(*flags) == program)
    for cwd in "/tmp", "/usr", "/":  # which are parts of what the compiler says of itself
        check("in " + cwd, fresh(cwd=cwd)[1:] == (0, ("2", "3", ", 2 that came with ampcc")))
    check("oneDNN's has none", fresh("--cpu-library=onednn")[1:] == (0, ("0", "3", "")))
    if pathlib.Path("resources/kernels/armv8-a.amp_only_kernels").exists():
        _, compiled, (found, _, rest) = fresh(target="cpu:aarch64")
        check("AArch64", (compiled, found, rest) == (0, "1", ", 1 that came with ampcc"), compiled, rest)
        check("a CPU of the same instructions", fresh("--cpu=neoverse-v2", target="cpu:aarch64")[1] == 0)


def places():
    """The own cache comes first, then the shared one; what came with ampcc is never changed."""
    before = state("resources/kernels")
    plain = make(cache="compiled")
    check("the own cache comes first", plain[1:] == (0, ("5", "0", "")))
    os.rename("compiled", "theirs")
    check("then the shared one", make("--cache-shared=theirs", cache="cache")[2] == ("5", "0", ", 5 of theirs"))
    for path in pathlib.Path("theirs").iterdir():
        os.truncate(path, 200)
    check("then these", fresh("--cache-shared=theirs")[2] == ("2", "0", ", 2 that came with ampcc, 3 damaged"))
    shutil.rmtree("cache")
    check("--cache-mode=read", make("--cache-mode=read", cache="cache")[1:] == (0, ("2", "3", ", 2 that came with ampcc")) and not os.path.exists("cache"))
    check("--cache-mode=off takes none", begun("--cache-mode=off", cache="cache") == BOTH)
    check("a cache that cannot be made", make(cache="/proc/none")[1] == 0)
    stats = [subprocess.run([AMPCC, "--cache-stats", "--cache-dir=cache", "--resource-dir=" + folder], capture_output=True, text=True).stdout
             for folder in ("resources", "bare")]
    files = list(pathlib.Path("resources/kernels").iterdir())
    line = "beside it, %d of kind object that came with ampcc, %d bytes: resources/kernels\n" % (len(files), sum(p.stat().st_size for p in files))
    check("--cache-stats counts them", stats[0] == stats[1] + line, stats)
    check("none has changed", state("resources/kernels") == before)


def misses():
    plain = make(cache="/proc/none")[0]

    def damage(name, at):
        path = pathlib.Path("resources/kernels", name)
        content = bytearray(path.read_bytes())
        content[at] ^= 16
        path.write_bytes(content)
    damage("x86-64.amp_v3_kernels", 5000)
    before = state("resources/kernels")
    program, compiled, (found, missed, rest) = fresh()
    check("damaged: compiled anew", (program, compiled, found, missed, rest) == (plain, 1, "1", "3", ", 1 that came with ampcc, 1 damaged"),
          compiled, found, missed, rest)
    check("and then in the own cache", make(cache="cache") == (plain, 0, ("5", "0", ", 1 that came with ampcc")) and state("resources/kernels") == before)
    damage("x86-64.amp_v4_kernels", 50)
    check("a damaged key, too", begun(cache="") == BOTH)
    script = '#!/bin/sh\n[ "$1" = -c ] && case "$*" in *AMPCC_KERNELS*) exit 1 ;; esac\nexec %s "$@"\n' % shutil.which("cc")
    pathlib.Path("compiler").write_text(script)
    os.chmod("compiler", 0o755)
    done = subprocess.run([AMPCC, "small.amp", "--target=cpu", "--resource-dir=resources", "--cache-dir=cache", "--cc=./compiler", "-o", "out"],
                          capture_output=True, text=True)
    check("another compiler has to compile them", done.returncode == 3 and "`./compiler` failed" in done.stderr, done)


def made(unit, out, target="cpu", **env):
    done = subprocess.run([MAKE, target, unit, HEADERS, out], capture_output=True, text=True, env=dict(os.environ, **env))
    return done.returncode, done.stderr, pathlib.Path(out).read_bytes()


def build():
    """What the build does, again elsewhere."""
    name = "x86-64.amp_v3_kernels"
    right = (SHIPPED / name).read_bytes()
    for path in SHIPPED.glob("*-*.amp_*"):
        if not path.is_dir():
            check("no folder is named in " + path.name, b"/" + os.fsencode(RESOURCES).split(b"/")[1] + b"/" not in path.read_bytes() and b"/tmp" not in path.read_bytes())
    os.makedirs("else/where")
    os.makedirs("some where")
    os.chdir("else/where")
    status, said, entry = made("amp_v3_kernels", "entry", TMPDIR=os.path.abspath("../../some where"), CC="/bin/false", LIBRARY_PATH="/usr/lib",
                               HOME="/", C_INCLUDE_PATH=os.path.abspath("."), SOURCE_DATE_EPOCH="1")
    check("the same in another folder and environment", (status, said) == (0, "") and entry == right, status, said)
    # A compiler that would fail: where nothing has changed it is only asked for the key.
    os.mkdir("bin")
    pathlib.Path("bin/cc").write_text('#!/bin/sh\n[ "$1" = -E ] && exec %s "$@"\nexit 1\n' % shutil.which("cc"))
    os.chmod("bin/cc", 0o755)
    path = {"PATH": os.path.abspath("bin") + ":" + os.environ["PATH"]}
    status, said, entry = made("amp_v3_kernels", "entry", **path)
    check("a compiler that fails: no entry, a line, and no failure", status == 0 and entry == b"" and said.count("\n") == 1 and "`cc` does not compile it" in said, said)
    # One that makes other objects, and sooner.
    pathlib.Path("bin/cc").write_text('#!/bin/sh\n[ "$1" = -E ] || echo compiled >>%s\nexec %s "$@" -O0\n' % (os.path.abspath("log"), shutil.which("cc")))
    first = made("amp_v3_kernels", "entry", **path)[2]
    second = made("amp_v3_kernels", "entry", **path)[2]
    check("what is there already is not compiled again", first == second != b"" and pathlib.Path("log").read_text() == "compiled\n")
    pathlib.Path("entry").write_bytes(right)
    check("what another compiler made is replaced", made("amp_v3_kernels", "entry", **path)[2] == first != right)
    pathlib.Path("entry").write_bytes(first[:-1] + b"?")
    check("and what is damaged", made("amp_v3_kernels", "entry", **path)[2] == first)
    check("without a compiler", made("amp_v3_kernels", "none", PATH="")[0::2] == (0, b""))


if not any(SHIPPED.glob("x86-64.*")):
    print("skipped: this build has made none")
    sys.exit(77)
with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    os.environ.pop("CC", None)
    pathlib.Path("small.amp").write_text(model_with_product("relu"))
    for name in ("resources", "bare"):
        shutil.copytree(RESOURCES, name, ignore=lambda at, names: [n for n in names if at == RESOURCES and not n.endswith((".a", ".h")) and n != "aarch64"])
    os.mkdir("resources/kernels")
    for path in SHIPPED.glob("*.amp_*_kernels"):
        shutil.copy(path, "resources/kernels")
    for case in (programs, places, misses, build):
        case()
sys.exit(1 if failed else 0)
