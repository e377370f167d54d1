#!/usr/bin/env python3
"""What drawpoint.watch costs: of a step, of a step with the samples of 64 x 5 stages, of a sample and a stage in a worker, and
of a run on photographs (--data). Pairs of turns, with and without, in an order drawn anew; medians and their 90 % intervals.
usage: ./run bench watch [--pairs 1000] [--data FOLDER] [--run-pairs 10]"""

import argparse
import os
import pickle
import random
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path

import torch
import torch.utils.data as data

import drawpoint
from drawpoint import _core, watching


class Five:
    """Hands on what it gets, five times."""

    def __init__(self):
        self.transforms = [lambda x: x for _ in range(5)]

    def __call__(self, x):
        for transform in self.transforms:
            x = transform(x)
        return x


class Rows(data.Dataset):
    def __init__(self):
        self.transform = Five()

    def __len__(self):
        return 64

    def __getitem__(self, index):
        return self.transform(index)


class Photos(data.Dataset):
    def __init__(self, folder):
        self.files = sorted(str(file) for file in Path(folder).rglob("*.jp*g"))
        if not self.files:
            raise SystemExit(f"--data {folder}: no photographs there")
        self.transform = Five()
        self.transform.transforms = [self.decode, self.small, self.to_tensor]

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        return self.transform(self.files[index]), index

    @staticmethod
    def decode(file):
        from PIL import Image
        return Image.open(file).convert("RGB")

    @staticmethod
    def small(image):
        return image.resize((224, 224))

    @staticmethod
    def to_tensor(image):
        import numpy
        return torch.from_numpy(numpy.asarray(image).copy()).permute(2, 0, 1).float() / 255


def interval(values):
    values = sorted(values)
    return values[len(values) // 20], statistics.median(values), values[-1 - len(values) // 20]


def tell(what, unit, values, limit):
    low, median, high = interval(values)
    print(f"{what:58} {median:8.3g} {unit} ({low:.3g} … {high:.3g}), at most {limit} asked", flush=True)


def timed(loop):
    begin = time.perf_counter_ns()
    for _ in loop:
        pass
    return time.perf_counter_ns() - begin


def pairs(count, chance, plain, watched, pause_s=0):
    """Differences watched - plain of `count` pairs. `pause_s`: after each, for the recording's writer."""
    for _ in range(count):
        time.sleep(pause_s)
        if chance.random() < 0.5:
            first = plain()
            yield watched() - first
        else:
            first = watched()
            yield first - plain()


def steps(folder, count, chance, many=200):
    batches = [torch.zeros(2)] * many
    loop = drawpoint.watch(batches, folder / "steps.pftrace")
    tell("a step of any iterable", "µs", [ns / many / 1e3 for ns in pairs(
        count, chance, lambda: timed(batches), lambda: timed(loop))], 1.5)
    loop.close()


def steps_with_samples(folder, count, chance, many=20):
    recording = drawpoint.Recording(str(folder / "samples.pftrace"))
    core = _core.Watch(recording, "train", True)
    core.set_torch_loader([f"stage {i}" for i in range(6)], 64, 1, 2, True, True, -1)
    stamps, dataset = _core.WorkerStamps(6, 0), Rows()
    watching._time_dataset(dataset, stamps, False)

    def pickled():
        dataset.__getitems__(list(range(64)))
        stamps.begin_collate()
        return pickle.dumps(stamps.stamped(None))

    def watched():
        # Made anew, as the writer keeps rows by time: those of long ago would cost it more than any real ones.
        stamped = [pickle.loads(pickled()) for _ in range(many)]
        return timed(_core.WatchedPass(core, core.begin_pass(0), iter(stamped), watching._size_of,
                                       watching._bytes_of, core))

    tell("a step with 64 samples of 5 stages, without unpickling", "µs", [ns / many / 1e3 for ns in pairs(
        count, chance, lambda: timed([None] * many), watched, 0.01)], 5)
    begin = time.thread_time_ns(), time.process_time_ns()
    for _ in range(50):
        watched()
    recording.close()
    of_loop, of_all = time.thread_time_ns() - begin[0], time.process_time_ns() - begin[1]
    what = "such a step on the writer's thread"
    print(f"{what:58} {(of_all - of_loop) / 50 / many / 1e3:8.3g} µs", flush=True)


def in_a_worker(count, chance):
    plain, stamped, stamps = Rows(), Rows(), _core.WorkerStamps(7, 0)
    watching._time_dataset(stamped, stamps, False)
    indices = list(range(64))

    def without():
        begin = time.perf_counter_ns()
        [plain[index] for index in indices]
        return time.perf_counter_ns() - begin

    def watched():
        begin = time.perf_counter_ns()
        stamped.__getitems__(indices)
        ns = time.perf_counter_ns() - begin
        stamps.begin_collate()
        stamps.stamped(None)
        return ns

    tell("a sample and each of its 5 stages, in a worker", "µs", [ns / 64 / 6 / 1e3 for ns in pairs(
        count, chance, without, watched)], 0.3)


def cpu_s():
    return sum(usage.ru_utime + usage.ru_stime for usage in map(
        resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))


def photographs(folder, photos, count, chance):
    def run(record, epochs=4):
        begin = cpu_s()
        loader = data.DataLoader(Photos(photos), 32, num_workers=2, persistent_workers=True)
        loop = drawpoint.watch(loader, record) if record else loader
        for _ in range(epochs):
            for _ in loop:
                pass
        if record:
            loop.close()
        del loop, loader   # whose workers are then waited for, and counted
        return cpu_s() - begin

    shares = []
    for pair in range(count):
        turns = [None, folder / f"{pair}.pftrace"]
        chance.shuffle(turns)
        took = {bool(turn): run(turn) for turn in turns}
        shares.append(100 * (took[True] / took[False] - 1))
    tell("CPU time of four epochs of photographs, more by", "%", shares, 0.5)


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--pairs", type=int, default=1000)
    options.add_argument("--data", help="a folder of photographs")
    options.add_argument("--run-pairs", type=int, default=10)
    options.add_argument("--seed", type=int, default=1)
    options = options.parse_args()
    chance = random.Random(options.seed)
    print(f"{os.cpu_count()} cores, torch {torch.__version__}, Python {sys.version.split()[0]}, {options.pairs} pairs")
    with tempfile.TemporaryDirectory() as folder:
        steps(Path(folder), options.pairs, chance)
        steps_with_samples(Path(folder), options.pairs, chance)
        in_a_worker(options.pairs, chance)
        if options.data:
            photographs(Path(folder), options.data, options.run_pairs, chance)


if __name__ == "__main__":
    main()
