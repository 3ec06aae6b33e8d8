"""Writes the pages on the error codes as C: pages.py DIAG_DEF FOLDER OUT DEPFILE

Every code of diag.def has a page E<number>.txt in the folder, and every page there has a code."""
import pathlib
import re
import sys

table, folder, out, depfile = map(pathlib.Path, sys.argv[1:])
codes = ["E" + number for number in re.findall(r"^DIAG\(\w+, +(\d+),", table.read_text(), re.M)]
pages = {path.stem: path for path in sorted(folder.glob("E*.txt"))}
if set(codes) != set(pages):
    sys.exit("frontend/explain has not one page for each code of ir/base/diag.def: %s" % sorted(set(codes) ^ set(pages)))
escapes = {'"': '\\"', "\\": "\\\\", "?": "\\?"}
lines = ['#include "frontend/explain/explain.h"\n\n']
for code, path in pages.items():
    lines.append("static const char %s[] =" % code)
    for line in path.read_text(encoding="ascii").splitlines():
        lines.append('\n    "%s\\n"' % "".join(escapes.get(c, c) for c in line))
    lines.append(";\n")
lines.append("""
const ExplainPage explain_page[] = {
#define DIAG(id, number, text) {number, text, E##number},
#include "ir/base/diag.def"
    {0, 0, 0}};
""")
out.write_text("".join(lines), encoding="ascii")
depfile.write_text("%s: %s\n" % (out, " ".join(map(str, pages.values()))))
