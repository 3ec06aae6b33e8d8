"""Compares the runtime's reader of JSON strings with Python's on random texts: json_strings.py READER

The reader must refuse what is no JSON string, what is not UTF-8 (half a surrogate pair is not), and strings that hold U+0000."""
import json
import random
import subprocess
import sys

TEXTS = 6000
ESCAPES = [b"\\n", b"\\t", b"\\r", b"\\b", b"\\f", b"\\/", b"\\\\", b'\\"']
random.seed(11)


def piece():
    kind = random.random()
    if kind < .35:
        return bytes(random.choices(range(0x20, 0x80), k=random.randint(1, 6))).replace(b"\\", b"").replace(b'"', b"")
    if kind < .55:
        return random.choice(ESCAPES)
    if kind < .7:
        code = random.choice([random.randint(1, 0xd7ff), random.randint(0xe000, 0xffff), random.randint(1, 0x20)])
        return (b"\\u%04x" if random.random() < .5 else b"\\u%04X") % code
    if kind < .8:
        return b"\\u%04x\\u%04x" % (random.randint(0xd800, 0xdbff), random.randint(0xdc00, 0xdfff))
    if kind < .97:
        code = random.choice([random.randint(0x80, 0x7ff), random.randint(0x800, 0xd7ff), random.randint(0x10000, 0x10ffff)])
        return chr(code).encode()
    return random.choice([  # texts that must be refused, some of them because of what follows
        b"\\u0000", b"\\ud800", b"\\udc00", b"\\ud800x", b"\\ud83d\\u0041", b"\\x41", b"\\u12", b"\\u00g0", b"\\", b'"', b"\n", b"\x00",
        b"\x1f", b"\x80", b"\xc0\x80", b"\xc3", b"\xe0\x9f\xbf", b"\xed\xa0\x80", b"\xf0\x8f\xbf\xbf", b"\xf4\x90\x80\x80", b"\xf5\x80\x80\x80",
        b"\xff", bytes([random.randrange(256)])])


def text():
    inner = b"".join(piece() for _ in range(random.randint(0, 8)))
    whole = random.choice([b'"', b' "', b'"']) + inner + random.choice([b'"', b'" \n', b'"', b'"', b'" x', b""])
    return whole if random.random() < .95 else whole[:random.randint(0, len(whole))]


def wanted(data):
    try:
        string = json.loads(data.decode())
        return string.encode().hex() if isinstance(string, str) and "\0" not in string else "refused"
    except ValueError:  # not JSON, or not UTF-8 when it is decoded or encoded again
        return "refused"


texts = [text() for _ in range(TEXTS)]
done = subprocess.run([sys.argv[1]], input="".join(t.hex() + "\n" for t in texts), capture_output=True, text=True, check=True)
answers = done.stdout.split("\n")[:-1]
assert len(answers) == TEXTS
for data, answer in zip(texts, answers):
    if answer != wanted(data):
        sys.exit(f"{data!r}: {answer}, Python: {wanted(data)}")
refused = answers.count("refused")
print(f"{TEXTS} strings, {refused} refused")
if not TEXTS / 10 < refused < TEXTS * .7:
    sys.exit("too few of one kind")
