#!/usr/bin/env python3
"""processes.py TOY TOY_GPU CC: --processes and --local-gpus: which launcher runs with which arguments, its status, signals,
and what is refused. The launchers are scripts on PATH that start every rank alone; the driver of GPUs is a library of two
functions. TOY_GPU is the toy with a part that is called cuda:toy.

Each function is one case."""
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

toy, toy_gpu = map(os.path.abspath, sys.argv[1:3])
cc = sys.argv[3]
scratch = pathlib.Path(tempfile.mkdtemp())
# What launchers set: of the number of processes, and of the rank.
LAUNCHED = ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"), ("PMI_SIZE", "PMI_RANK"), ("SLURM_STEP_NUM_TASKS", "SLURM_PROCID")
LAUNCHER = """#!%s
# Starts N ranks, each with a folder of its own; ends with the status of the last. SIGTERM leaves a file.
import pathlib, signal, subprocess, sys
if sys.argv[1:] == ["--version"]:
    sys.exit(print("%s"))
pathlib.Path("arguments").write_text("\\n".join(sys.argv[1:]))
def terminate(*_):
    pathlib.Path("terminated").touch()
    for rank in ranks:
        rank.kill()
    sys.exit(99)
signal.signal(signal.SIGTERM, terminate)
first = sys.argv.index("-n")
n, program = int(sys.argv[first + 1]), sys.argv[first + 2:]
ranks = [subprocess.Popen([*program, f"--model-dir=rank{k + 1}"]) for k in range(n)]
pathlib.Path("started").touch()
sys.exit([rank.wait() for rank in ranks][-1])
"""
DRIVER = "int cuInit(unsigned f) { return (int)f; } int cuDeviceGetCount(int *n) { *n = 3; return 0; }"


def folder(name, version="mpirun (Open MPI) 4.1.4", command="mpirun"):
    """A folder for a case, with a launcher in it."""
    place = scratch / name
    place.mkdir()
    if version:
        (place / command).write_text(LAUNCHER % (sys.executable, version))
        (place / command).chmod(0o755)
    return place


def start(place, *flags, program=toy, **env):
    clean = {k: v for k, v in os.environ.items() if not any(k in pair for pair in LAUNCHED)}
    return subprocess.Popen([program, f"--data-dir={scratch}/data", *flags], cwd=place, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            env={**clean, "PATH": str(place), **env})


def run(place, *flags, status=0, **how):
    child = start(place, *flags, **how)
    out, err = child.communicate(timeout=60)
    assert child.returncode == status, f"{flags}: status {child.returncode}, not {status}\n{out[-500:]}{err[-500:]}"
    return out + err


def arguments(place):
    return (place / "arguments").read_text().splitlines()


def wait_for(condition):
    for _ in range(3000):
        if condition():
            return
        time.sleep(.01)
    raise AssertionError("waited in vain")


