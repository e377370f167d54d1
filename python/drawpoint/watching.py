"""watch(): records the loop over a loader that is there already, with what PyTorch's worker processes do."""

import collections.abc
import copy
import copyreg
import sys
import weakref

from . import _core
from .recording import is_file, recording_of

_MOST_STAGES = 8
_in_worker = None   # the stamps of this process, if it is a worker of a watched loader


def watch(loader, record, *, name="train", phase="train"):
    """Iterates what `loader` does, and records draws and steps; of a PyTorch DataLoader also what its workers do.

    record: a file, `run.pftrace`, which `drawpoint diagnose` reads; or a `Recording` that several loops share.
    name: of the loader, in the recording. phase: "train" or "valid".

    The batches are those of `loader`, bit for bit, and `loader` is not changed; what it has is had by the result, too.
    Costs about a microsecond and a half a step, and a tenth of one for each sample and transform in a worker. One loop at
    a time. The file ends with `close()`, or as the program does.
    """
    if phase not in ("train", "valid"):
        raise ValueError(f'watch: phase must be "train" or "valid", got {phase!r}')
    return Watched(loader, record, name, phase == "train")


class Watched:
    """What `watch()` returns."""

    _OWN = frozenset({"_loader", "epoch", "recording", "_core", "_torch", "_ends"})

    def __init__(self, loader, record, name, trains):
        self._loader, self.epoch = loader, 0
        self.recording = recording_of(record)
        if self.recording is None:
            raise ValueError("watch: record= must say where to: a file or a Recording")
        self._core = _core.Watch(self.recording, name, trains)
        self._torch = _TorchLoader(loader, self._core) if _is_torch_loader(loader) else None
        # Of a recording that others share, only the passes end.
        self._ends = weakref.finalize(self, self.recording.close if is_file(record) else self._core.end_pass)

    def __iter__(self):
        epoch, self.epoch = self.epoch, self.epoch + 1
        number = self._core.begin_pass(epoch)
        try:
            if self._torch is not None:
                return self._torch.begin(number, self)
            iterator = iter(self._loader)
        except BaseException:
            self._core.end_pass()
            raise
        self._core.begun([])
        return _core.WatchedPass(self._core, number, iterator, _size_of, _bytes_of, self)   # outlives the pass

    def __len__(self):
        return len(self._loader)

    def __bool__(self):
        return bool(self._loader)

    def __reduce__(self):
        raise TypeError("drawpoint: what is watched cannot be pickled: watch the loader where it is used")

    def __setattr__(self, name, value):
        """What is set is the loader's, and goes for the next pass."""
        if name in self._OWN:
            object.__setattr__(self, name, value)
            return
        setattr(self._loader, name, value)
        if self._torch is not None:
            self._torch.set(name, value)

    def __getattr__(self, name):
        if name in ("_loader", "_torch"):   # of an object that is being copied
            raise AttributeError(name)
        iterated = name in ("state_dict", "load_state_dict") and self._torch is not None
        return getattr(self._torch.loader if iterated else self._loader, name)

    @property
    def __class__(self):   # frameworks ask isinstance(loader, DataLoader)
        return type(self._loader)

    def report(self):
        """The report on what is recorded so far, as text."""
        return self.recording.report()

    def close(self):
        """Ends the recording, or in one that others share the pass."""
        self._ends()


def _is_torch_loader(loader):
    """Whether it draws as PyTorch's DataLoader does: one with an iterator of its own is watched from outside."""
    torch = sys.modules.get("torch")   # else it cannot be one
    usual = torch and torch.utils.data.DataLoader
    kind = type(loader)
    return bool(usual) and issubclass(kind, usual) and kind.__iter__ is usual.__iter__ and \
        kind._get_iterator is usual._get_iterator


def _size_of(batch):
    """Samples in a batch, as far as that can be seen: 1 to 2^32 - 1."""
    try:
        for _ in range(4):
            shape = getattr(batch, "shape", None)
            if shape is not None:
                return min(max(int(shape[0]), 1), 2**32 - 1) if len(shape) else 1
            if isinstance(batch, collections.abc.Mapping):
                batch = next(iter(batch.values()), None)
            elif isinstance(batch, (tuple, list)) and batch:
                batch = batch[0]
            else:
                break
    except Exception:   # whatever a user's class does: the batch is drawn
        pass
    return 1


