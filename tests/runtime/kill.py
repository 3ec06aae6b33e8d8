"""Tests that a training survives kill -9 at random moments: kill.py PROGRAM [FLAG...]

The program is killed and resumed until it is done. Its last checkpoint must equal that of an undisturbed run to the bit, and no
checkpoint may ever be unreadable. Without flags PROGRAM is the toy, with flags any program, for example
    kill.py ./train_fashion --max-train-steps=40 --checkpoint-every=3"""
import json
import os
import pathlib
import random
import signal
import struct
import subprocess
import sys
import tempfile
import time
import zlib

KILLS = 20


def check_file(path):
    """Reads a checkpoint with code that shares nothing with that of the program."""
    data = path.read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + size])
    crc = header["__metadata__"]["crc32"]
    if f"{zlib.crc32(data[8 + size:]):08x}" != crc:
        sys.exit(f"{path}: wrong checksum")
    end = 0
    for entry in (v for k, v in header.items() if k != "__metadata__"):
        end = max(end, entry["data_offsets"][1])
    if end != len(data) - 8 - size:
        sys.exit(f"{path}: {end} bytes of tensors")


def newest(folder):
    steps = [int(p.name.split("-")[1].split(".")[0]) for p in folder.glob("ckpt-*.safetensors")]
    return max(steps, default=0)


def main(program, flags):
    random.seed(1)
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        env = dict(os.environ)
        if not flags:
            subprocess.run([program, "--write-data", str(scratch)], check=True)
            flags = [f"--data-dir={scratch}", "--checkpoint-every=1", "-q"]
            env["TOY_SLEEP_US"] = "1000"
        start = time.monotonic()
        subprocess.run([program, *flags, f"--model-dir={scratch}/whole"], check=True, env=env,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        whole = time.monotonic() - start
        broken = scratch / "broken"
        killed = 0
        while True:
            run = subprocess.Popen([program, *flags, "--resume", f"--model-dir={broken}"], env=env,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            if killed < KILLS:
                # long enough for some steps, including the start of the program, and shorter than
                # the whole run
                time.sleep(random.uniform(0, max(0.05, 2.5 * whole / KILLS)))
                if run.poll() is None:
                    run.send_signal(signal.SIGKILL)
                    run.wait()
                    killed += 1
                    for path in broken.glob("ckpt-*.safetensors"):
                        check_file(path)
                    continue
                if run.returncode == 0: # it ended before the kill, so start again
                    for path in broken.iterdir():
                        path.unlink()
                    continue
            said = run.communicate()[1]
            if run.returncode != 0:
                sys.exit(f"the resumed run failed: {run.returncode}\n{said}")
            break
        last = newest(scratch / "whole")
        name = f"ckpt-{last}.safetensors"
        if newest(broken) != last:
            sys.exit(f"ends at step {newest(broken)}, not {last}")
        check_file(broken / name)
        if (broken / name).read_bytes() != (scratch / "whole" / name).read_bytes():
            sys.exit(f"{name} differs after {killed} kills")
        print(f"{killed} kills, {name} is the same")


main(sys.argv[1], sys.argv[2:])
