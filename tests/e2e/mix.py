#!/usr/bin/env python3
"""Tests --mixup and --cutmix against plain Python: mix.py AMPCC

For every loss the loss, the accuracy and the gradient of one step are computed from the images, the labels and the random draw that
--dump-step writes; the gradient by central differences in double precision. Furthermore a resumed run must be equal to the bit,
another alpha can be given at run time, and a program that does not mix must say so."""
import math, pathlib, subprocess, sys, tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "oracle"))
import compare, data, tensors

BATCH, CLASSES, SIDE, SIZE, SMOOTHING = 7, 10, 32, 3072, 0.1
MODEL = """version: 1 name: "net"
input { name: "image" dim: [0, 32, 32, 3] } input { name: "label" dim: 0 }
parameter { name: "fc.weight" dim: [10, 3072] }
node { op: "reshape" input: "image" output: "x" attribute { name: "shape" ints { v: [0, 3072] } } }
node { op: "matmul" input: ["x", "fc.weight"] output: "y" attribute { name: "trans_b" i: 1 } }
loss { kind: SOFTMAX_CROSS_ENTROPY logits: "y" }
recipe { dataset: "cifar10" batch_size: 7 optimizer: "momentum" learning_rate: 0.01 label_smoothing: 0.1 flip: 1 pad: 4 }
"""


def softmax_cross_entropy(row, q):
    top = max(row)
    return math.log(sum(math.exp(v - top) for v in row)) + top - sum(a * b for a, b in zip(row, q))


def sigmoid_cross_entropy(row, q):
    return sum(max(x, 0) - x * z + math.log1p(math.exp(-abs(x))) for x, z in zip(row, q)) / len(row)


def mean_squared_error(row, q):
    return sum((x - z) ** 2 for x, z in zip(row, q)) / len(row)


def wanted(label):
    return [(1 - SMOOTHING) * (k == label) + SMOOTHING / CLASSES for k in range(CLASSES)]


