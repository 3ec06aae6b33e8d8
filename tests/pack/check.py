"""Tests the command ampcc-pack: check.py AMPCC_PACK MAKE_FOLDER BATCHES MANY WRITE_SHARDS

It packs a folder of images and shards. A reader of the format that shares no code with ampcc-pack reads what it wrote. The bytes
must be the same with any number of threads, and the batches the same as from the source. The last functions test what it refuses
and which files it leaves behind."""
import fcntl
import os
import pty
import random
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time

tool, make_folder, batches, many, write_shards = sys.argv[1:]
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../fuzz"))


def run(*args, status=0, says="", **more):
    ended = subprocess.run([tool, *args], capture_output=True, text=True, timeout=100, **more)
    told = ended.stdout + ended.stderr
    if ended.returncode != status or says not in told:
        sys.exit(f"{args}: status {ended.returncode}, wanted {status} and `{says}`:\n{told}")
    return told


def read(path):
    with open(path, "rb") as file:
        return file.read()


def unpack(path):
    """Reads a pack as runtime/data/pack.h describes it; returns (header, note, names, [(label, boxes, image)])."""
    data = read(path)
    assert data[:8] == b"\x89AMPACK\n" and data[-8:] == b"\nKCAPMA\x89"
    version, flags, n, classes, height, width, channels, note, names, at = struct.unpack("<8IQQ", data[8:56])
    assert version == 1 and struct.unpack("<Q", data[-16:-8])[0] == len(data) == at + 24 * n + 24
    records = []
    for i in range(n):
        begin, size, boxes, label, _ = struct.unpack_from("<QIIII", data, at + 24 * i)
        records.append((label, data[begin:begin + 16 * boxes], data[begin + 16 * boxes:begin + size]))
    text = data[56 + note:56 + note + names]
    return ((flags, classes, height, width, channels), data[56:56 + note].decode(), text.split(b"\0")[:-1], records)


def folder_records(root):
    """The records of a folder of images, in order."""
    names = sorted(os.listdir(root))
    return [(label, b"", read(os.path.join(root, name, file)))
            for label, name in enumerate(names) for file in sorted(os.listdir(os.path.join(root, name)))]


def size_of(image):
    """The height and width that the header of a PNG or the frame header of a JPEG says."""
    if image[:4] == b"\x89PNG":
        return struct.unpack(">II", image[16:24])[::-1]
    at = 2
    while image[at + 1] not in (0xc0, 0xc2):
        at += 2 + struct.unpack(">H", image[at + 2:at + 4])[0]
    return struct.unpack(">HH", image[at + 5:at + 9])


def test_contents(data, out):
    told = run("--dataset=folder", f"--data-dir={data}", "-o", out, says="train.ampack: 24 images, ")
    assert "val.ampack: 6 images, " in told
    assert sorted(os.listdir(out)) == ["train.ampack", "val.ampack"]
    for split in ("train", "val"):
        head, note, names, records = unpack(f"{out}/{split}.ampack")
        assert head == (7, 3, 0, 0, 0) and names == [b"apple", b"banana", b"cherry"]
        assert note.endswith(f"--dataset=folder --split={split}"), note
        assert records == folder_records(f"{data}/{split}")
    told = run("--list", f"{out}/val.ampack", says="records:  6, JPEG and PNG files")
    assert "         1          2  banana\n" in told
    run(f"--verify={out}/val.ampack", says="all 6 records are whole")
    # a pack can be packed again, and only the note differs
    run("--dataset=pack", f"--data-dir={out}", "-o", out + "/again", "-q")
    assert unpack(f"{out}/again/train.ampack")[3] == unpack(f"{out}/train.ampack")[3]


