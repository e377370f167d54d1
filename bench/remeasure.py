#!/usr/bin/env python3
"""Runs the suites whose figures stand in the documentation and keeps their JSON as bench/results/NAME-DATE.json, from
which bench/figures.py writes the tables. Nothing else should run on the machine meanwhile.
usage: remeasure.py --data DIR [NAME…]     NAME: of a result; none: all of them"""

import argparse
import datetime
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
RESULTS = PROJECT / "bench/results"

ONLINE_CASES = ("decode", "prefetch-depth", "read-latency", "stragglers", "workers")
# Of each result, what is said to `./run bench`; DIR is the folder of photographs.
COMMANDS = {
    "loader": "loader --data DIR --json",
    "loader-slow": "loader --workload latency,straggler,consumer --data DIR --json",
    "scaling": "scaling --data DIR --json",
    "overhead": "overhead",
    "draw": "draw",
    "first-batch": "first-batch --data DIR --json",
    "memory": "memory --data DIR --json",
    "recording": "recording --data DIR --pairs 300 --epochs 1 --json",
    "record": "record",
    "event": "event",
    "operators": "operators",
    "sampling": "sampling",
    "import": "import --json",
    "online": f"online --only {','.join(f'{name}-strong-low' for name in ONLINE_CASES)} --json",
    "compile-time": "compile-time",
    "decode-stages": "decode-stages --data DIR --json",
    "waterfall": "waterfall --data DIR --pairs 5",
    "storage": "storage --data DIR --json",
}
GOOGLE = ("overhead", "draw", "record", "event")   # programs of Google Benchmark, which writes its JSON to a file
PRIVATE = ("host_name", "executable")   # what Google Benchmark tells that is nobody's business


def machine():
    """The members of `machine` that every JSON of drawpoint has."""
    cpu = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return {"cpu": cpu[1].strip() if cpu else platform.processor(), "cores_usable": len(os.sched_getaffinity(0)),
            "kernel": f"{platform.system()} {platform.release()}"}


def measured(words, data):
    """The JSON of a suite, with the folder's name replaced by DIR."""
    said = [data if word == "DIR" else word for word in words]
    with tempfile.NamedTemporaryFile("r", suffix=".json") as file:
        if words[0] in GOOGLE:
            said += [f"--benchmark_out={file.name}", "--benchmark_out_format=json"]
        done = subprocess.run([PROJECT / "run", "bench", *said], stdout=subprocess.PIPE, text=True)
        text = file.read() if words[0] in GOOGLE else done.stdout
    begin = text.find("{")
    if begin < 0:
        sys.exit(f"bench {' '.join(words)}: exit status {done.returncode} and no JSON")
    if done.returncode:
        print(f"bench {' '.join(words)}: exit status {done.returncode}", file=sys.stderr)
    result = json.loads(text[begin:].replace(data, "DIR"))
    for name in PRIVATE:
        result.get("context", {}).pop(name, None)
    return {"machine": machine(), **result, "command": f"bench {' '.join(words)}"}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="a folder of photographs, one folder a class")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(COMMANDS)} [all]")
    arguments = parser.parse_args()
    unknown = set(arguments.names) - set(COMMANDS)
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}; there are: {', '.join(COMMANDS)}")
    for name in arguments.names or COMMANDS:
        begin = time.monotonic()
        result = measured(COMMANDS[name].split(), str(Path(arguments.data).resolve()))
        file = RESULTS / f"{name}-{datetime.date.today()}.json"
        file.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")
        print(f"{file.relative_to(PROJECT)}: {time.monotonic() - begin:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