def mixed_images(image, mix):
    """The images as the step should see them, and the share of each example's own label in its loss."""
    other, top, bottom, left, right = mix
    own = [0.0 if top <= p // 3 // SIDE < bottom and left <= p // 3 % SIDE < right else 1 - other for p in range(SIZE)]
    rows = [image[n * SIZE:(n + 1) * SIZE] for n in range(BATCH)]
    return [[a * s + b * (1 - s) for a, b, s in zip(rows[n], rows[BATCH - 1 - n], own)] for n in range(BATCH)], sum(own) / SIZE


def check_step(name, loss_of, dump, weights, bad):
    mix, label = list(dump["mix"][1]), list(dump["label"][1])
    x, share = mixed_images(list(dump["image"][1]), mix)
    logits = [[sum(a * b for a, b in zip(row, weights[k * SIZE:(k + 1) * SIZE])) for k in range(CLASSES)] for row in x]

    def loss(y):
        return sum(share * loss_of(y[n], wanted(label[n])) + (1 - share) * loss_of(y[n], wanted(label[BATCH - 1 - n])) for n in range(BATCH)) / BATCH

    first = [row.index(max(row)) for row in logits]
    accuracy = sum(share * (first[n] == label[n]) + (1 - share) * (first[n] == label[BATCH - 1 - n]) for n in range(BATCH)) / BATCH
    for what, got, want in ("loss", dump["loss"][1][0], loss(logits)), ("accuracy", dump["accuracy"][1][0], accuracy):
        if not abs(got - want) <= 1e-5 * max(1, abs(want)):
            bad.append(f"{name}: {what} is {got}, should be {want}")
    gradient, step, far = list(dump["fc.weight.grad"][1]), 1e-4, 0.0
    largest = max(abs(v) for v in gradient)
    for at in range(0, CLASSES * SIZE, 331):
        k, p = divmod(at, SIZE)
        sides = []
        for sign in 1, -1:
            moved = [list(row) for row in logits]
            for n in range(BATCH):
                moved[n][k] += sign * step * x[n][p]
            sides.append(loss(moved))
        far = max(far, abs(gradient[at] - (sides[0] - sides[1]) / (2 * step)) / largest)
    print(name, "share", share, "loss", dump["loss"][1][0], "gradient off by", far)
    if not far <= 2e-5:
        bad.append(f"{name}: the gradient is off by {far} of its largest element")
    return share


def compare_trap(tmp, train, bad):
    got = subprocess.run([str(tmp / "net"), *train, f"--model-dir={tmp / 'trap'}", "--trap=first-nonfinite", "--inject=inf@3:image[5]"],
                         capture_output=True, text=True)
    (saved,) = (tmp / "trap").glob("nonfinite*")
    again = subprocess.run([str(tmp / "net"), train[0], f"--reproduce={saved}"], capture_output=True, text=True)
    compare.run(tmp / "net", train[0], "-q", f"--reproduce={saved}", f"--dump-step={tmp / 'again'}")
    kept, used = tensors.load(saved)["mix"], tensors.load(tmp / "again")["mix"]
    if got.returncode != 1 or again.returncode != 1 or "first not finite: image" not in again.stderr or kept != used or not any(kept[1]):
        bad.append(f"reproducing: {got.stderr} {again.stderr} {kept} {used}")


def main(ampcc):
    bad = []
    with tempfile.TemporaryDirectory() as folder:
        tmp = pathlib.Path(folder)
        data.write_cifar(tmp / "data", 14)
        (tmp / "net.pbtxt").write_text(MODEL)
        weights = [math.sin(i * 0.37 + i % 11) * 0.05 for i in range(CLASSES * SIZE)]
        tensors.save(tmp / "start", {"fc.weight": ([CLASSES, SIZE], weights)})
        weights = list(tensors.load(tmp / "start")["fc.weight"][1])
        common = [f"--data-dir={tmp / 'data'}", "-q"]
        shares = []
        for loss_of in softmax_cross_entropy, sigmoid_cross_entropy, mean_squared_error:
            for flag in "--mixup=1", "--cutmix=1":
                compare.run(ampcc, tmp / "net.pbtxt", "-o", tmp / "net", "--target=cpu", "--cpu=native", f"--loss={loss_of.__name__}", flag)
                for seed in 1, 2:
                    compare.run(tmp / "net", *common, f"--init-from={tmp / 'start'}", f"--seed={seed}", f"--dump-step={tmp / 'dump'}")
                    name = f"{loss_of.__name__} {flag} seed {seed}"
                    shares.append(check_step(name, loss_of, tensors.load(tmp / "dump"), weights, bad))
        if len(set(shares)) < 4 or not all(0 < s < 1 for s in shares[:2]):
            bad.append(f"nothing was mixed: {shares}")
        # the last program runs with another alpha, without mixing, and is resumed
        for flags, want in (["--cutmix=0"], 0), (["--cutmix=0", "--mixup=4"], 1):
            compare.run(tmp / "net", *common, *flags, f"--dump-step={tmp / 'dump'}")
            if (tensors.load(tmp / "dump")["mix"][1][0] > 0) != want:
                bad.append(f"{flags}: {tensors.load(tmp / 'dump')['mix'][1]}")
        train = [*common, "--skip-eval", "--train-epochs=1", "--mixup=0.2", "--random-erasing=0.5"]
        compare.run(tmp / "net", *train, f"--model-dir={tmp / 'whole'}", "--data-threads=3")
        compare.run(tmp / "net", *train, f"--model-dir={tmp / 'halves'}", "--max-train-steps=4")
        compare.run(tmp / "net", *train, f"--model-dir={tmp / 'halves'}", "--resume")
        whole, halves = (tensors.load(tmp / part / "ckpt-10.safetensors") for part in ("whole", "halves"))
        if whole != halves or list(whole["global_step"][1]) != [10]:
            bad.append("the resumed run differs")
        # the file of a trapped step holds its random draw, so that the step runs again in the same way
        compare_trap(tmp, train, bad)
        compare.run(ampcc, tmp / "net.pbtxt", "-o", tmp / "plain", "--target=cpu", "--cpu=native")
        got = subprocess.run([str(tmp / "plain"), *train[:-1], f"--model-dir={tmp / 'none'}"], capture_output=True, text=True)
        if got.returncode != 2 or "--mixup: this program does not mix its examples" not in got.stderr:
            bad.append(f"without mixing: {got.returncode} {got.stderr}")
    for line in bad:
        print("FAIL", line)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
