"""The machine with the GPU: unpacks what was carried to it, builds ampcc, and writes the table of
results."""
import concurrent.futures, datetime, functools, os, pathlib, re, shutil, signal, subprocess, sys, time

ROOT = pathlib.Path(__file__).resolve().parents[2]
CARRIED = ROOT / ".gpu"
AHEAD = CARRIED / "programs.tar.xz"
LIMIT = 570  # seconds for all sections together
PREFIX = pathlib.Path("/opt/ampcc-gpu")
BATCH = 256

# ninja targets: ampcc and all that its programs are compiled and linked with
TARGETS = ["frontend/ampcc", "models/ampcc-zoo", "resources", "tests/gpu/gpu_plans"]

# a loss scale with which the first step of a ResNet-50 is not skipped
FINITE = {"fp32": [], "bf16": [], "fp16": ["--loss-scale=dynamic:init=128"]}

# name: (model of the zoo, flags of ampcc)
PROGRAMS = {
    **{f"resnet50_{t}": ("resnet50", [f"--dtype={t}", f"--batch-size={BATCH}"]) for t in ("fp16", "bf16")},
    "resnet50_tf32": ("resnet50", ["--tf32", f"--batch-size={BATCH}"]),
    "resnet50_level3": ("resnet50", ["--dtype=fp16", f"--batch-size={BATCH}", "--fuse-level=3"]),
    "resnet50_small": ("resnet50", ["--dtype=fp16", f"--batch-size={BATCH}", "--max-memory=6.2GiB"]),
    **{f"cifar_{t}": ("cifar_resnet20", [f"--dtype={t}", "--batch-size=128", "--train-epochs=5", "--lr-schedule=cosine", "--warmup-epochs=0.5",
                                        "--optimizer=nesterov", "--batch-norm-momentum=0.9"]) for t in ("fp32", "bf16", "fp16")},
    **{f"small_{t}": ("cifar_resnet8", [f"--dtype={t}", "--batch-size=32"]) for t in ("fp32", "bf16", "fp16")},
    **{f"unfused_{t}": ("cifar_resnet8", [f"--dtype={t}", "--batch-size=32", "--no-fuse"]) for t in ("fp32", "fp16")},
    **{f"groups_{t}": ("fashion_resnext11_8x4d", [f"--dtype={t}", "--batch-size=32"]) for t in ("fp32", "bf16", "fp16")},
    "parts_fp16": ("cifar_resnet8", ["--dtype=fp16", "--batch-size=32", "--accumulate=2"]),
    "frozen_fp16": ("cifar_resnet8", ["--dtype=fp16", "--batch-size=32", "--freeze=layer2.*"]),
    **{f"wide_{t}": ("resnet50", [f"--dtype={t}", "--batch-size=4", *FINITE[t]]) for t in ("fp32", "bf16", "fp16")},
    "exact_fp16": ("resnet50", ["--dtype=fp16", f"--batch-size={BATCH}", *FINITE["fp16"]]),
    "exact_level3": ("resnet50", ["--dtype=fp16", f"--batch-size={BATCH}", "--fuse-level=3", *FINITE["fp16"]]),
    "small_level3": ("cifar_resnet8", ["--dtype=fp16", "--batch-size=32", "--fuse-level=3"]),
    "groups_level3": ("fashion_resnext11_8x4d", ["--dtype=fp16", "--batch-size=32", "--fuse-level=3"]),
    "wide_level3": ("resnet50", ["--dtype=fp16", "--batch-size=4", "--fuse-level=3", *FINITE["fp16"]]),
}


asked = None  # --programs


def wanted(names):
    """Those that --programs asks for: all, if it is not given."""
    return [name for name in names if not asked or name in asked]


class Place:
    """The folders of results, logs and programs."""

    def __init__(self, out):
        self.out = out
        self.work = pathlib.Path("/tmp/ampcc-gpu")
        for folder in (self.out, self.work):
            folder.mkdir(parents=True, exist_ok=True)
        (self.out / "details.txt").write_text("")

    def program(self, name):
        path = self.work / name
        if not path.exists():
            raise FileNotFoundError(f"{name} was not compiled; see build")
        return path

    def detail(self, title, text):
        """Appends text that is too long for the table to one file, since only few files can be
        brought back from a lent machine."""
        with open(self.out / "details.txt", "a") as file:
            file.write(f"==== {title}\n{text[-200000:]}\n")


