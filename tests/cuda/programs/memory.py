"""Tests memory plans for GPUs, without a GPU and without machine code: memory.py AMPCC ZOO CUDA_PATH

  claims   ResNet-50 with batch 256 in fp16 needs at most 6.2 GiB where that is asked for, and computes no convolution twice
  limits   a step that does not fit into the GPU computes values again as far as that helps; if it still does not fit, E409
  damage   a workspace of cuDNN or cublasLt that is too small, missing, or overlaps a live value is refused
  zoo      the checker accepts the plans of small models in each precision for each target"""
import os
import re
import subprocess
import sys
import tempfile


class Compiler:
    def __init__(self, ampcc, zoo, *flags):
        self.ampcc, self.zoo, self.flags = os.path.abspath(ampcc), os.path.abspath(zoo), flags

    def compile(self, model, *flags):
        """Returns the exit status, the messages and the planned graphs. `model` is a name of the
        zoo or a file."""
        if not os.path.exists(model):
            model += ".pb"
        if not os.path.exists(model):
            subprocess.run([self.zoo, model[:-3], "-o", model], check=True)
        done = subprocess.run([self.ampcc, model, "--emit=ir", "-o", "planned.amp", "--print-memory-plan", "--print-traffic",
                               *self.flags, *flags], capture_output=True, text=True)
        with open("planned.amp" if done.returncode == 0 else os.devnull) as planned:
            return done.returncode, done.stdout + done.stderr, planned.read()


def arena(text):
    """The bytes of the program's arena, which is the arena of its largest graph."""
    return int(re.search(r"= arena (\d+)", text)[1])


def megabytes_moved(text):
    """The megabytes of memory traffic of a step, per image."""
    return float(re.search(r"^all .* ([\d.]+)$", text, re.M)[1])


def kernels_again(text):
    return int(re.search(r"computed again +(\d+)", text)[1])


def largest_workspace(planned):
    return max(map(int, re.findall(r"workspace=\[\d+,(\d+)\]", planned)), default=0)


def check(what, condition):
    print(f"{what}: {'ok' if condition else 'FAILED'}")
    return bool(condition)


def claims(made):
    flags = ["--dtype=fp16", "--batch-size=256", "--target=cuda:h200"]
    _, free, planned = made.compile("resnet50", *flags)
    status, text, limited = made.compile("resnet50", *flags, "--max-memory=6.2GiB")
    good = check(f"resnet50 fp16 256: {arena(free) / 2**30:.3f} GiB", kernels_again(free) == 0)
    good &= check(f"with a limit: {arena(text) / 2**30:.3f} GiB, {kernels_again(text)} kernels again",
                  status == 0 and arena(text) <= 6.2 * 2**30 and 0 < kernels_again(text) < 50)
    moved = [megabytes_moved(free), megabytes_moved(text)]
    good &= check(f"MB an image: {moved}", moved[0] < moved[1] < 1.1 * moved[0])
    convs = [len(re.findall(r" = (?:conv2d|conv2d_dgrad|conv2d_wgrad|matmul|max_pool) ", ir)) for ir in (planned, limited)]
    return good & check(f"main ops: {convs}", convs[0] == convs[1] > 150)


def limits(made):
    flags = ["--dtype=fp32", "--target=cuda:t4"]
    status, text, _ = made.compile("cifar_resnet8", *flags, "--batch-size=1024")
    good = check("fits a T4", status == 0 and "note:" not in text and kernels_again(text) == 0)
    status, text, _ = made.compile("cifar_resnet8", *flags, "--batch-size=20480")
    good &= check("fits with values computed again",
                  status == 0 and "note: @train would not fit into cuda:sm_75" in text and kernels_again(text) > 0 and arena(text) < 15828320256)
    status, text, _ = made.compile("cifar_resnet8", *flags, "--batch-size=20480", "-q")
    good &= check("quietly", status == 0 and "note:" not in text)
    status, text, _ = made.compile("cifar_resnet8", *flags, "--batch-size=32768")
    good &= check("does not fit", status == 1 and re.search(r"error\[E409\]: @train needs [\d.]+ GiB .* cuda:sm_75 has room for 13\.\d+ GiB", text))
    status, text, _ = made.compile("cifar_resnet8", *flags, "--max-memory=1")
    return good & check("--max-memory of a byte", status == 1 and "--max-memory allows 1 bytes" in text)


def damaged(line, number):
    """Pairs of the node's line with a wrong workspace, and the error that the checker must report."""
    at, size = map(int, re.search(r"workspace=\[(\d+),(\d+)\]", line).groups())
    kernel = re.search(r"kernel=(\d+)", line)[1]
    place = int(re.search(r" at=\[(\d+)", line)[1])  # place of the result
    place = max(0, (place + 256 - size) // 256 * 256)
    spoil = {0: (f"workspace=[{at},{size - 1}]", f"kernel {kernel} needs {size} bytes of workspace"),
             1: (None, f"kernel {kernel} needs {size} bytes of workspace"),
             2: (f"workspace=[{place},{size}]", rf"the workspace of kernel {kernel} (and \S+ )?overlap")}
    new, said = spoil[number]
    return re.sub(r",? ?workspace=\[\d+,\d+\]", f", {new}" if new else "", line), said


def damage(made, dtype):
    """Damages the workspace of the first convolution or product of each kind that has one and whose
    result is in the arena."""
    flags = [f"--dtype={dtype}", "--target=cuda:h200", "--batch-size=16"]
    _, _, planned = made.compile("cifar_resnet8", *flags)
    good, n = True, 0
    for op in ("conv2d", "conv2d_wgrad", "matmul"):
        line = next((line for line in planned.splitlines() if re.search(f" = {op} .* at=.\\d.* workspace=", line)), None)
        if not line:
            continue
        for number in range(3):
            new, said = damaged(line, number)
            with open("damaged.amp", "w") as file:
                file.write(planned.replace(line, new))
            done = subprocess.run([made.ampcc, "damaged.amp", "--passes=check-plan", "--target=cuda:h200", *made.flags],
                                  capture_output=True, text=True)
            good &= check(f"{dtype} {op}, damage {number}", done.returncode == 1 and "E116" in done.stderr and re.search(said, done.stderr))
            n += 1
    return good & check(f"{n} damaged plans", n >= 6)


def zoo(made):
    good = True
    for model in ("lenet5", "mlp", "cifar_resnet8", "cifar_resnet8_v2"):
        for dtype in ("fp32", "bf16", "fp16"):
            for target in ("cpu", "cuda:t4", "cuda:a100", "cuda:b200"):
                if (dtype, target) == ("bf16", "cuda:t4"):
                    continue
                status, text, planned = made.compile(model, f"--dtype={dtype}", f"--target={target}")
                good &= status == 0 or check(f"{model} {dtype} {target}: {text}", False)
    return good


def main(ampcc, zoo_program, toolkit):
    made = Compiler(ampcc, zoo_program, f"--cuda-path={toolkit}", "--cache-dir=cache")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        good = all([claims(made), limits(made), damage(made, "fp32"), damage(made, "fp16"), zoo(made)])
        os.chdir("/")
    return not good


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
