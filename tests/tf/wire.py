"""protobuf's wire format for tests, as far as they need it."""


def varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out + bytes([value]))


def field(number, value):
    """An integer, or bytes or text."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def attr(name, value):
    return field(5, field(1, name) + field(2, value))


def node(name, op, *inputs, extra=b""):
    return field(1, field(1, name) + field(2, op) + b"".join(field(3, i) for i in inputs) + extra)


def matmul_graph():
    """x @ x, fetched by nobody."""
    f32 = field(6, 1)
    return node("x", "Placeholder", extra=attr("dtype", f32)) + node("y", "MatMul", "x", "x", extra=attr("T", f32))
