#!/usr/bin/env python3
"""What is left of a recording when its program is killed: `drawpoint profile` is ended by SIGKILL at random times, then
`drawpoint report` must read the file. Each file is also walked here, without drawpoint's reader: how many steps it holds,
and how old its last record was at the kill. Promised: always readable, at most the last second or 64 KiB missing; too early
to hold a step: exit 1 and "no steps". A summary as JSON goes to stdout; exit 1 if a promise was broken.
usage: accept.py [--n 200] [--seed 7] [--longest 4] [PROGRAM]"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MOST_SECONDS = 1.0
MOST_BYTES = 64 * 1024

# A loop without a model, by turns faster than a training run would be (blocks end at 64 KiB) and slow (they end at 1 s).
PROFILE = ["profile", "--data", "synthetic:1000000", "--image-size", "8", "--model", "none", "--num-workers", "1",
           "--recording-limit", "64MiB"]
PACES = [["--compute-ms", "1", "--batch-size", "16"], ["--compute-ms", "25", "--batch-size", "2"]]

# Perfetto's and drawpoint's field numbers: see instrumentation/trace/drawpoint_trace.proto.
TIMESTAMP, TRACK_EVENT, CLOCK_SNAPSHOT, STEP = 8, 11, 6, 1102
CLOCKS, CLOCK_ID, CLOCK_VALUE, MONOTONIC = 1, 1, 2, 3


class Cut(Exception):
    """The bytes end inside a field."""


def varint(data, at):
    value = shift = 0
    while True:
        if at >= len(data):
            raise Cut
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def fields(data):
    """(number, value) of every field of a message; values are numbers or bytes."""
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        kind = tag & 7
        if kind == 0:
            value, at = varint(data, at)
        else:
            size, at = varint(data, at) if kind == 2 else ({1: 8, 5: 4}[kind], at)
            if at + size > len(data):
                raise Cut
            value, at = data[at:at + size], at + size
        yield tag >> 3, value


def walk(path):
    """Steps in a recording, and the CLOCK_MONOTONIC nanoseconds of its latest record (None: none)."""
    steps, start, last = 0, None, None
    try:
        for _, packet in fields(memoryview(path.read_bytes())):
            timestamp = None
            for number, value in fields(packet):
                if number == TIMESTAMP:
                    timestamp = value
                elif number == CLOCK_SNAPSHOT:
                    for _, clock in fields(value):
                        pair = dict(fields(clock))
                        if pair.get(CLOCK_ID) == MONOTONIC:
                            start = pair[CLOCK_VALUE]
                elif number == TRACK_EVENT:
                    steps += any(inner == STEP for inner, _ in fields(value))
            if timestamp is not None:
                last = max(last or 0, timestamp)
    except Cut:
        pass   # the last packet is not whole; a reader keeps those before it
    return steps, None if start is None or last is None else start + last


def kill_one(program, folder, delay, pace):
    """Starts a run, kills it after `delay` seconds, and says what is left."""
    recording = folder / "run.pftrace"
    recording.unlink(missing_ok=True)
    run = subprocess.Popen([program, *PROFILE, *pace, "-o", recording], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(delay)
    ended_itself = run.poll() is not None
    killed_ns = time.monotonic_ns()
    run.send_signal(signal.SIGKILL)
    run.wait()
    result = {"delay_s": round(delay, 4), "bytes": recording.stat().st_size if recording.exists() else None, "steps": 0,
              "fault": "the run ended by itself" if ended_itself else None}
    if result["bytes"] is None:
        result["kind"] = "before the file"
        return result

    steps, last_ns = walk(recording)
    result["steps"] = steps
    report = subprocess.run([program, "report", recording, "--json"], capture_output=True, text=True)
    if steps == 0:
        result["kind"] = "no steps"
        if report.returncode != 1 or not report.stderr.rstrip().endswith("no steps") and result["bytes"] > 0:
            result["fault"] = f"without steps: exit {report.returncode}, {report.stderr!r}"
        return result

    result["kind"] = "readable"
    result["age_s"] = (killed_ns - last_ns) / 1e9
    if report.returncode != 0:
        result["fault"] = f"exit {report.returncode}: {report.stderr!r}"
        return result
    document = json.loads(report.stdout)
    if document["run"]["steps"] != steps or not document["rows"]:
        result["fault"] = f"the report has {document['run']['steps']} steps, the file {steps}"
    # Bytes are judged by this run's own rate: what it would have written in the time that is missing.
    rate = result["bytes"] / max(document["run"]["wall_s"], 1e-3)
    result["missing_bytes"] = max(0.0, result["age_s"]) * rate
    if result["age_s"] > MOST_SECONDS and result["missing_bytes"] > MOST_BYTES:
        result["fault"] = f"the last {result['age_s']:.2f} s and about {result['missing_bytes']:.0f} bytes are missing"
    return result


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--n", type=int, default=200, help="kills")
    options.add_argument("--seed", type=int, default=7, help="of the times")
    options.add_argument("--longest", type=float, default=4.0, help="seconds a run lives at most")
    options.add_argument("program", nargs="?", default=os.environ.get("DRAWPOINT_PROGRAM"))
    options = options.parse_args()
    if not options.program:
        sys.exit("accept.py: name the drawpoint program, or set DRAWPOINT_PROGRAM")

    chance = random.Random(options.seed)
    results = []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(options.n):
            results.append(kill_one(options.program, Path(folder), chance.uniform(0, options.longest), PACES[number % 2]))
            print(f"kill {number + 1} of {options.n}: {results[-1]}", file=sys.stderr)
    readable = [result for result in results if result["kind"] == "readable"]
    faults = [result for result in results if result["fault"]]
    json.dump({"schema": "drawpoint.kills/1", "kills": len(results), "seed": options.seed, "longest_s": options.longest,
               "readable": len(readable), "no_steps": sum(result["kind"] == "no steps" for result in results),
               "before_the_file": sum(result["kind"] == "before the file" for result in results),
               "most_steps": max((result["steps"] for result in results), default=0),
               "largest_file_bytes": max((result["bytes"] or 0 for result in results), default=0),
               "max_age_s": max((result["age_s"] for result in readable), default=None),
               "max_missing_bytes": max((result.get("missing_bytes", 0) for result in readable), default=None),
               "limits": {"age_s": MOST_SECONDS, "missing_bytes": MOST_BYTES}, "faults": faults}, sys.stdout, indent=2)
    print()
    # Enough of the runs must have lived long enough to show anything.
    return 1 if faults or len(readable) < options.n / 4 else 0


if __name__ == "__main__":
    sys.exit(main())
