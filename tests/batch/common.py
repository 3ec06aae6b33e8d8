"""What the tests of --batch share."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "driver"))
from commands import AMPCC, ZOO, expect, failed, fails, run  # noqa: E402  for those that import this

# Lines of a list whose programs fail: a broken model, a wrong option, no compiler.
FAILING = "broken.pb -o '<b&\"ad\">'\nmlp.pb -o usage --cpu=nonesuch\nmlp.pb -o 'no cc' --cc=false --batch-size=3\n"
HEAD = ["program", "seconds", "program", "MB", "arena", "MB", "state", "MB", "casts", "result"]


def models(*names):
    """Writes models of the zoo, and broken.pb, which is one that was cut short."""
    for name in names:
        expect("ampcc-zoo " + name, run(ZOO, name, "-o", name + ".pb")[0] == 0)
    with open(names[0] + ".pb", "rb") as whole, open("broken.pb", "wb") as broken:
        broken.write(whole.read()[:-20])


def odd_model():
    """Makes a folder `odd` with one model that is none, whose name is hard to print."""
    os.makedirs("odd", exist_ok=True)
    with open(b"odd/a\x01\x1b[31m\xff\xc2\x85\xef\xbf\xbe<&\xc3\xa9.pb", "wb") as file:
        file.write(b"no model")


def batch(*args, **env):
    """Runs a batch for the CPU; returns its status, the rows of the table at the end by name, and standard error."""
    status, out, err = run(AMPCC, "--target=cpu", *args, **env)
    lines = out.decode().splitlines()
    heads = [i for i, line in enumerate(lines) if line.split() == HEAD]
    rows = {}
    for line in lines[heads[-1] + 1:] if len(heads) == 2 else []:
        width = lines[heads[0]].index("  seconds")
        rows[line[:width].strip()] = line[width:].split(None, 5)
    return status, rows, err


def content(folder):
    """The programs of a folder with their bytes."""
    return {name: open(os.path.join(folder, name), "rb").read() for name in sorted(os.listdir(folder)) if name[0] != "."}
