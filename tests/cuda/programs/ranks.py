"""ranks.py ZOO TOOL...: ResNet-8 trained by several processes, each on a GPU of its own, as torchrun would start them.

Equal checkpoints where the order of sums is fixed, other bits where it is not; losses beside those of the CPU's part with as many
shards; a NaN in the batch of one rank; what is said when NCCL is missing, a network breaks, a rank is killed or stopped. TOOL as in
program.py."""
import concurrent.futures
import json
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

from program import Program, Tools, write_cifar

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from ports import free_port

BATCH = 2
FLAGS = ["--dataset=cifar10", "--data-dir=cifar", "--learning-rate=1e-2", "--log-every=1", "--skip-eval", "-q"]
failed = []


def expect(good, name, *more):
    print(f"{'' if good else 'FAILED '}{name}", *([] if good else more), flush=True)
    if not good:
        failed.append(name)


def start(program, size, *flags, device="cuda", odd=None, **environment):
    """Starts the ranks; `odd` is a rank with an environment of its own, as (rank, variables)."""
    where = {"WORLD_SIZE": size, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port(), "FAKE_CUDA_DEVICES": size, **environment}
    return [program.start(device, *FLAGS, *flags, **{k: str(v) for k, v in {**where, "RANK": r, "LOCAL_RANK": r}.items()},
                          **(odd[1] if odd and odd[0] == r else {})) for r in range(size)]


def finish(processes, limit=120):
    """Exit status and output of each; None for one that hangs."""
    end, results = time.monotonic() + limit, []
    for process in processes:
        try:
            text, _ = process.communicate(timeout=max(end - time.monotonic(), .1))
            results.append((process.returncode, text))
        except subprocess.TimeoutExpired:
            process.kill()
            results.append((None, process.communicate()[0]))
    return results


def train(program, size, name, steps, *flags, **environment):
    """The checkpoint after so many steps, the losses, and what all ranks said."""
    folder = program.tools.scratch / f"{name}-{size}"
    log = folder.with_suffix(".jsonl")
    results = finish(start(program, size, f"--model-dir={folder}", f"--max-train-steps={steps}", f"--log-file={log}", *flags, **environment))
    text = "\n".join(f"rank {r}: status {status}\n{said}" for r, (status, said) in enumerate(results))
    if any(status for status, _ in results):
        sys.exit(f"{name}: {text}")
    events = list(map(json.loads, log.read_text().splitlines()))
    return (folder / f"ckpt-{steps}.safetensors").read_bytes(), [e["loss"] for e in events if e["event"] == "train"], text


def orders(program, size, steps):
    """Every order of sums twice, under other conditions; one is added up by the fake itself in the order of the tree."""
    placement, losses, text = train(program, size, "placement", steps, "--deterministic=placement", FAKE_NCCL_CALLS=1)
    again, _, _ = train(program, size, "again", steps, "--deterministic=placement", FAKE_CUDA_EAGER=1)
    expect(placement == again, f"{size} ranks: placement: the same checkpoint, whenever sums are made")
    tree, _, _ = train(program, size, "tree", steps, "--deterministic=off", FAKE_NCCL_ORDER="tree")
    expect(placement == tree, f"{size} ranks: placement: the checkpoint of sums in the order of the tree")
    ring, ring_losses, _ = train(program, size, "ring", steps, "--deterministic=run")
    twice, _, _ = train(program, size, "twice", steps, "--deterministic=run", FAKE_CUDA_EAGER=1)
    expect(ring == twice, f"{size} ranks: run: the same checkpoint twice")
    if size > 2:
        expect(ring != placement, f"{size} ranks: run: other bits than in the order of the tree")
    worst = max(abs(a - b) / a for a, b in zip(losses, ring_losses))
    expect(len(losses) == len(ring_losses) == steps and worst < 1e-4, f"{size} ranks: run: losses {worst:.1e} away", losses, ring_losses)
    calls = [tuple(map(int, m)) for m in re.findall(r"fake NCCL: rank \d+: (\d+) calls, (\d+) captured, (\d+) executed", text)]
    expect(len(calls) == size and len(set(calls)) == 1 and calls[0][1] >= 4 and calls[0][0] == 1 + calls[0][1] and
           calls[0][2] == 1 + steps * calls[0][1], f"{size} ranks: all calls but those of the first step are captured, once: {calls[:1]}", text)
    return losses


def beside_cpu(program, size, losses):
    log = program.tools.scratch / f"cpu-{size}.jsonl"
    status, text = program.run("cpu", *FLAGS, "--threads=1", "--model-dir=", f"--shards={size}", f"--max-train-steps={len(losses)}", f"--log-file={log}")
    cpu = [e["loss"] for e in map(json.loads, log.read_text().splitlines()) if e["event"] == "train"] if not status else []
    worst = max((abs(a - b) / a for a, b in zip(cpu, losses)), default=1)
    expect(len(cpu) == len(losses) and worst < 1e-4, f"{size} ranks: losses {worst:.1e} away from the CPU's with {size} shards", cpu, losses, text)


