"""ampcc's programs as contestants of rounds.py."""
import json, os, pathlib, statistics, subprocess, sys

import rounds, turns

ROOT, BUILD = rounds.ROOT, rounds.BUILD
SKIP = 2  # steps of warm-up, which are not counted


def line_ms(line, batch):
    """The time of a step in milliseconds from a line of a log written with --log-every=1, or None if the line is of something
    else. Steps that the loss scale skips are left out: they are few, and repeated in search of what overflowed."""
    event = json.loads(line)
    return 1e3 * batch / event["images_per_second"] if event["event"] == "train" and not event["skipped_steps"] else None


def step_ms(log, batch, middle=statistics.median):
    """The median time of all steps of such a log, or their mean."""
    times = [line_ms(line, batch) for line in pathlib.Path(log).read_text().splitlines()]
    return middle([ms for ms in times if ms is not None][SKIP:])


def training(program, log, steps):
    """Trains on synthetic data."""
    return [program, "--use-synthetic-data", f"--max-train-steps={steps + SKIP}", f"--train-epochs={steps + SKIP}", "--skip-eval",
            "--log-every=1", f"--log-file={log}", "-q"]


def command(program, log, steps):
    """The same with a new log."""
    return [sys.executable, "-c", "import os,sys; os.path.exists(sys.argv[1]) and os.remove(sys.argv[1]); os.execv(sys.argv[2], sys.argv[2:])", log,
            *training(program, log, steps)]


def contestant(model, dtype, batch, steps, folder, flags=(), build=(), name=""):
    """Compiles a model of the zoo; each run of the contestant trains `steps` steps on synthetic
    data. `name` tells contestants of equal type apart."""
    stem = pathlib.Path(folder) / f"{model}_{dtype}_{batch}{name}"
    subprocess.run([BUILD / "models/ampcc-zoo", model, "-o", f"{stem}.pb"], check=True)
    subprocess.run([BUILD / "frontend/ampcc", f"{stem}.pb", "-o", stem, "--target=cpu", f"--dtype={dtype}", f"--batch-size={batch}", "-q", *build], check=True)
    log = f"{stem}.jsonl"
    return rounds.Contestant(f"ampcc {dtype}{name}", [*command(stem, log, steps), *flags], lambda out: step_ms(log, batch),
                             live=lambda: turns.Live([*training(stem, log, 10 ** 6 - SKIP), *flags], lambda line: line_ms(line, batch), log))


def both_libraries(model, batch, steps, folder):
    """Each type with our own kernels and through oneDNN."""
    return [contestant(model, dtype, batch, steps, folder, build=[f"--cpu-library={library}"], name="" if library == "own" else "_onednn")
            for dtype in ("fp32", "bf16", "fp16") for library in ("own", "onednn")]
