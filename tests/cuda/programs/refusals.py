"""Tests what a CUDA part says where it cannot run, or when it fails while it runs: refusals.py PROGRAM FAKES MAKER STEM

PROGRAM is refused.c on the fake libraries of folder FAKES; MAKER (make_kernels.c) compiles STEM.cu, its kernels. Each case is one
run: nothing may crash, the reason is on one line, the exit status is 3, and what was saved before
is still good."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

TRAIN = ["--use-synthetic-data", "--train-epochs=1", "--synthetic-examples=24", "--log-every=4"]
ALONE = "refused: error: this program does not run here: cuda:sm_90: "
REPLANNED = "1 of 1 plans of cuDNN were made anew for this machine: "
HUNGRY = "1 of 1 plans of cuDNN want more workspace on this machine than was planned: 0.4 MB were added for them\n"

# name, fault, environment, flags, exit status, message
CASES = [
    ("all is well", "none", {}, [], 0, "step 12"),
    ("no driver", "alone", {"FAKE_CUDA_DRIVER": "0"}, [], 3, ALONE + "no NVIDIA driver is installed\n"),
    ("old driver", "alone", {"FAKE_CUDA_DRIVER": "12080"}, [], 3,
     ALONE + "the NVIDIA driver is for CUDA 12.8, this needs one for 13.0\n"),
    ("no GPU", "alone", {"FAKE_CUDA_DEVICES": "0"}, [], 3, ALONE + "no GPU: "),
    ("older GPU", "alone", {"FAKE_CUDA_CAPABILITY": "80"}, [], 3,
     ALONE + "Fake GPU has compute capability 8.0, this is for 9.0\n"),
    ("newer GPU", "alone", {"FAKE_CUDA_CAPABILITY": "100"}, [], 3,
     ALONE + "Fake GPU has compute capability 10.0, this is for 9.0\n"),
    ("next minor", "none", {"FAKE_CUDA_CAPABILITY": "91"}, [], 0,
     REPLANNED + "made for compute capability 9.0, this is 9.1\n"),
    ("next minor, strict", "none", {"FAKE_CUDA_CAPABILITY": "91"}, ["--strict-plans"], 3,
     "error: cuDNN refuses the plan of fprop f32 n2"),
    ("next minor, fused plans", "fused", {"FAKE_CUDA_CAPABILITY": "91"}, [], 0,
     "not cuda:sm_90: Fake GPU has compute capability 9.1, the fused plans here exist up to 9.0: compile for it, or with --fuse-level=2\n"),
    ("GPU too small", "alone", {"FAKE_CUDA_MEMORY": "9000"}, [], 3,
     "GiB of GPU memory, Fake GPU has 0.00: compile with --max-memory or a smaller --batch-size\n"),
    ("GPU too full", "none", {"FAKE_CUDA_USED": str((1 << 31) - 9000)}, [], 3,
     "of the 2.00 of Fake GPU 0.00 are free: end other programs, or compile with --max-memory or a smaller --batch-size\n"),
    ("no memory after all", "none", {"FAKE_CUDA_FAIL": "cudaMalloc:1=2"}, [], 3, "the GPU failed: cudaMalloc: "),
    ("no cuDNN", "alone", {"break": "libcudnn_graph.so.9"}, [], 3, "libcudnn_graph.so.9: file too short"),
    ("another library", "alone", {"swap": "libcudnn_graph.so.9"}, [], 3, ALONE + "libcudnn_graph.so.9 has no cudnn"),
    ("other cuDNN", "none", {"FAKE_CUDNN_VERSION": "92000"}, [], 0, REPLANNED),
    ("other cuDNN, many engines", "none",
     {"FAKE_CUDNN_VERSION": "92000", "FAKE_CUDNN_ENGINES": "40", "FAKE_CUDNN_PLANS": "1"}, [], 0, REPLANNED),
    ("other cuDNN, strict", "none", {"FAKE_CUDNN_VERSION": "90100"}, ["--strict-plans"], 3,
     "and --strict-plans was given\n"),
    ("cuDNN without a start", "none", {"FAKE_CUDA_FAIL": "cudnnCreate:1"}, [], 3, "error: cuDNN does not start: "),
    ("hungry plan", "none", {"FAKE_CUDNN_WORKSPACE": "400000"}, [], 0, HUNGRY),
    ("hungry plan, strict", "none", {"FAKE_CUDNN_WORKSPACE": "400000"}, ["--strict-plans"], 0, HUNGRY),
    ("hungry plan, tuning", "none", {"FAKE_CUDNN_WORKSPACE": "400000"}, ["--tune=SCRATCH/t.json"], 0, HUNGRY),
    ("hungry plan, little memory", "none", {"FAKE_CUDNN_WORKSPACE": "2147483648"}, [], 3,
     "error: plans of cuDNN want 2147.5 MB of workspace on Fake GPU, more than was planned, of its memory 2147."),
    ("hungry plan, no memory", "none", {"FAKE_CUDNN_WORKSPACE": "400000", "FAKE_CUDA_FAIL": "cudaMalloc:2=2"}, [], 3,
     "error: the GPU failed: cudaMalloc: "),
    ("no cublasLt", "alone", {"break": "libcublasLt.so.13"}, [], 3, "libcublasLt.so.13: file too short"),
    ("other cublasLt", "alone", {"FAKE_CUBLAS_VERSION": "140000"}, [], 3,
     ALONE + "libcublasLt is version 14.0, this needs 13\n"),
    ("damaged kernels", "image", {}, [], 3, "error: the GPU refuses this program's kernels (cuda:sm_90, 256 bytes"),
    ("kernels with other bits", "bits", {}, [], 3, "error: this program's kernels for cuda:sm_90 are damaged: compile it again\n"),
    ("missing kernel", "function", {}, [], 3, "cudaLibraryGetKernel of subtract_constant (k2_add, layer add): "),
    ("damaged plan", "plan", {}, [], 0, REPLANNED),
    ("damaged plan, strict", "plan", {}, ["--strict-plans"], 3, "and --strict-plans was given\n"),
    ("damaged plan and key", "key", {}, [], 3, "and has no other (its key is damaged)\n"),
    ("failing launch", "none", {"FAKE_CUDA_FAIL": "cudaLaunchKernel:3"}, [], 3,
     "the GPU failed: cudaLaunchKernel of add_constant (k2_add, layer add): "),
    ("failing step", "none", {"FAKE_CUDA_FAIL": "cudaGraphLaunch:5=700"}, [], 3, "the GPU failed: cudaGraphLaunch: "),
    ("failing plan", "none", {"FAKE_CUDA_FAIL": "cudnnBackendExecute:1"}, [], 3, "error: cuDNN failed in fprop f32"),
    ("failing product", "none", {"FAKE_CUDA_FAIL": "cublasLtMatmul:1"}, [], 3, "error: cublasLt failed: cublasLtMatmul: "),
    ("the CPU instead", "none", {"FAKE_CUDA_DRIVER": "0"}, [], 0,
     "refused: not cuda:sm_90: no NVIDIA driver is installed\nrefused: device cpu\n"),
    ("not the CPU instead", "none", {"FAKE_CUDA_DRIVER": "0"}, ["--device=cuda"], 3, ALONE + "no NVIDIA driver"),
    ("tuning", "none", {}, ["--tune=SCRATCH/t.json"], 0, " 2 of  2 candidates, "),
    ("tuning a damaged plan", "plan", {}, ["--tune=SCRATCH/t.json"], 0, " 0 of  2 candidates (it is damaged)\n"),
    ("tuning what cannot run", "none", {"FAKE_CUDA_FAIL": "cudnnBackendExecute:1"}, ["--tune=SCRATCH/t.json"], 0,
     " 1 of  2 candidates (CUDNN_STATUS_INTERNAL_ERROR), "),
    ("tuning with a GPU that fails", "none", {"FAKE_CUDA_FAIL": "cudaEventElapsedTime:2=700"}, ["--tune=SCRATCH/t.json"], 3,
     "the GPU failed: cudaEventElapsedTime: "),
    ("tuning with little memory", "none", {"FAKE_CUDA_FAIL": "cudaMalloc:2=2"}, ["--tune=SCRATCH/t.json"], 3, "the GPU failed: cudaMalloc: "),
    ("words about it", "none", {}, ["--about"], 0, "cuda:sm_90   Fake GPU, 0.00 of 2.00 GiB, driver for CUDA 13.0, "
     "cuDNN 9.19.0, cuBLASLt 13.1.0\ncpu          runs here\n"),
    ("words about no GPU", "alone", {"FAKE_CUDA_DRIVER": "0"}, ["--about"], 0, "target       cuda:sm_90"),
]


def libraries(fakes, folder, env):
    """Makes a folder of the fake libraries in which one is broken or replaced by another one."""
    folder.mkdir(exist_ok=True)
    for name in ["libcudnn_graph.so.9", "libcublasLt.so.13"]:
        (folder / name).unlink(missing_ok=True)
        if env.get("break") == name:
            (folder / name).write_bytes(b"")
        else:
            (folder / name).symlink_to(fakes / ("libcublasLt.so.13" if env.get("swap") == name else name))
    return str(folder)


def run(program, fault, env, flags):
    result = subprocess.run([program, fault, *TRAIN, *flags], env=env, capture_output=True, text=True, timeout=60)
    return result.returncode, result.stdout + result.stderr


def check(program, fakes, scratch, kernels, case):
    name, fault, changes, flags, status, says = case
    base = {**os.environ, "FAKE_CUDA_KERNELS": kernels, "LD_LIBRARY_PATH": libraries(fakes, scratch / "good", {})}
    env = {**base, **{k: v for k, v in changes.items() if k.startswith("FAKE")},
           "LD_LIBRARY_PATH": libraries(fakes, scratch / "lib", changes)}
    model = f"--model-dir={scratch}/m"
    before = run(program, "none", base, [model, "--clean", "--max-train-steps=3", "-q"])
    saved = (scratch / "m/ckpt-3.safetensors").read_bytes()
    got, text = run(program, fault, env, [model, "--resume", "--checkpoint-every=4", *[f.replace("SCRATCH", str(scratch)) for f in flags]])
    errors = [line for line in text.splitlines() if "error:" in line]
    wrong = []
    if before[0]:
        wrong.append(f"the run before: {before[1]}")
    if says == HUNGRY and "anew" in text:
        wrong.append("a plan that only wants more workspace was given up")
    if "FAKE_CUDNN_PLANS" in changes and text.count("fake cuDNN: builds a plan\n") != 1:
        wrong.append("more plans were built than the one that is needed")
    if got != status or says not in text:
        wrong.append(f"status {got}, not {status}; wanted `{says}`")
    if status and len(errors) != 1:
        wrong.append(f"{len(errors)} errors")
    if (scratch / "m/ckpt-3.safetensors").read_bytes() != saved:
        wrong.append("the checkpoint is not what it was")
    again, more = run(program, "none", base, [model, "--resume", "-q"])
    if again:
        wrong.append(f"the run after: {more}")
    for line in wrong:
        print(f"FAIL {name}: {line}")
    if wrong:
        print(text)
    return not wrong


def main(program, fakes, maker, stem):
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        shutil.copy(stem + ".cu", scratch / "device.cu")
        subprocess.run([maker, str(scratch / "device")], check=True)
        good = [check(program, pathlib.Path(fakes), scratch, str(scratch / "device.so"), case) for case in CASES]
    print(f"{sum(good)} of {len(good)} cases")
    return not all(good)


sys.exit(main(*sys.argv[1:]))
