#!/usr/bin/env python3
"""programs.py AMPCC AMPCC_ZOO CASE [full]: whole programs on several processes.

  same       20 steps of cifar_resnet8 in two processes under Open MPI, MPICH and --processes=2, on two machines, and in one process
             with --shards=2: the same checkpoint, to the byte. In fp32; full: in bf16 and fp16, too
  resume     kill -9 of a rank at a random step, resumed on 1, 2 or 4 processes with --shards=4: the checkpoint of the unbroken
             run, to the byte. 2 times; full: 20
  evaluate   on 1, 2, 3 and 4 processes: each image once, accuracy and loss equal to the last bit
  faults     kill -9, SIGSTOP and a cut cable: all processes are gone in time, and a line names the rank
  misfits    a library that is not the launcher's, a rank that never comes: status 3, and nothing is written
  rates      the official and the Keras recipe at a global batch of 2048, from 4 shards and from 2 processes (full: 1 and 2 shards, too): at
             every boundary the rates of the programs they come from
  nonfinite  NaN in one rank's batch: all skip the step, the scale is halved once, a line names the rank

Needs Open MPI and MPICH, else 77; two machines need root and iproute2 besides, and are left out with a word elsewhere."""
import json
import os
import pathlib
import random
import signal
import sys
import tempfile
import time
import zlib

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "e2e"), str(HERE.parent / "oracle")]
import data
import ranks
import shell
from ranks import Run, mpich, open_mpi
from shell import check, content, newest

AMPCC, ZOO = map(os.path.abspath, sys.argv[1:3])
FULL = "full" in sys.argv[4:]
BATCH, IMAGES = 8, 64
LIMIT = 5  # seconds within which all must be gone, with --comm-timeout=3
LONG = 600


def build(dtype="fp32", *flags):
    shell.run(ZOO, "cifar_resnet8", "-o", "cifar.pb")
    shell.run(AMPCC, "cifar.pb", "-o", "cifar_" + dtype, "--target=cpu", "--cpu=native", "--dtype=" + dtype, f"--batch-size={BATCH}", *flags)
    return os.path.abspath("cifar_" + dtype)


def flags(folder, *more):
    return ["--data-dir=" + os.path.abspath("data"), "--model-dir=" + os.path.abspath(folder), "--threads=1", "--log-every=1", "--skip-eval", *more]


def train(prefix, program, *words, status=0, **env):
    """Runs the program behind this launcher; returns what it says."""
    got, said = Run([*prefix, program, *words], **env).end(LONG)
    if got != status:
        sys.exit(f"{[*prefix, program, *words]}: status {got}, not {status}\n{said[-3000:]}")
    return said


def events(folder, kind="train"):
    """The lines of the log, without one that is half written."""
    path = pathlib.Path(folder) / "log.jsonl"
    lines = path.read_text().split("\n")[:-1] if path.exists() else []
    return [event for event in map(json.loads, lines) if event["event"] == kind]


def equal(a, b):
    """Do these folders end with the same checkpoint?"""
    return os.path.basename(newest(a)) == os.path.basename(newest(b)) and content(newest(a)) == content(newest(b))


def machines_here(case):
    """Calls case(machines) if this user can make two machines."""
    if os.geteuid() or not ranks.have("ip", "unshare"):
        print("not tried: two machines, which need root and iproute2")
        return True
    try:
        with ranks.Machines() as machines:
            return case(machines)
    except SystemExit as error:
        if error.code == ranks.SKIPPED:
            return True
        raise


def same():
    good = True
    for dtype in ("fp32", "bf16", "fp16") if FULL else ("fp32",):
        program = build(dtype)
        train([], program, *flags("one", "--max-train-steps=20", "--shards=2", "--clean"))
        train([], program, *flags("other", "--max-train-steps=20", "--shards=1", "--clean"))
        good &= check(dtype + ": one shard trains otherwise", not equal("other", "one"))

        def compare(name, prefix, *more):
            train(prefix, program, *flags("two", "--max-train-steps=20", "--clean", *more))
            (start,) = events("two", "start")
            facts = [start["ranks"], start["machines"], start["shards"], start["global_batch"], len(events("two"))]
            return check(f"{dtype}, {name}: {start['transport']}: as one process", equal("two", "one")) & \
                check("  its log", facts == [2, 2 if "machines" in name else 1, 2, 2 * BATCH, 20], *facts)

        for name, prefix in ranks.mpi_launchers(2):
            good &= compare(name, prefix)
        good &= compare("--processes=2", [], "--processes=2")
        good &= machines_here(lambda two: compare("two machines, Open MPI", two.open_mpi(1, 1)) &
                              (not (FULL and ranks.mpich_works()) or compare("two machines, MPICH", two.mpich())))
    return good


def wait_for_steps(run, folder, steps):
    until = time.monotonic() + ranks.LIMIT
    while len(events(folder)) < steps:
        if run.process.poll() is not None or time.monotonic() > until:
            text = run.text()
            run.kill()
            sys.exit(f"{run.command} never took {steps} steps:\n{text[-3000:]}")
        time.sleep(.002)


