"""Tests the progress line: terminal.py TOY

On a terminal it is written over itself and fits the width, and the last one stays; in a pipe, and on a terminal without a width, there
are plain lines. The test is skipped where no pseudo-terminal can be had, as in a container or a chroot without /dev/pts."""
import fcntl
import os
import pty
import struct
import subprocess
import sys
import tempfile
import termios

toy = sys.argv[1]


def run_on_terminal(argv, columns):
    try:
        main, other = pty.openpty()
    except OSError as error:
        print(f"no pseudo-terminal can be had: {error}")
        sys.exit(77)
    fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    child = subprocess.Popen(argv, stdout=other, stderr=other, env={"TOY_SLEEP_US": "8000"})
    os.close(other)
    text = b""
    while True:
        try:
            more = os.read(main, 4096)
        except OSError:
            more = b""
        if not more:
            break
        text += more
    if child.wait() != 0:
        sys.exit(text.decode())
    return text.decode()


with tempfile.TemporaryDirectory() as scratch:
    subprocess.run([toy, "--write-data", scratch], check=True)
    flags = [toy, f"--data-dir={scratch}", "--model-dir=", "--max-train-steps=102", "--train-epochs=4",
             "--epochs-between-evals=4"]
    text = run_on_terminal(flags, 60)
    lines = text.split("\n")
    drawn = [part for line in lines for part in line.split("\r") if part.startswith("epoch")]
    kept = [line for line in lines if line.split("\r")[-2:][0].startswith("epoch")]
    if len(drawn) < 3:
        sys.exit(f"the line was drawn {len(drawn)} times:\n{text!r}")
    if any(len(part.rstrip()) > 59 for part in drawn[:-1]):
        sys.exit(f"a line is wider than the terminal:\n{text!r}")
    if not any("step 102" in line and "left" in line for line in kept):
        sys.exit(f"the last line did not stay:\n{text!r}")
    text = run_on_terminal(flags, 0)
    if text.replace("\r\n", "\n").count("\r"):
        sys.exit(f"not plain lines, where the terminal has no width:\n{text!r}")
    piped = subprocess.run(flags, capture_output=True, text=True, check=True).stdout
    if "\r" in piped or piped.count("\nepoch") != 3:
        sys.exit(f"not plain lines:\n{piped!r}")
