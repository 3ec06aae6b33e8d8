"""The machine with the GPU: what was carried to it, the build, and the table of results."""
import concurrent.futures, datetime, os, pathlib, subprocess, sys, time

ROOT = pathlib.Path(__file__).resolve().parents[2]
CARRIED = ROOT / ".gpu"
LIMIT = 570  # seconds for everything
PREFIX = pathlib.Path("/opt/ampcc-gpu")
BATCH = 256

# name: (model of the zoo, flags of ampcc)
PROGRAMS = {
    **{f"resnet50_{t}": ("resnet50", [f"--dtype={t}", f"--batch-size={BATCH}"]) for t in ("fp16", "bf16")},
    "resnet50_tf32": ("resnet50", ["--tf32", f"--batch-size={BATCH}"]),
    "resnet50_level1": ("resnet50", ["--dtype=fp16", f"--batch-size={BATCH}", "--fuse-level=1"]),
    "resnet50_small": ("resnet50", ["--dtype=fp16", f"--batch-size={BATCH}", "--max-memory=6.2GiB"]),
    **{f"cifar_{t}": ("cifar_resnet20", [f"--dtype={t}", "--batch-size=128", "--train-epochs=5", "--lr-schedule=cosine", "--warmup-epochs=0.5",
                                        "--optimizer=nesterov", "--batch-norm-momentum=0.9"]) for t in ("fp32", "bf16", "fp16")},
    **{f"small_{t}": ("cifar_resnet8", [f"--dtype={t}", "--batch-size=32"]) for t in ("fp32", "bf16", "fp16")},
    **{f"unfused_{t}": ("cifar_resnet8", [f"--dtype={t}", "--batch-size=32", "--no-fuse"]) for t in ("fp32", "fp16")},
    **{f"wide_{t}": ("resnet50", [f"--dtype={t}", "--batch-size=8"]) for t in ("fp32", "bf16", "fp16")},
}


class Place:
    """Where results, logs and programs go."""

    def __init__(self, out):
        self.out = out
        self.work = pathlib.Path("/tmp/ampcc-gpu")
        for folder in (self.out, self.work):
            folder.mkdir(parents=True, exist_ok=True)

    def program(self, name):
        path = self.work / name
        if not path.exists():
            raise FileNotFoundError(f"{name} was not compiled; see build")
        return path


def run(command, seconds, **more):
    """Runs to the end; its output is in the error if it fails."""
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=max(seconds, 1), **more)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}: status {done.returncode}: {(done.stderr or done.stdout)[-1500:]}")
    return done


def describe():
    query = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"], capture_output=True, text=True)
    commit = os.environ.get("COMMIT") or subprocess.run(["git", "-C", str(ROOT), "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True).stdout.strip()
    return {"gpu": query.stdout.strip() or "none", "date": datetime.date.today().isoformat(), "commit": commit or "unknown", "processors": os.cpu_count()}


def capability():
    line = subprocess.run(["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"], capture_output=True, text=True, check=True).stdout
    return line.split()[0].replace(".", "")


def unpack():
    """The carried packages under a prefix of their own: the machine's libraries stay as they are."""
    debs = sorted((CARRIED / "debs").glob("*.deb")) if CARRIED.exists() else []
    for deb in debs:
        run(["dpkg", "-x", deb, PREFIX], 60)
    libs = [PREFIX / "usr/lib/x86_64-linux-gnu", PREFIX / "lib/x86_64-linux-gnu"]
    for variable, folders in (("PATH", [PREFIX / "usr/bin"]), ("LD_LIBRARY_PATH", libs), ("LIBRARY_PATH", libs), ("CPATH", [PREFIX / "usr/include"]),
                              ("PKG_CONFIG_PATH", [libs[0] / "pkgconfig"])):
        os.environ[variable] = ":".join([*map(str, folders), *filter(None, [os.environ.get(variable)])])
    os.environ["PKG_CONFIG_SYSROOT_DIR"] = str(PREFIX) if debs else ""


def configure(folder):
    """With the toolkit of the machine or, if that lacks cuDNN, the wheels that PyTorch brought along."""
    command = ["meson", "setup", folder, ROOT, "-Dcuda=enabled", "-Dtests=short"]
    try:
        run(command, 120)
    except RuntimeError as error:
        wheels = [path for path in map(pathlib.Path, sys.path) if (path / "nvidia").is_dir()]
        if not wheels:
            raise
        print(f"no toolkit ({error}); trying the wheels in {wheels[0]}", flush=True)
        run([*command, "--wipe", f"-Dtoolkit={wheels[0]}"], 120)
        libraries = [str(path) for path in wheels[0].glob("nvidia/*/lib")]
        os.environ["LD_LIBRARY_PATH"] = ":".join([*libraries, os.environ["LD_LIBRARY_PATH"]])


def compile_program(place, name, model, flags, left, *more):
    """The seconds that it took."""
    folder, pb = place.work / "build", place.work / f"{name}.pb"
    run([folder / "models/ampcc-zoo", model, "-o", pb], 60)
    begin = time.monotonic()
    run([folder / "frontend/ampcc", pb, "-o", place.work / name, f"--target=cpu,cuda:sm_{capability()}", *flags, *more], left)
    return round(time.monotonic() - begin, 2)


def build(place, left):
    start = time.monotonic()
    unpack()
    folder = place.work / "build"
    configure(folder)
    run(["ninja", "-C", folder], left)
    built = time.monotonic()

    def compile_one(item):
        name, (model, flags) = item
        return name, compile_program(place, name, model, flags, left)

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        seconds = dict(pool.map(compile_one, PROGRAMS.items()))
    return {"build_seconds": round(built - start, 1), "compile_seconds": seconds}


def row(cells):
    return "| " + " | ".join(str(c) for c in cells) + " |\n"


def table(results):
    """Every section as lists of rows, in the order that they ran."""
    head = results["machine"]
    text = f"# {head['gpu']}, {head['date']}, commit {head['commit']}\n"
    for name, section in results.items():
        if name == "machine":
            continue
        text += f"\n## {name}\n\n"
        if "failed" in section:
            text += f"failed: {section['failed'][:600]}\n"
            continue
        rows = section.get("rows")
        if rows:
            text += row(rows[0]) + row(["---"] * len(rows[0])) + "".join(row(r) for r in rows[1:])
        text += "".join(f"- {key}: {value}\n" for key, value in section.items() if key != "rows")
    return text
