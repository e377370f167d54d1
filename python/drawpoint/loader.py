"""The DataLoader: an iterable of batches over the loader's own memory."""

import os
import sys

from . import _core
from .recording import is_file, recording_of

_REFUSED = {
    "prefetch_factor": "write prefetch_depth=, the batches made ahead, whatever num_workers is",
    "worker_init_fn": "workers are threads, and run no Python",
    "multiprocessing_context": "workers are threads",
    "persistent_workers": "workers always persist",
    "timeout": "not there yet",
    "collate_fn": "samples are made in the batch's memory",
    "batch_sampler": "write batch_size=, shuffle=",
    "sampler": "write shuffle=, rank=, world_size=",
    "pin_memory": "not there yet",
}
_STATE_VERSION = 1


def _from_capsule(library):
    """What makes an array of a DLPack capsule, and what makes one of an `Array`: one of them is None."""
    if library == "torch":
        import torch.utils.dlpack
        return torch.utils.dlpack.from_dlpack, None
    if library == "numpy":
        import numpy
        return None, numpy.from_dlpack
    if library == "jax":
        import jax.dlpack
        return None, jax.dlpack.from_dlpack
    if library == "dlpack":
        return None, None
    raise ValueError(f'as_ must be "torch", "numpy", "jax" or "dlpack", got {library!r}')


def _usual_library():
    """torch where it is, without importing it before somebody else has to."""
    if "torch" in sys.modules:
        return "torch"
    from importlib.util import find_spec
    return "torch" if find_spec("torch") else "numpy" if find_spec("numpy") else "dlpack"


def _rank_and_world_size():
    torch = sys.modules.get("torch")
    distributed = getattr(torch, "distributed", None)
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    return int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))


def _max_overtakes(order):
    if order == "in":
        return 0
    if order == "out":
        return -1
    if isinstance(order, int) and order >= 0:
        return order
    raise ValueError(f'order must be "in", "out" or the number of batches that may overtake one, got {order!r}')


def rows(data, targets=None):
    """The rows of an array in memory, of numpy, torch or any library with DLPack. It is not copied if it is contiguous;
    targets, if they are int64 besides."""
    made = _core.rows(data, targets)
    made._made_by = rows, (data, targets)
    return made


def _source(function, *arguments):
    """What a pickled source is made by."""
    return getattr(_core, function)(*arguments)


def _remade(kind, source, options, state):
    """What a pickled loader becomes, in its own process."""
    loader = kind(source, **options)
    loader._next = state
    return loader