def gone_within(run, program, limit, except_for=()):
    """Seconds until no rank is left; None if that takes longer than `limit`."""
    began = time.monotonic()
    while set(run.alive(os.path.basename(program))) - set(except_for):
        if time.monotonic() - began > limit:
            return None
        time.sleep(.02)
    return time.monotonic() - began


def resume():
    good, draw, program, steps = True, random.Random(13), build(), 40
    whole = [f"--max-train-steps={steps}", "--shards=4", "--checkpoint-every=4"]
    train([], program, *flags("whole", *whole))
    for _ in range(20 if FULL else 2):
        before, after, step = draw.choice([2, 4]), draw.choice([1, 2, 4]), draw.randrange(1, steps - 5)
        shell.run("rm", "-rf", "broken")
        run = Run([*open_mpi(before), program, *flags("broken", *whole)])
        wait_for_steps(run, "broken", step)
        running = run.by_rank(os.path.basename(program))
        victim = draw.choice(sorted(running))
        os.kill(running[victim], signal.SIGKILL)
        status, said = run.end()
        done = len(events("broken"))
        good &= check(f"rank {victim} of {before} killed after step {done} of {steps}: status {status}", status != 0 and done < steps)
        train(open_mpi(after) if after > 1 else [], program, *flags("broken", *whole, "--resume"))
        good &= check(f"  went on in {after}: as the unbroken run", equal("broken", "whole"))
    return good


def evaluate():
    """61 images in batches of 8, the last of 5: no number of processes divides them."""
    data.write_cifar("data", 61)
    program = build()
    train([], program, *flags("model", "--max-train-steps=5", "--shards=2"))
    rows = {}
    for n in 1, 2, 3, 4:
        said = train(open_mpi(n) if n > 1 else [], program, "--data-dir=data", "--model-dir=model", "--eval-only", "--threads=1", f"--log-file=eval{n}.jsonl",
                     "--benchmark-logger-type=BaseBenchmarkLogger")
        (row,) = [e for e in map(json.loads, pathlib.Path(f"eval{n}.jsonl").read_text().splitlines()) if e["event"] == "eval"]
        # the log has as many digits as f32 needs, this has all
        metrics = [json.loads(line.partition(": ")[2]) for line in said.splitlines() if line.startswith("Benchmark metric: ")]
        rows[n] = row["images"], {metric["name"]: metric["value"] for metric in metrics}
    good = check("every image once", rows[1][0] == 61, rows[1])
    for n in 2, 3, 4:
        good &= check(f"{n} processes: {rows[n][1]}", rows[n] == rows[1] and "loss" in rows[n][1], rows)
    return good


def fault(what, prefix, program, hurt, says):
    """Starts a training, hurts it after some steps, and looks when its ranks are gone and what was said. hurt(numbers) returns
    the rank that cannot end by itself, or None."""
    folder = what.replace(" ", "_")
    run = Run([*prefix, program, *flags(folder, "--train-epochs=10000", "--comm-timeout=3", "-q")])
    wait_for_steps(run, folder, 3)
    numbers = run.by_rank(os.path.basename(program))
    helpless = hurt(numbers)
    took = gone_within(run, program, LIMIT, [numbers[helpless]] if helpless is not None else [])
    try:
        status = run.process.wait(3)
    except ranks.subprocess.TimeoutExpired:  # mpirun itself may wait behind a cut cable for ever
        status = "of mpirun: it waits"
    text = run.text()
    run.kill()
    said = next((line for line in text.splitlines() if says in line), "")
    good = check(f"{what}: all gone in {LIMIT} s", took is not None, text[-2000:])
    good &= check(f"  {took or 99:.1f} s, status {status}", status != 0)
    return good & check("  " + said[:70], bool(said), says, text[-2000:])


def faults():
    program = build()

    def killed(numbers):
        os.kill(numbers[1], signal.SIGKILL)

    def stopped(numbers):
        os.kill(numbers[1], signal.SIGSTOP)
        return 1

    def cut(two):
        return fault("cut cable", two.open_mpi(1, 1), program, lambda numbers: two.cut(), "for rank 1")

    good = []
    for name, prefix in ranks.mpi_launchers(2):
        # their launchers say that: Open MPI which rank, MPICH which process
        says = "process rank 1 with PID" if name == "Open MPI" else "RUNNING AT"
        ranks.at_once([lambda: good.append(fault(name + ", kill -9", prefix, program, killed, says)),
                       lambda: good.append(fault(name + ", SIGSTOP", prefix, program, stopped, "for rank 1"))])
    return all(good) and len(good) == 2 * len(ranks.mpi_launchers(2)) and machines_here(cut)