def alone(program, name):
    """A process that sums over itself has the bits of one that sums over nobody, in every order."""
    saved = {}
    for order in ("", "placement", "run", "off"):
        folder = program.tools.scratch / f"alone-{name}-{order}"
        status, text = program.run("cuda", *FLAGS, "--max-train-steps=2", f"--model-dir={folder}", *([f"--deterministic={order}"] if order else []),
                                   FAKE_NCCL_CALLS="1", **({"AMPRT_ONE_RANK": "1"} if order else {}))
        saved[order] = status == 0 and ("captured" in text) == bool(order) and (folder / "ckpt-2.safetensors").read_bytes()
    expect(saved[""] and len(set(saved.values())) == 1, f"{name}: one rank has the bits of a process without ranks", text)


def nonfinite(program):
    """A NaN in the scaling of an image of rank 1 in the third batch: the GPU makes a NaN of every pixel, in that rank alone."""
    log = program.tools.scratch / "nan.jsonl"
    results = finish(start(program, 2, "--model-dir=", "--max-train-steps=5", "--deterministic=placement", f"--log-file={log}",
                           odd=(1, {"FAKE_CUDA_SPOIL": f"{48 * BATCH}:3"})))
    events = list(map(json.loads, log.read_text().splitlines()))
    scales = [e["loss_scale"] for e in events if e["event"] == "train"]
    skipped = [e["skipped_steps"] for e in events if e["event"] == "train"]
    expect(all(status == 0 for status, _ in results) and sum(skipped) == 1 and scales[-1] == scales[0] / 2 and len(set(scales)) == 2,
           "a NaN in one rank: all skip the step, and the loss scale is halved once", results, events)


def failing(name, processes, says, limit, statuses=(3,), act=None):
    begin = time.monotonic()
    if act:
        act(processes)
    results = finish(processes, limit)
    good = all(status in statuses for status, _ in results) and all(any(re.search(s, text) for _, text in results) for s in says)
    expect(good, f"{name}: {time.monotonic() - begin:.1f} s", results)


def failures(program, fakes):
    train_long = ["--model-dir=", "--max-train-steps=100000", "--train-epochs=100000", "--comm-timeout=4", "--connect-timeout=20"]
    broken = program.tools.scratch / "broken"
    broken.mkdir()
    for library in pathlib.Path(fakes).glob("lib*.so.*"):
        if "nccl" in library.name:
            (broken / library.name).write_bytes(b"")
        elif re.fullmatch(r"lib\w+\.so\.\d+", library.name):
            (broken / library.name).symlink_to(library)
    failing("no NCCL", start(program, 2, *train_long, LD_LIBRARY_PATH=str(broken)), ["training on several GPUs needs NCCL: .*file too short"], 30)
    failing("another NCCL", start(program, 2, *train_long, odd=(1, {"FAKE_NCCL_VERSION": "22703"})), ["rank 1 has NCCL 2.27.3 and rank 0 has 2.28.9"], 30)
    failing("too few GPUs", start(program, 2, *train_long, FAKE_CUDA_DEVICES=1), ["rank 1 is process 2 of its machine, which has 1 GPU:"], 30)
    failing("a network that breaks", start(program, 2, *train_long, FAKE_NCCL_BREAK="1:20"),
            ["NCCL failed on rank 0: .*remote process exited", r"NCCL failed on rank 1: .*\(the network of rank 1 is gone\)"], 60)

    def after_a_while(number):
        def act(processes):
            time.sleep(4)
            processes[1].send_signal(number)
            if number == signal.SIGSTOP:
                try:
                    processes[0].wait(timeout=20)
                except subprocess.TimeoutExpired:
                    pass
                processes[1].kill()
        return act

    hurt = {"a rank that is killed": signal.SIGKILL, "a rank that stops": signal.SIGSTOP}
    with concurrent.futures.ThreadPoolExecutor() as pool:  # they mostly wait
        for done in [pool.submit(failing, name, start(program, 2, *train_long), ["rank 0 of 2: error: .* has waited 4 s"], 20, (3, -9),
                                 after_a_while(number)) for name, number in hurt.items()]:
            done.result()


def main(zoo, *tools):
    with tempfile.TemporaryDirectory() as scratch:
        made = Tools(scratch, *tools)
        subprocess.run([zoo, "cifar_resnet8", "-o", made.scratch / "cifar_resnet8.pb"], check=True)
        write_cifar(made.scratch / "cifar", 64)
        flags = [f"--batch-size={BATCH}", "--optimizer=momentum", "--bucket=64KiB"]
        program, half = (Program(made, made.scratch / "cifar_resnet8.pb", f"ranks_{t}", f"--dtype={t}", *flags) for t in ("fp32", "fp16"))
        for size, steps in ((2, 3), (4, 2)):
            beside_cpu(program, size, orders(program, size, steps))
        alone(program, "fp32")
        alone(half, "fp16")
        nonfinite(half)
        failures(program, made.fakes)
    return len(failed)


sys.exit(main(*sys.argv[1:]))