def test_resized(data, out):
    flags = ["--dataset=folder", f"--data_dir={data}", "--split=train", "-q"]
    packs = {}
    for threads in (1, 2, 8):
        run(*flags, "-o", f"{out}/{threads}", "--resize=40", "--shuffle=7", f"--threads={threads}")
        assert os.listdir(f"{out}/{threads}") == ["train.ampack"]
        packs[threads] = read(f"{out}/{threads}/train.ampack")
    assert packs[1] == packs[2] == packs[8]
    run(*flags, "-o", f"{out}/seed", "--resize=40", "--shuffle=8")
    run(*flags, "-o", f"{out}/plain", "--resize=40")
    run(*flags, "-o", f"{out}/png", "--resize=40", "--lossless")
    before = folder_records(f"{data}/train")
    plain, seven, eight = (unpack(f"{out}/{name}/train.ampack")[3] for name in ("plain", "1", "seed"))
    assert plain != seven != eight != plain and sorted(plain) == sorted(seven) == sorted(eight)
    resized = 0
    for (label, _, image), (label_before, _, was), (_, _, png) in zip(plain, before, unpack(f"{out}/png/train.ampack")[3]):
        height, width = size_of(was)
        assert label == label_before
        if min(height, width) <= 40:
            assert image == was and png == was
            continue
        resized += 1
        assert min(size_of(image)) == 40 and size_of(image) == size_of(png)
        assert abs(max(size_of(image)) - 40 * max(height, width) / min(height, width)) <= .5
        assert image[:2] == b"\xff\xd8" and png[:4] == b"\x89PNG"
    assert 10 < resized < 24
    large = sum(len(image) for _, _, image in plain)
    run(*flags, "-o", f"{out}/plain", "--resize=40", "--quality=50", "--force")
    assert sum(len(image) for _, _, image in unpack(f"{out}/plain/train.ampack")[3]) < .8 * large


def test_batches(data, out):
    subprocess.run([tool, "--dataset=folder", f"--data-dir={data}", "-o", f"{out}/folder", "-q"], check=True)
    subprocess.run([batches, "folder", data, "pack", f"{out}/folder"], check=True)
    os.mkdir(f"{out}/shards") # shards of every JPEG, some of them with one or two boxes
    lines = []
    for i, (label, _, image) in enumerate(folder_records(f"{data}/train")):
        if image[:2] == b"\xff\xd8":
            with open(f"{out}/shards/{i}.jpg", "wb") as file:
                file.write(image)
            boxes = " 0.1 0.2 0.7 0.9" * (i % 3)
            lines.append(f"{label * 300 + 7} {out}/shards/{i}.jpg{boxes}\n")
    for part in "train", "validation":
        subprocess.run([write_shards, f"{out}/shards", part, "3"], input="".join(lines), text=True, check=True)
    subprocess.run([tool, "--dataset=imagenet", f"--data-dir={out}/shards", "-o", f"{out}/imagenet", "-q"], check=True)
    head, _, names, records = unpack(f"{out}/imagenet/train.ampack")
    assert head == (3, 1000, 0, 0, 0) and not names and len(records) == len(lines) > 10
    assert {label for label, _, _ in records} == {6, 306, 606}
    assert struct.pack("<4f", .1, .2, .7, .9) in {boxes for _, boxes, _ in records}
    subprocess.run([batches, "imagenet", f"{out}/shards", "pack", f"{out}/imagenet"], check=True)
    # the comparison of batches does fail if images differ
    subprocess.run([tool, "--dataset=folder", f"--data-dir={data}", "-o", f"{out}/small", "-q", "--resize=60"], check=True)
    ended = subprocess.run([batches, "folder", data, "pack", f"{out}/small"], stderr=subprocess.PIPE, text=True, check=False)
    assert ended.returncode == 1 and "differs" in ended.stderr


def test_many(_, out):
    """Reading 200,000 records takes no more memory than the index and the order of an epoch; tests/bench/pack does this with 1.28 million."""
    os.mkdir(out)
    n = 200000
    subprocess.run([many, "write", str(n), f"{out}/many"], check=True)
    told = subprocess.run([many, "read", f"{out}/many"], check=True, capture_output=True, text=True).stdout
    print(told, end="")
    numbers = [float(word) for word in told.replace(",", "").split() if word.replace(".", "").isdigit()]
    assert numbers[0] == n and max(numbers[1:4]) < 2 and numbers[4] < 24e-6 * n + 2 * 4e-6 * n + 24, numbers # the last terms are for sanitizers


