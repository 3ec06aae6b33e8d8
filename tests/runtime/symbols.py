"""symbols.py LIBRARY.a PREFIX [CALLS...]: what is linked into programs defines no name for them but those that begin
with PREFIX, calls no exit(), and calls OpenMP and oneDNN only where a prefix among CALLS says so."""
import subprocess
import sys

nm = subprocess.run(["nm", "-g", sys.argv[1]], check=True, capture_output=True, text=True).stdout
allowed = tuple(sys.argv[3:])
bad = []
defined = 0
for line in nm.splitlines():
    words = line.split()
    if len(words) < 2 or len(words[-2]) != 1:
        continue
    kind, name = words[-2:]
    if kind == "U":
        if name in ("exit", "_exit", "abort") or (name.startswith(("GOMP_", "dnnl_")) and not name.startswith(allowed)):
            bad.append(f"calls {name}")
    elif name.startswith(sys.argv[2]):
        defined += 1
    elif not name.startswith(("__asan", "__odr_asan", "__tsan", "__ubsan")):
        bad.append(f"defines {name}")
print("\n".join(bad))
sys.exit(bool(bad) or defined < 20)
