"""watch() on whatever data sets, transforms and samplers users write."""

import copy
import pickle
import warnings

import pytest

torch = pytest.importorskip("torch")
import torch.utils.data as data   # noqa: E402

import drawpoint   # noqa: E402
from watched import (BATCH, SAMPLES, Frozen, Noise, Rows, Stream, Together, batches, ledger_of, loader,   # noqa: E402
                     same, twice)


def test_lists_and_subsets_are_watched_too(tmp_path):
    rows = [(torch.full((2,), float(i)), i) for i in range(20)]
    subset = data.Subset(Rows(), list(range(0, SAMPLES, 2)))
    for dataset in (rows, subset):
        mine = data.DataLoader(dataset, 4, num_workers=1)
        assert same(batches(drawpoint.watch(mine, tmp_path / f"{len(dataset)}.pftrace"), 1),
                    batches(data.DataLoader(dataset, 4, num_workers=1), 1))


class Slotted(data.Dataset):
    __slots__ = ("rows",)

    def __init__(self):
        self.rows = [torch.full((4,), float(i)) for i in range(20)]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.rows[index], index


class Around(data.Dataset):
    """Says that it has what the data set in it has."""

    def __init__(self, inner):
        self.inner = inner

    def __getattr__(self, name):
        if name == "inner":
            raise AttributeError(name)
        return getattr(self.inner, name)

    def __len__(self):
        return len(self.inner)

    def __getitem__(self, index):
        return self.inner[index]


class OwnSubset(data.Subset):
    def __getitem__(self, index):
        x, y = super().__getitem__(index)
        return x + 100, y

    def __getitems__(self, indices):
        return [self[index] for index in indices]


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("make", [
    Slotted, Frozen, lambda: Around(Together()), lambda: OwnSubset(Frozen(), list(range(5, 15))),
    lambda: data.Subset(data.Subset(Rows(), list(range(30))), list(range(3, 20))),
    lambda: data.ConcatDataset([Rows(), Frozen()]), lambda: data.TensorDataset(torch.rand(20, 3), torch.arange(20)),
])
def test_unusual_data_sets_give_the_same(tmp_path, workers, make):
    file = tmp_path / "run.pftrace"
    torch.manual_seed(9)
    expected = batches(data.DataLoader(make(), 4, num_workers=workers), 1)
    torch.manual_seed(9)
    watched = drawpoint.watch(data.DataLoader(make(), 4, num_workers=workers), file)
    assert same(batches(watched, 1), expected)
    watched.close()
    assert sum(row["samples"] for row in ledger_of(file, tmp_path)["samples"]) == sum(len(y) for _, y in expected)


def test_data_pipes_give_the_same(tmp_path):
    def make():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            pipe = torch.utils.data.datapipes.iter.IterableWrapper(range(20))
        return data.DataLoader(pipe, 4)
    expected = [batch.tolist() for batch in make()]
    assert [batch.tolist() for batch in drawpoint.watch(make(), tmp_path / "run.pftrace")] == expected


def test_samplers_of_batches_say_how_large_those_are(tmp_path):
    buckets = [[1, 2, 3], [4, 5], [6, 7, 8, 9]]
    file = tmp_path / "run.pftrace"
    watched = drawpoint.watch(data.DataLoader(Rows(), batch_sampler=buckets, num_workers=1), file)
    assert [batch[1].tolist() for batch in batches(watched, 1)] == buckets
    watched.close()
    ledger = ledger_of(file, tmp_path)
    assert ledger["pipelines"][0]["batch_size"] == 3 and [row["size"] for row in ledger["batches"]] == [3, 2, 4]


@pytest.mark.parametrize("workers", [0, 1])
def test_without_batching_each_item_is_a_batch(tmp_path, workers):
    file = tmp_path / "run.pftrace"
    watched = drawpoint.watch(data.DataLoader(Frozen(), batch_size=None, num_workers=workers), file)
    assert [int(y) for _, y in watched] == list(range(20))
    watched.close()
    assert [row["index"] for row in ledger_of(file, tmp_path)["samples"]] == [0] * 20


