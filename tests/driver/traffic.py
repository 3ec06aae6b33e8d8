"""Tests --print-traffic on a graph whose bytes were counted by hand: traffic.py AMPCC"""
import pathlib, subprocess, sys, tempfile

GRAPH = """graph @train stage planned arena 1536 state 512 {
  %x = input {name="x", at=[0], live=[0,0]} : f32[8,16]
  %w = variable {kind="param", init="ones", at=[0]} : f32[8,16]
  %a = exp %x {kernel=0, at=[512], live=[0,2]} : f32[8,16]
  %r = reshape %a {shape=[16,8], at=[-3]} : f32[16,8]
  %b = neg %r {kernel=1, at=[1024], live=[1,2]} : f32[16,8]
  %c = add %a, %a {kernel=2, at=[-1]} : f32[8,16]
  %d = mul %c, %w {kernel=2, at=[-2]} : f32[8,16]
  update %w, %d {kernel=2}
  output %b {name="b"}
}
"""
# Kernel 0 reads x and writes a; kernel 1 reads a through a view and writes b; kernel 2 reads a (once) and w and writes w. Each is
# 512 bytes.
WANT = {"loops, forward": (3, 2048, 1536), "all": (3, 2048, 1536)}


def main(ampcc):
    with tempfile.TemporaryDirectory() as folder:
        model = pathlib.Path(folder, "model.amp")
        model.write_text(GRAPH)
        run = subprocess.run([ampcc, model, "--passes=", "--print-traffic", "--emit=ir", "-o", f"{folder}/out"], capture_output=True, text=True)
    if run.returncode:
        sys.exit(f"status {run.returncode}: {run.stderr}")
    got = {}
    for line in run.stdout.splitlines()[1:]:
        name, kernels, read, written, _ = line[:30].rstrip(), *line[30:].split()
        got[name] = int(kernels), int(read), int(written)
    for name, numbers in got.items():
        if numbers != WANT.get(name, (0, 0, 0)):
            sys.exit(f"{name}: {numbers}, not {WANT.get(name, (0, 0, 0))}\n{run.stdout}")
    if not WANT.keys() <= got.keys():
        sys.exit(f"rows are missing:\n{run.stdout}")


main(sys.argv[1])