def misfits():
    good, program = True, build()
    pairs = [("MPICH", mpich(2), "Open MPI", "libmpi.so.40")]
    if ranks.mpich_works():  # one that is built for PMIx belongs to Open MPI's launcher
        pairs.append(("Open MPI", open_mpi(2), "MPICH", "libmpich.so.12"))
    for name, prefix, other, file in pairs:
        said = train(prefix, program, *flags("never", "--max-train-steps=2", "--mpi-library=" + file), status=3)
        said = next((line for line in said.splitlines() if "do not belong together" in line), said)
        print("   ", said)
        good &= check(f"{name}'s launcher, {other}'s library: both are named", f"of {name}" in said.replace("mpiexec of MPICH", "of MPICH") and other in said)
        good &= check("  nothing was written", not os.path.exists("never"))
    words = [program, *flags("never", "--max-train-steps=2", "--connect-timeout=2")]
    ended = [run.end() for run in ranks.start_torchrun(3, words, ranks=[0, 2])]
    good &= check("a rank that never comes: status 3", [status for status, _ in ended] == [3, 3], ended)
    said = next((line for line in ended[0][1].splitlines() if "error" in line), "")
    good &= check("  " + said[:70], "rank 1" in said, ended)
    return good & check("  nothing was written", not os.path.exists("never"))


def nonfinite():
    """Batch 11 of the stream is the second shard's in step 6."""
    good, program = True, build("fp16", "--loss-scale=dynamic:init=1024,interval=1000")
    inject = ["--max-train-steps=12", "--inject=nan@11:image"]
    train([], program, *flags("one", "--shards=2", *inject))
    said = train(open_mpi(2), program, *flags("two", *inject))
    good &= check("the same checkpoint as of one process", equal("two", "one"))
    log = events("two")
    skipped = [e["step"] for e in log if e["skipped_steps"]]
    scales = [e["loss_scale"] for e in log]
    good &= check(f"one of {len(log)} steps was skipped", len(log) == 13 and skipped == [5], skipped)
    good &= check("the scale is halved once", scales == [1024] * 5 + [512] * 8, scales)
    lines = [line for line in said.splitlines() if "skipped step" in line]
    good &= check("  " + " ".join(lines)[:70], len(lines) == 1 and "rank 1" in lines[0], said[-2000:])
    return good


# specs/resnet.md 3.1 at a global batch of 2048: rate, steps of the warm-up, steps up to which a rate holds, the factors of the rate
RECIPES = {"official": (1.024, 3127, [18767, 37534, 50045, 56301], [1, .1, .01, .001, 1e-4]),
           "keras-ctl": (.8, 3125, [18750, 37500, 50000], [1, .1, .01, .001])}


def at_step(path, step, folder):
    """Writes a checkpoint as if it were of that step."""
    header, body = shell.safetensors(path)
    begin, end = header["global_step"]["data_offsets"]
    body = body[:begin] + step.to_bytes(8, "little") + body[end:]
    header["__metadata__"] |= {"step": str(step), "examples": str(step * 2048), "crc32": f"{zlib.crc32(body):08x}"}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    os.makedirs(folder)
    pathlib.Path(folder, f"ckpt-{step}.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + body)


def rates():
    """The rate of a step, counted from 0, around the end of the warm-up and every change. Images are black: nothing is learnt."""
    good = True
    shell.run(ZOO, "mlp", "-o", "mlp.pb")
    words = ["--use-synthetic-data", "--synthetic-examples=1281167", "--synthetic-mean=0", "--synthetic-stddev=0", "--log-every=1", "--skip-eval", "--threads=1",
             "--train-epochs=91"]
    for name, (base, warm, changes, factors) in RECIPES.items():
        def want(step):
            return base * step / warm if step < warm else base * factors[sum(step > change for change in changes)]

        for n, prefix in ((1, []), (2, []), (4, []), (2, open_mpi(2))) if FULL else ((4, []), (2, open_mpi(2))):
            program = os.path.abspath(f"{name}_{n}")
            if not os.path.exists(program):
                shell.run(AMPCC, "mlp.pb", "-o", program, "--target=cpu", "--cpu=native", "--recipe=" + name, f"--batch-size={2048 // n}")
            shards, got, wanted = [] if prefix else [f"--shards={n}"], {}, {}
            train(prefix, program, *words, *shards, "--model-dir=start", "--clean", "--max-train-steps=2")
            for change in [0, warm - 2, *(change - 1 for change in changes)]:
                shell.run("rm", "-rf", "at")
                at_step("start/ckpt-2.safetensors", change, "at")
                train(prefix, program, *words, *shards, "--model-dir=at", "--resume", f"--max-train-steps={change + 3}")
                got |= {e["step"] - 1: e["learning_rate"] for e in events("at")}
                wanted |= {step: want(step) for step in range(change, change + 3)}
            far = max(abs(got.get(step, 9) - rate) / max(rate, 1e-9) for step, rate in wanted.items())
            what = f"{n} processes" if prefix else f"{n} shards"
            good &= check(f"{name}, {what} of {2048 // n}: {len(wanted)} rates within {far:.0e}", far <= 3e-7 and len(got) == len(wanted), got, wanted)
    return good


CASES = {case.__name__: case for case in (same, resume, evaluate, faults, misfits, nonfinite, rates)}


def main():
    if not ranks.have("mpirun.openmpi", "mpirun.mpich"):
        print("skipped: needs Open MPI and MPICH")
        return ranks.SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        data.write_cifar("data", IMAGES)
        good = CASES[sys.argv[3]]()
        os.chdir("/")
    return 0 if good else 1


sys.exit(main())
