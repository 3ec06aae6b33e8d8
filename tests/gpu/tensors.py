"""safetensors files of --dump-step --dump-values, as arrays, and how far two of them differ."""
import json, struct

import numpy


def widen_bf16(raw):
    return (numpy.frombuffer(raw, "<u2").astype("<u4") << 16).view("<f4")


READ = {"F32": lambda raw: numpy.frombuffer(raw, "<f4"), "F16": lambda raw: numpy.frombuffer(raw, "<f2"), "BF16": widen_bf16,
        "F64": lambda raw: numpy.frombuffer(raw, "<f8")}


def read(path):
    """name: 1-D float array; integers and booleans are left out."""
    data = path.read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    at = lambda entry: data[8 + size + entry["data_offsets"][0]:8 + size + entry["data_offsets"][1]]
    return {name: READ[entry["dtype"]](at(entry)).astype("f8") for name, entry in header.items() if entry["dtype"] in READ}


def compare(a, b):
    """Over all names that both have: the worst difference as a share of the tensor's largest magnitude, its name, and the
    count of numbers compared. Numbers that are not finite must be so in both."""
    worst, where, count = 0.0, "-", 0
    for name in sorted(a.keys() & b.keys()):
        x, y = a[name], b[name]
        if x.shape != y.shape:
            return float("inf"), f"{name}: {x.size} and {y.size} elements", count
        finite = numpy.isfinite(x)
        if (finite != numpy.isfinite(y)).any():
            return float("inf"), f"{name}: {int((finite != numpy.isfinite(y)).sum())} numbers finite in one only", count
        count += x.size
        largest = numpy.abs(x[finite]).max(initial=0)
        off = numpy.abs(x[finite] - y[finite]).max(initial=0) / largest if largest else float(numpy.abs(y[finite]).max(initial=0) > 0)
        if off > worst:
            worst, where = float(off), name
    if not count:
        return float("inf"), "no name in common", 0
    return worst, where, count