class DataLoader:
    """Draws batches of `source`, made ahead by threads that run no Python.

    Each `iter()` is the next epoch, and abandons the one before. A batch is a tuple of data and targets, arrays over
    the loader's own memory: nothing is copied, and the memory goes back with the last array. Keep as many as you like:
    then the loader takes new memory, beyond memory_budget. One thread at a time. Close it before the program ends, if
    another thread may still be waiting in a draw.

    batch_size, shuffle, num_workers, drop_last: as PyTorch's.
    prefetch_depth: batches made ahead, 1 to 55, whatever num_workers is.
    order: "in" order; "out", as batches are ready; or how many may overtake one.
    memory_budget: most bytes of all that is made ahead; 0: no limit.
    seed: of the order and of all that is random in a sample.
    record: a file, `run.pftrace`, which `drawpoint diagnose` reads; then `report()` has the totals.
    rank, world_size: the share of this process; by default torch.distributed's, or RANK's and WORLD_SIZE's.
    as_: "torch" (if it is installed), "numpy", "jax" or "dlpack".
    """

    def __init__(self, source, batch_size=1, shuffle=False, *, num_workers=0, drop_last=False, prefetch_depth=2,
                 order="in", memory_budget=0, read_concurrency=64, seed=0, record=None, rank=None, world_size=None,
                 as_=None, epochs=None, name="train", **others):
        for argument in others:
            if argument in _REFUSED:
                raise TypeError(f"DataLoader: no {argument}: {_REFUSED[argument]}")
            raise TypeError(f"DataLoader() got an unexpected keyword argument {argument!r}")
        if not isinstance(source, _core.Source):
            raise TypeError(f"DataLoader: source must be a drawpoint source of samples, got {type(source).__name__}")
        self._options = {  # all but record, whose file is this process's
            "batch_size": batch_size, "shuffle": shuffle, "num_workers": num_workers, "drop_last": drop_last,
            "prefetch_depth": prefetch_depth, "order": order, "memory_budget": memory_budget,
            "read_concurrency": read_concurrency, "seed": seed, "as_": as_, "epochs": epochs, "name": name}
        usual_rank, usual_size = _rank_and_world_size()
        rank, world_size = usual_rank if rank is None else rank, usual_size if world_size is None else world_size
        self._options |= {"rank": rank, "world_size": world_size}
        self.dataset, self.batch_size, self.num_workers, self.drop_last = source, batch_size, num_workers, drop_last
        self.sampler, self.prefetch_depth, self.order, self.epochs = None, prefetch_depth, order, epochs
        convert, self._wrap = _from_capsule(as_ or _usual_library())
        self._core = _core.Loader(
            source, batch_size=batch_size, shuffle=shuffle, num_workers=num_workers, prefetch_depth=prefetch_depth,
            seed=seed, max_overtakes=_max_overtakes(order), drop_last=drop_last, read_concurrency=read_concurrency,
            memory_budget=memory_budget, rank=rank, world_size=world_size,
            recording=recording_of(record), owns_recording=is_file(record), name=name, convert=convert)
        self._what = {"seed": seed, "samples": self._core.samples, "batch_size": batch_size, "shuffle": bool(shuffle),
                      "drop_last": bool(drop_last), "world_size": world_size, "version": _STATE_VERSION}
        self._next = 0, 0          # where the next iter() begins: epoch, batch
        self._pass = None          # the one that draws
        self._is_told = True       # the position is what the user said, not where the pass is

    def __len__(self):
        return self._core.batches

    def set_epoch(self, epoch):
        """The next `iter()` is of this epoch, from its first batch, also after `load_state_dict()`."""
        self._next, self._is_told = (epoch, 0), True

    def _begin(self, kind):
        epoch, batch = self._next
        if self._pass is not None:
            self._pass._leave()
        self._core.begin(epoch, batch, self.epochs is None or epoch + 1 < self.epochs)
        self._pass, self._next, self._is_told = kind(self, epoch), (epoch + 1, 0), False
        return self._pass

    def _taken(self, batch):
        self._is_told = False
        return batch if self._wrap is None else tuple(map(self._wrap, batch))

    def __iter__(self):
        return self._begin(_Pass)

    def __aiter__(self):
        return self._begin(_AsyncPass)

    def _position(self):
        if self._is_told:
            return self._next
        drawn = self._core.drawn   # failed batches and those before the first one included
        return (self._pass.epoch + 1, 0) if drawn == len(self) else (self._pass.epoch, drawn)

    def state_dict(self):
        """Where the loader is after the batch that it returned last: plain numbers. Only with order="in"."""
        if self.order != "in":
            raise ValueError(f'state_dict: batches that overtake others have no one position: it needs order="in", got '
                             f"{self.order!r}")
        epoch, batch = self._position()
        return {"epoch": epoch, "batch": batch, **self._what}

    def load_state_dict(self, state):
        """The next `iter()` goes on there, and makes no sample before it."""
        for key, value in self._what.items():
            if state[key] != value:
                raise ValueError(f"load_state_dict: {key} is {state[key]} in the state, but {value} here")
        epoch, batch = state["epoch"], state["batch"]
        if not 0 <= batch <= len(self) or epoch < 0:
            raise ValueError(f"load_state_dict: there is no batch {batch} of epoch {epoch}")
        self._next, self._is_told = (epoch + 1, 0) if batch == len(self) else (epoch, batch), True

    def __reduce__(self):
        """Pickled, it is the same loader where it is now, with threads of its own, and without a recording."""
        return _remade, (type(self), self.dataset, self._options, self._position())

    def report(self):
        """The report on what `record=` has recorded so far, as text."""
        return self._core.report()

    def close(self):
        """Ends the workers and the recording. Batches stay valid."""
        self._next, self._is_told = self._position(), True
        if self._pass is not None:
            self._pass._leave()
        self._core.close()
        self._pass = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class _Pass:
    def __init__(self, loader, epoch):
        self._loader, self.epoch = loader, epoch

    def __iter__(self):
        return self

    def __next__(self):
        loader = self._loader
        if loader._pass is not self:   # another one has begun
            raise StopIteration
        batch = loader._core.next()
        if batch is None:
            raise StopIteration
        return loader._taken(batch)

    def _leave(self):
        pass


class _AsyncPass:
    def __init__(self, loader, epoch):
        self._loader, self.epoch, self._waiting = loader, epoch, None

    def __aiter__(self):
        return self

    async def __anext__(self):
        loader = self._loader
        if self._waiting is not None:
            raise RuntimeError("drawpoint: another draw of this loader is waiting")
        while loader._pass is self:   # no other one has begun
            batch = loader._core.next_if_ready()
            if batch is None:
                break
            if batch is not NotImplemented:
                return loader._taken(batch)
            await self._readable(loader._core.descriptor())
        raise StopAsyncIteration

    async def _readable(self, descriptor):
        """Waits until a descriptor is readable, by the event loop's own means."""
        import asyncio
        loop = asyncio.get_running_loop()
        ready = loop.create_future()

        def end():
            if not ready.done():
                loop.remove_reader(descriptor)
                ready.set_result(None)

        loop.add_reader(descriptor, end)
        self._waiting = end
        try:
            await ready
        except BaseException:   # a cancel: what follows is no waiting
            loop.remove_reader(descriptor)
            self._loader._core.leave_draw()
            raise
        finally:
            self._waiting = None

    def _leave(self):
        """Ends a draw that waits, before what it waits for is gone."""
        if self._waiting is not None:
            self._waiting()
