"""What tests of whole programs share: they run commands, read checkpoints and print a line for each check."""
import collections
import json
import os
import subprocess
import sys

Tensor = collections.namedtuple("Tensor", "dtype shape data")


def run(*args, status=0, input=None, **env):
    """Runs a command with these variables in its environment and returns all that it prints; ends the test if the command ends
    with another status."""
    done = subprocess.run(args, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", input=input,
                          env={**os.environ, **env})
    if done.returncode != status:
        sys.exit("%s: status %d, not %d\n%s" % (" ".join(args)[:1000], done.returncode, status, done.stdout[-10000:]))
    return done.stdout


def check(what, condition, *shown):
    """Prints what was checked, and `shown` if it did not hold; returns whether it held."""
    print("%-76s %s" % (what, "ok" if condition else " ".join(map(str, ("FAILED", *shown)))))
    return bool(condition)


def safetensors(path):
    """The header of a safetensors file, and the bytes behind it."""
    with open(path, "rb") as file:
        size = int.from_bytes(file.read(8), "little")
        return json.loads(file.read(size)), file.read()


def tensors(path):
    """The tensors of a safetensors file by name, with their data as bytes."""
    header, body = safetensors(path)
    return {name: Tensor(entry["dtype"], tuple(entry["shape"]), body[slice(*entry["data_offsets"])])
            for name, entry in header.items() if name != "__metadata__"}


def newest(folder):
    """The path of the checkpoint with the highest step in a model folder."""
    steps = [int(name.split("-")[1].split(".")[0]) for name in os.listdir(folder) if name.endswith(".safetensors")]
    return os.path.join(folder, "ckpt-%d.safetensors" % max(steps))


def content(path):
    with open(path, "rb") as file:
        return file.read()
