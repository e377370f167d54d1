#!/usr/bin/env python3
"""How often drawpoint is right about PyTorch pipelines: each is recorded once through drawpoint.watch, and every change that
`drawpoint diagnose` considers is then made and measured, in a pair with the pipeline as it was, in an order drawn anew.
Right: the change that the verdict names gains as much as the best one, within 5 points or 15 %. Prints a table, or with
--json all numbers.
usage: ./run bench accuracy-python [--seconds 2.5] [--seed 1] [--only NAME] [--json FILE]"""

import argparse
import dataclasses
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
import zlib
from pathlib import Path

import torch
import torch.utils.data as data

import drawpoint
from remeasure import machine

PROGRAM = os.environ["DRAWPOINT_PROGRAM"]
BLOCK = bytes(range(256)) * 64


def blocks_in_a_ms():
    best = 0.0
    for _ in range(5):
        begin = time.perf_counter()
        for _ in range(400):
            zlib.crc32(BLOCK)
        best = max(best, 0.4 / (time.perf_counter() - begin))
    return best


BLOCKS = blocks_in_a_ms()


def burn(ms):
    """A fixed amount of work, `ms` milliseconds of a core that nobody else slows."""
    for _ in range(int(ms * BLOCKS)):
        zlib.crc32(BLOCK)


@dataclasses.dataclass(frozen=True)
class Pipeline:
    """Times are in milliseconds: of a sample, of a batch (collate), of a worker's start (init), of a step."""
    workers: int = 2
    factor: int = 2
    in_order: bool = True
    persistent: bool = True
    batches: int = 400          # of a pass
    batch: int = 16
    start: str = "fork"
    iterable: bool = False
    read: float = 0.0           # asleep
    decode: float = 0.05        # computing, as all that follows
    transform: float = 0.0
    straggler: float = 0.0      # asleep, one sample in a hundred
    collate: float = 0.0
    objects: int = 0            # in each batch, to be pickled
    init: float = 0.0
    step: float = 2.0           # asleep, as a loop that waits for a device
    burst: float = 0.0          # asleep, after every twentieth step


class Read:
    def __init__(self, of):
        self.of = of

    def __call__(self, index):
        of = self.of
        if of.read or (of.straggler and index % 100 == 17):
            time.sleep((of.read + (of.straggler if index % 100 == 17 else 0)) / 1000)
        return index


class Decode:
    def __init__(self, of):
        self.of = of

    def __call__(self, index):
        burn(self.of.decode)
        return index


class Transform:
    def __init__(self, of):
        self.of = of

    def __call__(self, index):
        burn(self.of.transform)
        return torch.full((64,), float(index))


class Compose:
    def __init__(self, *transforms):
        self.transforms = list(transforms)

    def __call__(self, sample):
        for transform in self.transforms:
            sample = transform(sample)
        return sample


class Samples(data.Dataset):
    def __init__(self, of):
        self.of, self.transform = of, Compose(Read(of), Decode(of), Transform(of))

    def __len__(self):
        return self.of.batches * self.of.batch

    def __getitem__(self, index):
        return self.transform(index), index


class Stream(data.IterableDataset):
    def __init__(self, of):
        self.of, self.transform = of, Compose(Read(of), Decode(of), Transform(of))

    def __iter__(self):
        info = data.get_worker_info()
        first, step = (info.id, info.num_workers) if info else (0, 1)
        for index in range(first, self.of.batches * self.of.batch, step):
            yield self.transform(index), index


class Collate:
    def __init__(self, of):
        self.of = of

    def __call__(self, samples):
        burn(self.of.collate)
        batch = data.default_collate(samples)
        return [*batch, [{"key": i, "text": str(i)} for i in range(self.of.objects)]] if self.of.objects else batch


class Init:
    def __init__(self, of):
        self.of = of

    def __call__(self, worker):
        time.sleep(self.of.init / 1000)


def loader_of(of):
    options = {}
    if of.workers:
        options = {"prefetch_factor": of.factor, "persistent_workers": of.persistent, "in_order": of.in_order,
                   "multiprocessing_context": of.start}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")   # more workers than cores are one of the faults
        return data.DataLoader(Stream(of) if of.iterable else Samples(of), of.batch, shuffle=not of.iterable,
                               num_workers=of.workers, collate_fn=Collate(of), worker_init_fn=Init(of), **options)


