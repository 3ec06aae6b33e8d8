#!/usr/bin/env python3
"""launchers.py SUMS: a program that sums over its processes, started by mpirun of Open MPI and MPICH and as torchrun would:
the same bits whatever the launcher, the library, the place of ranks and the size of buckets; what is refused.

Each function is one case."""
import os
import sys
import time

import ranks
from ranks import Run, mpich, open_mpi, run, split, start_torchrun

sums = os.path.abspath(sys.argv[1])
SHARED, MESSAGES, BOTH = ("shared memory:", "messages:", "shared memory inside machines, messages between them:")
SIZE = "elements=5000"
BUCKETS = "buckets=1,3,40"  # the last are more than travel at once


def bits(text, ranks_text, transport):
    """The hash in the line of rank 0, which must name this transport."""
    line = next((line for line in text.splitlines() if ranks_text in line and transport in line), None)
    if not line:
        sys.exit(f"no line with `{ranks_text}` and `{transport}`:\n{text}")
    return line.split()[-1]


def torchrun(n, *args, status=0, **more):
    """Runs all to their ends; returns what they have said, by rank."""
    ended = [r.end() for r in start_torchrun(n, [sums, *args], **more)]
    if any(got != status for got, _ in ended):
        sys.exit(f"torchrun {n} {args}: wanted {status}: {ended}")
    return [text for _, text in ended]


def alone():
    """Without a launcher, or with one rank, no library is opened and there is no group."""
    assert run([sums, "mpi_library=/nowhere"]) == "alone\n"
    assert run([sums, "mpi_library=/nowhere"], OMPI_COMM_WORLD_SIZE="1", OMPI_COMM_WORLD_RANK="0") == "alone\n"


def one_machine():
    """Shared memory: the library and the number of buckets make no difference."""
    for n in 2, 3, 4:
        want = bits(torchrun(n, SIZE)[0], f"{n} ranks on 1 machines, tcp", SHARED)
        said = run([*open_mpi(n), sums, SIZE, BUCKETS])
        assert bits(said, f"{n} ranks on 1 machines, mpi: Open MPI", SHARED) == want, said
        if n == 2 and ranks.mpich_works():
            said = run([*mpich(2), sums, SIZE, BUCKETS])
            assert bits(said, "2 ranks on 1 machines, mpi: MPICH", SHARED) == want, said


def several_machines():
    """Messages, and both: the same bits as on one machine, wherever ranks are."""
    for n, per, transport, machines in (2, 1, MESSAGES, 2), (4, 1, MESSAGES, 4), (4, 2, BOTH, 2), (3, 2, MESSAGES, 2), \
            (8, 2, BOTH, 4):
        want = bits(torchrun(n, SIZE)[0], f"{n} ranks on 1 machines", SHARED)
        said = run([*open_mpi(n), *split(per), sums, SIZE, BUCKETS])
        assert bits(said, f"{n} ranks on {machines} machines", transport) == want, (said, want)
        if n == 2 and ranks.mpich_works():
            said = run([*mpich(2), *split(1), sums, SIZE, BUCKETS])
            assert bits(said, "2 ranks on 2 machines, mpi: MPICH", MESSAGES) == want, said
    run([*open_mpi(8), *split(4), sums, "elements=48", "buckets=2"], says=BOTH)  # fewer lines than ranks


def memory_that_cannot_be_shared():
    """One rank may make no large file, which its shared pages are: then all use messages, or say that they need MPI."""
    args = [sums, "elements=3000000", "steps=1", "buckets=2"]
    want = bits(torchrun(2, *args[1:])[0], "2 ranks on 1 machines, tcp", SHARED)
    limited = ["sh", "-c", "trap '' XFSZ; [ ${OMPI_COMM_WORLD_RANK:-$RANK} = 0 ] || ulimit -f 16000; exec \"$@\"", "sh"]
    said = run([*open_mpi(2), *limited, *args])
    assert bits(said, "2 ranks on 1 machines, mpi: Open MPI", "messages, as memory cannot be shared:") == want, said
    for status, text in [r.end() for r in start_torchrun(2, [*limited, *args])]:
        assert status == 3 and "torchrun has started processes that cannot share their memory, which need MPI" in text, text


def many_ranks():
    """More ranks than are told directly: gathers by doubling."""
    run([*open_mpi(34), sums, "local=1", "steps=3"], says="34 ranks on 1 machines")


def tcp():
    """Rank 0 may come last, or find its port taken by torchrun's own store; another job's rank is not let in."""
    port = ranks.free_port()
    others = start_torchrun(3, [sums], ranks=[1, 2], port=port)
    stranger = start_torchrun(3, [sums, "connect_timeout=2"], ranks=[1], port=port, TORCHELASTIC_RUN_ID="another")
    time.sleep(0.3)
    first = start_torchrun(3, [sums], ranks=[0], port=port)
    for r in others + first:
        status, text = r.end()
        assert status == 0, text
    status, text = stranger[0].end()
    assert status == 3 and f"rank 0 was not found at MASTER_ADDR=127.0.0.1, MASTER_PORT={port} within 2 s" in text, text
    torchrun(2, TORCHELASTIC_USE_AGENT_STORE="True")


