"""What the tests of examples in texts share: what a command prints against what the text says."""
import re
import sys

sys.setrecursionlimit(10000)


def matches(want, got):
    """Do the lines `got` match the lines `want`? There `...` stands for any number of lines, and within a line for any text. As the
    pieces between `...` are in order, taking the first match of each is enough."""
    if not want:
        return not got
    if want[0] == "...":
        return any(matches(want[1:], got[i:]) for i in range(len(got) + 1))
    line = ".*".join(map(re.escape, want[0].split("...")))
    return bool(got and re.fullmatch(line, got[0])) and matches(want[1:], got[1:])


def steps(text):
    """The commands that stand behind `$ `, and the lines behind each. A command goes on behind a backslash at the end of its line."""
    for part in re.split(r"^\$ ", text, flags=re.M)[1:]:
        command, output = re.match(r"((?:[^\n]*\\\n)*[^\n]*)\n?(.*)", part, re.S).groups()
        yield command, output.splitlines()