def test_bad_images(data, out):
    bad = f"{data}/train/banana/05a.jpg"
    cut = f"{data}/train/cherry/99.jpg"
    with open(bad, "wb") as file:
        file.write(b"this is text")
    with open(cut, "wb") as file:
        whole = read(f"{data}/train/apple/00.jpg")
        file.write(whole[:len(whole) // 2])
    flags = ["--dataset=folder", f"--data-dir={data}", "-o", out]
    run(*flags, status=1, says=f"{bad}: neither JPEG nor PNG; --max-bad-examples=N")
    assert not os.path.exists(out)
    told = run(*flags, "--max-bad-examples=1", says=f"warning: {bad}: neither JPEG nor PNG; left out (1 so far)")
    assert "train.ampack: 25 images" in told
    run(*flags, "--max-bad-examples=1", "--check-images", "--force", status=1, says=f"{cut}: JPEG: ")
    assert len(unpack(f"{out}/train.ampack")[3]) == 25 # the pack that was there stays
    run(*flags, "--max-bad-examples=2", "--check-images", "--force", says="train.ampack: 24 images")
    os.remove(bad)
    os.remove(cut)


def test_refusals(data, out):
    flags = ["--dataset=folder", f"--data-dir={data}", "-o", out]
    run(*flags, "--split=val", "-q")
    run(*flags, status=1, says="val.ampack: is there already; --force replaces it")
    assert os.listdir(out) == ["val.ampack"]
    run(*flags, "--split=train", "-q")
    run(*flags, "--force", "-q")
    for args, says in (
            ([], "see --help"), (["--dataset=folder"], "-o DIR are both needed"), (["-o", out], "are both needed"),
            (["--list=a", "--dataset=folder", "-o", "b"], "see --help"), (["word"], "unexpected argument `word`"),
            (["--sise=3"], "unknown option `--sise=3`"), (["-x"], "unknown option `-x`"),
            (["--resize"], "from 1 to 65535, not ``"), (["--resize=0"], "not `0`"), (["--resize=65536"], "not `65536`"),
            (["--quality=101"], "from 1 to 100"), (["--quality=9x"], "not `9x`"), (["--threads=257"], "from 1 to 256"),
            (["--force=yes"], "takes no value"), (["--data-dir="], "needs a value"), (["--shuffle=-1"], "from 0"),
            (["--split=test", *flags], "takes train or val"), (["--lossless", *flags, "-f"], "--resize makes smaller"),
            (["--dataset=imagenette", "-o", out, "-f"], "there is no data set `imagenette`"),
            (["--dataset=folder", "-o", out, "-f"], "folder needs --data-dir=DIR")):
        run(*args, status=2, says=says)
    run("--dataset=folder", "--data-dir=/nowhere", "-o", out + "/x", status=1, says="/nowhere: has no folder train")
    run("--dataset=folder", f"--data-dir={data}", "-o", "/dev/null/x", status=3, says="/dev/null")
    assert sorted(os.listdir(out)) == ["train.ampack", "val.ampack"]
    assert "--max-bad-examples=N" in run("--help") and run("--version").startswith("ampcc-pack ")
    with open("/dev/full", "w", encoding="utf-8") as full:
        for ask in ("--help", "--version", f"--list={out}/val.ampack"):
            assert subprocess.run([tool, ask], stdout=full, stderr=subprocess.DEVNULL, check=False).returncode == 3
    # standard files that are closed must not become the pack
    subprocess.run(f'exec "{tool}" {" ".join(flags)} --force >&- 2>&- <&-', shell=True, check=True)
    assert unpack(f"{out}/train.ampack")[3] == folder_records(f"{data}/train")


def test_progress(data, out):
    """On a terminal the progress line is written over itself and fits; in a pipe there is one every ten seconds."""
    flags = [tool, "--dataset=folder", f"--data-dir={data}", "-o", out, "--split=train", "--resize=2", "--threads=1"]
    try:
        screen, other = pty.openpty()
    except OSError as error:
        return print("no terminal to be had:", error)
    fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 61, 0, 0))
    many_links(data, 400)
    flags[2] += "-many"
    with subprocess.Popen(flags, stdout=other, stderr=other) as child:
        os.close(other)
        told = b""
        while True:
            try:
                told += os.read(screen, 4096)
            except OSError: # the other side is closed
                break
    lines = told.decode().split("\r")
    bars = [line for line in lines if line.startswith("train [=")]
    assert child.returncode == 0 and bars and all(len(line) <= 60 for line in bars), told
    assert "/20000  " in bars[0] and "/s" in bars[0] and "train.ampack: 20000 images" in lines[-2], lines
    begin = time.monotonic()
    *bars, last = subprocess.run([*flags, "--force"], check=True, capture_output=True, text=True).stdout.splitlines()
    most = (time.monotonic() - begin) / 10
    assert last.startswith(out) and all(line.startswith("train [") for line in bars) and len(bars) <= most, (bars, last, most)
    shutil.rmtree(data + "-many")


