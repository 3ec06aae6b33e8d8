#!/usr/bin/env python3
"""soak.py [MINUTES]: four processes train CIFAR ResNet-20 for MINUTES (30). About every minute one of them, drawn at random, is killed
by kill -9, and models/cluster/restart.sh starts them again from the last checkpoint. At the end SIGTERM stops the training; then as many
steps are trained without any disturbance, and both checkpoints must be equal to the byte.

CIFAR names the folder of CIFAR-10's binary files (default: made up ones), BUILD the build folder, SEED the kills (default: the time),
WORK the folder of models and programs (default: a temporary one)."""
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / part) for part in ("parallel", "oracle", "e2e")]
import data
import ranks
from shell import content, newest

BUILD = pathlib.Path(os.environ.get("BUILD", ROOT / "build")).resolve()
PROCESSES, BATCH, EVERY = 4, 32, 50
PROGRAM = "soak_r20"


def flags(folder, *more):
    return ["--data-dir=" + str(DATA), "--model-dir=" + folder, f"--processes={PROCESSES}", "--threads=1", "--train-epochs=200",
            "--epochs-between-evals=2", f"--checkpoint-every={EVERY}", "--keep-checkpoints=2", "--log-every=10", "-q", *more]


def events(folder):
    path = pathlib.Path(folder) / "log.jsonl"
    return [json.loads(line) for line in path.read_text().split("\n")[:-1]] if path.exists() else []


def kill_some(run, draw, stop, kills):
    while not stop.wait(draw.uniform(40, 80)):
        running = run.by_rank(PROGRAM)
        if running:
            rank = draw.choice(sorted(running))
            os.kill(running[rank], signal.SIGKILL)
            steps = [e["step"] for e in events("soak") if e["event"] == "train"]
            kills.append(rank)
            print("%s killed rank %d after step %d" % (time.strftime("%H:%M:%S"), rank, steps[-1] if steps else 0), flush=True)


def soak(minutes, seed):
    """The disturbed training; returns the kills."""
    kills, stop = [], threading.Event()
    run = ranks.Run(["sh", ROOT / "models/cluster/restart.sh", "./" + PROGRAM, *flags("soak", "--resume")], PAUSE="1", QUICK="5")
    killer = threading.Thread(target=kill_some, args=(run, random.Random(seed), stop, kills))
    killer.start()
    try:
        run.process.wait(minutes * 60)
        early = True
    except subprocess.TimeoutExpired:
        early = False
    stop.set()
    killer.join()
    if early:
        sys.exit("the training ended by itself:\n" + run.text()[-3000:])
    run.process.send_signal(signal.SIGTERM)
    status, said = run.end(300)
    print(f"stopped, status {status}; what was said last: {said.strip().splitlines()[-1]}")
    return kills


def main():
    global DATA
    minutes = float(sys.argv[1]) if len(sys.argv) > 1 else 30
    seed = os.environ.get("SEED", str(int(time.time())))
    work = pathlib.Path(os.environ.get("WORK", tempfile.mkdtemp(prefix="soak"))).resolve()
    work.mkdir(exist_ok=True)
    os.chdir(work)
    DATA = os.environ.get("CIFAR", work / "data")
    if DATA == work / "data":
        data.write_cifar(DATA, 512)
    subprocess.run([BUILD / "models/ampcc-zoo", "cifar_resnet20", "-o", "r20.pb"], check=True)
    subprocess.run([BUILD / "frontend/ampcc", "r20.pb", "-q", "--target=cpu", f"--batch-size={BATCH}", "-o", PROGRAM], check=True)
    print(f"{minutes:g} minutes in {work}, SEED={seed}", flush=True)
    kills = soak(minutes, seed)
    disturbed = newest("soak")
    step = int(disturbed.split("-")[-1].split(".")[0])
    starts = [e for e in events("soak") if e["event"] == "start"]
    print(f"{len(kills)} kills, {len(starts)} starts, {step} steps; now the same without kills", flush=True)
    subprocess.run(["./" + PROGRAM, *flags("calm", f"--max-train-steps={step}")], check=True, stdin=subprocess.DEVNULL, env=ranks.CLEAN)
    calm = newest("calm")
    same = os.path.basename(calm) == os.path.basename(disturbed) and content(calm) == content(disturbed)
    print(f"{disturbed} and {calm}: {'equal to the byte' if same else 'DIFFERENT'}")
    sys.exit(0 if same and kills and len(starts) > 1 else 1)


main()
