"""Writes FOLDER/expect.txt, what TensorBoard's own reader finds in the event files of a run of TOY: make.py TOY FOLDER

TOY is tests/runtime/toy_main.c. Needs PyPI's tensorboard and Pillow; it is run by hand, and its output is committed. The lines are
those of tests/runtime/report/events_list.c, without the two rates."""
import io
import subprocess
import sys
import tempfile
import zlib

from PIL import Image
from tensorboard.backend.event_processing import event_accumulator as accumulator

from run import FLAGS

toy, folder = sys.argv[1:]


def listing(directory):
    """The events as lines, in the order of tags and then of steps."""
    everything = {accumulator.SCALARS: 0, accumulator.IMAGES: 0, accumulator.HISTOGRAMS: 0}
    events = accumulator.EventAccumulator(directory, size_guidance=everything)
    events.Reload()
    tags = events.Tags()
    assert not tags["tensors"] and not tags["audio"]
    lines = []
    for tag in tags["scalars"]:
        lines += [f"scalar {tag} {e.step} {e.value:.9g}" for e in events.Scalars(tag) if "sec" not in tag]
    for tag in tags["images"]:
        for e in events.Images(tag):
            image = Image.open(io.BytesIO(e.encoded_image_string))
            assert image.mode == "L" and image.size == (e.width, e.height)
            rows = b"".join(b"\0" + image.tobytes()[y * e.width:(y + 1) * e.width] for y in range(e.height))
            lines.append(f"image {tag} {e.step} {e.width} {e.height} 1 {zlib.crc32(rows):08x}")
    for tag in tags["histograms"]:
        for e in events.Histograms(tag):
            h = e.histogram_value
            assert len(h.bucket) == len(h.bucket_limit)
            filled = "".join(f" {limit:.9g}:{n:g}" for limit, n in zip(h.bucket_limit, h.bucket) if n)
            lines.append(f"histogram {tag} {e.step} {h.min:.9g} {h.max:.9g} {h.num:.9g} {h.sum:.9g} "
                         f"{h.sum_squares:.9g} {len(h.bucket)}{filled}")
    return lines


with tempfile.TemporaryDirectory() as scratch:
    subprocess.run([toy, "--write-data", scratch], check=True)
    subprocess.run([toy, f"--data-dir={scratch}", f"--model-dir={scratch}/m", *FLAGS], check=True)
    with open(f"{folder}/expect.txt", "w", encoding="utf-8") as out:
        for name in ("m", "m/eval"):
            print(f"folder {name}", *listing(f"{scratch}/{name}"), sep="\n", file=out)
