#!/usr/bin/env python3
"""Draws a gemm-bench CSV as an SVG: one dot per shape, grouped by class, speed relative to the better of cuBLAS and cuBLASLt.

usage: plot_bench.py BENCH.csv OUT.svg "title"

Needs only Python's standard library. Shapes without a baseline (emulated runs) are refused: a plot shows measurements.
"""
import csv
import html
import math
import sys

WIDTH, HEIGHT = 980, 420
LEFT, RIGHT, TOP, BOTTOM = 60, 40, 50, 70
TICKS = [0.5, 0.7, 1, 1.4, 2, 2.8, 4]
COLORS = ["#4269d0", "#efb118", "#ff725c", "#6cc5b0", "#3ca951", "#ff8ab7", "#a463f2", "#97bbf5", "#9c6b4e", "#9498a0"]


def padding(row):
    """" ld 513,512,512" where the problem is not packed. Files of older versions have packed problems only, and no lda."""
    m, n, k = (int(row[name]) for name in "mnk")
    packed = [k if row["transa"] == "T" else m, n if row["transb"] == "T" else k, m]
    given = [int(row.get(name) or 0) or least for name, least in zip(("lda", "ldb", "ldc"), packed)]
    return "" if given == packed else " ld " + ",".join(map(str, given))


def read_rows(path):
    """[(class, label, speedup, own kernel?)] in the order of the file."""
    rows = []
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            baselines = [float(row[key]) for key in ("cublas_us", "cublaslt_best_us") if row[key]]
            if not baselines:
                sys.exit(f"{path}: {row['m']}x{row['n']}x{row['k']} has no baseline; only measured runs are plotted")
            label = f"{row['m']}×{row['n']}×{row['k']} {row['transa']}{row['transb']}"
            if row["batch"] not in ("", "1"):
                label += f" ×{row['batch']}"
            label += padding(row)
            rows.append((row["class"], label, min(baselines) / float(row["ours_us"]), row["kernel"] != "cublas"))
    return rows


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def y_of(speedup):
    low, high = math.log(TICKS[0]), math.log(TICKS[-1])
    clamped = min(max(math.log(speedup), low), high)
    return TOP + (HEIGHT - TOP - BOTTOM) * (high - clamped) / (high - low)


def draw(rows, title):
    classes = list(dict.fromkeys(row[0] for row in rows))
    step = (WIDTH - LEFT - RIGHT) / (len(rows) + len(classes))
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
           f'<text x="{LEFT}" y="22" font-size="15">{html.escape(title)}</text>',
           f'<text x="{LEFT}" y="39" fill="#555">speed relative to the better of cuBLAS and cuBLASLt\'s best heuristic'
           ' (hollow: cuBLAS was chosen; line: geometric mean of the class)</text>']
    for tick in TICKS:
        y = y_of(tick)
        weight = "#333" if tick == 1 else "#ddd"
        out.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="{weight}"/>')
        out.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{tick:g}×</text>')
    x = LEFT + step / 2
    for index, name in enumerate(classes):
        color = COLORS[index % len(COLORS)]
        members = sorted((row for row in rows if row[0] == name), key=lambda row: row[2])
        start = x
        for _, label, speedup, own in members:
            fill = color if own else "white"
            out.append(f'<circle cx="{x:.1f}" cy="{y_of(speedup):.1f}" r="3.4" fill="{fill}" stroke="{color}">'
                       f'<title>{html.escape(label)}: {speedup:.2f}×</title></circle>')
            x += step
        mean = geometric_mean([row[2] for row in members])
        out.append(f'<line x1="{start - step / 2:.1f}" x2="{x - step / 2:.1f}" y1="{y_of(mean):.1f}" y2="{y_of(mean):.1f}"'
                   f' stroke="{color}" stroke-width="2"/>')
        middle = (start + x - step) / 2
        stagger = 16 * (index % 2)
        out.append(f'<text x="{middle:.1f}" y="{HEIGHT - BOTTOM + 20 + stagger}" text-anchor="middle">'
                   f'{html.escape(name)} {mean:.2f}×</text>')
        x += step
    overall = geometric_mean([row[2] for row in rows])
    out.append(f'<text x="{LEFT}" y="{HEIGHT - 12}" fill="#555">all {len(rows)} shapes: {overall:.2f}× (geometric mean)</text>')
    out.append("</svg>")
    return "\n".join(out) + "\n"


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    rows = read_rows(sys.argv[1])
    if not rows:
        sys.exit(f"{sys.argv[1]}: no shapes")
    with open(sys.argv[2], "w") as file:
        file.write(draw(rows, sys.argv[3]))


if __name__ == "__main__":
    main()
