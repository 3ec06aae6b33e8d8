#!/usr/bin/env python3
"""faults.py SUMS: a rank that is killed or stopped. With a comm_timeout of 3 s every other rank must be gone within 5 s, with
a line that names the rank and a status that is not 0. A stopped rank cannot end itself: its launcher ends it.

Each function of CASES is one case; they wait at the same time."""
import os
import signal
import sys
import time

import ranks
from ranks import Run, mpich, open_mpi, split, start_torchrun

sums = os.path.abspath(sys.argv[1])
ARGS = [sums, "steps=100000", "pause=5", "comm_timeout=3", "elements=20000"]
LIMIT = 5
LAUNCHER_LIMIT = 15  # Open MPI waits some seconds before it kills


def number_of(rank, text):
    line = next(line for line in text.splitlines() if f"rank {rank} is process " in line)
    return int(line.split()[-1])


def gone_within(runs, limit, except_for=()):
    """Waits until no rank is left; fails after the limit."""
    began = time.monotonic()
    while left := [n for r in runs for n in r.alive("sums") if n not in except_for]:
        if time.monotonic() - began > limit:
            text = "".join(r.text() for r in runs)
            for r in runs:
                r.kill()
            sys.exit(f"{runs[0].command}: after {limit} s processes {left} are still there:\n{text}")
        time.sleep(0.05)
    return time.monotonic() - began


def mpi(command, what, victim, size, says):
    """Sends a signal to one rank while sums are made."""
    run = Run([*command, *ARGS])
    run.wait_for("is process", size)
    time.sleep(0.5)
    number = number_of(victim, run.text())
    os.kill(number, what)
    took = gone_within([run], LIMIT, [number])
    gone_within([run], LAUNCHER_LIMIT)
    status, text = run.end()
    if status == 0 or says not in text:
        sys.exit(f"{run.command}: status {status}, wanted an error and `{says}`:\n{text}")
    print(f"{' '.join(command[:1] + command[-1:])} {what.name} of rank {victim}: {took:.1f} s, status {status}", flush=True)


def torchrun(what, victim, says):
    runs = start_torchrun(3, ARGS)
    for run in runs:
        run.wait_for("is process")
    time.sleep(0.5)
    number = number_of(victim, runs[victim].text())
    os.kill(number, what)
    took = gone_within(runs, LIMIT, [number])
    if what == signal.SIGSTOP:  # when it wakes up, it finds itself alone
        os.kill(number, signal.SIGCONT)
        gone_within(runs, LIMIT)
    ended = [run.end() for run in runs]
    if any(status == 0 for status, _ in ended) or not any(says in text for _, text in ended):
        sys.exit(f"torchrun {what.name}: wanted errors and `{says}`: {ended}")
    print(f"torchrun {what.name} of rank {victim}: {took:.1f} s, status {[status for status, _ in ended]}", flush=True)


def killed_shared(): mpi(open_mpi(3), signal.SIGKILL, 1, 3, "")
def stopped_shared(): mpi(open_mpi(3), signal.SIGSTOP, 1, 3, "has waited 3 s for rank 1")
def stopped_first(): mpi(open_mpi(2), signal.SIGSTOP, 0, 2, "rank 1 of 2: error: ")
def stopped_messages(): mpi([*open_mpi(2), *split(1)], signal.SIGSTOP, 1, 2, "has waited 3 s for rank 1")
def killed_messages(): mpi([*open_mpi(2), *split(1)], signal.SIGKILL, 1, 2, "")
def killed_mpich(): mpi(mpich(2), signal.SIGKILL, 1, 2, "")
def stopped_mpich(): mpi(mpich(2), signal.SIGSTOP, 1, 2, "has waited 3 s for rank 1")
def killed_tcp(): torchrun(signal.SIGKILL, 1, "rank 1")
def stopped_tcp(): torchrun(signal.SIGSTOP, 2, "has waited 3 s for rank 2")


CASES = [killed_tcp, stopped_tcp]
if __name__ == "__main__":
    if ranks.have("mpirun.openmpi", "mpirun.mpich"):
        CASES += [killed_shared, stopped_shared, stopped_first]
        if ranks.mpich_works():
            CASES += [killed_mpich, stopped_mpich]
        if ranks.can_split():
            CASES += [stopped_messages, killed_messages]
    else:
        print("without mpirun: Open MPI and MPICH are not both installed")
    for i in range(0, len(CASES), 5):  # a few at a time: each has two or three ranks
        ranks.at_once(CASES[i:i + 5])
