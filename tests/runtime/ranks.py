"""ranks.py TOY [TEST...]: whole runs of the toy program as several processes that meet over TCP, as torchrun starts
them. KILLS=N in the environment: so many runs are killed."""
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))
from ports import free_port

TOY = os.path.abspath(sys.argv[1])
LAUNCHERS = ("OMPI_", "PMI", "SLURM_", "WORLD_", "MASTER_", "RANK")
ALONE = {k: v for k, v in os.environ.items() if not k.startswith(LAUNCHERS)}


class Run:
    """One run of `size` processes; own[r] is what rank r is given besides. size 1: alone."""

    def __init__(self, where, size, line, own=None, env=None, cores=None):
        self.process, self.out, self.status = [], [], []
        base = dict(ALONE, WORLD_SIZE=str(size), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free_port()))
        for r in range(size):
            more = dict(base, RANK=str(r), LOCAL_RANK=str(r), **(env or {})) if size > 1 else dict(ALONE, **(env or {}))
            argv = [TOY, "--data-dir=.", "--threads=1", "--comm-timeout=20", *line.split(), *(own or {}).get(r, "").split()]
            self.process.append(subprocess.Popen(argv, cwd=where, env=more, text=True, stdout=subprocess.PIPE,
                                                 stderr=subprocess.STDOUT,
                                                 preexec_fn=cores and (lambda: os.sched_setaffinity(0, cores))))

    def begun(self, log):
        """Returns once the training has begun that writes this log."""
        deadline = time.time() + 30
        while not (log.exists() and '"start"' in log.read_text()) and time.time() < deadline:
            time.sleep(.02)
        time.sleep(.3)
        return self

    def wait(self, want=0):
        for p in self.process:
            self.out.append(p.communicate(timeout=60)[0])
            self.status.append(p.returncode)
        assert all(s == want for s in self.status), (want, self.status, self.out)
        return self


def run(where, size, line, want=0, **more):
    return Run(where, size, line, **more).wait(want)


def events(where, folder, kind):
    lines = [json.loads(x) for x in (where / folder / "log.jsonl").read_text().splitlines()]
    return [x for x in lines if x["event"] == kind]


def same(where, a, b):
    x, y = (where / a).read_bytes(), (where / b).read_bytes()
    assert x == y, f"{a} and {b} differ"


def test_bits(where):
    """Checkpoints and scores depend on the number of shards, and not on the number of processes."""
    run(where, 1, "--model-dir=one --shards=4 --log-every=2")
    for size in 2, 4:
        r = run(where, size, f"--model-dir=p{size} --shards=4 --log-every=2")
        for step in 7, 13, 20, 26:
            same(where, f"one/ckpt-{step}.safetensors", f"p{size}/ckpt-{step}.safetensors")
        assert all(not o.replace("warning", "") for o in r.out[1:]), r.out  # rank 0 alone speaks
        assert f"1 threads in each of {size} processes\n" in r.out[0], r.out[0]
        start, = events(where, f"p{size}", "start")
        assert (start["ranks"], start["shards"], start["machines"], start["global_batch"]) == (size, 4, 1, 32), start
        assert "shared memory" in start["transport"], start
        score = ["step", "loss", "accuracy", "images"]
        assert [[e[k] for k in score] for e in events(where, "one", "eval")] == \
            [[e[k] for k in score] for e in events(where, f"p{size}", "eval")]
        for a, b in zip(events(where, "one", "train"), events(where, f"p{size}", "train")):
            assert all(a[k] == b[k] for k in ("step", "loss", "accuracy", "learning_rate", "loss_scale")), (a, b)
            assert 0 <= b["comm_exposed"] <= 1 and b["slowest_rank"] in range(size) and b["slowest_excess"] >= 0, b
    run(where, 3, "--model-dir=p3 --max-train-steps=3")  # shards: as many as processes, whatever their number
    assert events(where, "p3", "start")[0]["shards"] == 3


