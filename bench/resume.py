#!/usr/bin/env python3
"""Training that is killed and goes on: `drawpoint profile` with a checkpoint every few steps is ended by SIGKILL at random
times, several times in a row, each time resumed with other workers and another depth. In the end it must have trained on
the same samples in the same order (run.digest) and have written the same checkpoint, byte for byte, as a run that nobody
stopped. A summary as JSON goes to stdout; exit 1 if a chain ended differently.
usage: resume.py [--data FOLDER] [--chains 200] [--seed 7] [PROGRAM]"""

import argparse
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ONE_THREAD = {**os.environ, "OMP_NUM_THREADS": "1"}   # the weights are the same bit for bit on one thread only


class Training:
    def __init__(self, program, data, seed, folder):
        self.command = [program, "profile", "--data", data, "--image-size", "32", "--model", "small_cnn", "--epochs", "2",
                        "--batch-size", "40", "--seed", str(seed), "--profiler", "none", "--json"]
        self.checkpoint = folder / "run.checkpoint"

    def start(self, workers, depth, every):
        resumed = ["--resume", str(self.checkpoint)] if self.checkpoint.exists() else []
        return subprocess.Popen(
            [*self.command, "--num-workers", str(workers), "--prefetch-depth", str(depth), "--checkpoint",
             str(self.checkpoint), "--checkpoint-every", str(every), *resumed],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ONE_THREAD)

    def end(self, process):
        """The digest (None: the kill came after the last step) and the checkpoint's hash, once the run has ended."""
        out, error = process.communicate(timeout=600)
        if process.returncode != 0 and "leaves nothing to train" not in error:
            raise SystemExit(f"exit code {process.returncode}: {' '.join(process.args)}\n{error}")
        digest = json.loads(out)["run"]["digest"] if process.returncode == 0 else None
        outcome = digest, hashlib.sha256(self.checkpoint.read_bytes()).hexdigest()
        self.checkpoint.unlink()
        return outcome


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="a folder of photographs, one folder a class; none: pictures are generated")
    parser.add_argument("--chains", type=int, default=200)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("program", nargs="?", default=os.environ.get("DRAWPOINT_PROGRAM", "drawpoint"))
    arguments = parser.parse_args()
    random.seed(arguments.seed)
    killed = resumed = 0
    faults = []
    with tempfile.TemporaryDirectory() as folder:
        data = arguments.data or f"{folder}/crops/train"
        if not arguments.data:
            for action in (["generate", "--out", f"{folder}/photos"],
                           ["crops", "--from", f"{folder}/photos", "--out", f"{folder}/crops"]):
                subprocess.run([arguments.program, "dataset", *action], check=True, stdout=subprocess.DEVNULL)
        training = Training(arguments.program, data, arguments.seed, Path(folder))
        begin = time.monotonic()
        expected = training.end(training.start(workers=0, depth=4, every=0))
        whole_s = time.monotonic() - begin
        for chain in range(arguments.chains):
            settings = []
            for kills_left in range(random.randint(1, 3), -1, -1):
                settings.append(dict(workers=random.randint(0, 4), depth=random.randint(1, 8), every=random.randint(1, 9)))
                resumed += training.checkpoint.exists()
                process = training.start(**settings[-1])
                if kills_left > 0:
                    try:
                        process.wait(random.uniform(0.2, 0.7) * whole_s)
                        break   # it has ended by itself
                    except subprocess.TimeoutExpired:
                        process.send_signal(signal.SIGKILL)
                        process.communicate()
                        killed += 1
            digest, checkpoint = training.end(process)
            if digest not in (None, expected[0]) or checkpoint != expected[1]:
                faults.append({"chain": chain, "settings": settings})
    print(json.dumps({"schema": "drawpoint.resumes/1", "chains": arguments.chains, "killed": killed, "resumed": resumed, "digest": expected[0],
                      "faults": faults}, indent=2))
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