def _bytes_of(batch):
    try:
        nbytes = getattr(batch, "nbytes", None)
        if nbytes is not None:
            return int(nbytes)
        if isinstance(batch, collections.abc.Mapping):
            return sum(map(_bytes_of, batch.values()))
        if isinstance(batch, (tuple, list)):
            return sum(map(_bytes_of, batch))
    except Exception:
        pass
    return 0


class _TorchLoader:
    """A copy of a PyTorch DataLoader whose workers stamp what they do."""

    def __init__(self, loader, core):
        self._core = core
        self.loader = loader = copy.copy(loader)
        known = vars(loader)   # DataLoader refuses to have some of these set
        known["_iterator"] = None   # of persistent workers, which would not stamp
        stages = [name for name, _ in _stages_of(loader.dataset)]
        # Without automatic batching a worker is asked for one item, which is the batch.
        self._by_item = loader.batch_sampler is None and not _is_iterable(loader.dataset)
        self._collate = known["collate_fn"] = _Collate(loader.collate_fn)
        self._stages, self._init = len(stages), None
        in_order = getattr(loader, "in_order", True)
        if loader.num_workers > 0:
            self._init = known["worker_init_fn"] = _Init(loader.worker_init_fn, self._stages, self._by_item)
            if not in_order and not self._by_item and not _is_iterable(loader.dataset):
                known["batch_sampler"] = _Numbered(loader.batch_sampler)
        if not _can_be_timed(loader.dataset):
            known["dataset"] = _Proxy(loader.dataset)
        core.set_torch_loader(
            stages=stages, batch_size=_batch_size_of(loader), num_workers=loader.num_workers,
            prefetch_factor=loader.prefetch_factor or 2, in_order=in_order,
            persistent_workers=loader.persistent_workers, batches=_length_of(loader))

    def set(self, name, value):
        if name == "collate_fn":
            self._collate.user = value
        elif name == "worker_init_fn" and self._init is not None:
            self._init.user = value
        else:
            vars(self.loader)[name] = value

    def begin(self, number, owner):
        if self.loader.num_workers > 0:
            iterator = iter(self.loader)
            self._core.begun([worker.pid for worker in getattr(iterator, "_workers", ())])
            return _core.WatchedPass(self._core, number, iterator, _size_of, _bytes_of, owner)
        stamps = self._collate.stamps = _core.WorkerStamps(self._stages, 0)

        def time_dataset():
            return _time_dataset(self.loader.dataset, stamps, self._by_item)

        undo = time_dataset()
        try:
            iterator = iter(self.loader)
        except BaseException:
            undo()
            raise
        self._core.begun([])
        return _InlinePass(_core.WatchedPass(self._core, number, iterator, _size_of, _bytes_of, owner), undo,
                           time_dataset)


class _InlinePass:
    """A pass of a loader without workers, whose data set is stamped in this process as long as it lasts."""

    def __init__(self, inner, undo, again):
        self._inner, self._undo, self._again = inner, weakref.finalize(self, undo), again

    def __iter__(self):
        return self

    def __next__(self):
        if not self._undo.alive:   # after an error, with which the loop goes on
            self._undo = weakref.finalize(self, self._again())
        try:
            return next(self._inner)
        except BaseException:
            self._undo()
            raise


def _batch_size_of(loader):
    """0: the first batch will say."""
    if loader.batch_size:
        return loader.batch_size
    size = getattr(loader.batch_sampler, "batch_size", None)
    return size if isinstance(size, int) and size > 0 else 0


class _Init:
    """What a worker calls first: the user's function runs among it."""

    def __init__(self, user, stages, by_item):
        self.user, self._stages, self._by_item, self._scale = user, stages, by_item, _core.clock_scale()

    def __call__(self, worker):
        global _in_worker
        import torch.utils.data
        _core.set_clock_scale(self._scale)   # a spawned process has a clock of its own
        _in_worker = _core.WorkerStamps(self._stages, worker)
        _time_dataset(torch.utils.data.get_worker_info().dataset, _in_worker, self._by_item)
        if self.user is not None:
            self.user(worker)
        _in_worker.begin_batches()


