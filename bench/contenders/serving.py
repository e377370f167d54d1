"""The contender's end of the protocol of comparison/child.hpp, for those of Python; contenders/serve.cpp is the same for C++.
A contender's file defines a class with `epoch(e)`, an iterator of batches, `arrays(batch)`, the batch as (float32, targets),
`count(batch)` and `settings`, and ends with `serve(Class)`."""

import json
import os
import sys
import time

os.environ["OMP_NUM_THREADS"] = "1"   # the workers are the parallelism
_answers = os.fdopen(os.dup(1), "wb")   # stdout is the protocol's: what libraries print goes to stderr
os.dup2(2, 1)

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


class Work:
    """What the driver asks for (contenders/workload.hpp) and the plan it wrote (comparison/plan.hpp)."""

    def __init__(self, words):
        import numpy as np
        self.__dict__.update(words)
        with open(f"{self.plan}/plan.json") as file:
            plan = json.load(file)
        self.epochs, self.items = plan["epochs"], plan["items"]

        def mapped(name, scalar, shape):   # "c": private, since torch wants arrays that may be written
            return np.asarray(np.memmap(f"{self.plan}/{name}", scalar, "c")).reshape(shape)

        self.pictures = self.kind in ("jpeg", "latency")
        self.batches = -(-self.items // self.batch_size)
        self.orders = None
        if self.kind != "tiny":
            self.orders = mapped("order.i64", np.int64, (self.epochs, self.items))
        if self.pictures:
            self.paths, self.labels = plan["paths"], plan["labels"]
            self.crops = mapped("crops.i32", np.int32, (self.epochs, self.items, 5))
        elif self.kind in ("tiny", "tensor"):
            shape = (self.items, 4) if self.kind == "tiny" else (self.items, 3, self.side, self.side)
            self.rows = mapped("rows.f32", np.float32, shape)

    def indices(self, epoch):
        """The indices of an epoch."""
        return range(self.items) if self.orders is None else self.orders[epoch % self.epochs].tolist()

    def index_batches(self, epoch):
        order = self.indices(epoch)
        return [order[at:at + self.batch_size] for at in range(0, self.items, self.batch_size)]

    def crop(self, epoch, index):
        """x, y, width, height, flip."""
        return self.crops[epoch % self.epochs, index].tolist()


def straggle(index):
    time.sleep(0.02 if index % 100 == 37 else 0.0002)


def _answer(line, data=b""):
    _answers.write(json.dumps(line).encode() + b"\n")
    _answers.write(data)
    _answers.flush()


def _round(loader, epoch, passes):
    first, items, batches = 0, 0, 0
    begin = time.perf_counter_ns()
    for e in range(epoch, epoch + passes):
        for batch in loader.epoch(e):
            if not first:
                first = time.perf_counter_ns() - begin
            items += loader.count(batch)
            batches += 1
    return {"wall_ns": time.perf_counter_ns() - begin, "first_batch_ns": first, "items": items, "batches": batches}


def _first_batch(make, work, epoch):
    begin = time.perf_counter_ns()
    loader = make(work)
    batches = iter(loader.epoch(epoch))
    next(batches)
    return {"wall_ns": time.perf_counter_ns() - begin}


def _send_batches(loader, epoch, numbers):
    import numpy as np
    for number, batch in enumerate(loader.epoch(epoch)):
        if number in numbers:
            data, targets = loader.arrays(batch)
            data = np.ascontiguousarray(data, np.float32)
            _answer({"targets": [int(target) for target in targets], "values": data.size}, data.tobytes())


def serve(make):
    """Serves the driver to its end."""
    try:
        work = Work(json.loads(sys.argv[1]))
        loader = make(work)
        _answer({"settings": f"Python {sys.version.split()[0]}, {loader.settings}"})
    except Exception as error:   # whatever it is, it is the reason
        _answer({"not_run": f"{type(error).__name__}: {error}".splitlines()[0][:300]})
        return
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if request["do"] == "round":
                _answer(_round(loader, request["epoch"], request["passes"]))
            elif request["do"] == "first_batch":
                _answer(_first_batch(make, work, request["epoch"]))
            else:
                _send_batches(loader, request["epoch"], set(request["batches"]))
        except Exception as error:
            _answer({"error": f"{type(error).__name__}: {error}".splitlines()[0][:300]})
            raise
    _answers.close()
    os._exit(0)   # some libraries' threads do not end by themselves
