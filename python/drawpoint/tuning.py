"""tune(): finds num_workers and prefetch_factor of a PyTorch loader, by racing what a recording predicts."""

import dataclasses
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time

from .watching import watch

_PROGRAM = os.path.join(os.path.dirname(__file__), "bin", "drawpoint")
_MOST_CANDIDATES = 5
_CLOSE = 0.02   # of the best: as good, so the smallest of them is chosen


@dataclasses.dataclass(frozen=True)
class Tuned:
    """What `tune()` found. `rates`: median batches a second of each setting that was raced, by (num_workers,
    prefetch_factor), and by "drawpoint.DataLoader" if that was."""
    num_workers: int
    prefetch_factor: int
    rates: dict

    @property
    def line(self):
        """What to write."""
        if self.num_workers == 0:
            return "DataLoader(…, num_workers=0)"
        return f"DataLoader(…, num_workers={self.num_workers}, prefetch_factor={self.prefetch_factor})"


def tune(make_loader, step, *, ours=None, start=(2, 2), seconds=3.0, rounds=3, max_workers=None, seed=0, out=sys.stderr):
    """Finds the smallest num_workers x prefetch_factor within 2 % of the best, in this very loop.

    make_loader(num_workers, prefetch_factor): makes the PyTorch loader. step(batch): what the loop does with a batch.
    It is recorded with `start` first; a replay of that by PyTorch's rule proposes at most five settings, and these are
    raced in an order drawn anew each round: `seconds` each, after what is prefetched at first. `ours()`: makes a
    drawpoint.DataLoader of the same data, to be raced beside them. max_workers: by default two more than there are cores,
    at least 8. Progress and the line to write go to `out` (None:
    nowhere). Takes `rounds` times `seconds` for each setting, and the recording. Raises what the loader or the step raise.
    """
    say = (lambda text: print(text, file=out, flush=True)) if out is not None else (lambda text: None)
    most = max_workers or max(len(os.sched_getaffinity(0)) + 2, 8)   # workers that sleep need no core
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "run.pftrace")
        watched = watch(make_loader(*start), file)
        rate = _rate(watched, step, max(seconds, 4.0), start[0] * start[1])
        watched.close()
        say(f"num_workers {start[0]}, prefetch_factor {start[1]}: {rate:.4g} batches/s")
        candidates = _candidates(file, start, most)
    chance, rates = random.Random(seed), {}
    makers = {one: (lambda one=one: make_loader(*one)) for one in candidates}
    if ours is not None:
        makers["drawpoint.DataLoader"] = ours
    for _ in range(rounds):
        order = list(makers)
        chance.shuffle(order)
        for one in order:
            ahead = one[0] * one[1] if one in candidates else 8
            rates.setdefault(one, []).append(_rate(makers[one](), step, seconds, ahead))
    medians = {one: statistics.median(values) for one, values in rates.items()}
    best = max(medians[one] for one in candidates)
    chosen = min(one for one in candidates if medians[one] >= (1 - _CLOSE) * best)
    tuned = Tuned(chosen[0], chosen[1], medians)
    for one, values in sorted(rates.items(), key=lambda item: -medians[item[0]]):
        name = one if isinstance(one, str) else f"num_workers {one[0]}, prefetch_factor {one[1]}"
        say(f"  {name:36} {medians[one]:8.4g} batches/s ({min(values):.4g} … {max(values):.4g})")
    say(f"write {tuned.line}: {medians[chosen] / medians[candidates[0]]:.2f} times the rate of "
        f"num_workers={start[0]}, prefetch_factor={start[1]}")
    return tuned


def _rate(loader, step, seconds, ahead):
    """Batches a second of the loop, after three times what is prefetched at first."""
    drawn, skip, began, elapsed = 0, max(3 * ahead, 4), None, 0.0
    while True:
        some = False
        for batch in loader:
            some = True
            step(batch)
            drawn += 1
            if drawn == skip:
                began = time.perf_counter()
            elif drawn > skip:
                elapsed = time.perf_counter() - began
                if elapsed >= seconds and drawn - skip >= 20:
                    return (drawn - skip) / elapsed
        if not some:
            raise ValueError("tune: the loader has no batch")


def _candidates(file, start, most):
    """Settings to race, `start` first."""
    command = [_PROGRAM, "whatif", file, "--num-workers", f"1..{most}", "--prefetch-factor", "1,2,4,8", "--json"]
    said = subprocess.run(command, capture_output=True, text=True)
    if said.returncode != 0:   # too few steps, or nothing that can be replayed
        workers, factor = start
        return list(dict.fromkeys([start, (max(workers // 2, 1), factor), (min(2 * workers, most), factor),
                                   (workers, 2 * factor)]))
    rows = [((row["num_workers"], row["prefetch_depth"] // row["num_workers"]), row["batches_per_s"])
            for row in json.loads(said.stdout)["rows"]]
    best = max(rate for _, rate in rows)
    close = sorted(one for one, rate in rows if rate >= 0.95 * best)
    fastest = max(rows, key=lambda row: row[1])[0]
    by_workers = {one[0]: one for one in reversed(close)}   # the smallest factor of each number of workers
    return list(dict.fromkeys([start, fastest, *by_workers.values()]))[:_MOST_CANDIDATES]
