"""Ports for tests whose processes meet at one. As a program it prints one, for tests in C."""
import itertools
import os
import socket

attempts = itertools.count()


def free_port():
    """A port of this machine at which nobody listens, below those that the system hands out to whoever asks for any port.
    mpirun listens at one of the latter, and a process of another test that looked for its rank 0 there was taken for one
    that mpirun had started."""
    with open("/proc/sys/net/ipv4/ip_local_port_range") as limits:
        end = int(limits.read().split()[0])
    first = max(1024, end - 12000)
    for attempt in attempts:
        # Tests that run at the same time mostly have neighbouring process numbers; each begins its search elsewhere.
        port = first + (os.getpid() * 61 + attempt) % (end - first) if first < end else 0
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", port))
                return s.getsockname()[1]
            except OSError:
                continue


if __name__ == "__main__":
    print(free_port())
