#!/usr/bin/env python3
"""Draws the first table of results/cpu_layers.txt, or that of TYPE, under the roofline of one thread, as an SVG:

    roofline.py GFLOPS GBYTES [f32|bf16] >results/cpu_layers.svg

GFLOPS and GBYTES are what a thread reaches in multiplying from registers and in reading memory. A point is a layer: across, the
operations for each byte if x, the filter and y pass once; up, its speed. Winograd's layers count as direct products, so they may
lie above the roof."""
import math, pathlib, re, sys

PEAK, BYTES = float(sys.argv[1]), float(sys.argv[2])
TYPE = sys.argv[3] if len(sys.argv) > 3 else "f32"
SIZE = {"f32": 4, "bf16": 2}[TYPE]
LEFT, RIGHT, TOP, BOTTOM, WIDE, HIGH = 60, 20, 30, 50, 760, 420
XS, YS = (8, 512), (64, 1024)  # both axes are logarithmic
COLOURS = {"forward": "#1f77b4", "data": "#2ca02c", "filter": "#d62728"}


def place(x, y):
    across = (math.log(x) - math.log(XS[0])) / (math.log(XS[1]) - math.log(XS[0]))
    up = (math.log(y) - math.log(YS[0])) / (math.log(YS[1]) - math.log(YS[0]))
    return LEFT + across * (WIDE - LEFT - RIGHT), HIGH - BOTTOM - up * (HIGH - TOP - BOTTOM)


def intensity(layer):
    """Operations for each byte of a layer such as "3x3/2 64->128 @56", batch 8, of CIFAR 128."""
    taps, stride, c, k, side = re.match(r"(\d+)x\d+(?:/(\d+))? (\d+)->(\d+) @(\d+)", layer).groups()
    taps, stride, c, k, side = int(taps), int(stride or 1), int(c), int(k), int(side)
    batch, out = 128 if side <= 32 and max(c, k) <= 64 else 8, -(-side // stride)
    moved = batch * side * side * c + batch * out * out * k + taps * taps * c * k
    return 2 * batch * out * out * k * c * taps * taps / (moved * SIZE)


def rows():
    found = False
    for line in (pathlib.Path(__file__).parent / "results/cpu_layers.txt").read_text().splitlines():
        found = line.startswith(TYPE + " with") if re.match(r"(f32|bf16|AVX2)\b", line) else found
        cells = [c.strip() for c in line.split("|")]
        if found and len(cells) > 5 and cells[2] in COLOURS:
            yield cells[1], cells[2], float(cells[3]), float(cells[4])


def text(x, y, words, more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" {more}>{words}</text>'


def line(a, b, more):
    return f'<line x1="{a[0]:.1f}" y1="{a[1]:.1f}" x2="{b[0]:.1f}" y2="{b[1]:.1f}" {more}/>'


knee = PEAK / BYTES
svg = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDE}" height="{HIGH}" font-family="sans-serif" font-size="12">',
       f'<rect width="{WIDE}" height="{HIGH}" fill="white"/>',
       line(place(max(XS[0], YS[0] / BYTES), max(YS[0], XS[0] * BYTES)), place(knee, PEAK), 'stroke="black"'),
       line(place(knee, PEAK), place(XS[1], PEAK), 'stroke="black"'),
       text(WIDE - RIGHT, place(1, PEAK)[1] - 5, f"{PEAK:g} GFLOP/s, {TYPE}, one thread", 'text-anchor="end"'),
       text(WIDE / 2, HIGH - 12, "operations for each byte of x, filter and y", 'text-anchor="middle"'), text(8, 18, "GFLOP/s")]
for x in (2 ** i for i in range(3, 10)):
    svg.append(text(place(x, YS[0])[0], HIGH - BOTTOM + 16, x, 'text-anchor="middle"'))
for y in (2 ** i for i in range(6, 11)):
    svg += [line(place(XS[0], y), place(XS[1], y), 'stroke="#dddddd"'), text(LEFT - 6, place(1, y)[1] + 4, y, 'text-anchor="end"')]
for layer, kind, own, other in rows():
    x, y = place(intensity(layer), own)
    svg.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{COLOURS[kind]}"><title>{layer} {kind}: {own:g}, oneDNN {other:g}</title></circle>')
    svg.append(f'<circle cx="{x:.1f}" cy="{place(1, other)[1]:.1f}" r="3" fill="none" stroke="{COLOURS[kind]}"/>')
for i, (kind, colour) in enumerate(COLOURS.items()):
    svg.append(text(LEFT + 10 + 90 * i, TOP + 14, f"&#9679; {kind}", f'fill="{colour}"'))
svg.append(text(LEFT + 290, TOP + 14, "filled: own kernels; rings: oneDNN"))
print("\n".join(svg + ["</svg>"]))