def many_links(data, n):
    """Makes DATA-many, one picture in 50 n files of 50 classes for training and 10000 files for val, so that packing takes a while."""
    for split, each in ("train", n), ("val", 200):
        os.makedirs(f"{data}-many/{split}/class0")
        for i in range(each):
            os.link(f"{data}/train/apple/00.jpg", f"{data}-many/{split}/class0/{i}.jpg")
        for i in range(1, 50):
            os.symlink("class0", f"{data}-many/{split}/class{i}")


def full_disk():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))


def default_signals():
    """Signals that nohup, or whoever runs the tests, has set to be ignored end the child again."""
    for which in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(which, signal.SIG_DFL)


def test_interrupted(data, out):
    run("--dataset=folder", f"--data-dir={data}", "-o", out, status=3, says="File too large", preexec_fn=full_disk)
    assert not os.path.exists(out)
    many_links(data, 5)
    for which in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        with subprocess.Popen([tool, "--dataset=folder", f"--data-dir={data}-many", "-o", out, "--resize=1", "--threads=1"],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, preexec_fn=default_signals) as child:
            while child.poll() is None and not os.path.exists(f"{out}/val.ampack.tmp"):
                pass
            assert not os.path.exists(f"{out}/train.ampack") # train.ampack gets its name only when val.ampack is ready, too
            child.send_signal(which)
            told = child.communicate()[0]
        assert child.returncode == 128 + which and "nothing was written" in told, (child.returncode, told)
        assert not os.path.exists(out)


def test_damage(data, out):
    from seeds import packed # a writer of the format that shares no code with ours
    run("--dataset=folder", f"--data-dir={data}", "-o", out, "--split=val", "-q")
    whole = bytearray(read(f"{out}/val.ampack"))
    pick = random.Random(1)
    for _ in range(40):
        bit = pick.randrange(8 * len(whole))
        whole[bit // 8] ^= 1 << bit % 8
        with open(f"{out}/flipped", "wb") as file:
            file.write(whole)
        run("--verify", f"{out}/flipped", status=1, says=f"{out}/flipped: ")
        whole[bit // 8] ^= 1 << bit % 8
    with open(f"{out}/foreign", "wb") as file:
        file.write(packed(5, 3, (0, 0, 0), (b"a", b"b\x1b[31m", b"c"), [(2, [(0, 0, 1, 1)], b"\xff\xd8"), (0, [], b"x")]))
    told = run("--list", f"{out}/foreign", says="made by:  a seed")
    assert "         1          0  b?[31m\n         2          1  c\n" in told
    run("--verify", f"{out}/foreign", says="all 2 records are whole")


with tempfile.TemporaryDirectory() as scratch:
    subprocess.run([make_folder, f"{scratch}/data"], check=True)
    for number, test in enumerate((test_contents, test_resized, test_batches, test_many, test_bad_images,
                                   test_refusals, test_progress, test_interrupted, test_damage)):
        test(f"{scratch}/data", f"{scratch}/out{number}")
        print(test.__name__, "ok", flush=True)
