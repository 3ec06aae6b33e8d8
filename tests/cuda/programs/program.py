"""Programs that ampcc made, with a part for the CPU and one for a GPU, on the fake libraries.

Nothing of them is changed but libcudart_static.a, which they are linked with: ampcc gets a folder
of links to the toolkit in which only that file is another one."""
import os
import pathlib
import random
import subprocess


def link_toolkit(toolkit, file, folder):
    """Makes `folder` a copy of `toolkit` by links, without one file. Returns the path where that
    file belongs."""
    there, here = pathlib.Path(toolkit), pathlib.Path(folder)
    for part in pathlib.Path(file).relative_to(there).parts:
        here.mkdir()
        for entry in there.iterdir():
            if entry.name != part:
                (here / entry.name).symlink_to(entry)
        there, here = there / part, here / part
    return here


class Tools:
    """The arguments that tests/cuda/meson.build gives: ampcc, the toolkit and its libcudart_static.a,
    fake_cudart's archive, the folder of the fake libraries, make_kernels."""

    def __init__(self, scratch, ampcc, toolkit, cudart, fake_cudart, fakes, maker):
        self.scratch = pathlib.Path(scratch)
        self.ampcc, self.fakes, self.maker, fake_cudart = map(os.path.abspath, (ampcc, fakes, maker, fake_cudart))
        self.toolkit = self.scratch / "toolkit"
        objects = sorted(pathlib.Path(fake_cudart + ".p").glob("*.o"))
        archive = link_toolkit(toolkit, cudart, self.toolkit)
        subprocess.run(["ar", "crs", str(archive), *map(str, objects)], check=True)


class Program:
    def __init__(self, tools, model, name, *flags, target="cuda:h200", cpu=True):
        stem = tools.scratch / name
        self.path, self.tools = str(stem), tools
        command = [tools.ampcc, os.path.abspath(model), f"--cuda-path={tools.toolkit}", *flags]
        text = stem.with_name(name + ".cu")
        for more in ([*([f"--target=cpu,{target}", "--cpu=native"] if cpu else [f"--target={target}"]), "-o", self.path], [f"--target={target}", "--emit=cuda", "-o", text]):
            subprocess.run([*command, *more], check=True, cwd=tools.scratch, stderr=subprocess.DEVNULL)
        subprocess.run([tools.maker, str(text.with_suffix(""))], check=True)
        self.kernels = str(text.with_suffix(".so"))

    def start(self, device, *flags, **environment):
        """Starts a process with its output as text in a pipe."""
        env = {**os.environ, "FAKE_CUDA_KERNELS": self.kernels, "LD_LIBRARY_PATH": self.tools.fakes,
               "OMP_NUM_THREADS": "1", **environment}
        return subprocess.Popen([self.path, f"--device={device}", *flags], env=env, cwd=self.tools.scratch, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def run(self, device, *flags, **environment):
        """Runs a command; returns its exit status and its output."""
        process = self.start(device, *flags, **environment)
        try:
            text, _ = process.communicate(timeout=300)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        return process.returncode, text


def write_cifar(folder, batch):
    """Writes files in CIFAR-10's format with random pixels: five and a half batches for training,
    one and a half for the test."""
    folder.mkdir()
    noise = random.Random(1)
    for name in ["test_batch", *(f"data_batch_{i}" for i in range(1, 6))]:
        records = (bytes([noise.randrange(10)]) + noise.randbytes(3072) for _ in range(batch + batch // 2))
        (folder / f"{name}.bin").write_bytes(b"".join(records))
