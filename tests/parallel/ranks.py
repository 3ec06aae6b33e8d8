"""What the tests of several processes share: launchers, machines, time limits, and no process left behind."""
import fcntl
import functools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))
from ports import free_port

LAUNCHERS = "OMPI_", "PMI", "SLURM", "MASTER_", "TORCHELASTIC", "WORLD_SIZE", "RANK", "LOCAL_RANK", "MV2_"
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith(LAUNCHERS)}
CLEAN |= {f"{family}_ALLOW_RUN_AS_ROOT{confirm}": "1" for family in ("OMPI", "PRTE") for confirm in ("", "_CONFIRM")}
# Open MPI asks for the addresses of its own machine. Where neither /etc/hosts nor a name server knows any, the start of a process
# would take as long as questions do by default, 10 s, which with many processes is more than the group waits for.
CLEAN |= {"RES_OPTIONS": "timeout:1 attempts:1"}
SKIPPED = 77
LIMIT = 40  # seconds that any run may take
counter = iter(range(1 << 30))
SESSIONS = tempfile.TemporaryDirectory(prefix="ompi")

# Ranks with the host name m0, m1, ..., of which PER share one: the group takes them for ranks of different machines.
SPLIT = """h=m$((${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-$RANK}} / $0)) && exec unshare -u sh -c 'hostname $0; exec "$@"' $h "$@" """


def have(*commands):
    return all(shutil.which(c) for c in commands)


def can_split():
    """May this user give processes host names of their own?"""
    return subprocess.run(["unshare", "-u", "true"], capture_output=True).returncode == 0


def open_mpi(n, *more):
    return ["mpirun.openmpi", "--oversubscribe", *more, "-np", str(n)]


def mpich(n):
    return ["mpirun.mpich", "-np", str(n)]


@functools.cache
def mpich_works():
    """Does MPICH's library count the processes that its own launcher has started? Ubuntu 24.04's (4.2.0) is built for PMIx, which
    its launcher does not speak (bug 2072338 of Launchpad): each process is the only one. What needs it is left out there, with a word."""
    count = """import ctypes, os
mpi, size, world = ctypes.CDLL("libmpich.so.12", ctypes.RTLD_GLOBAL), ctypes.c_int(), 0x44000000
mpi.MPI_Init(None, None)
mpi.MPI_Comm_size(world, ctypes.byref(size))
os.write(1, b"counts %d\\n" % size.value)
mpi.MPI_Finalize()"""
    said = run([*mpich(2), sys.executable, "-c", count])
    counts = [line for line in said.splitlines() if line.startswith("counts ")]
    assert counts in (["counts 1"] * 2, ["counts 2"] * 2), said
    works = counts[0] == "counts 2"
    if not works:
        print("without MPICH, whose library does not count the processes of its own launcher")
    return works


def mpi_launchers(n):
    """Names and commands of those that work here."""
    return [("Open MPI", open_mpi(n)), *([("MPICH", mpich(n))] if mpich_works() else [])]


def split(per):
    return ["sh", "-c", SPLIT, str(per)]


def environment(command):
    """That of a command. Both MPI libraries leave memory behind, so leaks are looked for where there is none of them. Open MPI makes
    and removes a folder that all runs of a user share, and fails where another run does so just then: each gets one of its own."""
    mpi = any("mpirun" in word or word.startswith("--processes=") for word in map(str, command))
    session = f"{SESSIONS.name}/{next(counter)}"
    return {**CLEAN, "ASAN_OPTIONS": "detect_leaks=0", "OMPI_MCA_orte_tmpdir_base": session} if mpi else CLEAN


