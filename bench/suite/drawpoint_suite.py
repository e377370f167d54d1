"""Benchmark suites in Python, for `drawpoint bench --reports row` and `drawpoint gate --reports suite`: what bench::main()
is for C++. A script adds its rows to a Suite and ends with `suite.main()`. It needs nothing but Python.

    from drawpoint_suite import Suite

    suite = Suite("my loaders")
    suite.add_loader("torch, 2 workers", lambda: DataLoader(data, batch_size=64, num_workers=2))
    suite.main()

`python3 SCRIPT.py` then compares its rows, by the program `drawpoint` (on PATH, or the environment's DRAWPOINT).
"""

import argparse
import ctypes
import json
import math
import os
import re
import resource
import shlex
import signal
import sys
import time

CHANNEL = 3   # the descriptor that a parent opens for --steps


def samples_in(batch):
    """How many samples a batch has: the length of its first part, if it has parts, else its own."""
    if isinstance(batch, dict):
        batch = list(batch.values())
    return len(batch[0]) if isinstance(batch, (list, tuple)) else len(batch)


class Task:
    """What a row measures. It is made, used and dropped in the process that measures the row; what it raises is the reason
    why the row is not run."""

    items = 0   # how many items a run processes, for the rate; 0: they are not counted

    def run(self, number):
        """One run. `number`: 0 for the one that warms up and does not count, then from 1 on. All do equally much work."""
        raise NotImplementedError

    def digest(self):
        """A whole number that is the same for the same output, or None. Called at most once, before the first run."""
        return None

    def metrics(self):
        """[(name, unit, value)] beyond what every row has, after the last run; unit: seconds, count, bytes or number."""
        return []


class _Function(Task):
    def __init__(self, function, items, digest):
        self.function, self.items, self._digest = function, items, digest

    def run(self, number):
        self.function()

    def digest(self):
        if self._digest is None:
            return None
        self.function()
        return self._digest()


class _Loader(Task):
    def __init__(self, loader, step, count, digest):
        self.loader, self.step, self.count, self._digest = loader, step, count, digest
        self.first, self.draws = [], []   # seconds
        self.items = None

    def run(self, number):
        first, draws, items = None, [], 0
        asked = time.perf_counter()
        for batch in self.loader:
            wait = time.perf_counter() - asked
            if first is None:
                first = wait
            else:
                draws.append(wait)
            items += self.count(batch)
            if self.step:
                self.step(batch)
            del batch   # before the next draw, as a loop does
            asked = time.perf_counter()
        if self.items not in (None, items):
            raise ValueError(f"a pass has {items} samples, the one before had {self.items}: make() must return what can be "
                             "passed over again and again")
        self.items = items
        if number != 0 and first is not None:
            self.first.append(first)
            self.draws += draws

    def digest(self):
        return None if self._digest is None else sum(self._digest(batch) for batch in self.loader)

    def metrics(self):
        return [("first batch", "seconds", _quantile(self.first, 0.5)), ("draw p50", "seconds", _quantile(self.draws, 0.5)),
                ("draw p99", "seconds", _quantile(self.draws, 0.99))]


class Suite:
    """Rows that do the same work in different ways. In each turn a row is a process of its own, which this script is started
    for: it must add the same rows every time, and do nothing that should happen only once."""

    def __init__(self, name):
        self.name, self._rows = name, {}

    def add_task(self, name, make):
        """`make()`: a Task. Called in the process that measures the row, as are all functions below."""
        if not name or name in self._rows or "\n" in name:
            raise ValueError(f"a row's name must be one line that no other row has, got {name!r}")
        self._rows[name] = make
        return self

    def add_function(self, name, function, items=0, digest=None):
        """`items`: how many it processes, for the rate. `digest()`: called after a run, see Task.digest()."""
        return self.add_task(name, lambda: _Function(function, items, digest))

    def add_loader(self, name, make, step=None, count=samples_in, digest=None):
        """`make()`: an iterable of batches; a run is a pass over it, and the draws are measured. `step(batch)`: what a
        training step would do. `count(batch)`: how many samples it has. `digest(batch)`: a whole number; summed over the
        pass it must not depend on the order. Worker processes count into CPU time if they end with the pass."""
        return self.add_task(name, lambda: _Loader(make(), step, count, digest))

    def main(self, words=None):
        """Does what the command line asks for, and exits. `words`: those of it that are not the script's own [all]."""
        every = sys.argv[1:]
        words = every if words is None else list(words)
        parser = argparse.ArgumentParser(
            description=f"The benchmark suite {self.name}. Other options are those of drawpoint bench --command.")
        parser.add_argument("--row", action="append", choices=list(self._rows), metavar="ROW",
                            help="measures this row; repeatable: the first one is the base [all]")
        parser.add_argument("--list", action="store_true", help="prints the names of the rows as JSON")
        parser.add_argument("--once", choices=list(self._rows), metavar="ROW",
                            help="measures a row once, in this process, and prints a line of JSON")
        parser.add_argument("--runs", type=int, help="with --once: how many runs [1]")
        parser.add_argument("--steps", action="store_true",
                            help=f"with --once: runs when a program that opened descriptor {CHANNEL} says so")
        parser.add_argument("--digest", action="store_true", help="with --once: also a digest of the row's output")
        options, rest = parser.parse_known_args(words)
        if (options.runs is not None or options.steps or options.digest) and not options.once:
            parser.error("--runs, --steps and --digest need --once")
        if options.runs is not None and (options.steps or options.runs < 1):
            parser.error("--runs must be above 0, and excludes --steps")
        try:
            rows = options.row or list(self._rows)
            if not rows:
                raise ValueError("the suite has no rows")
            if options.list:
                _print({"schema": "drawpoint.suite/1", "suite": self.name, "rows": rows})
            elif options.once:
                _end_with_parent()
                if options.steps:
                    _take_channel()   # before anything else gets that number
                steps = _asked_for() if options.steps else iter([options.runs or 1])
                _print(_turn(options.once, self._rows[options.once](), steps, options.digest))
            else:
                _compare(rows, _without(every, words), rest)
        except Exception as error:
            sys.exit(f"{self.name}: {error if str(error) else type(error).__name__}")
        sys.exit(0)


