"""What the tables of the documentation have in common: the results they are made from, and how numbers are written."""

import gzip
import json
import math
import re
import statistics
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent.parent
RESULTS = PROJECT / "bench/results"


def file_of(name):
    """The newest of this name."""
    files = sorted(RESULTS.glob(f"{name}-????-??-??.json"))
    if not files:
        sys.exit(f"there is no {RESULTS.relative_to(PROJECT)}/{name}-DATE.json")
    return files[-1]


def read(file):
    return json.loads(gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_text())


def result(name):
    return read(file_of(name))


def date_of(file):
    return re.search(r"\d{4}-\d\d-\d\d", file.name)[0]


def place_of(file):
    """2026-11-27, 2 cores of Intel(R) Xeon(R) Processor"""
    machine = read(file)["machine"]
    return f"{date_of(file)}, {machine['cores_usable']} cores of {machine['cpu']}"


def command_of(name):
    """The command of a result, as one types it."""
    return f"`./run {result(name)['command'].removesuffix(' --json')}`"


def caption(name):
    return f"{command_of(name)}, {place_of(file_of(name))}:"


def percent(share, digits=0, sign=""):
    """58 of 0.58"""
    return f"{100 * share:{sign}.{digits}f}".replace("-", "−")


def number(value):
    """With the digits that a figure of three digits needs: 0.977, 1.94, 10.4, 128."""
    if value is None:
        return "–"
    digits = 2 if value == 0 else max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:,.{digits}f}".replace("-", "−")


def times(value):
    return f"{number(value)}×"


def spread(of, unit="×"):
    """9.57× (8.70–10.4)"""
    return f"{number(of['median'])}{unit} ({number(of['low'])}–{number(of['high'])})" if of else "–"


def wilson(hits, of):
    """The 95 % interval of a share."""
    z = 1.96
    middle = (hits + z * z / 2) / (of + z * z)
    half = z / (of + z * z) * math.sqrt(hits * (of - hits) / of + z * z / 4)
    return middle - half, middle + half


def share(hits, of, interval=None, digits=0):
    """58 of 60 (91–99 %)"""
    if of == 0:
        return "–"
    low, high = interval or wilson(hits, of)
    return f"{hits} of {of} ({percent(low, digits)}–{percent(high, digits)} %)"


def table(*rows):
    head, *body = ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join([head, "|---" * len(rows[0]) + "|", *body])


def benchmarks(name, counter):
    """A counter of each row of Google Benchmark's JSON, by the row's name: its median where it was repeated."""
    values = {}
    for row in result(name)["benchmarks"]:
        if row.get("aggregate_name", "median") == "median" and counter in row:
            values[re.sub(r"/(iterations|repeats|manual_time).*", "", row["run_name"])] = row[counter]
    return values


def median(values):
    return statistics.median(values)
