"""Runs a program on damaged files, with odd flags, and with signals at random moments: hostile.py TOY [CASES [SEED]]

Checkpoints, logs, folders and data are damaged. Whatever a run meets, it must not crash, hang, print more than 4 kB or lose what was
there: every file that it found is still there, byte for byte, unless --clean was given and the run began; a log may only grow.
After a signal --resume must end with the bytes of an undisturbed run. TOY is tests/runtime/toy_main.c or any program that trains on
its data. By default the test is short; a campaign is `hostile.py build-san/tests/runtime/toy 400 7`."""
import os
import pathlib
import random
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time

toy, CASES, SEED = sys.argv[1], int((sys.argv[2:] or [40])[0]), int((sys.argv[3:] or [1])[0])
rng = random.Random(SEED)
scratch = pathlib.Path(tempfile.mkdtemp())
data, good, folder = scratch / "data", scratch / "good", scratch / "m"
QUICK = ["--train-epochs=4", "--log-every=50"]
SLEEP = {"TOY_SLEEP_US": "500"}


class Failed(Exception):
    pass


def run(*flags, statuses=(0, 1, 2, 3), after=None, number=None):
    """Runs the program; returns status and output. With `after` it gets the signal `number` after
    so many seconds."""
    command = [toy, f"--data-dir={data}", *QUICK, *flags]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={**os.environ, **(SLEEP if number else {})})
    try:
        if number:
            time.sleep(after)
            child.send_signal(number)
        out = child.communicate(timeout=60)[0]
    except subprocess.TimeoutExpired:
        child.kill()
        raise Failed(f"{flags} hangs")
    if child.returncode not in statuses:
        raise Failed(f"{flags}: status {child.returncode}\n{out.decode(errors='replace')[-3000:]}")
    if len(out) > 4096 or b"Sanitizer" in out or b"runtime error" in out:
        raise Failed(f"{flags}: {len(out)} bytes\n{out.decode(errors='replace')[:3000]}")
    if child.returncode in (1, 2, 3) and out.count(b"error: ") != 1:
        raise Failed(f"{flags}: status {child.returncode} without an error\n{out.decode(errors='replace')}")
    return child.returncode, out


def content(path):
    """The content of a path. Nothing is opened that could block, such as a FIFO."""
    info = path.lstat()
    return path.read_bytes() if stat.S_ISREG(info.st_mode) else stat.S_IFMT(info.st_mode)


def listing():
    return {p.name: content(p) for p in folder.iterdir()} if folder.is_dir() else {}


def is_kept(name, was, now):
    """Is the file still there: unchanged, longer (the log), or renamed to a longer name?"""
    if name.endswith(".tmp") and name.startswith("ckpt-"):
        return True
    for other, bytes_now in now.items():
        if other.startswith(name) and bytes_now == was:
            return True
    return name == "log.jsonl" and isinstance(was, bytes) and isinstance(now.get(name), bytes) and now[name].startswith(was)


def expect_kept(before, flags):
    now = listing()
    lost = [name for name, was in before.items() if not is_kept(name, was, now)]
    if lost:
        raise Failed(f"{flags}: lost {lost}")