def rate(of, seconds, record=None):
    """Batches a second: from the fill of what is prefetched on or, where passes are short, over whole passes."""
    torch.manual_seed(1)   # the same order of samples in every run: where stragglers come is no chance
    loader = loader_of(of)
    loop = drawpoint.watch(loader, record) if record else loader
    short = of.batches < 100
    warm_up = of.batches if short else 3 * max(of.workers * of.factor, 2)
    # Batches: a verdict needs 50 steps after those that warmed up; a straggler comes with every sixth.
    fewest = 240 if of.straggler else 150 if record else 60
    drawn, began, counted, elapsed = 0, None, 0, 0.0
    while elapsed < seconds or counted < fewest:
        for _ in loop:
            drawn += 1
            if drawn == warm_up:
                began = time.perf_counter()
            time.sleep(of.step / 1000)
            if of.burst and drawn % 20 == 0:
                time.sleep(of.burst / 1000)
            if drawn > warm_up and not short:
                counted, elapsed = drawn - warm_up, time.perf_counter() - began
                if elapsed >= seconds and counted >= fewest:
                    break
        if short and drawn > warm_up:
            counted, elapsed = drawn - warm_up, time.perf_counter() - began
    if record:
        loop.close()
    return counted / elapsed


def changes(of):
    """The changes that can be made to a pipeline, by the key that `diagnose` has for each."""
    def but(**what):
        return dataclasses.replace(of, **what)

    made = {"compute": but(step=of.step / 2, burst=of.burst / 2), "num_workers": but(workers=max(1, 2 * of.workers)),
            "stage:Decode": but(decode=of.decode / 2)}
    if of.workers > 1:
        made["num_workers/2"] = but(workers=of.workers // 2)
    if of.workers:
        made["prefetch_depth"] = but(factor=2 * of.factor)
        made["order"] = but(in_order=False)
        if not of.persistent:
            made["sampler"] = but(persistent=True)
    if of.read or of.straggler:
        made["stage:Read"] = made["waiting"] = but(read=of.read / 2, straggler=of.straggler / 2)
    if of.straggler:   # as far from the mean by half
        made["variance"] = but(read=of.read + of.straggler / 200, straggler=of.straggler / 2)
    for part, key in (("transform", "stage:Transform"), ("collate", "collate")):
        if getattr(of, part):
            made[key] = but(**{part: getattr(of, part) / 2})
    if of.objects:
        made["transfer"] = but(objects=of.objects // 2)
    return made


PIPELINES = {
    "slow read": Pipeline(read=2), "slow read, one worker": Pipeline(read=2, workers=1),
    "slow read, no worker": Pipeline(read=2, workers=0), "slow read, four workers": Pipeline(read=4, workers=4),
    "slow decode, one worker": Pipeline(decode=0.6, workers=1), "slow decode": Pipeline(decode=0.6),
    "slow decode, no worker": Pipeline(decode=0.6, workers=0), "slow transform": Pipeline(transform=0.6),
    "two slow stages": Pipeline(decode=0.3, transform=0.4), "slow transform beside reads": Pipeline(read=1, transform=0.5),
    "few workers": Pipeline(read=1.5, workers=1, step=8), "stragglers": Pipeline(straggler=120, workers=4, step=4),
    "stragglers, more ahead": Pipeline(straggler=120, workers=4, factor=4, step=4),
    "stragglers, any order": Pipeline(straggler=120, workers=4, in_order=False, step=4),
    "slow collate": Pipeline(collate=12), "slow collate, one worker": Pipeline(collate=12, workers=1),
    "many objects": Pipeline(objects=20000), "many objects, one worker": Pipeline(objects=20000, workers=1),
    "workers start slowly": Pipeline(persistent=False, batches=20, init=400),
    "short passes": Pipeline(persistent=False, batches=12), "persistent, slow init": Pipeline(batches=20, init=400),
    "bursts": Pipeline(read=1, burst=150, factor=1, step=4), "stream with slow reads": Pipeline(iterable=True, read=2),
    "stream with slow decode": Pipeline(iterable=True, decode=0.6), "too many workers": Pipeline(decode=0.6, workers=8),
    "fast loader": Pipeline(step=12), "fast loader, one worker": Pipeline(step=20, workers=1, read=0.2),
    "fast loader, no worker": Pipeline(step=25, workers=0), "spawned, slow read": Pipeline(read=2, start="spawn"),
}


def diagnosed(file):
    said = subprocess.run([PROGRAM, "diagnose", str(file), "--json"], capture_output=True, text=True, check=True)
    return json.loads(said.stdout)


def varied(of, chance):
    """The same pipeline with other times, each by up to a third more or less."""
    times = [field.name for field in dataclasses.fields(of) if field.type in (float, "float")]
    return dataclasses.replace(of, **{name: getattr(of, name) * chance.uniform(0.75, 1.33) for name in times})


def judged(name, of, seconds, chance):
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "run.pftrace"
        recorded = rate(of, max(seconds, 4), file)
        said = diagnosed(file)
    made = changes(of)
    turns = [of, *dict.fromkeys(made.values())]   # two keys may be the same change; `of`: no change
    chance.shuffle(turns)
    gain_of, bases = {}, []
    for change in turns:   # each beside the pipeline as it is: the host is not equally fast for long
        if chance.random() < 0.5:
            changed, base = rate(change, seconds), rate(of, seconds)
        else:
            base, changed = rate(of, seconds), rate(change, seconds)
        gain_of[change] = changed / base - 1
        bases.append(base)
    base = statistics.median(bases)
    gains = {key: gain_of[change] for key, change in made.items()}
    predicted = {one["key"]: one["predicted_gain"] for one in said["interventions"]}
    best = max(gains, key=gains.get)
    named = [one["key"] for one in said["interventions"] if one["verdict"] == said["verdict"] and one["key"] in gains]
    enough = gains[best] - max(0.05, 0.15 * gains[best])
    if said["abstained"]:
        right = False
    elif said["verdict"] == "balanced":
        right = gains[best] < 0.08
    else:
        right = bool(named) and gains[named[0]] >= enough
    settings = {key: (1 + predicted[key]) / (1 + gains[key]) - 1 for key in gains
                if key in predicted and key in ("num_workers", "num_workers/2", "prefetch_depth", "order")}
    is_control = all(gain < 0.05 for key, gain in gains.items() if key != "compute")
    accused = is_control and said["verdict"] not in ("compute-bound", "balanced", "bursty-consumer") and not said["abstained"]
    return {"name": name, "verdict": said["verdict"], "abstained": said["abstained"], "right": right, "best": best,
            "gains": gains, "predicted": {key: predicted.get(key) for key in gains}, "off": settings,
            "is_control": is_control, "accused": accused, "recorded": recorded, "measured": base, "null": gain_of[of],
            "unexplained": said["run"]["unexplained"]}


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=2.5, help="that each change is measured for")
    options.add_argument("--seed", type=int, default=1, help="of the pipelines' times and the order of the changes")
    options.add_argument("--only", action="append", help="a pipeline's name; repeatable")
    options.add_argument("--json", help="all numbers, to this file")
    options = options.parse_args()
    found = []
    for name, of in PIPELINES.items():
        if options.only and name not in options.only:
            continue
        chance = random.Random(f"{options.seed} {name}")
        one = judged(name, varied(of, chance), options.seconds, chance)
        found.append(one)
        top = sorted(one["gains"], key=one["gains"].get, reverse=True)[:3]
        print(f"{name:28} {'right' if one['right'] else 'WRONG':5} {one['verdict']:16} "
              + "  ".join(f"{key} {one['gains'][key]:+.0%} ({(one['predicted'][key] or 0):+.0%})" for key in top)
              + (f"  ({one['abstained']})" if one["abstained"] else ""), flush=True)
    offs = [abs(off) for one in found for off in one["off"].values()]
    right = sum(one["right"] for one in found)
    print(f"\nright {right} of {len(found)}; controls accused {sum(one['accused'] for one in found)} of "
          f"{sum(one['is_control'] for one in found)}; rates of settings off by {sum(offs) / max(len(offs), 1):.1%} on "
          f"average, of {len(offs)}; two runs of the same differ by {statistics.mean(abs(one['null']) for one in found):.1%}")
    if options.json:
        Path(options.json).write_text(json.dumps(
            {"machine": machine(), "command": f"bench accuracy-python --seed {options.seed} --seconds {options.seconds}",
             "torch": torch.__version__, "pipelines": found}, indent=1))


if __name__ == "__main__":
    sys.exit(main())
