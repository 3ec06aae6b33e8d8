"""Tests that a run keeps its results whatever happens around it: lost.py TOY

That is signals, a closed or broken standard output, FIFOs, and folders that cannot be written.

Each function is one case; `run` ends a program that hangs."""
import gzip
import json
import os
import pathlib
import resource
import signal
import subprocess
import sys
import tempfile
import time

toy = sys.argv[1]
scratch = pathlib.Path(tempfile.mkdtemp())
DATA = f"--data-dir={scratch}"
for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
    # a signal that nohup or a shell's `&` has set to be ignored would stay ignored in children
    signal.signal(number, signal.SIG_DFL)


def start(*flags, sleep_us=0, **how):
    how.setdefault("stderr", subprocess.DEVNULL)
    return subprocess.Popen([toy, DATA, *flags], text=True, env={"TOY_SLEEP_US": str(sleep_us)}, **how)


def run(*flags, status=0, **how):
    """Runs the program; returns its standard output and standard error."""
    child = start(*flags, stdout=how.pop("stdout", subprocess.PIPE), stderr=subprocess.PIPE, **how)
    try:
        out, err = child.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        child.kill()
        raise AssertionError(f"{flags}: hangs")
    assert child.returncode == status, f"{flags}: status {child.returncode}\n{out}{err}"
    return out or "", err


def shell(command, status=0):
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60)
    assert done.returncode == status, f"{command}: status {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def events(path):
    lines = path.read_text().splitlines()
    return [json.loads(line)["event"] for line in lines]


def wait_for(condition):
    for _ in range(1000):
        if condition():
            return
        time.sleep(.01)
    raise AssertionError("waited in vain")


def signals_save():
    """After SIGINT, SIGTERM and SIGHUP the run saves, says so, and ends with status 128 + number.
    SIGHUP may come several times."""
    for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
        folder = scratch / number.name
        child = start(f"--model-dir={folder}", "--log-every=1", sleep_us=20000, stdout=subprocess.PIPE)
        wait_for(lambda: (folder / "log.jsonl").exists() and "train" in events(folder / "log.jsonl"))
        for _ in range(3 if number == signal.SIGHUP else 1):
            child.send_signal(number)
        out = child.communicate(timeout=60)[0]
        assert child.returncode == 128 + number, child.returncode
        assert f"stopped by {number.name} at step" in out, out
        assert list(folder.glob("ckpt-*.safetensors")), "nothing was saved"
        run(f"--model-dir={folder}", "--resume", "--max-train-steps=40")


def nohup():
    """A signal that was ignored at the start stays ignored."""
    folder = scratch / "nohup"
    child = start(f"--model-dir={folder}", "--log-every=1", "--max-train-steps=20", sleep_us=10000,
                  stdout=subprocess.DEVNULL, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    wait_for(lambda: (folder / "log.jsonl").exists() and "train" in events(folder / "log.jsonl"))
    child.send_signal(signal.SIGHUP)
    assert child.wait(timeout=60) == 0 and (folder / "ckpt-20.safetensors").exists()


def broken_pipe():
    """When the reader of its pipe has ended, the run goes on, says so once, and saves."""
    folder = scratch / "pipe"
    reader, writer = os.pipe()
    os.close(reader)
    err = run(f"--model-dir={folder}", "--log-every=1", "--max-train-steps=9", stdout=writer)[1]
    os.close(writer)
    assert err.count("cannot write to standard output: Broken pipe; the run goes on") == 1, err
    assert (folder / "ckpt-9.safetensors").exists()


def tee():
    """Ctrl-C under `| tee` reaches both processes, so the reader has ended when the run saves and
    says that it stops."""
    folder = scratch / "tee"
    reader = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, preexec_fn=os.setpgrp)
    child = start(f"--model-dir={folder}", "--log-every=1", sleep_us=20000, stdout=reader.stdin,
                  stderr=subprocess.STDOUT, preexec_fn=lambda: os.setpgid(0, reader.pid))
    reader.stdin.close()
    wait_for(lambda: (folder / "log.jsonl").exists() and "train" in events(folder / "log.jsonl"))
    os.killpg(reader.pid, signal.SIGINT)
    reader.wait(timeout=60)
    assert child.wait(timeout=60) == 130, child.returncode
    assert list(folder.glob("ckpt-*.safetensors")), "nothing was saved"


def closed_descriptors():
    """No file that the run opens gets descriptor 0, 1 or 2, if these were closed at its start."""
    for closed in ">&-", "<&- >&-", "<&- >&- 2>&-", "2>&-":
        folder = scratch / f"closed{len(closed)}"
        shell(f"'{toy}' {DATA} --model-dir={folder} --log-every=1 --max-train-steps=3 {closed}")
        assert events(folder / "log.jsonl") == ["start", "train", "train", "train", "checkpoint", "eval"], \
            (folder / "log.jsonl").read_text()


