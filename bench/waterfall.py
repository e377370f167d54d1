#!/usr/bin/env python3
"""What `drawpoint compare` says of real runs: pairs of `drawpoint profile`, of which one has a planted change. The rows must
sum to the difference of the walls, exchanging the runs must change every sign and nothing else, and most of the
difference should stand in the rows where the change belongs. A summary as JSON goes to stdout; exit 1 if a sum or a sign is
wrong.
usage: waterfall.py [--data FOLDER] [--pairs 4] [--steps 60] [PROGRAM]"""

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile

# Name, options of both runs, of the first, of the second, and the rows that the difference belongs to. Where a setting
# is changed, draws wait for whatever the loader then does too late: any row of draws.
CHANGES = [
    ("decode x1.2", ["--compute-ms", "1", "--num-workers", "1"], [], ["--inject", "decode=x1.2"], ["draw: decode"]),
    ("read +2 ms", ["--compute-ms", "1", "--num-workers", "2", "--read-concurrency", "0"], [],
     ["--inject", "read-latency=2ms"], ["draw: read"]),
    ("transform x3", ["--compute-ms", "1", "--num-workers", "1"], ["--inject", "transform=x1"],
     ["--inject", "transform=x3"], ["draw: transform"]),
    ("compute +10 %", ["--num-workers", "1"], ["--compute-ms", "40"], ["--compute-ms", "44"], ["forward"]),
    ("workers 4 to 1", ["--compute-ms", "20", "--inject", "read-latency=2ms", "--read-concurrency", "0"],
     ["--num-workers", "4"], ["--num-workers", "1"], ["draw:"]),
    ("depth 4 to 1", ["--compute-ms", "8", "--batch-size", "1", "--inject", "read-latency=20ms", "--num-workers", "4",
                      "--read-concurrency", "0"], ["--prefetch-depth", "4"], ["--prefetch-depth", "1"], ["draw:"]),
]


class Pairs:
    def __init__(self, program, data, steps, folder):
        self.program, self.folder = program, folder
        self.command = [program, "profile", "--data", data, "--model", "none", "--batch-size", "32", "--steps",
                        str(steps), "--epochs", "100", "--seed", "3"]
        self.number = itertools.count()
        self.head = {}   # version and machine, as the program says
        self.wrong = []

    def record(self, options):
        file = f"{self.folder}/{next(self.number)}.pftrace"
        # The later one of two --batch-size counts.
        subprocess.run([*self.command, *options, "-o", file], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        return file

    def compare(self, a, b):
        output = subprocess.run([self.program, "compare", a, b, "--json"], check=True, stdout=subprocess.PIPE).stdout
        return json.loads(output)

    def checked(self, a, b):
        """The comparison of two recordings, after checking its sum, and that of the exchanged pair."""
        there, back = self.compare(a, b), self.compare(b, a)
        self.head = {"version": there["version"], "machine": there["machine"]}
        rows = {(row["phase"], row["name"]): row["difference_ns"] for row in there["rows"]}
        exchanged = {(row["phase"], row["name"]): -row["difference_ns"] for row in back["rows"]}
        left = there["b"]["wall_ns"] - there["a"]["wall_ns"] - sum(rows.values())
        if left != 0 or rows != exchanged:
            self.wrong.append({"a": a, "b": b, "left_ns": left, "exchanged": rows == exchanged})
        return there


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="a folder of photographs, one folder a class; none: pictures are generated")
    parser.add_argument("--pairs", type=int, default=4, help="of each change")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("program", nargs="?", default=os.environ.get("DRAWPOINT_PROGRAM", "drawpoint"))
    arguments = parser.parse_args()
    changes = []
    compared = 0
    with tempfile.TemporaryDirectory() as folder:
        data = arguments.data or f"{folder}/crops/train"
        if not arguments.data:
            for action in (["generate", "--out", f"{folder}/photos"],
                           ["crops", "--from", f"{folder}/photos", "--out", f"{folder}/crops"]):
                subprocess.run([arguments.program, "dataset", *action], check=True, stdout=subprocess.DEVNULL)
        pairs = Pairs(arguments.program, data, arguments.steps, folder)
        for name, both, first, second, right in CHANGES:
            found = []
            recordings = []
            for _ in range(arguments.pairs):
                a, b = pairs.record(both + first), pairs.record(both + second)
                found.append(pairs.checked(a, b))
                recordings += [a, b]
            # Runs of the same settings are pairs, too: of those nothing is known but the sum.
            for a, b in zip(recordings, recordings[2:]):
                pairs.checked(a, b)
                compared += 1
            compared += len(found)
            is_right = lambda row: any(row["name"].startswith(words) for words in right)
            differences = [one["b"]["wall_ns"] - one["a"]["wall_ns"] for one in found]
            shares = [sum(row["difference_ns"] for row in one["rows"] if is_right(row)) / difference
                      for one, difference in zip(found, differences)]
            # Whether the interval of the largest right row holds what the other pairs found of it on average.
            held = []
            for i, one in enumerate(found):
                row = max(filter(is_right, one["rows"]), key=lambda row: abs(row["difference_ns"]), default=None)
                others = [other["difference_ns"] for j, two in enumerate(found) if j != i for other in two["rows"]
                          if row and (other["phase"], other["name"]) == (row["phase"], row["name"])]
                if row and row["interval_ns"] and others:
                    low, high = row["interval_ns"]["low"], row["interval_ns"]["high"]
                    held.append(low <= statistics.mean(others) <= high)
            changes.append({"name": name, "differences_s": [round(ns * 1e-9, 3) for ns in differences],
                            "shares_in_right_rows": [round(share, 3) for share in shares],
                            "intervals": len(held), "held": sum(held),
                            "first_rows": [one["rows"][0]["name"] for one in found]})
            for file in recordings:
                os.unlink(file)
    print(json.dumps({"schema": "drawpoint.waterfalls/1", **pairs.head, "pairs_compared": compared, "changes": changes,
                      "wrong": pairs.wrong}, indent=2))
    return bool(pairs.wrong)


if __name__ == "__main__":
    sys.exit(main())
