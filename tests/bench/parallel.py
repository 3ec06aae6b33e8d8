#!/usr/bin/env python3
"""parallel.py [before] [processes]: what several processes cost and bring.

  before     one process now against one of the tree BEFORE=dir, which was built before there were several (595c81f): CIFAR ResNet-20,
             batch 128, and ResNet-50, batch 8
  processes  ResNet-50, 8 images a step: 2 processes with 1 thread each against 1 process with 2 threads

Interleaved rounds as in the other benchmarks; see README.md."""
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import ours
import rounds

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "parallel"))
import ranks


def program(build, model, batch, folder, name, *flags):
    stem = pathlib.Path(folder) / name
    subprocess.run([build / "models/ampcc-zoo", model, "-o", f"{stem}.pb"], check=True)
    subprocess.run([build / "frontend/ampcc", f"{stem}.pb", "-o", stem, "--target=cpu", f"--batch-size={batch}", "-q", *flags], check=True)
    return stem


def contestant(name, prefix, program, images, steps, *flags):
    """`images` are those of a step, of all processes together."""
    log = f"{program}_{name.replace(' ', '_')}.jsonl"
    fresh = "import os,sys; os.path.exists(sys.argv[1]) and os.remove(sys.argv[1]); os.execvp(sys.argv[2], sys.argv[2:])"
    command = [sys.executable, "-c", fresh, log, *prefix, program, "--use-synthetic-data", f"--max-train-steps={steps + ours.SKIP}",
               "--train-epochs=1", "--log-every=1", f"--log-file={log}", "--skip-eval", "-q", *flags]
    return rounds.Contestant(name, command, lambda out: ours.step_ms(log, images), ranks.CLEAN)


def play(title, images, base, other, n_rounds):
    print(f"\n{title}, {os.cpu_count()} processors")
    rounds.play_rounds([base, other], n_rounds)
    rounds.table([base, other], base, images)
    return statistics.median(b / o for b, o in zip(base.ms, other.ms))


def main():
    cases = sys.argv[1:] or ["before", "processes"]
    steps, n_rounds = int(os.environ.get("STEPS", 20)), int(os.environ.get("ROUNDS", 5))
    with tempfile.TemporaryDirectory() as folder:
        if "before" in cases:
            old = pathlib.Path(os.environ["BEFORE"]).resolve()
            for model, batch in ("cifar_resnet20", 128), ("resnet50", 8):
                both = [program(build, model, batch, folder, f"{model}_{name}") for build, name in ((old, "before"), (ours.BUILD, "now"))]
                base, now = (contestant(name, [], p, batch, steps) for name, p in zip(("before", "now"), both))
                ratio = play(f"{model}, batch {batch}, one process", batch, base, now, n_rounds)
                print(f"time now / before: {1 / ratio:.3f}")
        if "processes" in cases:
            one = program(ours.BUILD, "resnet50", 8, folder, "one")
            two = program(ours.BUILD, "resnet50", 4, folder, "two")
            base = contestant("1 process x 2", [], one, 8, steps, "--threads=2")
            other = contestant("2 processes x 1", ranks.open_mpi(2, "--bind-to", "none"), two, 8, steps, "--threads=1")
            play("resnet50, 8 images a step", 8, base, other, n_rounds)


main()