class _Collate:
    """Collates as the user's function does, and sends the stamps with the batch."""

    def __init__(self, user):
        self.user, self.stamps = user, None

    def __call__(self, samples):
        stamps = self.stamps or _in_worker
        if stamps is None:
            return self.user(samples)
        stamps.begin_collate()
        try:
            batch = self.user(samples)
        except BaseException:
            stamps.drop()
            raise
        return stamps.stamped(batch)

    def __getstate__(self):
        return {"user": self.user, "stamps": None}


def _length_of(loader):
    """Batches of a pass; -1: not known. That of an IterableDataset is not asked for: PyTorch warns where it was wrong."""
    try:
        return -1 if _is_iterable(loader.dataset) else len(loader)
    except Exception:
        return -1


class _Indices(list):
    """A batch's indices, with its number in the pass."""


class _Numbered:
    """A batch sampler whose lists say their number: out of order, batches do not come as they were sent."""

    def __init__(self, sampler):
        self._sampler = sampler

    def __iter__(self):
        for number, indices in enumerate(self._sampler):
            if type(indices) is list:
                indices = _Indices(indices)
                indices.drawpoint_number = number
            yield indices

    def __len__(self):
        return len(self._sampler)

    def __getattr__(self, name):
        if name == "_sampler":
            raise AttributeError(name)
        return getattr(self._sampler, name)


# What a data set does for a sample. The stages are found here in the loop's process, and again in each worker, on its
# own copy of the data set: the same ones, in the same order.


def _is_iterable(dataset):
    import torch.utils.data
    return isinstance(dataset, torch.utils.data.IterableDataset)


def _class_of(dataset):
    return getattr(type(dataset), "drawpoint_original", type(dataset))


def _innermost(dataset):
    import torch.utils.data
    while _class_of(dataset) is torch.utils.data.Subset:
        dataset = dataset.dataset
    return dataset


def _own(dataset):
    """The attributes that an object has itself: asking for others may run a user's code."""
    return getattr(dataset, "__dict__", {})


def _untimed(call):
    return call.drawpoint_wrapped if type(call) is _core.TimedCall else call


def _asked(what, name):
    """An attribute of a user's object, whatever asking for it raises; None: it has none."""
    try:
        return getattr(what, name, None)
    except Exception:
        return None


class _Place:
    """Where a transform hangs: an attribute of an object, or a place of a list."""

    def __init__(self, holder, key):
        self._holder, self._key = holder, key
        self.call = _untimed(holder[key])   # an older pass, which is still there, may have put its own
        name = _asked(self.call, "__name__")
        self.name = name if isinstance(name, str) else type(self.call).__name__

    def put(self, made):
        """Puts `made` there, and returns what takes it away again, unless somebody else has put something there."""
        self._holder[self._key] = made

        def undo():
            held = self._holder
            for key in list(held) if isinstance(held, dict) else range(len(held)):   # others may have moved it
                if held[key] is made:
                    held[key] = self.call

        return undo


def _transforms_of(dataset):
    own, found = _own(dataset), []
    for attribute in ("transform", "transforms", "target_transform"):
        call = _untimed(own.get(attribute))
        if call is None:
            continue
        inside = _asked(call, "transforms")
        if isinstance(inside, list) and inside:   # a Compose
            found += [_Place(inside, i) for i in range(len(inside))]
        elif attribute != "transforms" or _asked(call, "target_transform") is None:   # torchvision's pair of the others
            found.append(_Place(own, attribute))
    return [place for place in found if callable(place.call)]


def _stages_of(dataset):
    """A sample's stages, names and places; the first and the last have none."""
    import torch.utils.data
    dataset = _innermost(dataset)
    own = _own(dataset)
    found = _transforms_of(dataset)
    if not found:   # a data set around another
        inner = [one for one in own.values() if isinstance(one, torch.utils.data.Dataset)]
        found = _transforms_of(_innermost(inner[0])) if inner else []
    first = "load+decode" if "loader" in own and "samples" in own else "getitem"
    if not found:
        return [(first, None)]
    stages, taken = [(first, None)], {first}
    for place in found[:_MOST_STAGES - 2]:
        name, number = place.name, 1
        while name in taken:
            number += 1
            name = f"{place.name} {number}"
        taken.add(name)
        stages.append((name, place))
    return stages + [("after the transforms", None)]


