#!/usr/bin/env python3
"""Seconds that each public header costs the file that includes it: compiled alone, without a cache, the best of three.
A table goes to stderr, JSON in Google Benchmark's shape to stdout. The limit is a figure to look at, nothing fails on it."""

import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LIMIT_S = 2.5   # for a header without LibTorch
ROUNDS = 3

include = Path(__file__).resolve().parent.parent / "include"
compiler = os.environ.get("CXX", "c++")


def torch_flags():
    """Where LibTorch's headers are, from the folder of its TorchConfig.cmake."""
    folder = os.environ.get("DRAWPOINT_TORCH_DIR")
    if not folder:
        return []
    root = Path(folder).parents[2] / "include"
    return ["-isystem", str(root), "-isystem", str(root / "torch/csrc/api/include")]


def needs_torch(header, seen=()):
    """Whether a header, or one of the project's that it includes, includes LibTorch."""
    for target in re.findall(r'^\s*#\s*include\s*[<"]([^>"]+)', (include / header).read_text(), re.MULTILINE):
        if re.match(r"(torch|ATen|c10)/", target):
            return True
        if (include / target).is_file() and target not in seen and needs_torch(target, (*seen, target)):
            return True
    return False


def seconds(header, flags, folder):
    """The best of some rounds, or None if it does not compile."""
    source = Path(folder) / "alone.cpp"
    source.write_text(f"#include <{header}>\n")
    best = None
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        done = subprocess.run([compiler, "-std=c++20", "-O2", f"-I{include}", *flags, "-c", source, "-o", os.devnull],
                              stderr=subprocess.PIPE, text=True)
        took = time.perf_counter() - begin
        if done.returncode:
            print(f"{header}: does not compile alone\n{done.stderr}", file=sys.stderr)
            return None
        best = took if best is None else min(best, took)
    return best


def main():
    headers = sorted(str(path.relative_to(include)) for path in include.rglob("*.hpp"))
    version = subprocess.run([compiler, "--version"], capture_output=True, text=True).stdout.splitlines()[0]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for header in headers:
            torch = needs_torch(header)
            flags = torch_flags() if torch else []
            took = None if torch and not flags else seconds(header, flags, folder)
            rows.append({"name": header, "run_type": "iteration", "iterations": ROUNDS, "time_unit": "s", "real_time": took,
                         "libtorch": torch, "limit_s": None if torch else LIMIT_S})
            note = " (LibTorch)" if torch else " over the limit" if took and took > LIMIT_S else ""
            print(f"{header:<60} {'-' if took is None else format(took, '.2f'):>6} s{note}", file=sys.stderr)
    plain = [row["real_time"] for row in rows if not row["libtorch"] and row["real_time"] is not None]
    if plain:
        print(f"{len(plain)} headers without LibTorch: slowest {max(plain):.2f} s, limit {LIMIT_S} s", file=sys.stderr)
    json.dump({"context": {"executable": "bench/compile_time.py", "compiler": version, "num_cpus": os.cpu_count(),
                           "host_arch": platform.machine()}, "benchmarks": rows}, sys.stdout, indent=2)
    print()
    return 0 if all(row["real_time"] is not None for row in rows if not row["libtorch"]) else 1


if __name__ == "__main__":
    sys.exit(main())
