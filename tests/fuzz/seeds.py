"""seeds.py KIND: writes one seed for fuzz_ckpt or fuzz_data to stdout: ckpt, foreign, idx, idx_gz, cifar."""
import gzip
import json
import struct
import sys
import zlib


def safetensors(tensors, meta):
    data, header = b"", {"__metadata__": meta} if meta else {}
    for name, (dtype, shape, raw) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    if meta:
        meta["crc32"] = f"{zlib.crc32(data):08x}"
    text = json.dumps(header, separators=(",", ":")).encode()
    return struct.pack("<Q", len(text)) + text + data


def floats(n):
    return struct.pack(f"<{n}f", *range(n))


def ckpt():
    meta = {"crc32": "", "model": "m", "fingerprint": "f", "step": "3", "examples": "24", "seed": "1"}
    return safetensors({"global_step": ("I64", [], struct.pack("<q", 3)), "w": ("F32", [2, 2, 1, 2], floats(8)),
                        "w.m": ("F32", [2, 2, 1, 2], floats(8)), "s": ("F32", [], floats(1)),
                        "loss_scale": ("F32", [], floats(1))}, meta)


def foreign():
    return safetensors({"w": ("F16", [2, 2, 1, 2], bytes(16)), "s": ("F64", [], bytes(8)),
                        "other": ("F8_E4M3", [3], bytes(3))}, None)


def idx(pack=lambda b: b):
    images = pack(struct.pack(">IIII", 0x803, 3, 4, 5) + bytes(range(60)))
    labels = pack(struct.pack(">II", 0x801, 3) + bytes([0, 7, 3]))
    return bytes([0]) + struct.pack("<H", len(images)) + images + labels


def idx_gz():
    return idx(lambda b: gzip.compress(b, mtime=0))


def cifar():
    return bytes([1]) + b"".join(bytes([label]) + bytes(3072) for label in (0, 7))


sys.stdout.buffer.write({f.__name__: f for f in (ckpt, foreign, idx, idx_gz, cifar)}[sys.argv[1]]())