def gone(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def ranks_of(place):
    """The processes in this folder that are the toy."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and os.readlink(entry / "cwd") == str(place) and os.readlink(entry / "exe") == os.path.realpath(toy):
                found.append(int(entry.name))
        except OSError:
            pass
    return found


def open_mpi():
    """Its own flags, as many ranks as were asked for, the program's flags, and no processes of their own."""
    place = folder("open_mpi")
    run(place, "--max-train-steps=5", "--processes", "3", "--seed=7")
    args = arguments(place)
    first = args.index("-n")
    root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    assert args[:first] == ["--bind-to", "none", "--map-by", "slot:OVERSUBSCRIBE", *root], args
    share = max(1, len(os.sched_getaffinity(0)) // 3)
    assert args[first:] == ["-n", "3", os.path.realpath(toy), f"--data-dir={scratch}/data", "--max-train-steps=5", "--processes", "3", "--seed=7",
                            f"--threads={share}", "--processes=0", "--local-gpus=0"], args
    for rank in 1, 2, 3:
        assert (place / f"rank{rank}/ckpt-5.safetensors").exists(), rank


def hydra():
    """MPICH's needs no flags; mpiexec does where there is no mpirun; threads that were chosen stay."""
    place = folder("hydra", "HYDRA build details:", "mpiexec")
    run(place, "--max-train-steps=5", "--processes=2", "--threads=1")
    assert arguments(place)[:2] == ["-n", "2"], arguments(place)
    assert [a for a in arguments(place) if a.startswith("--threads")] == ["--threads=1"], arguments(place)


def status():
    """A bad flag ends here and starts nothing; what the ranks end with is what the program ends with."""
    place = folder("status")
    assert "--log-every must be" in run(place, "--processes=2", "--log-every=0", status=2)
    assert not (place / "started").exists()
    assert "toy: error" in run(place, "--processes=2", "--data-dir=/nowhere", status=1)
    assert "several processes" in run(place, "--processes=2", "--help")
    for number in "-1", "4097":
        assert "--processes must be from 0 to 4096" in run(place, "--processes=" + number, status=2)


def alone():
    """One process needs no launcher."""
    place = folder("alone", None)
    run(place, "--processes=1", "--max-train-steps=2", "--model-dir=m")
    assert (place / "m/ckpt-2.safetensors").exists()


def none_or_strange():
    said = run(folder("none", None), "--processes=2", status=3)
    assert "there is no mpirun on PATH: install one (Debian: openmpi-bin or mpich)" in said, said
    said = run(folder("strange", "mpirun 1.0 of 1999"), "--processes=2", status=3)
    assert "the mpirun on PATH is neither Open MPI's nor MPICH's, but `mpirun 1.0 of 1999`" in said, said


def in_a_rank():
    place = folder("in_a_rank")
    for size, rank in LAUNCHED:
        said = run(place, "--processes=2", status=2, **{size: "3", rank: "0"})
        assert "this one is one of 3 that" in said and f"has started ({size}): leave out one of the two" in said, said
        assert not (place / "started").exists()
    run(place, "--max-train-steps=1", "--processes=2", SLURM_STEP_NUM_TASKS="1", SLURM_PROCID="0")  # srun --pty, for a shell


def signals():
    """A signal reaches the ranks, who save; the launcher, who would kill them, gets none."""
    for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
        place = folder(number.name)
        child = start(place, "--processes=2", "--log-every=1", TOY_SLEEP_US="20000")
        logs = [place / f"rank{rank}/log.jsonl" for rank in (1, 2)]
        wait_for(lambda: all(log.exists() and '"train"' in log.read_text() for log in logs))
        child.send_signal(number)
        out, err = child.communicate(timeout=60)
        assert child.returncode == 128 + number, (child.returncode, out[-500:], err[-500:])
        assert out.count(f"stopped by {number.name} at step") == 2, out[-500:]
        assert not (place / "terminated").exists()
        for rank in 1, 2:
            assert list((place / f"rank{rank}").glob("ckpt-*")), "nothing was saved"


def killed():
    """The launcher ends when the program that started it is killed."""
    place = folder("killed")
    child = start(place, "--processes=2", TOY_SLEEP_US="20000")
    wait_for(lambda: len(ranks_of(place)) == 3 and (place / "started").exists())
    ranks = ranks_of(place)
    child.kill()
    child.wait()
    wait_for(lambda: all(gone(pid) for pid in ranks))
    assert (place / "terminated").exists()


def gpus():
    driver = scratch / "driver"
    driver.mkdir()
    (driver / "driver.c").write_text(DRIVER)
    subprocess.run([*cc.split(), "-shared", "-fPIC", "-o", driver / "libcuda.so.1", driver / "driver.c"], check=True)
    here = {"LD_LIBRARY_PATH": str(driver), "program": toy_gpu}
    for flag, n in ("auto", 3), ("2", 2):
        place = folder("gpus_" + flag)
        run(place, "--local-gpus=" + flag, "--max-train-steps=1", **here)
        args = arguments(place)
        assert args[args.index("-n") + 1] == str(n) and "--device=cuda" in args, args
    place = folder("gpus")
    assert "device cuda:toy" in run(place, "--local-gpus=1", "--max-train-steps=1", "--model-dir=m", **here)
    assert "the NVIDIA driver shows 3 here" in run(place, "--local-gpus=4", status=3, **here)
    assert "shows no GPU here" in run(place, "--local-gpus=auto", status=3, program=toy_gpu)
    assert "no part for GPUs" in run(place, "--local-gpus=auto", status=2)
    assert "--device=cpu contradicts it" in run(place, "--local-gpus=2", "--device=cpu", status=2, **here)
    assert "takes auto or a number of GPUs, not `all`" in run(place, "--local-gpus=all", status=2, **here)
    assert "both say how many" in run(place, "--local-gpus=2", "--processes=2", status=2, **here)
    assert not (place / "started").exists()


def main():
    for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:  # a shell's background jobs ignore some of them
        signal.signal(number, signal.SIG_DFL)
    (scratch / "data").mkdir()
    subprocess.run([toy, "--write-data", scratch / "data"], check=True)
    for case in open_mpi, hydra, status, alone, none_or_strange, in_a_rank, signals, killed, gpus:
        case()
        print(case.__name__, "ok")


main()