def tcp_several_machines():
    """Small things can be told over TCP, gradients not."""
    ended = [r.end() for r in start_torchrun(2, [*split(1), sums, "local=1"])]
    assert [status for status, _ in ended] == [0, 0] and "2 ranks on 2 machines, tcp:" in ended[0][1], ended
    for status, text in [r.end() for r in start_torchrun(2, [*split(1), sums])]:
        assert status == 3 and "torchrun has started processes on several machines, which need MPI" in text, text


def missing_rank():
    first, third = [r.end() for r in start_torchrun(4, [sums, "connect_timeout=1"], ranks=[0, 2])]
    assert first[0] == 3 and "ranks 1 and 3 of 4 have not come to 127.0.0.1:" in first[1], first
    assert third[0] == 3 and "rank 0" in third[1], third


def other_size():
    port = ranks.free_port()
    first = start_torchrun(2, [sums, "connect_timeout=2"], ranks=[0], port=port)
    status, text = start_torchrun(3, [sums, "connect_timeout=10"], ranks=[1], port=port)[0].end()
    assert status == 3 and "this process is rank 1 of 3, but rank 0 at 127.0.0.1:" in text, text
    status, text = first[0].end()
    assert status == 3 and "rank 1 of 2 has not come" in text, text


def library_of_another_launcher():
    """Every process names both and ends with status 3."""
    if ranks.mpich_works():  # one that is built for PMIx belongs to Open MPI's launcher
        text = run([*open_mpi(2), sums, "mpi_library=libmpich.so.12"], status=3,
                   says="mpirun of Open MPI has started 2 processes (OMPI_COMM_WORLD_SIZE), but MPICH ")
        assert "(libmpich.so.12) counts 1: launcher and library do not belong together" in text, text
    text = run([*mpich(2), sums, "mpi_library=libmpi.so.40"], status=3, says="(PMI_SIZE), but Open MPI ")
    assert "(libmpi.so.40) counts 1: launcher and library do not belong together" in text, text


def no_library():
    text = run([*open_mpi(2), sums, "mpi_library=/nowhere/libmpi.so"], status=3, says="--mpi-library: /nowhere/libmpi.so: ")
    assert "mpirun of Open MPI has started 2 processes (OMPI_COMM_WORLD_SIZE)" in text, text
    run([*open_mpi(2), sums, "mpi_library=libm.so.6"], status=3, says="libm.so.6 has no MPI_")
    run([sums], status=3, says="WORLD_SIZE is 2, but MASTER_PORT is not set", WORLD_SIZE="2", RANK="0", MASTER_ADDR="x")


def one_fails():
    """A rank that ends with an error ends the others."""
    for _, launcher in ranks.mpi_launchers(3):
        run([*launcher, sums, "fail=1"], status=None, says="rank 1 was told to fail")
    ended = [r.end() for r in start_torchrun(3, [sums, "fail=1"])]
    assert all(status for status, _ in ended) and "rank 1 was told to fail" in ended[1][1], ended
    assert "rank 1" in ended[0][1], ended


def processors():
    """Each rank knows what a launcher has left to it."""
    here = sorted(os.sched_getaffinity(0))
    said = "".join(torchrun(2, "cores=1"))
    assert said.count(f": {len(here)} of {len(here)} processors\n") == 2, said
    if len(here) > 1:
        bind = f'exec taskset -c $(echo {here[0]} {here[1]} | cut -d " " -f $((RANK + 1))) "$0" cores=1'
        ended = [r.end()[1] for r in start_torchrun(2, ["sh", "-c", bind, sums])]
        assert all(f"rank {r}: 1 of 2 processors, its own\n" in ended[r] for r in (0, 1)), ended


CASES = {"": [alone, tcp, missing_rank, other_size, processors],
         "mpi": [one_machine, library_of_another_launcher, no_library, one_fails, many_ranks,
                 memory_that_cannot_be_shared],
         "split": [several_machines, tcp_several_machines]}
if __name__ == "__main__":
    part = sys.argv[2] if len(sys.argv) > 2 else ""
    if part and not ranks.have("mpirun.openmpi", "mpirun.mpich"):
        print("skipped: Open MPI and MPICH are not both installed (openmpi-bin, mpich)")
        sys.exit(ranks.SKIPPED)
    if part == "split" and not ranks.can_split():
        print("skipped: this user may not give processes host names of their own")
        sys.exit(ranks.SKIPPED)
    for case in CASES[part]:
        began = time.monotonic()
        case()
        print(f"{case.__name__}: {time.monotonic() - began:.1f} s", flush=True)