class Run:
    """A command under a launcher, in a session of its own. All its processes are known by a variable."""

    def __init__(self, command, **env):
        self.command, self.tag = list(map(str, command)), f"AMPCC_TEST_RUN={os.getpid()}.{next(counter)}"
        self.out = tempfile.TemporaryFile("w+")
        # Whoever writes shares the place of whoever reads: without O_APPEND, what came while text() read would replace its beginning.
        fcntl.fcntl(self.out, fcntl.F_SETFL, os.O_APPEND)
        self.process = subprocess.Popen(self.command, env={**environment(self.command), **env, **dict([self.tag.split("=")])},
                                        stdin=subprocess.DEVNULL, stdout=self.out, stderr=subprocess.STDOUT,
                                        start_new_session=True)

    def text(self):
        self.out.seek(0)
        return self.out.read()

    def alive(self, program=""):
        """The numbers of its processes whose executable has that name."""
        found = []
        for number in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{number}/environ", "rb") as file:
                    ours = self.tag.encode() in file.read().split(b"\0")
                if ours and (not program or os.path.basename(os.readlink(f"/proc/{number}/exe")) == program):
                    found.append(int(number))
            except OSError:  # it has just ended, or is another user's
                pass
        return found

    def by_rank(self, program):
        """The numbers of the processes that mpirun has started, by rank."""
        found = {}
        for number in self.alive(program):
            try:
                with open(f"/proc/{number}/environ", "rb") as file:
                    words = dict(word.partition(b"=")[::2] for word in file.read().split(b"\0"))
            except OSError:
                continue
            rank = words.get(b"OMPI_COMM_WORLD_RANK", words.get(b"PMI_RANK"))
            if rank is not None:
                found[int(rank)] = number
        return found

    def end(self, limit=LIMIT):
        """Waits; returns status and output. Whoever is late is killed, and the test fails."""
        try:
            self.process.wait(limit)
        except subprocess.TimeoutExpired:
            text = self.text()
            self.kill()
            sys.exit(f"{self.command} did not end within {limit} s:\n{text}")
        self.kill()
        return self.process.returncode, self.text()

    def kill(self):
        for number in self.alive():
            try:
                os.kill(number, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait()

    def wait_for(self, says, times=1, limit=LIMIT):
        """Waits until it has said so."""
        until = time.monotonic() + limit
        while self.text().count(says) < times:
            if self.process.poll() is not None or time.monotonic() > until:
                self.kill()
                sys.exit(f"{self.command} never said `{says}` {times} times:\n{self.text()}")
            time.sleep(0.02)


def run(command, status=0, says="", **env):
    """Runs it to its end; returns what it has said. `status` None: any but 0."""
    got, text = Run(command, **env).end()
    if (got == 0 if status is None else got != status) or says not in text:
        sys.exit(f"{command}: status {got}, wanted {status} and `{says}`:\n{text}")
    return text


def start_torchrun(n, command, ranks=None, port=None, host="127.0.0.1", **env):
    """Processes with the variables that torchrun sets, but without torchrun."""
    port = port or free_port()
    return [Run(command, RANK=str(r), WORLD_SIZE=str(n), MASTER_ADDR=host, MASTER_PORT=str(port), **env)
            for r in (range(n) if ranks is None else ranks)]


def at_once(cases):
    """Runs functions at the same time; for those that mostly wait. Fails if one does."""
    failed = []

    def guarded(case):
        try:
            case()
        except BaseException as error:  # sys.exit, too
            failed.append(f"{case.__name__}: {error}")
    threads = [threading.Thread(target=guarded, args=[case]) for case in cases]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        sys.exit("\n".join(failed))


class Machines:
    """Two machines on one: network namespaces with a cable between them, and host names."""

    AGENT = """#!/bin/sh
# In place of ssh: AGENT [-FLAG...] HOST COMMAND...
while [ "${1#-}" != "$1" ]; do shift; done
host=$1; shift
exec ip netns exec "$host" unshare -u sh -c "hostname $host; $*"
"""

    def __init__(self, rate=None):
        self.folder = tempfile.TemporaryDirectory()
        self.agent = os.path.join(self.folder.name, "agent")
        with open(self.agent, "w") as file:
            file.write(self.AGENT)
        os.chmod(self.agent, 0o755)
        self.names = [f"amp{os.getpid()}{c}" for c in "ab"]
        self.rate = rate

    def __enter__(self):
        a, b = self.names
        commands = [f"ip netns add {a}", f"ip netns add {b}", f"ip -n {a} link add eth0 type veth peer name eth0 netns {b}"]
        for i, name in enumerate(self.names):
            commands += [f"ip -n {name} addr add 10.77.0.{i + 1}/24 dev eth0", f"ip -n {name} link set lo up",
                         f"ip -n {name} link set eth0 up"]
            if self.rate:
                commands.append(f"ip netns exec {name} tc qdisc add dev eth0 root tbf rate {self.rate} burst 256k latency 50ms")
        for command in commands:
            done = subprocess.run(command.split(), capture_output=True, text=True)
            if done.returncode:
                self.__exit__()
                print(f"skipped: no machines can be made here: {command}: {done.stderr.strip()}")
                sys.exit(SKIPPED)
        # The kernel takes up to a second or two to call a new cable running, and UCX looks for that.
        for name in self.names:
            until = time.monotonic() + 10
            while time.monotonic() < until and "state UP" not in subprocess.run(
                    ["ip", "-n", name, "link", "show", "eth0"], capture_output=True, text=True).stdout:
                time.sleep(0.05)
        return self

    def __exit__(self, *_):
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)
        self.folder.cleanup()

    def on(self, i, command):
        """The command as it runs on machine i."""
        return [self.agent, self.names[i], *command]

    def open_mpi(self, *per_machine):
        hosts = ",".join(f"{name}:{n}" for name, n in zip(self.names, per_machine))
        return self.on(0, ["mpirun.openmpi", "--mca", "plm_rsh_agent", self.agent, "--bind-to", "none", "--oversubscribe",
                           "--host", hosts, "-np", str(sum(per_machine))])

    def mpich(self):
        """One rank on each. Its UCX would see through namespaces."""
        return self.on(0, ["mpirun.mpich", "-launcher", "ssh", "-launcher-exec", self.agent, "-hosts", ",".join(self.names),
                           "-localhost", "10.77.0.1", "-iface", "eth0", "-genv", "UCX_TLS", "tcp,self",
                           "-genv", "UCX_NET_DEVICES", "eth0", "-np", "2"])

    def cut(self):
        subprocess.run(["ip", "-n", self.names[1], "link", "set", "eth0", "down"], check=True)
