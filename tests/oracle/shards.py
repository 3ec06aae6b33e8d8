#!/usr/bin/env python3
"""Tests a step of two shards against PyTorch in double precision: shards.py AMPCC ZOO WHAT

WHAT is `turns` (one process computes both shards), `processes` (two processes, one each) or `sync` (the same with
--sync-batch-norm). The state after one step and after three is compared with cifar_resnet8.shards.safetensors, which
make_shards.py wrote with PyTorch in float64. Convolutions are direct: in the second
step an input of a ReLU is so close to 0 that the rounding of Winograd's method, or weights off by 1e-6, decide otherwise.
What needs an MPI that is not there ends with status 77."""
import pathlib, subprocess, sys, tempfile

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "parallel"))
import compare, data, ranks, stages, tensors

NET = "cifar_resnet8"
GRADIENTS, STATE = 2e-5, 2e-6


def train(command, folder, steps):
    model = folder / f"m{steps}"
    done = subprocess.run([*map(str, command), f"--max-train-steps={steps}", f"--model-dir={model}"], capture_output=True, text=True,
                          env=ranks.environment(command))
    if done.returncode:
        sys.exit(f"status {done.returncode}\n{done.stdout}{done.stderr}")
    return tensors.load(sorted(model.glob("*.safetensors"))[-1])


def main(ampcc, zoo, what):
    if what != "turns" and not ranks.have("mpirun.openmpi"):
        return ranks.SKIPPED
    want = tensors.load(HERE / f"{NET}.shards.safetensors")
    of = lambda prefix: {k[len(prefix):]: v for k, v in want.items() if k.startswith(prefix)}
    launcher = [] if what == "turns" else ranks.open_mpi(2, "--bind-to", "none")
    bad = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        data.write_cifar(folder / "data", 2 * stages.BATCH)
        program = compare.compile_net(ampcc, zoo, NET, folder, "--winograd=off", *(["--sync-batch-norm"] if what == "sync" else []))
        command = [*launcher, program, f"--data-dir={folder / 'data'}", f"--init-from={HERE / (NET + '.start.safetensors')}",
                   "--no-shuffle", "--no-augment", "--learning-rate=0.05", "--learning-rate-batch=0", "--lr-schedule=constant",
                   "--warmup-epochs=0", "-q", "--shards=2"]
        cases = [(1, "sync1:", GRADIENTS)] if what == "sync" else [(1, "step1:", GRADIENTS), (3, "step3:", STATE)]
        for steps, prefix, bound in cases:
            more, worst = compare.compare(train(command, folder, steps), of(prefix), bound, prefix)
            print(f"{what}: {prefix} {len(of(prefix))} tensors, worst {worst[0]:.2e} ({worst[1]})")
            bad += more
    for line in bad:
        print("FAIL", line)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
