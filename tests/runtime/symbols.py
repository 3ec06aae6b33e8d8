"""symbols.py LIBRARY.a PREFIX: what is linked into programs defines no name for them but those that begin with
PREFIX, and calls no exit()."""
import subprocess
import sys

nm = subprocess.run(["nm", "-g", sys.argv[1]], check=True, capture_output=True, text=True).stdout
bad = []
defined = 0
for line in nm.splitlines():
    words = line.split()
    if len(words) < 2 or len(words[-2]) != 1:
        continue
    kind, name = words[-2:]
    if kind == "U":
        if name in ("exit", "_exit", "abort", "dnnl_version") or name.startswith(("GOMP_", "dnnl_")):
            bad.append(f"calls {name}")
    elif name.startswith(sys.argv[2]):
        defined += 1
    elif not name.startswith(("__asan", "__odr_asan", "__tsan", "__ubsan")):
        bad.append(f"defines {name}")
print("\n".join(bad))
sys.exit(bool(bad) or defined < 20)