def fresh(n=3):
    """Makes the folder of a run that was stopped, with the last n checkpoints and a log."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(good, folder)
    for path in sorted(folder.glob("ckpt-*"), key=lambda p: int(p.name[5:-12]))[n:]:
        path.unlink()


def damage(path):
    """Damages a file in one of several random ways."""
    old = path.read_bytes() if path.is_file() else b""
    kind = rng.choice(["flip", "flip", "cut", "grow", "header", "text", "random", "empty", "folder", "fifo", "loop", "zero", "dangling"])
    path.unlink(missing_ok=True)
    if kind == "flip":
        at = rng.randrange(len(old) or 1)
        path.write_bytes(old[:at] + bytes([old[at] ^ 1 << rng.randrange(8)]) + old[at + 1:] if old else b"\0")
    elif kind == "cut":
        path.write_bytes(old[:rng.randrange(len(old) + 1)])
    elif kind == "grow":
        path.write_bytes(old + rng.randbytes(rng.randrange(1, 200)))
    elif kind == "header":
        path.write_bytes(rng.randbytes(8) + old[8:])
    elif kind == "text":
        new = [b'"\\u0000"', b"1e308", b"-1", b"9223372036854775807", b"{" * 500, b'"\x1b[31m', b"\xff", b'"F64"', b"null"]
        at = rng.randrange(8, 600)
        path.write_bytes(old[:at] + rng.choice(new) + old[at + rng.randrange(20):])
    elif kind == "random":
        path.write_bytes(rng.randbytes(rng.randrange(3000)))
    elif kind == "empty":
        path.touch()
    elif kind == "folder":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        path.symlink_to({"loop": path.name, "zero": "/dev/zero", "dangling": "nowhere"}[kind])


def case_checkpoint():
    fresh()
    paths = sorted(folder.glob("ckpt-*"))
    for path in rng.sample(paths, rng.randint(1, len(paths))):
        damage(path)
    before = listing()
    flags = rng.choice([["--resume"], ["--resume"], ["--eval-only"], [f"--init-from={rng.choice(paths)}", "--model-dir="],
                        [f"--reproduce={rng.choice(paths)}"], ["--resume", f"--dump-step={scratch / 'dump'}"]])
    run(*([f"--model-dir={folder}"] if "--model-dir=" not in flags else []), *flags, "--keep-checkpoints=0")
    expect_kept(before, flags)


def case_log():
    fresh()
    damage(folder / "log.jsonl")
    before = listing()
    flags = rng.choice([["--resume"], ["--eval-only"], []])
    run(f"--model-dir={folder}", *flags, "--keep-checkpoints=0")
    expect_kept(before, flags)


def case_folder():
    fresh(rng.randint(0, 3))
    for name in rng.sample(["ckpt-.safetensors", "ckpt-99999999999999999999.safetensors", "ckpt-9223372036854775807.safetensors",
                            "ckpt--1.safetensors", "ckpt-007.safetensors", "ckpt-26.safetensors.tmp", "ckpt-30.safetensors.unreadable",
                            "log.jsonl.old", "nonfinite-3.safetensors", "\x1b[31m", "a" * 255, "ckpt-51.safetensors.tmp"], 4):
        path = folder / name
        rng.choice([path.touch, path.mkdir, lambda: path.write_bytes(rng.randbytes(50)), lambda: os.mkfifo(path),
                    lambda: shutil.copy(good / "ckpt-26.safetensors", path)])()
    before = listing()
    flags = rng.choice([["--resume"], ["--eval-only"], []])
    run(f"--model-dir={folder}", *flags, "--keep-checkpoints=0")
    expect_kept(before, flags)


def case_flags():
    """Gives random flags. A run that is refused must change nothing, with and without --clean."""
    fresh(rng.randint(0, 3))
    before = listing()
    flags = rng.sample(["--clean", "--clean", "--clean", "--resume", "--eval-only", "--train-epochs=0", f"--init-from={good / 'ckpt-26.safetensors'}",
                        f"--init-from={data}", "--inject=nan@3:image", "--inject=nan@x:image", "--trap=first-nonfinite", "--log-file=/dev/null",
                        f"--log-file={folder}", f"--log-file={folder / 'log.jsonl'}", "--dataset=cifar10", "--lr-schedule=piecewise", "--grad-histogram-every=20",
                        f"--dump-step={folder / 'ckpt-26.safetensors'}", "--dump-step=/dev/full", "--keep-checkpoints=0", "--device=cuda", "--batch-size=3"], 3)
    status, _ = run(f"--model-dir={folder}", *flags)
    refused = status == 2 or (status == 1 and "--trap=first-nonfinite" not in flags and "--inject=nan@3:image" not in flags)
    dumped = any("ckpt-26" in f and "dump" in f for f in flags)
    if refused and listing() != before:
        raise Failed(f"{flags}: refused, and the folder is not what it was")
    if "--clean" not in flags and not dumped:
        expect_kept({k: v for k, v in before.items() if k.startswith("ckpt")} if status == 0 else before, flags)


def case_data():
    fresh()
    before = listing()
    path = rng.choice(sorted(data.iterdir()))
    shutil.copytree(data, scratch / "whole")
    damage(path)
    status, _ = run(f"--model-dir={folder}", rng.choice(["--clean", "--resume"]), "--keep-checkpoints=0")
    shutil.rmtree(data)
    (scratch / "whole").rename(data)
    if status:
        expect_kept(before, "data")


def case_signal():
    """After several signals --resume must end with the checkpoint of an undisturbed run."""
    shutil.rmtree(folder, ignore_errors=True)
    every = ["--checkpoint-every=7", "--keep-checkpoints=0", f"--model-dir={folder}"]
    for _ in range(rng.randint(1, 4)):
        number = rng.choice([signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGPIPE, signal.SIGKILL])
        # a signal that comes before the handlers are installed ends the run at once, and nothing is
        # lost
        run("--resume", *every, after=rng.uniform(0, .12), number=number, statuses=(0, 128 + number, -number))
    run("--resume", *every, statuses=(0,))
    if (folder / "ckpt-102.safetensors").read_bytes() != (good / "ckpt-102.safetensors").read_bytes():
        raise Failed("the resumed run ends with other bytes")
    if not (folder / "log.jsonl").read_bytes().endswith(b"\n"):
        raise Failed("the log does not end with a line")


data.mkdir()
subprocess.run([toy, "--write-data", str(data)], check=True)
run(f"--model-dir={good}", "--keep-checkpoints=0", statuses=(0,))
kinds = [case_checkpoint, case_checkpoint, case_checkpoint, case_log, case_folder, case_flags, case_flags, case_data, case_signal]
for i in range(CASES):
    case = kinds[i % len(kinds)]
    try:
        case()
    except Failed as failure:
        sys.exit(f"case {i} of seed {SEED}, {case.__name__}, in {scratch}: {failure}")
shutil.rmtree(scratch)
print(f"{CASES} cases")
