"""Tests the symbols of a library that is linked into programs: symbols.py LIBRARY.a PREFIX [CALLS...]

It may define only global names that begin with PREFIX, may not call exit(), and may call OpenMP and oneDNN only if CALLS has the
prefix of their names. Two files may call _exit(): the watchdog, which acts when the rest hangs, and the one that ends a child
process that could not be run."""
import re
import subprocess
import sys

nm = subprocess.run(["nm", "-g", sys.argv[1]], check=True, capture_output=True, text=True).stdout
allowed = tuple(sys.argv[3:])
bad = []
defined = 0
for line in nm.splitlines():
    words = line.split()
    if line.endswith(".o:"):
        member = line
    if len(words) < 2 or len(words[-2]) != 1:
        continue
    kind, name = words[-2:]
    if kind == "U":
        ends = name in ("exit", "abort") or (name == "_exit" and not re.search(r"(watchdog|processes)\.c", member))
        if ends or (name.startswith(("GOMP_", "dnnl_")) and not name.startswith(allowed)):
            bad.append(f"calls {name}")
    elif name.startswith(sys.argv[2]):
        defined += 1
    elif not name.startswith(("__asan", "__odr_asan", "__tsan", "__ubsan")):
        bad.append(f"defines {name}")
print("\n".join(bad))
sys.exit(bool(bad) or defined < 20)