def test_what_iterable_data_sets_drop_is_in_no_batch(tmp_path):
    file = tmp_path / "run.pftrace"
    watched = drawpoint.watch(loader(Stream(), 1, drop_last=True, persistent_workers=True), file)
    batches(watched, 3)
    watched.close()
    ledger = ledger_of(file, tmp_path)
    assert all(row["size"] == BATCH for row in ledger["batches"]) and len(ledger["batches"]) == 3 * (SAMPLES // BATCH)
    assert [row["cpu_ns"] for row in ledger["host"] if (row.get("children_cpu_ns") or 0) > 60e9] == []


class Copied(Rows):
    def __getitem__(self, index):
        if index % 16 == 0:
            again = pickle.loads(pickle.dumps(self))
            assert type(again) is Copied and again.transform.transforms[0] is twice
            self.transform.transforms[1].share = 0.5
            assert isinstance(copy.deepcopy(self.transform).transforms[1], Noise)
        return super().__getitem__(index)


def test_data_sets_are_pickled_and_copied_as_before_while_they_are_stamped(tmp_path):
    mine = loader(Copied(), 0)
    batches(drawpoint.watch(mine, tmp_path / "run.pftrace"))
    assert mine.dataset.transform.transforms[1].share == 0.5


class Odd:
    @property
    def shape(self):
        raise RuntimeError("no shape today")

    nbytes = shape


def test_whatever_batches_are_they_are_drawn(tmp_path):
    odd = Odd()
    drawn = list(drawpoint.watch(data.DataLoader([odd] * 4, 2, collate_fn=lambda items: items[0]),
                                 tmp_path / "one.pftrace"))
    assert all(one is odd for one in drawn) and len(drawn) == 2
    assert [one for one in drawpoint.watch(data.DataLoader([1, 2], 1, collate_fn=lambda items: None),
                                           tmp_path / "two.pftrace")] == [None, None]


class OwnStream(data.IterableDataset):
    def __init__(self):
        self.count = 0

    def __iter__(self):
        return self

    def __next__(self):
        self.count += 1
        if self.count > 20:
            raise StopIteration
        return self.count


@pytest.mark.parametrize("workers", [0, 1])
def test_an_iterable_data_set_may_be_its_own_iterator(tmp_path, workers):
    expected = [batch.tolist() for batch in data.DataLoader(OwnStream(), 4, num_workers=workers)]
    watched = drawpoint.watch(data.DataLoader(OwnStream(), 4, num_workers=workers), tmp_path / "run.pftrace")
    assert [batch.tolist() for batch in watched] == expected


def test_transforms_may_change_in_a_pass(tmp_path):
    for change in (lambda compose: compose.transforms.pop(), lambda compose: compose.transforms.insert(0, twice),
                   lambda compose: compose.transforms.clear()):
        mine = loader(workers=0)
        for number, _ in enumerate(drawpoint.watch(mine, tmp_path / "run.pftrace")):
            if number == 1:
                change(mine.dataset.transform)
        assert number == len(mine) - 1
        assert all(one is twice or type(one) is Noise for one in mine.dataset.transform.transforms)


class Sequential(data.Dataset):
    """Looks into its transform."""

    def __init__(self):
        self.transform = torch.nn.Sequential(torch.nn.Identity(), torch.nn.Identity())

    def __len__(self):
        return 8

    def __getitem__(self, index):
        assert len(self.transform) == 2 and self.transform and self.transform[0] is list(self.transform)[0]
        return self.transform(torch.full((2,), float(index)))


class Closed:
    """Raises what it likes for what it has not."""

    def __init__(self):
        self.__dict__["known"] = {}

    def __getattr__(self, name):
        return self.__dict__["known"][name]

    def __call__(self, x):
        return x


def test_transforms_are_what_users_write(tmp_path):
    of_closed = Rows()
    of_closed.transform = Closed()
    for number, dataset in enumerate((Sequential(), of_closed)):
        mine = data.DataLoader(dataset, 4)
        assert len(list(drawpoint.watch(mine, tmp_path / f"{number}.pftrace"))) == len(mine)
