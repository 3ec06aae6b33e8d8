#!/usr/bin/env python3
"""cluster.py MODELS_CLUSTER: restart.sh with commands that end in every way; the syntax of the other examples (that of the YAML only
where Python has yaml), and srun and scontrol replaced by scripts that say what they were called with."""
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

here = pathlib.Path(sys.argv[1]).resolve()
scratch = pathlib.Path(tempfile.mkdtemp())
RESTART = here / "restart.sh"


def script(name, text):
    path = scratch / name
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)
    return path


def restart(*command, **env):
    done = subprocess.run(["sh", RESTART, *map(str, command)], cwd=scratch, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60,
                          env={**os.environ, "PAUSE": "0", **env})
    return done.returncode, done.stdout


def ends(*statuses):
    """A command that ends with these, one in each run; it writes how many runs there were."""
    (scratch / "runs").write_text("0")
    return script("command", "n=$(cat runs)\necho $((n + 1)) >runs\nset -- %s\nshift $n\nexit $1\n" % " ".join(map(str, statuses)))


def runs():
    return int((scratch / "runs").read_text())


def restarts():
    """What a restart can mend is run again, what it cannot is not."""
    for statuses, status, count in (([0], 0, 1), ([2], 2, 1), ([3, 137, 143, 0], 0, 4), ([1, 1], 1, 2), ([1, 3, 1, 0], 0, 4), ([137, 1, 1], 1, 3),
                                    ([9] * 6, 9, 5)):
        got, said = restart(ends(*statuses))
        assert (got, runs()) == (status, count), (statuses, got, runs(), said)
    assert "5 runs in a row ended within 60 s: giving up" in said, said
    got, said = restart(ends(*[9] * 6), TRIES="2")
    assert runs() == 2 and "run 1 ended with status 9" in said, said
    got, said = restart(ends(*[9] * 6, 0), QUICK="0")
    assert (got, runs()) == (0, 7), said
    assert restart()[0] == 2


def arguments():
    """Words of the command stay words."""
    command = script("command", 'printf "%s|" "$@"\n')
    assert restart(command, "a b", "", "$c")[1] == "a b||$c|"


def signals():
    """They reach the command, and it is not started again; nor while the script pauses."""
    command = script("command", "trap 'sleep .3; echo saved; exit 143' TERM\necho up\nwhile :; do sleep .1; done\n")
    for number in signal.SIGTERM, signal.SIGINT, signal.SIGHUP:
        child = subprocess.Popen(["sh", RESTART, command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                 preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        assert child.stdout.readline() == "up\n"
        child.send_signal(number)
        out = child.communicate(timeout=30)[0]
        assert child.returncode == 143 and out == "saved\n", (number, child.returncode, out)
    child = subprocess.Popen(["sh", RESTART, ends(9, 0)], cwd=scratch, stderr=subprocess.PIPE, text=True, env={**os.environ, "PAUSE": "50"})
    child.stderr.readline()
    child.send_signal(signal.SIGTERM)
    assert child.wait(timeout=30) == 9 and runs() == 1


def slurm():
    """The batch file requeues after everything but an end, bad input or a wrong flag, a bounded number of times."""
    script("srun", 'echo srun "$@" >>called\nexit $STATUS\n')
    script("scontrol", 'echo scontrol "$@" >>called\n')
    for status, count, want in ((0, 0, "srun"), (1, 0, "srun"), (2, 0, "srun"), (143, 0, "srun scontrol"), (137, 49, "srun scontrol"), (3, 50, "srun")):
        (scratch / "called").unlink(missing_ok=True)
        done = subprocess.run(["sh", here / "train.slurm"], cwd=scratch, capture_output=True, text=True, timeout=30,
                              env={**os.environ, "PATH": f"{scratch}:{os.environ['PATH']}", "STATUS": str(status), "SLURM_JOB_ID": "7",
                                   "SLURM_RESTART_COUNT": str(count)})
        called = (scratch / "called").read_text().splitlines()
        assert " ".join(line.split()[0] for line in called) == want, (status, called)
        assert done.returncode == (0 if want.endswith("scontrol") else status), done
        assert "--mpi=pmix -K" in called[0] and "--resume=auto" in called[0], called
    assert "restarted 50 times: giving up" in done.stderr, done.stderr
    directives = [line for line in (here / "train.slurm").read_text().splitlines() if line.startswith("#SBATCH")]
    assert {"#SBATCH --requeue", "#SBATCH --signal=TERM@120"} <= set(directives), directives


def kubernetes():
    try:
        import yaml
    except ImportError:
        print("skipped: python3-yaml is not installed")
        return
    job = yaml.safe_load((here / "mpijob.yaml").read_text())
    replicas = job["spec"]["mpiReplicaSpecs"]
    args = replicas["Launcher"]["template"]["spec"]["containers"][0]["args"]
    assert int(args[args.index("-n") + 1]) == job["spec"]["slotsPerWorker"] * replicas["Worker"]["replicas"], args
    assert "--resume=auto" in args and all(isinstance(arg, str) for arg in args)
    volumes = {volume["name"] for volume in replicas["Worker"]["template"]["spec"]["volumes"]}
    assert {mount["name"] for mount in replicas["Worker"]["template"]["spec"]["containers"][0]["volumeMounts"]} == volumes


for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:  # a shell's background jobs ignore some of them
    signal.signal(number, signal.SIG_DFL)
for case in restarts, arguments, signals, slurm, kubernetes:
    case()
    print(case.__name__, "ok")
