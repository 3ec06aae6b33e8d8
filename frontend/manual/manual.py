"""Writes the manual page of a program and its completions for shells, from what the program says of itself:

    manual.py PROGRAM man|bash|zsh|fish VERSION

--help has every option, as the tables have it; --list-targets and --explain have the values of two of them."""
import re
import subprocess
import sys
import textwrap

SUMMARY = {"ampcc": "compile a model into a program that trains it",
           "ampcc-tf": "rewrite a TensorFlow graph as TensorFlow's mixed precision does",
           "ampcc-zoo": "write a model of the zoo for ampcc",
           "ampcc-diff": "show what changed between two programs or models",
           "ampcc-pack": "pack a data set for the programs that ampcc makes"}
TAKE_RESPONSE_FILES = ("ampcc", "ampcc-tf")
FILES = ("FILE", "FOLDER", "LIST", "FILE,FILE", "PREFIX", "COMMAND")
ENTRY = re.compile(r"  (?:-(?P<letter>\w),? +|    )?(?P<flag>--?[A-Za-z][\w-]*)(?P<argument>\[?=\S+| [A-Z]+(?=  ))?\s+(?P<help>.*)")


class Option:
    def __init__(self, match, values):
        argument = match["argument"] or ""
        self.letter, self.flag, self.help = match["letter"], match["flag"], match["help"]
        self.optional = argument.startswith("[")
        self.argument = argument.strip(" ").lstrip("[").lstrip("=")[:-1 if self.optional else None]
        words = self.argument.split("|") if re.fullmatch(r"[\w.-]+(\|[\w.-]+)+", self.argument) else []
        self.values = values.get(self.flag, words if any(w != w.upper() for w in words) else [])
        self.takes_files = self.argument in FILES


def ask(program, flag):
    return subprocess.run([program, flag], check=True, capture_output=True, text=True).stdout


def read(program):
    """The paragraphs of --help: texts, and (heading, entries), where an entry is an Option or (name, meaning)."""
    values = {}
    for flag, question in ("--target", "--list-targets"), ("--explain", "--explain"):
        if "  %s" % question in ask(program, "--help"):
            values[flag] = [line.split()[0] for line in ask(program, question).splitlines()]
    blocks = []
    for block in ask(program, "--help").rstrip("\n").split("\n\n"):
        heading, *lines = (block if not block.startswith("  ") else "options:\n" + block).split("\n")
        if not lines or not lines[0].startswith("  ") or heading.startswith("usage:"):
            blocks.append(" ".join(line.strip() for line in block.split("\n")) if not heading.startswith("usage:") else block)
            continue
        entries = []
        for line in lines:
            match = ENTRY.fullmatch(line)
            entries.append(Option(match, values) if match else tuple(re.split(r"\s{2,}", line.strip(), maxsplit=1)))
        blocks.append((heading, entries))
    return blocks


# ---- mdoc ----

def text(words):
    """Lines of text: each sentence begins one, as mandoc wants."""
    sentences = re.sub(r"([.?!]) (?=[A-Z])", r"\1\n", words.replace("\\", "\\e").replace("-", "\\-")).split("\n")
    lines = [line for sentence in sentences for line in textwrap.wrap(sentence, 78, break_long_words=False, break_on_hyphens=False)]
    return "\n".join("\\&" + line if line.startswith((".", "'")) else line for line in lines)


def quoted(word):
    return '"%s"' % word.replace("\\", "\\e").replace('"', '""')


def item(entry):
    if not isinstance(entry, Option):
        return ".It %s\n%s" % (quoted(entry[0]), text(entry[1]))
    flag = "Fl %s" % entry.flag[1:]
    if entry.argument and not entry.flag.startswith("--"):
        flag += " Ar " + entry.argument
    elif entry.argument:
        flag += (" Ns Op = Ns Ar %s" if entry.optional else " Ns = Ns Ar %s") % quoted(entry.argument)
    if entry.letter:
        flag = "Fl %s , %s" % (entry.letter, flag)
    return ".It %s\n%s" % (flag, text(entry.help))


def man(name, version, blocks):
    usage = [line.replace("usage:", "").split()[1:] for line in blocks[0].split("\n")]
    out = [".Dd November 23, 2026", ".Dt %s 1" % name.upper(), ".Os", ".Sh NAME", ".Nm %s" % name, ".Nd %s" % SUMMARY[name], ".Sh SYNOPSIS"]
    for words in usage:
        out += [".Nm", ".Ar " + quoted(" ".join(words))]
    out += [".Sh DESCRIPTION", text(blocks[1])]
    if name in TAKE_RESPONSE_FILES:
        out += [".Pp", "An argument", ".Ar @FILE", "stands for the words in FILE."]
    out += [".Sh OPTIONS"]
    for block in blocks[2:]:
        if isinstance(block, str):
            continue
        heading, entries = block
        title, _, rest = heading.partition(":")
        out += ([".Ss " + quoted(title)] if title != "options" else []) + ([text(rest.strip())] if rest else []) + [".Bl -tag -width Ds", *map(item, entries), ".El"]
    for block in blocks[2:]:
        if isinstance(block, str):
            title, _, rest = block.partition(": ")
            out += [".Sh " + title.upper(), text(rest)]
    others = sorted(set(SUMMARY) - {name}) if name == "ampcc" else ["ampcc"]
    out += [".Sh SEE ALSO", *(".Xr %s 1%s" % (other, "" if other == others[-1] else " ,") for other in others), ".Pp", "This page is of version %s." % version]
    return "\n".join(out) + "\n"


