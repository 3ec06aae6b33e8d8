#!/usr/bin/env python3
"""Tests the manual pages, and the completions of ampcc and ampcc-tf: manual.py FOLDER AMPCC AMPCC_TF OTHER...

Every option is in each of them. mandoc finds no fault in the pages; bash, zsh and fish complete options, their values, warnings and
files. A shell that is not there is named and skipped."""
import os
import pathlib
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time

FOLDER = os.path.abspath(sys.argv[1])
PROGRAMS = {os.path.basename(path): os.path.abspath(path) for path in sys.argv[2:]}
WITH_COMPLETIONS = ("ampcc", "ampcc-tf")
# What is typed, and some of what it may become.
CASES = [("ampcc --prec", ["--precision-file="]), ("ampcc --dtype=", ["fp32", "fp16", "bf16"]), ("ampcc --dtype=b", ["bf16"]),
         ("ampcc --diagnostics-f", ["--diagnostics-format=", "--diagnostics-file="]), ("ampcc --explain=E11", ["E110", "E112"]),
         ("ampcc --target=cp", ["cpu"]), ("ampcc -Wno-error=loss", ["-Wno-error=loss-scale"]), ("ampcc --batch-s", ["--batch-size="]),
         ("ampcc -M", ["-MD", "-MF"]), ("ampcc mod", ["model.pb"]), ("ampcc --tuning-db=mod", ["model.pb"]),
         ("ampcc-tf --amp-mo", ["--amp-mode="]), ("ampcc-tf --dtype=f", ["fp16"])]
failed = []


def expect(what, condition, *shown):
    if not condition:
        failed.append(what)
        print("FAILED: %s" % what, *shown)


def have(tool):
    if not shutil.which(tool):
        print("there is no", tool)
    return shutil.which(tool)


def contents():
    for name, program in PROGRAMS.items():
        text = subprocess.run([program, "--help"], capture_output=True, text=True).stdout
        flags = re.findall(r"^  (?:-\w,? +|    )?(--?[A-Za-z][\w-]*)", text, re.M)
        expect("options of " + name, len(flags) > (20 if name in WITH_COMPLETIONS else 4), flags)
        completions = (name + ".bash", "_" + name, name + ".fish") if name in WITH_COMPLETIONS else ()
        for file in (name + ".1", *completions):
            written = pathlib.Path(FOLDER, file).read_text().replace("\\-", "-")
            for flag in flags:
                word = flag.lstrip("-") if file.endswith(".fish") else flag[1:]
                expect("%s is in %s" % (flag, file), re.search(r"(^|[\s'\"|(,*-])%s($|[\s'\"=|),[])" % re.escape(word), written) or
                       (flag == "--warn" and file == "_" + name))
            expect(file + " names no folder of this machine", FOLDER not in written and os.path.dirname(program) not in written)


def pages():
    if not have("mandoc"):
        return
    for name in PROGRAMS:
        page = os.path.join(FOLDER, name + ".1")
        faults = subprocess.run(["mandoc", "-Tlint", "-W", "style", page], capture_output=True, text=True).stdout
        faults = [line for line in faults.splitlines() if "referenced manual not found" not in line]  # until it is installed
        expect("mandoc -Tlint " + name, not faults, *faults[:5])
        shown = re.sub(".\b", "", subprocess.run(["mandoc", "-Tascii", page], capture_output=True, text=True).stdout)
        expect("the page of %s can be read" % name, "OPTIONS" in shown and "SEE ALSO" in shown and len(shown.splitlines()) > 30 and
               ("EXIT STATUS" in shown) == (name not in ("ampcc-zoo", "ampcc-pack")), shown)


def in_bash():
    script = """source "$1/$2.bash"; COMP_WORDBREAKS=$' \\t\\n"\\'><=;|&(:'
IFS=' ' read -ra COMP_WORDS <<<"${3//=/ = }"; [[ $3 == *= ]] && COMP_WORDS[${#COMP_WORDS[@]}-1]='='
COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); "_${2//-/_}"; printf '%s\\n' "${COMPREPLY[@]}" """
    for typed, wanted in CASES:
        if typed.startswith("ampcc -W"):
            continue  # bash splits -Wno-error=NAME, below
        got = subprocess.run(["bash", "-c", script, "bash", FOLDER, typed.split()[0], typed], capture_output=True, text=True)
        expect("bash: " + typed, set(wanted) <= set(got.stdout.split()) and not got.stderr, got)
        expect("bash: %s: nothing else" % typed, all(w.startswith(re.split("[ =]", typed)[-1]) for w in got.stdout.split()), got.stdout)
    got = subprocess.run(["bash", "-c", script, "bash", FOLDER, "ampcc", "ampcc -Wno-loss"], capture_output=True, text=True)
    expect("bash: warnings", got.stdout.split() == ["-Wno-loss-scale"], got)


def in_fish():
    if not have("fish"):
        return
    for typed, wanted in CASES:
        program = typed.split()[0]
        got = subprocess.run(["fish", "--no-config", "-c", "source $argv[1]; complete -C $argv[2]", os.path.join(FOLDER, program + ".fish"), typed],
                             capture_output=True, text=True, env={**os.environ, "HOME": os.getcwd()})
        words = [line.split("\t")[0] for line in got.stdout.splitlines()]
        said = {w.split("=", 1)[1] if "=" in typed and "=" in w and not w.startswith("-W") else w.rstrip("=") for w in words}
        expect("fish: " + typed, {w.rstrip("=") for w in wanted} <= said, words, got.stderr)


def in_zsh():
    """zsh completes only where somebody types."""
    if not have("zsh"):
        return
    for typed, wanted in CASES:
        pid, terminal = pty.fork()
        if pid == 0:
            os.environ.update(TERM="dumb", HOME=os.getcwd(), ZDOTDIR=os.getcwd(), PS1="> ", COLUMNS="200", LINES="100")
            os.execvp("zsh", ["zsh", "-f", "-i"])

        def answer(text, until, seconds=10):
            os.write(terminal, text.encode())
            out, end = "", time.time() + seconds
            while time.time() < end and not until(out):
                if select.select([terminal], [], [], 0.05)[0]:
                    try:
                        out += os.read(terminal, 65536).decode(errors="replace")
                    except OSError:
                        break
            return out

        setup = "fpath=(%s $fpath); autoload -Uz compinit; compinit -u -D; unsetopt beep; setopt auto_list; bindkey '^I' complete-word; echo rea''dy\n" % FOLDER
        expect("zsh starts", "ready" in answer(setup, lambda out: "ready" in out))
        stems = [w.rstrip("=") for w in wanted]
        out = answer(typed + "\t", lambda out: all(w in re.sub(r"\s", "", out.split(typed, 1)[-1] if len(wanted) > 1 else out) for w in stems), 6)
        expect("zsh: " + typed, all(w in out for w in stems), repr(out))
        os.write(terminal, b"\x03exit\n")
        os.close(terminal)
        os.waitpid(pid, 0)


def main():
    contents()
    pages()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        pathlib.Path("model.pb").write_text("")
        in_bash()
        in_fish()
        in_zsh()
        os.chdir("/")
    print("%d failed" % len(failed))
    return 1 if failed else 0


sys.exit(main())