def test_evaluation(where):
    """50 images are 7 batches, the last of 2: every image once, added up in the same order."""
    run(where, 1, "--model-dir=m --shards=1 --max-train-steps=9 --skip-eval")
    scores = []
    for size in 1, 2, 3, 4:
        run(where, size, f"--model-dir= --eval-only --init-from=m/ckpt-9.safetensors --log-file=e{size}")
        line = json.loads((where / f"e{size}").read_text().splitlines()[-1])
        assert line["images"] == 50, line
        scores.append((line["loss"], line["accuracy"]))
    assert len(set(scores)) == 1, scores


def test_resume(where):
    """A run that was bounded goes on with other processes, and ends with the same bytes."""
    run(where, 1, "--model-dir=a --shards=4")
    for i, (first, second) in enumerate(((4, 1), (1, 2), (2, 4))):
        run(where, first, f"--model-dir=b{i} --shards=4 --max-train-steps=9")
        r = run(where, second, f"--model-dir=b{i} --resume=auto")
        assert "resuming from" in r.out[0] and "was made with" not in r.out[0], r.out
        same(where, "a/ckpt-26.safetensors", f"b{i}/ckpt-26.safetensors")
    r = run(where, 2, "--model-dir=b0 --resume --shards=2")
    assert "was made with steps of 4 x 8 images, this run takes 2 x 8" in r.out[0], r.out
    assert not r.out[1], r.out[1]


def test_signal(where):
    """A signal for any one process stops all after the same step; the run then goes on to the bit."""
    run(where, 1, "--model-dir=a --shards=2")
    for victim in 0, 1:
        r = Run(where, 2, f"--model-dir=s{victim}", env={"TOY_SLEEP_US": "50000"})
        r.begun(where / f"s{victim}" / "log.jsonl").process[victim].send_signal(signal.SIGTERM)
        r.wait(128 + signal.SIGTERM)
        assert "stopped by SIGTERM at step" in r.out[0], r.out
        run(where, 2, f"--model-dir=s{victim} --resume")
        same(where, "a/ckpt-51.safetensors", f"s{victim}/ckpt-51.safetensors")


def test_differs(where):
    """A process that differs is named, before anything is written."""
    shutil.copytree(where, where / "other", ignore=lambda d, names: [n for n in names if not n.endswith("ubyte")])
    images = where / "other" / "train-images-idx3-ubyte"
    data = bytearray(images.read_bytes())
    data[20] ^= 1
    images.write_bytes(data)
    for own, says in (({1: "--data-dir=other"}, "rank 1 reads other training or test data than rank 0"),
                      ({2: "--checkpoint-every=3"}, "rank 2 was given other flags than rank 0"),
                      ({1: "--learning-rate=0.3"}, "rank 1 runs another program, recipe or number of shards than rank 0")):
        r = run(where, 3, "--model-dir=d", 1, own=own)
        assert says in r.out[0] and not r.out[1] and not r.out[2], r.out
        assert not (where / "d" / "log.jsonl").exists()
    run(where, 2, "--model-dir=e --max-train-steps=3")
    shutil.copytree(where / "e", where / "f")
    run(where, 2, "--model-dir=f --resume --max-train-steps=5")
    r = run(where, 2, "--resume", 1, own={0: "--model-dir=e", 1: "--model-dir=f"})
    assert "rank 1 was given other flags" in r.out[0], r.out


def test_usage(where):
    """What all find alike is told once, with the status of one process."""
    for line, status, says in (("--epochs=3", 2, "unknown flag"),
                               ("--comm-timeout=-1", 2, "must not be negative"),
                               ("--shards=3", 2, "--shards=3: with 2 processes a step can have 2, 4, 8, 16 ... shards"),
                               ("--shards=6", 2, "the number of processes times a power of two"),
                               ("--dump-step=x", 2, "--dump-step looks at one batch"),
                               ("--tune=x", 2, "--tune: start one process alone"),
                               ("--data-dir=nowhere", 1, "nowhere"),
                               ("--mixup=0.2", 2, "this program does not mix its examples")):
        r = run(where, 2, f"--model-dir=u {line}", status)
        assert says in r.out[0] and r.out[0].count("error: ") == 1 and not r.out[1], (line, r.out)
        assert "mixup" in line or not (where / "u" / "log.jsonl").exists()