# ---- shells ----

def options_of(blocks):
    return [entry for block in blocks if not isinstance(block, str) for entry in block[1] if isinstance(entry, Option)]


def warnings_of(blocks):
    return [entry[0] for block in blocks if not isinstance(block, str) and block[0].startswith("warnings") for entry in block[1]] + ["all"]


def shell(words):
    return "'%s'" % words.replace("'", "'\\''")


def bash(name, blocks):
    options = options_of(blocks)
    function = "_" + name.replace("-", "_")
    flags = [o.flag + ("=" if o.argument and o.flag.startswith("--") and not o.optional else "") for o in options]
    flags += ["-" + o.letter for o in options if o.letter]
    warnings = ["-W" + form + w for w in warnings_of(blocks) for form in ("", "no-", "error=", "no-error=")] + ["-Werror"]
    cases = ["    %s) words=%s ;;" % (o.flag, shell(" ".join(o.values))) for o in options if o.values]
    files = "|".join(f for o in options if o.takes_files for f in ([o.flag] + (["-" + o.letter] if o.letter else [])))
    plain = "|".join(o.flag for o in options if o.argument and not o.values and not o.takes_files)
    return """# completions of %s for bash
%s() {
  local word=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD-1]} words=
  COMPREPLY=()
  if [[ $word == = ]]; then # --option= is two words to bash, and its value a third
    word=
  elif [[ $option == = ]]; then
    option=${COMP_WORDS[COMP_CWORD-2]}
  fi
  case $option in
%s
    %s) mapfile -t COMPREPLY < <(compgen -f -- "$word"); return ;;
    %s) return ;;
  esac
  if [[ $words ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
  elif [[ $word == -W* ]]; then
    mapfile -t COMPREPLY < <(compgen -W %s -- "$word")
  elif [[ $word == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W %s -- "$word")
    [[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null
  else
    mapfile -t COMPREPLY < <(compgen -f -- "$word")
  fi
}
complete -o filenames -F %s %s
""" % (name, function, "\n".join(cases), files, plain or "''", shell(" ".join(warnings)), shell(" ".join(flags)), function, name)


def zsh(name, blocks):
    out = ["#compdef " + name, "# completions of %s for zsh" % name, "_arguments \\"]
    for o in options_of(blocks):
        if o.flag == "--warn":
            continue
        help = "[%s]" % re.sub(r"([\\\]\[:])", r"\\\1", o.help)
        action = "(%s)" % " ".join(v.replace(":", "\\:") for v in o.values) if o.values else "_files" if o.takes_files else " "
        value = (":" if not o.optional else "::") + re.sub(r"([\\:])", r"\\\1", o.argument) + ":" + action if o.argument else ""
        dashes = o.flag.startswith("--")
        out.append("  %s \\" % shell("*" + o.flag + ("=" if o.argument and dashes and not o.optional else "=-" if o.argument and dashes else "") + help + value))
        if o.letter:
            out.append("  %s \\" % shell("*-" + o.letter + ("+" if o.argument else "") + help + value))
    names = " ".join(form + w for w in warnings_of(blocks) for form in ("", "no-", "error=", "no-error="))
    out += ["  %s \\" % shell("*-W-[a warning]:warning:(%s error)" % names), "  %s" % shell("*:model:_files")]
    return "\n".join(out) + "\n"


def fish(name, blocks):
    out = ["# completions of %s for fish" % name]
    for o in options_of(blocks):
        if o.flag == "--warn":
            o.values = [form + w for w in warnings_of(blocks) for form in ("", "no-", "error=", "no-error=")] + ["error"]
        words = ["complete -c", name, "-s " + o.letter if o.letter else "", ("-l " + o.flag[2:]) if o.flag.startswith("--") else "-o " + o.flag[1:]]
        if o.values:
            words.append(("-f" if o.optional else "-x") + " -a " + shell(" ".join(o.values)))
        elif o.argument and not o.optional:
            words.append("-r" if o.takes_files else "-x")
        out.append(" ".join(w for w in words if w) + " -d '%s'" % o.help.replace("\\", "\\\\").replace("'", "\\'"))
    return "\n".join(out) + "\n"


def main():
    program, form, version = sys.argv[1:]
    blocks = read(program)
    name = blocks[0].split()[1]
    print(man(name, version, blocks) if form == "man" else {"bash": bash, "zsh": zsh, "fish": fish}[form](name, blocks), end="")


main()
