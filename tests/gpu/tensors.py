"""Reads the safetensors files of --dump-step --dump-values as arrays, and compares two of them."""
import json, mmap, struct

import numpy


def widen_bf16(raw):
    return (numpy.frombuffer(raw, "<u2").astype("<u4") << 16).view("<f4")


READ = {"F32": lambda raw: numpy.frombuffer(raw, "<f4"), "F16": lambda raw: numpy.frombuffer(raw, "<f2"), "BF16": widen_bf16,
        "F64": lambda raw: numpy.frombuffer(raw, "<f8")}


def read(path):
    """name: function that returns its numbers, 1-D in double precision, while the file may be gone; integers and booleans are left out.
    A gigabyte or two: nothing is read before it is asked for."""
    with open(path, "rb") as file:
        data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    (size,) = struct.unpack("<Q", data[:8])
    header = json.loads(bytes(data[8:8 + size]))
    header.pop("__metadata__", None)
    at = lambda entry: data[8 + size + entry["data_offsets"][0]:8 + size + entry["data_offsets"][1]]
    return {name: lambda entry=entry: READ[entry["dtype"]](at(entry)).astype("f8") for name, entry in header.items() if entry["dtype"] in READ}


def distances(a, b):
    """Of all tensors that both have: name: |a - b| / |a| in the Euclidean norm. It is the norm of whole tensors because a
    single number behind a ReLU whose mask flips may differ by all of itself. Numbers that are
    not finite must be so in both."""
    off = {}
    for name in sorted(a.keys() & b.keys()):
        x, y = a[name](), b[name]()
        finite = numpy.isfinite(x)
        if x.shape != y.shape or (finite != numpy.isfinite(y)).any():
            off[name] = float("inf")
            continue
        size = numpy.linalg.norm(x[finite])
        apart = numpy.linalg.norm(x[finite] - y[finite])
        off[name] = float(apart / size) if size else float(apart > 0)
    return off


def summary(off):
    """The median of such distances, the worst, and its name."""
    if not off:
        return float("inf"), float("inf"), "no name in common"
    worst = max(off, key=off.get)
    return sorted(off.values())[len(off) // 2], off[worst], worst


def others(a, b):
    """The names of tensors that two files of one program have with other bytes, in the order of the files."""
    return [name for name in a if name in b and a[name]().tobytes() != b[name]().tobytes()]