def start(command, **more):
    """Starts a command in a process group of its own, so that stop() also ends its children."""
    return subprocess.Popen([str(c) for c in command], text=True, start_new_session=True, **more)


def stop(process):
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def run(command, end, **more):
    """Runs a command, at the latest until `end` (of time.monotonic). If it fails, the error
    contains its output."""
    process = start(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)
    try:
        out, err = process.communicate(timeout=max(end - time.monotonic(), 1))
    except subprocess.TimeoutExpired:
        stop(process)
        raise TimeoutError(f"{command[0]}: not done in time") from None
    if process.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}: status {process.returncode}: {(err.strip() or out.strip())[-600:]}")
    return subprocess.CompletedProcess(command, 0, out, err)


def answer(command):
    """The output of a command; empty if it fails or does not exist."""
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=30).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def describe():
    gpu = answer(["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"])
    carried = CARRIED / "commit"
    commit = carried.read_text().strip() if carried.exists() else answer(["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=12"])
    return {"gpu": gpu or "none", "date": datetime.date.today().isoformat(), "commit": commit or "unknown", "processors": os.cpu_count()}


@functools.cache
def capability():
    line = answer(["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"])
    if not line:
        raise RuntimeError("nvidia-smi names no GPU")
    return line.split()[0].replace(".", "")


def put_first(variable, *folders):
    os.environ[variable] = ":".join([*map(str, folders), *filter(None, [os.environ.get(variable)])])


def unpack(end):
    """Unpacks the packages that were carried here under a prefix of their own, so that the
    machine's libraries stay as they are."""
    debs = sorted((CARRIED / "debs").glob("*.deb")) if CARRIED.exists() else []
    for deb in debs:
        run(["dpkg", "-x", deb, PREFIX], end)
    libs = [PREFIX / "usr/lib/x86_64-linux-gnu", PREFIX / "lib/x86_64-linux-gnu"]
    put_first("PATH", pathlib.Path(sys.executable).parent, PREFIX / "usr/bin")
    put_first("LD_LIBRARY_PATH", *libs)
    put_first("LIBRARY_PATH", *libs)
    put_first("CPATH", PREFIX / "usr/include")
    put_first("PKG_CONFIG_PATH", libs[0] / "pkgconfig")
    if debs:
        os.environ["PKG_CONFIG_SYSROOT_DIR"] = str(PREFIX)


def link_toolkit(folder, end):
    """Makes a CUDA toolkit of links to PyTorch's wheels, then to a toolkit of the machine, then to
    what was carried here. Wheels lack headers and a toolkit may lack cuDNN, so no single place
    need have everything."""
    carried = folder.parent / "carried"
    if (CARRIED / "toolkit.tar.gz").exists():
        carried.mkdir(exist_ok=True)
        run(["tar", "-xzf", CARRIED / "toolkit.tar.gz", "-C", carried], end)
    wheels = [pathlib.Path(path) / "nvidia" / part for path in sys.path for part in ("cu13", "cudnn", "nccl")]
    tops = [*wheels, *(pathlib.Path(path) for path in (os.environ.get("CUDA_HOME"), "/usr/local/cuda", "/opt/cuda") if path), carried]
    places = {"include": [top / "include" for top in tops],
              "lib64": [*(top / name for top in tops for name in ("lib64", "lib")), pathlib.Path("/usr/lib/x86_64-linux-gnu")]}
    shutil.rmtree(folder, ignore_errors=True)
    for kind, froms in places.items():
        (folder / kind).mkdir(parents=True)
        for entry in (entry for place in froms if place.is_dir() for entry in place.iterdir()):
            link = folder / kind / entry.name
            if not link.is_symlink() and (kind == "include" or re.match("lib(cudnn|cublas|nccl|nvrtc|cudart_static)", entry.name)):
                link.symlink_to(entry.resolve())
    put_first("LD_LIBRARY_PATH", folder / "lib64")
    return folder


