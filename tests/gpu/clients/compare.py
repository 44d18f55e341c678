"""Compares the lines of the plain and the preloaded runs: a table for people, a CSV, and an exit status.

    python3 compare.py PLAIN.jsonl DROPIN.jsonl CSV

Results are right where the drop-in's error, against the same FP64 reference in both runs, is within its bound: for single
products that of FP32 sums, element by element; for training steps four times the plain run's own error. Fails also where a
run was not preloaded, or where nothing at all was served in a step: also where cuBLAS was chosen for it, which happens too
where no kernel can be built.
"""

import csv
import json
import math
import sys

COLUMNS = ["client", "step", "plain_ms", "dropin_ms", "speedup", "served", "forwarded", "error_of_bound", "details"]
SMALLEST_RELATIVE_BOUND = 16 * 5.97e-8


def read(path):
    with open(path) as lines:
        return {(row["client"], row["step"]): row for row in map(json.loads, lines)}


def error_of_bound(plain, dropin):
    if dropin["kind"] == "bound":
        return dropin["error"]
    return dropin["error"] / max(4 * plain["error"], SMALLEST_RELATIVE_BOUND)


def compare(plain, dropin):
    return {
        "client": dropin["client"],
        "step": dropin["step"],
        "plain_ms": round(plain["ms"], 4),
        "dropin_ms": round(dropin["ms"], 4),
        "speedup": round(plain["ms"] / dropin["ms"], 3),
        "served": dropin["served"],
        "forwarded": dropin["forwarded"],
        "error_of_bound": round(error_of_bound(plain, dropin), 3),
        "details": dropin["details"],
    }


def complaints(row, plain, dropin):
    if plain["served"] is not None:
        yield "the plain run was preloaded"
    if dropin["served"] is None:
        yield "the drop-in did not report"
    elif dropin["served"] == 0:
        yield f"nothing was served ({dropin['details']})"
    if not math.isclose(plain["fingerprint"], dropin["fingerprint"], rel_tol=1e-6, abs_tol=1e-9):
        yield "the runs had different numbers"
    if plain["kind"] == "bound" and not plain["error"] <= 1:
        yield f"the plain run is outside the bound ({plain['error']:.3g})"
    if not row["error_of_bound"] <= 1:
        yield "outside the bound"


def main(plain_path, dropin_path, csv_path):
    plain, dropin = read(plain_path), read(dropin_path)
    rows, wrong = [], [f"{key}: not in both runs" for key in plain.keys() ^ dropin.keys()]
    for key in [key for key in plain if key in dropin]:
        rows.append(compare(plain[key], dropin[key]))
        wrong += [f"{', '.join(key)}: {why}" for why in complaints(rows[-1], plain[key], dropin[key])]

    print(f"{'client':<16} {'step':<38} {'plain ms':>9} {'drop-in':>9} {'speedup':>8} {'served':>7} {'forw.':>6} {'error':>6}")
    for r in rows:
        print(
            f"{r['client']:<16} {r['step']:<38} {r['plain_ms']:>9.3f} {r['dropin_ms']:>9.3f} {r['speedup']:>8.3f} "
            f"{r['served'] or 0:>7} {r['forwarded'] or 0:>6} {r['error_of_bound']:>6.3f}"
        )
    print("error: the drop-in's largest error as a share of its bound")
    for r in rows:
        print(f"  {r['client']}, {r['step']}: {r['details']}")
    with open(csv_path, "w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    for line in wrong:
        print(f"WRONG: {line}")
    return 1 if wrong or not rows else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4]))