def no_regular_file():
    """A path that is not a regular file is neither waited for nor replaced; /dev/null is written
    to."""
    fifo, link, nowhere, target = (scratch / name for name in ("fifo", "link", "nowhere", "target"))
    os.mkfifo(fifo)
    nowhere.symlink_to("none")
    link.symlink_to("target")
    target.write_bytes(b"x")
    assert "not a regular file" in run(f"--init-from={fifo}", "--model-dir=", status=1)[1]
    assert "cannot write the log" in run(f"--log-file={fifo}", "--model-dir=", status=3)[1]
    for path in fifo, link, nowhere, "/dev/full", scratch:
        assert "is no regular file" in run(f"--dump-step={path}", status=1)[1]
    assert fifo.is_fifo() and nowhere.is_symlink() and not nowhere.exists()
    null = os.stat("/dev/null")
    run("--dump-step=/dev/null")
    assert os.stat("/dev/null").st_ino == null.st_ino
    assert link.is_symlink() and target.read_bytes() == b"x"
    (scratch / "target.tmp").write_text("mine")
    run(f"--dump-step={target}")
    assert target.stat().st_size > 1000
    assert (scratch / "target.tmp").read_text() == "mine"


def full_stdout():
    """A training goes on when standard output is full."""
    with open("/dev/full", "w") as full:
        assert "the run goes on" in run("--model-dir=", "--max-train-steps=3", stdout=full)[1]


def quiet():
    """-q prints the result alone."""
    out = run("-q", "--model-dir=", "--max-train-steps=3")[0]
    assert out.startswith("test accuracy") and out.count("\n") == 1, out


def log_to_stdout():
    """With --log-file=- standard output has the log and nothing else."""
    out, err = run("--log-file=-", f"--model-dir={scratch / 'm'}", "--max-train-steps=3")
    assert [json.loads(line)["event"] for line in out.splitlines()] == ["start", "train", "checkpoint", "eval"], out
    assert "test accuracy" in err and not (scratch / "m" / "log.jsonl").exists() and not pathlib.Path("-").exists()


def read_only_folder():
    """An evaluation works in a folder where nothing can be written."""
    folder = scratch / "read-only"
    run(f"--model-dir={folder}", "--max-train-steps=3")
    before = (folder / "log.jsonl").read_bytes()
    os.chmod(scratch, 0o755)
    for path in [*folder.iterdir(), folder]:
        os.chmod(path, 0o555)
    user = {"user": 65534} if os.geteuid() == 0 else {}
    out = run(f"--model-dir={folder}", "--eval-only", **user)[0]
    assert "test accuracy" in out and "this evaluation is not logged" in out, out
    assert (folder / "log.jsonl").read_bytes() == before
    os.chmod(folder, 0o755)


def printed_or_told():
    """Where printing is all that was asked for, a failure to print is an error."""
    for flag in "--help", "--about", "--version", "--print-memory-plan", "--print-precision":
        with open("/dev/full", "w") as full:
            err = run(flag, stdout=full, status=3)[1]
        assert "cannot write to standard output: No space left" in err, err
        done = subprocess.run(["sh", "-c", '"$0" "$1" >&-', toy, flag], capture_output=True, text=True)
        assert done.returncode == 3 and "standard output is closed" in done.stderr, done


def plain_text():
    """Control characters in names and paths do not reach the terminal."""
    red = scratch / "\x1b[31mred\u009b2J\u202e"
    red.symlink_to(os.path.abspath(toy))
    for flags in (["--help"], ["--dataset=\x1b[2J"], ["--dtype=\x1b[2J"], ["\x1b[2J\n"], [f"--data-dir={red}"],
                  [DATA, f"--model-dir={red}m", "--max-train-steps=2"], [DATA, f"--model-dir={red}m", "--resume", "--max-train-steps=3"]):
        done = subprocess.run([str(red), *flags], capture_output=True, text=True)
        text = done.stdout + done.stderr
        assert "?[31mred" in text or "?[2J" in text or DATA in flags, text
        assert not set(text) & set("\x1b\u009b\u202e"), repr(text)


def low_memory():
    """Too little memory is reported with a size and status 3; files are not called damaged and
    nothing crashes."""
    packed = scratch / "packed"
    packed.mkdir()
    for name, head, item in (("images-idx3", b"\0\0\x08\x03%b\0\0\0\x08\0\0\0\x08", 64), ("labels-idx1", b"\0\0\x08\x01%b", 1)):
        for part, n in ("train", 400000), ("t10k", 8):
            with gzip.open(packed / f"{part}-{name}-ubyte.gz", "wb", 1) as file:
                file.write(head % n.to_bytes(4, "big") + bytes(n * item))
    for mib in 8, 12, 16, 24, 32:
        def limit():
            resource.setrlimit(resource.RLIMIT_AS, (mib << 20, mib << 20))
        if subprocess.run([toy, "--version"], preexec_fn=limit, capture_output=True).returncode:
            continue  # a sanitizer needs more memory for itself
        done = subprocess.run([toy, f"--data-dir={packed}", "--model-dir=", "--max-train-steps=1"], preexec_fn=limit, capture_output=True, text=True)
        assert done.returncode == 3 and "no memory for " in done.stderr and "MiB)" in done.stderr, (mib, done)


subprocess.run([toy, "--write-data", str(scratch)], check=True)
for case in printed_or_told, plain_text, low_memory, signals_save, nohup, broken_pipe, tee, closed_descriptors, no_regular_file, full_stdout, quiet, log_to_stdout, read_only_folder:
    try:
        case()
    except AssertionError as failure:
        sys.exit(f"{case.__name__}: {failure}")
subprocess.run(["rm", "-rf", str(scratch)], check=True)
