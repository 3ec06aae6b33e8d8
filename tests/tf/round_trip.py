#!/usr/bin/env python3
"""Tests that ampcc-tf loses nothing of a GraphDef: round_trip.py AMPCC_TF DATA

One that the pass leaves alone must come out as it went in, byte for byte, also by way of the text form; one that was rewritten must
read back with all of its fields. Real graphs come from DATA where it is present."""
import pathlib
import subprocess
import sys
import tempfile

from wire import attr, field, matmul_graph, node

failed = []
KEEP = "--amp-min-graph-nodes=1000000"


def rewrite(ampcc_tf, source, target, *flags):
    run = subprocess.run([ampcc_tf, source, "-o", target, "--emit=graphdef", "--amp-compat=tf", "--quiet", *flags],
                         capture_output=True, text=True)
    if run.returncode:
        failed.append(source)
        print("FAILED:", source, run.stderr)
    return target.read_bytes() if run.returncode == 0 else b""


def every_field():
    """A GraphDef in which each message has fields of every kind, also with numbers that ampcc-tf
    does not know."""
    tensor = field(1, 1) + field(2, field(2, field(1, 2 ** 64 - 1))) + field(4, b"\0\xff") + field(5, b"\0\0\x80\x3f")
    attrs = [attr("_s", field(2, b"\xff\0")), attr("_i", field(3, 2 ** 64 - 5)), attr("_f", b"\x25\0\0\xc0\x7f"),
             attr("_b", field(5, 0)), attr("_shape", field(7, field(3, 1))), attr("_tensor", field(8, tensor)),
             attr("_func", field(10, field(1, "f") + field(2, field(1, "T") + field(2, field(6, 19))))),
             attr("_empty", field(2, "")), attr("_list", field(1, field(2, b"") + field(2, b"x") + field(6, b"\x01\x13")))]
    unknown = field(99, "kept") + field(100, 7)
    inner = field(1, "z") + field(2, "NoOp") + field(3, "^x") + b"".join(attrs) + unknown
    return matmul_graph() + field(1, inner) + field(2, field(1, field(1, field(1, "f")))) + field(4, field(1, 27)) + unknown


def main(ampcc_tf, data):
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        own, text, out = folder / "own.pb", folder / "out.pbtxt", folder / "out.pb"
        own.write_bytes(every_field())
        if rewrite(ampcc_tf, own, out, KEEP) != own.read_bytes():
            failed.append("every field")
        if b"# field 99 is not known here: 5 bytes left out" not in rewrite(ampcc_tf, own, text, KEEP):
            failed.append("text says what it cannot keep")
        low = rewrite(ampcc_tf, own, out, "--amp-min-graph-nodes=-1")
        if field(99, "kept") not in low or b"x-0-CastToFp16-0-AutoMixedPrecision" not in low or b"\x25\0\0\xc0\x7f" not in low:
            failed.append("rewritten")
        graphs = [*pathlib.Path(data).glob("amp-tf/*.pb"), *pathlib.Path(data).glob("graphdef/*.pb"),
                  *pathlib.Path(data).glob("graphdef/*/*/expected_graph")]
        for graph in sorted(graphs):
            same = rewrite(ampcc_tf, graph, out, KEEP)
            rewrite(ampcc_tf, graph, text, KEEP)
            if not same == graph.read_bytes() == rewrite(ampcc_tf, text, out, KEEP):
                failed.append(graph)
            before = rewrite(ampcc_tf, graph, out)
            rewrite(ampcc_tf, graph, text)
            if not before or rewrite(ampcc_tf, text, folder / "again.pb", KEEP) != before:
                failed.append(("rewritten", graph))
    for name in failed:
        print("FAILED:", name)
    return 1 if failed else 0


sys.exit(main(*sys.argv[1:]))