def test_alone_in_failure(where):
    """What one process finds ends all, and has its rank."""
    bad = where / "bad"
    shutil.copytree(where, bad, ignore=lambda d, names: [n for n in names if not n.endswith("ubyte")])
    (bad / "t10k-labels-idx1-ubyte").write_bytes(b"")
    r = run(where, 2, "--model-dir=m", 1, own={1: "--data-dir=bad"})
    assert not r.out[0] and r.out[1].startswith("rank 1: toy: error: ") and r.out[1].count("\n") == 1, r.out


def test_write_fails(where):
    """A checkpoint that cannot be written ends all with the status of rank 0, and nobody trains on."""
    r = Run(where, 2, "--model-dir=w --checkpoint-every=5", env={"TOY_SLEEP_US": "30000"})
    deadline = time.time() + 10
    while not (where / "w" / "ckpt-5.safetensors").exists() and time.time() < deadline:
        time.sleep(.02)
    for f in (where / "w").iterdir():
        f.unlink()
    (where / "w").rmdir()
    r.wait(3)
    assert "error: " in r.out[0] and not r.out[1], r.out


def test_lost(where):
    """A process that dies or stops in the middle of a training ends the others, who name it."""
    for how, most in ((signal.SIGKILL, 5), (signal.SIGSTOP, 6)):
        folder = f"m{int(how)}"
        r = Run(where, 3, f"--model-dir={folder} --comm-timeout=2", env={"TOY_SLEEP_US": "50000"})
        r.begun(where / folder / "log.jsonl").process[1].send_signal(how)
        began = time.time()
        out = [r.process[i].communicate(timeout=30)[0] for i in (0, 2)]
        assert [r.process[i].returncode for i in (0, 2)] == [3, 3], out
        assert any("rank 1" in x or "ranks 1" in x for x in out), out  # who ends first may be who the other names
        assert time.time() - began < most, time.time() - began
        r.process[1].kill()
        r.process[1].communicate()


def test_killed(where):
    """A run that is killed again and again, each time going on with other processes, ends with the same bytes."""
    run(where, 1, "--model-dir=a --shards=4 --checkpoint-every=3")
    for i in range(int(os.environ.get("KILLS", "2"))):
        drawn = random.Random(i)
        for _ in range(2):
            size = drawn.choice((1, 2, 4))
            r = Run(where, size, f"--model-dir=k{i} --shards=4 --checkpoint-every=3 --resume=auto --comm-timeout=3 "
                    "--connect-timeout=5",
                    env={"TOY_SLEEP_US": "15000"})
            time.sleep(drawn.uniform(.05, .5))
            drawn.choice(r.process).kill()
            for p in r.process:
                p.communicate(timeout=30)
        run(where, drawn.choice((1, 2, 4)), f"--model-dir=k{i} --shards=4 --checkpoint-every=3 --resume=auto")
        same(where, "a/ckpt-26.safetensors", f"k{i}/ckpt-26.safetensors")


def test_binding(where):
    """Processes share the processors that their launcher gives them; rank 0 warns if many are left out."""
    processors = sorted(os.sched_getaffinity(0))
    r = run(where, 2, "--model-dir= --max-train-steps=1 --skip-eval --threads=0", cores=processors[:1])
    assert "1 threads in each of 2" in r.out[0], r.out
    if len(processors) > 1 and len(processors) == os.cpu_count():
        assert f"use 1 of its {len(processors)} processors, 1 each: mpirun --bind-to none" in r.out[0], r.out
        assert not r.out[1], r.out
        r = run(where, 2, "--model-dir= --max-train-steps=1 --skip-eval --threads=0")
        assert "the launcher lets" not in r.out[0], r.out