def _can_be_timed(dataset):
    """Whether its class can be replaced by one that stamps."""
    return bool(type(_innermost(dataset)).__flags__ & (1 << 9))   # one that a class statement made


class _Proxy:
    """A data set whose class cannot be replaced."""

    def __init__(self, dataset):
        object.__setattr__(self, "_dataset", dataset)

    def __getitem__(self, index):
        return self._dataset[index]

    def __len__(self):
        return len(self._dataset)

    def __getattr__(self, name):
        if name == "_dataset":
            raise AttributeError(name)
        return getattr(self._dataset, name)

    def __setattr__(self, name, value):
        setattr(self._dataset, name, value)

    def __delattr__(self, name):
        delattr(self._dataset, name)

    def __reduce__(self):
        return _Proxy, (self._dataset,)


def _same(what):
    return what


def _new(cls, *arguments):
    return cls.__new__(cls, *arguments)


def _subclass(cls, **members):
    """A class that takes the place of `cls`, and pickles as that."""
    def reduce(self, protocol):
        reduced = cls.__reduce_ex__(self, protocol)
        if isinstance(reduced, str) or made not in reduced[1]:
            return reduced
        function, arguments, *rest = reduced
        function = _new if function is copyreg.__newobj__ else function   # which refuses another class than the object's
        return function, tuple(cls if one is made else one for one in arguments), *rest

    made = type(cls)(cls.__name__, (cls,), {"__slots__": (), "__module__": cls.__module__,
                                            "__qualname__": cls.__qualname__, "__doc__": cls.__doc__,
                                            "__reduce_ex__": reduce})
    for name, member in members.items():   # not before: a metaclass may change what it sees
        setattr(made, name, member)
    made.drawpoint_original = cls
    return made


def _timed_class(dataset, cls, stamps, by_item):
    """A subclass of the data set's class that stamps its samples."""
    if _is_iterable(dataset):
        return _subclass(cls, __iter__=lambda self: _core.TimedIterator(cls.__iter__(self), stamps))
    if by_item:
        return _subclass(cls, __getitem__=lambda self, index: stamps.get_run(
            lambda this: cls.__getitem__(self, this), index, 1))
    together = getattr(dataset, "__getitems__", None)   # as PyTorch asks: makes all samples of a batch
    if together is not None:
        return _subclass(cls, __getitems__=lambda self, indices: stamps.get_run(together, indices, len(indices)))
    return _subclass(cls, __getitems__=lambda self, indices: stamps.get_items(self, indices))


def _set_class(dataset, cls, made):
    """Replaces the data set's class, and returns what undoes that unless somebody else has done it."""
    object.__setattr__(dataset, "__class__", made)

    def undo():
        if type(dataset) is made:
            object.__setattr__(dataset, "__class__", cls)

    return undo


def _time_dataset(dataset, stamps, by_item):
    """Has the data set stamp its samples; returns what undoes that. What cannot be stamped stays as it is."""
    undo = []
    for stage, (_, place) in enumerate(_stages_of(dataset)):
        if place is not None:
            try:
                undo.append(place.put(_core.TimedCall(place.call, stamps, stage)))
            except Exception:
                pass
    timed = _innermost(dataset)
    cls = _class_of(timed)
    try:
        if type(timed) is not cls:   # an older pass has put its own
            object.__setattr__(timed, "__class__", cls)
        undo.append(_set_class(timed, cls, _timed_class(timed, cls, stamps, by_item)))
        if dataset is not timed:   # a Subset, which hands plain lists on
            outer = _class_of(dataset)
            undo.append(_set_class(dataset, outer, _subclass(outer, __getitems__=lambda self, indices: (
                stamps.note_number(indices), outer.__getitems__(self, indices))[1])))
    except Exception:
        pass

    def undo_all():
        while undo:
            undo.pop()()

    return undo_all