built = set()  # folders in which ampcc was built by this process


def ampcc(work, end):
    """Builds ampcc, once; returns the folder of the build."""
    folder = work / "build"
    if folder not in built:
        toolkit = link_toolkit(work / "toolkit", end)
        # -Dwerror=false because the compiler of that machine may have other warnings
        run(["meson", "setup", folder, ROOT, "-Dcuda=enabled", "-Dtests=short", "-Dwerror=false", f"-Dtoolkit={toolkit}"], end)
        run(["ninja", "-C", folder, *TARGETS], end)
        built.add(folder)
    return folder


def compile_program(place, name, model, flags, end, *more):
    """Compiles a program; returns the seconds that it took."""
    folder, pb = ampcc(place.work, end), place.work / f"{name}.pb"
    (place.work / name).unlink(missing_ok=True)
    run([folder / "models/ampcc-zoo", model, "-o", pb], end)
    begin = time.monotonic()
    run([folder / "frontend/ampcc", pb, "-o", place.work / name, f"--target=cpu,cuda:sm_{capability()}", *flags, *more], end)
    return round(time.monotonic() - begin, 1)


def jpegs(place):
    """The folder with CIFAR-10's JPEGs, `train` and `test`, once cifar() has unpacked them."""
    return next(p.parent for p in (place.work / "jpeg").rglob("train"))


def cifar(place, end):
    """Makes CIFAR-10's binary files of the JPEGs that were carried here; returns their folder."""
    folder = place.work / "data/cifar-10-batches-bin"
    if (folder / "batches.meta.txt").exists():  # this file is written last, so the folder is complete
        return folder
    archive, jpeg = CARRIED / "cifar10-jpeg.tar.gz", place.work / "jpeg"
    if not archive.exists():
        raise FileNotFoundError("no CIFAR-10 was carried: see tests/gpu/prepare")
    jpeg.mkdir(exist_ok=True)
    run(["tar", "-xzf", archive, "-C", jpeg], end)
    source = jpegs(place)
    run([sys.executable, CARRIED / "to_binary.py", source, folder], end)
    return folder


def compile_all(place, end):
    """Compiles all programs. Returns rows for the table, and the names of those that failed."""
    shutil.copy(ampcc(place.work, end) / "tests/gpu/gpu_plans", place.work)
    failed = []

    def compile_one(name):
        try:
            return [name, compile_program(place, name, *PROGRAMS[name], end)]
        except Exception as error:  # the other cases go on
            failed.append(name)
            return [name, str(error)]

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        return [["program", "seconds to compile, eight at a time"], *pool.map(compile_one, PROGRAMS)], failed


def build(place, end, found):
    """Takes the programs that were compiled elsewhere (tests/gpu/ahead), if they were carried here; else builds ampcc and compiles
    them here. `variants` needs an ampcc here in either case."""
    begin, failed = time.monotonic(), []
    unpack(end)
    if AHEAD.exists():
        link_toolkit(place.work / "toolkit", end)
        run(["tar", "-xJf", AHEAD, "-C", place.work], end)
        found["programs"] = "compiled on a machine without a GPU"
    else:
        ampcc(place.work, end)
        found["seconds to build ampcc"] = round(time.monotonic() - begin, 1)
        found["rows"], failed = compile_all(place, end)
    cifar(place, end)
    if failed:
        raise AssertionError(f"not compiled: {', '.join(failed)}")


def row(cells):
    return "| " + " | ".join(" ".join(str(c).split()).replace("|", "/") for c in cells) + " |\n"


def table(results):
    """The rows of every section, in the order in which they ran."""
    head = results["machine"]
    text = f"# {head['gpu']}, {head['date']}, commit {head['commit']}\n"
    for name, section in results.items():
        if name == "machine":
            continue
        text += f"\n## {name}\n\n"
        rows = section.get("rows")
        if rows:
            text += row(rows[0]) + row(["---"] * len(rows[0])) + "".join(row(r) for r in rows[1:])
        text += ("\n" if rows else "") + "".join(f"- {key}: {' '.join(str(value).split())[:600]}\n" for key, value in section.items() if key != "rows")
    return text
