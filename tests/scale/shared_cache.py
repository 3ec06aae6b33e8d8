#!/usr/bin/env python3
"""Many ampcc on one cache, with kill -9 and flipped bits in between: every program that is made is right.
shared_cache.py AMPCC RESOURCES [ROUNDS AT_ONCE]

Each round starts AT_ONCE ampcc on one folder, most of them of a few models at random, while others are killed at random moments and a
process flips bits, cuts, empties and deletes entries. Each program that an ampcc has finished is compared with the one made without a
cache, and so are the exit status and what is left in the folder of outputs. At the end --cache-verify must find what was damaged and
nothing else. ./check runs 2 rounds of 6; 20 rounds of 50 take some minutes. Skipped (77) with sanitizers."""
import os, pathlib, random, signal, subprocess, sys, tempfile, threading, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "codegen"))
from caches import AMPCC, command as cache_command, skip_if_sanitized, small_model  # noqa: E402

ROUNDS, AT_ONCE = [int(word) for word in sys.argv[3:5]] or [2, 6]
MODELS = 3
rng = random.Random(1)


def command(model, out, cache="cache"):
    return cache_command(cache=cache, model=f"{model}.amp", out=out)


def spoil(own, path, how):
    """False if another process has replaced or deleted the entry."""
    try:
        if how == "flip":
            with path.open("r+b") as file:
                at = own.randrange(path.stat().st_size)
                file.seek(at)
                byte = file.read(1)[0]
                file.seek(at)
                file.write(bytes([byte ^ 1 << own.randrange(8)]))
        elif how == "delete":
            path.unlink()
        else:
            os.truncate(path, own.randrange(path.stat().st_size) if how == "cut" else 0)
    except (OSError, IndexError, ValueError):
        return False
    return True


def entries():
    return [path for path in pathlib.Path("cache").glob("*") if not path.name.startswith("new.")]


def damage(stop, counts):
    """Spoils an entry now and then, as a bad disk or a person would."""
    own = random.Random(2)
    while not stop.wait(0.05):
        there = entries()
        how = own.choice(["flip"] * 12 + ["cut", "empty", "delete"])
        if there and spoil(own, own.choice(there), how):
            counts[how] = counts.get(how, 0) + 1


def run_round(number, right):
    """Returns how many programs were made, all of them right, and how often an ampcc met what was damaged."""
    running, made, met = [], 0, 0
    for model in range(MODELS):  # so that there is something to find, and half of it is damaged
        subprocess.run(command(model, "filled"), check=True, stderr=subprocess.DEVNULL)
    for path in entries():
        if rng.random() < 0.5:
            spoil(rng, path, "flip")
    for i in range(AT_ONCE):
        model = rng.randrange(MODELS)
        out = f"out/{number}.{i}"
        running.append((model, out, rng.random() < 0.3, subprocess.Popen(command(model, out), stderr=subprocess.PIPE)))
    for _, _, victim, process in running:
        if victim:
            time.sleep(rng.random() * 0.1)
            process.send_signal(signal.SIGKILL)
    for model, out, victim, process in running:
        _, said = process.communicate()
        met += said.count(b" damaged")
        if process.returncode == 0:
            made += 1
            if pathlib.Path(out).read_bytes() != right[model]:
                sys.exit(f"round {number}: {out} is not the program of model {model}")
        elif not victim or process.returncode != -signal.SIGKILL:
            sys.exit(f"round {number}: status {process.returncode}: {said.decode()}")
        elif pathlib.Path(out).exists() and pathlib.Path(out).read_bytes() != right[model]:
            sys.exit(f"round {number}: a killed ampcc left half a program")
    return made, met


def check():
    right = []
    for model in range(MODELS):
        pathlib.Path(f"{model}.amp").write_text(small_model(model + 1))
        subprocess.run(command(model, "right", cache=""), check=True, stderr=subprocess.DEVNULL)
        right.append(pathlib.Path("right").read_bytes())
    skip_if_sanitized(right[0])
    os.mkdir("out")
    stop, counts = threading.Event(), {}
    thread = threading.Thread(target=damage, args=(stop, counts))
    thread.start()
    try:
        made, met = (sum(counts) for counts in zip(*(run_round(number, right) for number in range(ROUNDS))))
    finally:
        stop.set()
        thread.join()
    print(f"{made} of {ROUNDS * AT_ONCE} programs made, the others killed; damaged: {counts}, met by ampcc: {met}")
    subprocess.run([AMPCC, "--cache-verify", "--cache-dir=cache"], stdout=subprocess.DEVNULL)
    if subprocess.run([AMPCC, "--cache-verify", "--cache-dir=cache"], stdout=subprocess.DEVNULL).returncode != 0:
        sys.exit("--cache-verify left damaged entries")
    for model in range(MODELS):
        for _ in range(2):
            subprocess.run(command(model, "last"), check=True, stderr=subprocess.DEVNULL)
            if pathlib.Path("last").read_bytes() != right[model]:
                sys.exit("a wrong program at the end")


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    os.environ["TMPDIR"] = folder  # an ampcc that is killed leaves its temporary folder
    check()