def test_nonfinite(where):
    """A skipped step is looked at by all; the lowest rank that finds something is named."""
    for size, rank in ((1, None), (2, 1), (4, 2)):
        r = run(where, size, f"--model-dir=n{size} --shards=4 --max-train-steps=4 --inject=nan@6:image[5]")
        of = "" if rank is None else f" of rank {rank}"
        assert f"skipped step 1, batch 6{of}, loss scale 1024: first not finite: image (input)" in r.out[0], r.out
        event, = events(where, f"n{size}", "nonfinite")
        assert event["batch"] == 6 and event.get("rank") == rank and event["value"] == "image", event
        same(where, "n1/ckpt-4.safetensors", f"n{size}/ckpt-4.safetensors")
    r = run(where, 2, "--model-dir=v --shards=4 --max-train-steps=4 --inject=inf@7:fc.weight.grad[3],nan@1:image")
    assert "skipped step 0, batch 1 of rank 0" in r.out[0] and "skipped step 0, batch 7 of rank 1" in r.out[0], r.out


def test_trap(where):
    r = run(where, 2, "--model-dir=t --trap=first-nonfinite --inject=nan@3:fc.weight.grad[3]", 1)
    assert not r.out[0].count("error") and "rank 1: toy: error: stopped by --trap" in r.out[1], r.out
    r = run(where, 1, "--reproduce=t/nonfinite-1.rank-1.safetensors")  # the injection is not in the file
    assert "step 1: every result is finite" in r.out[0], r.out
    run(where, 2, "--model-dir=i --trap=first-nonfinite --inject=nan@3:image", 1)
    r = run(where, 1, "--reproduce=i/nonfinite-1.rank-1.safetensors", 1)
    assert "first not finite: image" in r.out[0], r.out


def test_device(where):
    """On devices that run ahead: the same bits, and a stop after the same step."""
    run(where, 1, "--model-dir=one --shards=2")
    for lag in "0", "5":
        env = {"TOY_DEVICE": lag}
        run(where, 2, f"--model-dir=d{lag} --log-every=7", env=env)
        same(where, "one/ckpt-51.safetensors", f"d{lag}/ckpt-51.safetensors")
        for victim in 0, 1:
            # summaries make rank 0 wait for each of its steps, while the other may run ahead
            r = Run(where, 2, f"--model-dir=s{lag}-{victim} --tensorboard --summary-every=1",
                    env=dict(env, TOY_SLEEP_US="50000"))
            r.begun(where / f"s{lag}-{victim}" / "log.jsonl").process[victim].send_signal(signal.SIGTERM)
            r.wait(128 + signal.SIGTERM)
            run(where, 2, f"--model-dir=s{lag}-{victim} --resume", env=env)
            same(where, "one/ckpt-51.safetensors", f"s{lag}-{victim}/ckpt-51.safetensors")
    r = run(where, 2, "--model-dir=n --max-train-steps=4", own={1: "--no-augment"}, want=1, env={"TOY_DEVICE": "3"})
    r = run(where, 2, "--model-dir=x --shards=4", 2, env={"TOY_DEVICE": "0"})
    assert "a GPU takes one shard of a step; start 4 processes" in r.out[0] and not r.out[1], r.out
    r = run(where, 2, "--model-dir=x --trap=first-nonfinite", 2, env={"TOY_DEVICE": "0"})
    assert "--trap" in r.out[0] and "--device=cpu" in r.out[0] and not r.out[1], r.out


def main():
    for name, test in list(globals().items()):
        if not name.startswith("test_") or (len(sys.argv) > 2 and name not in sys.argv[2:]):
            continue
        with tempfile.TemporaryDirectory(prefix="ampcc-ranks-") as folder:
            subprocess.run([TOY, "--write-data", folder], check=True)
            test(Path(folder))
        print(f"{name[5:]}: good")


main()
