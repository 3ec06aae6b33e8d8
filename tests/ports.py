"""Ports for tests whose processes meet at one."""
import itertools
import os
import socket

attempts = itertools.count()


def free_port():
    """A port of this machine at which nobody listens, below those that the system hands out. Of those, mpirun gets one to
    listen at, and takes a process of another test that looks for its rank 0 there for one of its own."""
    with open("/proc/sys/net/ipv4/ip_local_port_range") as limits:
        end = int(limits.read().split()[0])
    first = max(1024, end - 12000)
    for attempt in attempts:
        # Tests that run at the same time mostly have neighbouring numbers: each begins elsewhere.
        port = first + (os.getpid() * 61 + attempt) % (end - first) if first < end else 0
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", port))
                return s.getsockname()[1]
            except OSError:
                continue
