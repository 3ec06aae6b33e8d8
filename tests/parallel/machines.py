#!/usr/bin/env python3
"""machines.py SUMS: two machines, which are network namespaces with a cable between them. The same bits over TCP as on one;
a cut cable. Needs root and iproute2; skips elsewhere."""
import os
import sys
import time

import ranks
from ranks import Machines, Run, run, start_torchrun
from launchers import BOTH, BUCKETS, MESSAGES, SHARED, SIZE, bits, sums, torchrun


def same_bits(machines):
    for per_machine, transport in ((1, 1), MESSAGES), ((2, 2), BOTH), ((1, 2), MESSAGES):
        n = sum(per_machine)
        want = bits(torchrun(n, SIZE)[0], f"{n} ranks on 1 machines", SHARED)
        said = run([*machines.open_mpi(*per_machine), sums, SIZE, BUCKETS])
        assert bits(said, f"{n} ranks on 2 machines, mpi: Open MPI", transport) == want, said
        if n == 2 and ranks.mpich_works():
            said = run([*machines.mpich(), sums, SIZE, BUCKETS])
            assert bits(said, "2 ranks on 2 machines, mpi: MPICH", MESSAGES) == want, said


def meet_over_the_cable(machines):
    """Without MPI: rank 0 is found by the other machine."""
    runs = [start_torchrun(2, machines.on(r, [sums, "local=1"]), ranks=[r], port=29500, host="10.77.0.1")[0] for r in (0, 1)]
    ended = [r.end() for r in runs]
    assert [status for status, _ in ended] == [0, 0] and "2 ranks on 2 machines, tcp:" in ended[0][1], ended


def cut_cable(machines):
    """Every rank ends with a line; mpirun itself may wait for its other half for ever."""
    cut = Run([*machines.open_mpi(1, 1), sums, "steps=100000", "pause=5", "comm_timeout=3"])
    cut.wait_for("is process", 2)
    time.sleep(0.5)
    machines.cut()
    began = time.monotonic()
    while cut.alive("sums"):
        assert time.monotonic() - began < 5, cut.text()
        time.sleep(0.05)
    took = time.monotonic() - began
    time.sleep(0.2)
    text = cut.text()
    cut.kill()
    # what the rank behind the cable says cannot arrive
    assert "rank 0 of 2: error: " in text and "has waited 3 s for rank 1" in text, text
    print(f"cut cable: {took:.1f} s", flush=True)


if __name__ == "__main__":
    if not ranks.have("mpirun.openmpi", "mpirun.mpich", "ip"):
        print("skipped: needs Open MPI, MPICH and iproute2")
        sys.exit(ranks.SKIPPED)
    with Machines() as two:
        for case in same_bits, meet_over_the_cable, cut_cable:
            began = time.monotonic()
            case(two)
            print(f"{case.__name__}: {time.monotonic() - began:.1f} s", flush=True)
