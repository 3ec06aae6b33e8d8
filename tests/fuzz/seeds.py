"""Writes one seed of a fuzz target to standard output: seeds.py KIND

The kinds are ckpt and foreign for fuzz_ckpt; idx, idx_gz, cifar10, cifar100 and cifar100_coarse for fuzz_data; pack and
pack_pixels for fuzz_pack; record and example for fuzz_record."""
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


def cifar10():
    return bytes([1]) + b"".join(bytes([label]) + bytes(3072) for label in (0, 9))


def cifar100(kind=3):
    return bytes([kind]) + b"".join(bytes(labels) + bytes(3072) for labels in ((0, 99), (19, 0)))


def cifar100_coarse():
    return cifar100(4)


def field(number, data):
    """A protobuf field of bytes. There are fewer than 2^14 of them, so that their number takes two base-128 digits."""
    return bytes([number << 3 | 2, len(data) & 127 | 128, len(data) >> 7]) + data


def example():
    def feature(name, kind, value):
        return field(1, field(1, name.encode()) + field(2, field(kind, value)))
    boxes = [feature(f"image/object/bbox/{side}", 2, field(1, floats(2))) for side in ("ymin", "xmin", "ymax", "xmax")]
    return field(1, feature("image/encoded", 1, field(1, b"jpeg")) + feature("image/class/label", 3, field(1, b"\x11")) +
                 b"".join(boxes))


def crc32c(data):
    crc = ~0 & 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


def masked_crc32c(data):
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xa282ead8) & 0xffffffff)


def packed(flags, classes, shape, names, records):
    """A pack in the format of runtime/data/pack.h; `records` is a list of (label, boxes of four floats each, image)."""
    note = b"a seed"
    names = b"".join(name + b"\0" for name in names)
    data, index, begin = b"", b"", 56 + len(note) + len(names)
    for label, boxes, image in records:
        raw = b"".join(struct.pack("<4f", *box) for box in boxes) + image
        index += struct.pack("<QIIII", begin + len(data), len(raw), len(boxes), label, crc32c(raw))
        data += raw
    head = b"\x89AMPACK\n" + struct.pack("<8IQQ", 1, flags, len(records), classes, *shape, len(note), len(names),
                                         begin + len(data)) + note + names
    size = len(head + data + index) + 24
    return head + data + index + struct.pack("<IIQ", crc32c(head), crc32c(index), size) + b"\nKCAPMA\x89"


def pack():
    return packed(7, 2, (0, 0, 0), (b"cat", b"dog"), [(1, [(0, .25, .5, 1)], b"\xff\xd8jpeg"), (0, [], b"png")])


def pack_pixels():
    return packed(1, 70000, (2, 3, 1), (), [(69999, [], bytes(6)), (3, [], b"pixels")])


def record():
    records = b""
    for data in (b"", example()):
        head = struct.pack("<Q", len(data))
        records += head + masked_crc32c(head) + data + masked_crc32c(data)
    return records


if __name__ == "__main__":
    KINDS = (ckpt, foreign, idx, idx_gz, cifar10, cifar100, cifar100_coarse, pack, pack_pixels, record, example)
    sys.stdout.buffer.write({f.__name__: f for f in KINDS}[sys.argv[1]]())
