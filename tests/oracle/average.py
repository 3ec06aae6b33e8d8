#!/usr/bin/env python3
"""Tests moving averages of parameters (--ema-decay) and the L2 loss: average.py AMPCC

The linear model of optimizers.py trains for 100 steps, with and without --ema-num-updates. Its averages, the evaluation with them and
the losses in the log (--metrics=top1,l2) must equal those computed here in double precision to 1e-6. An average must go on after
--resume, and begin as the parameter itself where a checkpoint has none."""
import json, math, pathlib, sys, tempfile

import compare, data, tensors
from optimizers import BATCH, DECAY, EPOCH, MODEL, START, STEPS, example, gradients, momentum

BOUND, RATE = 1e-6, 0.01


def train(decay, num_updates, examples):
    """The parameters and their averages after all steps, and the L2 loss at the beginning of each step."""
    state = {name: list(values) for name, (_, values) in START.items()}
    slots = {name: [0.0] * len(values) for name, values in state.items()}
    averages = {name: list(values) for name, values in state.items()}
    l2 = []
    for t in range(STEPS):
        at = t % EPOCH * BATCH
        l2.append(DECAY / 2 * sum(x * x for values in state.values() for x in values))
        now = min(decay, (1 + t) / (10 + t)) if num_updates else decay
        for name, g in zip(["fc.weight", "fc.bias"], gradients(state["fc.weight"], state["fc.bias"], examples[at:at + BATCH])):
            momentum(state[name], g, RATE, t, slots[name])
            averages[name] = [now * a + (1 - now) * w for a, w in zip(averages[name], state[name])]
    return state, averages, l2


def loss_of(state, batch):
    """The mean cross entropy of a batch."""
    total = 0
    for k, xn in batch:
        logits = [sum(a * c for a, c in zip(state["fc.weight"][48 * j:48 * j + 48], xn)) + state["fc.bias"][j] for j in range(10)]
        total += math.log(sum(math.exp(z) for z in logits)) - logits[k]
    return total / len(batch)


def main(ampcc):
    bad = []
    with tempfile.TemporaryDirectory() as scratch:
        tmp = pathlib.Path(scratch)
        data.write_cifar(tmp / "data", BATCH)
        (tmp / "model.pbtxt").write_text(MODEL)
        tensors.save(tmp / "start", START)
        examples = [example(index) for index in range(BATCH * EPOCH)]
        tests = [example(BATCH * EPOCH + index) for index in range(BATCH)]
        common = [f"--data-dir={tmp / 'data'}", "--no-shuffle", "--no-augment", "--threads=1", f"--epochs-between-evals={STEPS / EPOCH}", "-q"]
        for more in ["--ema-decay=0.95"], ["--ema-decay=0.9", "--ema-num-updates=1"], ["--ema-decay=0.9999", "--ema-num-updates=1"]:
            name = "".join(more)
            decay = float(more[0].split("=")[1])
            compare.run(ampcc, tmp / "model.pbtxt", "-o", tmp / "train", "--target=cpu", "--cpu=native", "--optimizer=momentum", f"--weight-decay={DECAY}",
                        f"--learning-rate={RATE}", f"--train-epochs={STEPS / EPOCH}", "--metrics=top1,l2", *more)
            compare.run(tmp / "train", *common, f"--init-from={tmp / 'start'}", f"--model-dir={tmp / name}", "--log-every=1")
            (saved,) = (tmp / name).glob("*.safetensors")
            got = tensors.load(saved)
            state, averages, l2 = train(decay, len(more) > 1, examples)
            for key in START:
                far, apart = compare.distance(got[f"{key}.ema"][1], averages[key]), compare.distance(averages[key], state[key])
                print(f"{more}: {key}.ema {far:.2e}, {apart:.2e} from the parameter")
                if not (far <= BOUND and apart > 1e-3):
                    bad.append(f"{more}: {key}.ema: relative L2 {far:.2e}, bound {BOUND:.0e}")
            (evaluation,) = compare.events(tmp / name, "eval")
            if not abs(evaluation["loss"] - loss_of(averages, tests)) <= BOUND or abs(loss_of(averages, tests) - loss_of(state, tests)) < 1e-4:
                bad.append(f"{more}: evaluated loss {evaluation['loss']}, of the averages {loss_of(averages, tests)}, of the parameters {loss_of(state, tests)}")
            for step, (event, want) in enumerate(zip(compare.events(tmp / name, "train"), l2, strict=True)):
                if not abs(event["l2_loss"] - want) <= BOUND * want or event["cross_entropy"] != event["loss"]:
                    bad.append(f"{more}: step {step}: l2_loss {event['l2_loss']}, expected {want}")
                if not abs(event["total_loss"] - event["loss"] - event["l2_loss"]) <= BOUND:
                    bad.append(f"{more}: step {step}: {event}")
        # a run in two halves; evaluations from the whole run's checkpoint and from a file without averages
        compare.run(tmp / "train", *common, f"--init-from={tmp / 'start'}", f"--model-dir={tmp / 'halves'}", "--max-train-steps=50")
        compare.run(tmp / "train", *common, "--resume", f"--model-dir={tmp / 'halves'}")
        if (tmp / "halves" / saved.name).read_bytes() != saved.read_bytes():
            bad.append("resumed in the middle, the checkpoint differs")
        for start, want in (saved, averages), (tmp / "start", {name: values for name, (_, values) in START.items()}):
            said = compare.run(tmp / "train", *common, "--eval-only", f"--init-from={start}", f"--log-file={tmp / 'eval.jsonl'}")
            got = json.loads((tmp / "eval.jsonl").read_text().splitlines()[-1])
            (tmp / "eval.jsonl").unlink()
            if not abs(got["loss"] - loss_of(want, tests)) <= BOUND:
                bad.append(f"--init-from={start}: {said} {got}, expected a loss of {loss_of(want, tests)}")
    for line in bad:
        print("FAIL", line)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