def _print(document):
    print("\n" + json.dumps(document), flush=True)   # after whatever the user's code has printed


def _without(every, words):
    """`every` less `words`, which stand in it in this order."""
    left, own = list(words), []
    for word in every:
        if left and word == left[0]:
            left.pop(0)
        else:
            own.append(word)
    return own


def _compare(rows, own, options):
    """Becomes the program that compares the rows: each is a command of its own."""
    program = os.environ.get("DRAWPOINT", "drawpoint")
    words = [program, "bench", "--reports", "row"]
    names = []
    for row in rows:
        line = shlex.join([sys.executable, sys.argv[0], *own, f"--row={row}"])
        name = re.sub(r"[^A-Za-z0-9_.-]+", "-", row)
        names.append(name if name not in names else f"{name}-{len(names) + 1}")
        words += ["--command", f"{names[-1]}={line}"]
    sys.stdout.flush()
    try:
        os.execvp(program, words + options)
    except OSError as error:
        raise RuntimeError(f"{program}: {error.strerror}: it must be on PATH, or named by the environment's DRAWPOINT") from None


def _end_with_parent():
    """Nobody would read what it prints."""
    try:
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)   # PR_SET_PDEATHSIG
    except (OSError, AttributeError):   # not Linux
        pass


def _take_channel():
    """Keeps the channel to the parent from what this process starts."""
    try:
        os.set_inheritable(CHANNEL, False)
    except OSError:
        raise RuntimeError(f"--steps is for a parent that has opened descriptor {CHANNEL}") from None


def _asked_for():
    """The number of runs of each step that the parent asks for, until it asks for no more."""
    while True:
        text = b""
        try:
            os.write(CHANNEL, b"\n")   # ready
            while (byte := os.read(CHANNEL, 1)) not in (b"", b"\n"):
                text += byte
        except OSError:   # the parent has ended
            return
        if not text:
            return
        if not text.isdigit() or int(text) == 0:
            raise ValueError(f"--steps: no number of runs: {text!r}")
        yield int(text)


def _reading():
    """Wall and CPU time in seconds, page faults, context switches so far, of this process and the children it waited for."""
    own, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return (time.perf_counter(), time.process_time() + children.ru_utime + children.ru_stime,
            *(sum(getattr(usage, name) for usage in (own, children) for name in names)
              for names in (("ru_minflt", "ru_majflt"), ("ru_nvcsw", "ru_nivcsw"))))


def _peak_memory():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM:"))


def _quantile(values, q):
    """Between neighbours linear; NaN: there are no values."""
    if not values:
        return math.nan
    values = sorted(values)
    place = q * (len(values) - 1)
    low = int(place)
    high = min(low + 1, len(values) - 1)
    return values[low] + (place - low) * (values[high] - values[low])


def _turn(row, task, steps, with_digest):
    """Measures the runs that `steps` asks for, as bench/suite/turn.cpp does."""
    digest = task.digest() if with_digest else None
    task.run(0)
    peak, sums, runs = _peak_memory(), [0.0] * 4, 0
    for more in steps:
        before = _reading()
        for number in range(runs + 1, runs + more + 1):
            task.run(number)
        sums = [total + end - begin for total, begin, end in zip(sums, before, _reading())]
        runs += more
    if runs == 0:
        raise RuntimeError("nobody asked for a run")
    wall, cpu, faults, switches = (total / runs for total in sums)
    wall, cpu = max(wall, 1e-9), max(cpu, 1e-9)   # so that ratios exist
    metrics = [("wall time", "seconds", wall), ("CPU time", "seconds", cpu), ("page faults", "count", faults),
               ("context switches", "number", switches), ("peak memory", "bytes", peak)]
    if task.items:
        metrics.append(("items/s", "number", task.items / wall))
    metrics += task.metrics()
    if len({name for name, _, _ in metrics}) < len(metrics):
        raise ValueError("two metrics have the same name")
    turn = {"schema": "drawpoint.turn/1", "row": row, "optimised": True}
    if digest is not None:
        turn["digest"] = f"{int(digest) % 2**64:016x}"
    turn["metrics"] = [{"name": name, "unit": unit, "compared": name in ("wall time", "CPU time"),
                        "value": float(value) if math.isfinite(value) else None} for name, unit, value in metrics]
    return turn
