"""tune(): races settings and says which line to write."""

import io
import time

import pytest

torch = pytest.importorskip("torch")
import torch.utils.data as data   # noqa: E402

import drawpoint   # noqa: E402


class Slow(data.Dataset):
    """2 ms asleep a sample."""

    def __len__(self):
        return 400

    def __getitem__(self, index):
        time.sleep(0.002)
        return torch.zeros(2), index


def make(num_workers, prefetch_factor):
    return data.DataLoader(Slow(), 4, num_workers=num_workers, prefetch_factor=prefetch_factor,
                           persistent_workers=True)


def test_sleeping_samples_want_more_workers():
    said, drawn = io.StringIO(), []
    tuned = drawpoint.tune(make, drawn.append, start=(1, 2), seconds=0.4, rounds=1, max_workers=3, out=said)
    assert (1, 2) in tuned.rates and 1 <= len(tuned.rates) <= 5
    assert tuned.num_workers > 1 and tuned.rates[tuned.num_workers, tuned.prefetch_factor] > tuned.rates[1, 2]
    assert tuned.line in said.getvalue() and f"num_workers={tuned.num_workers}" in tuned.line
    assert all(len(batch) == 2 for batch in drawn)


def test_our_loader_is_raced_beside():
    rows = drawpoint.rows(torch.zeros(400, 2), torch.arange(400))
    tuned = drawpoint.tune(make, lambda batch: None, ours=lambda: drawpoint.DataLoader(rows, 4, num_workers=1),
                           start=(1, 1), seconds=0.2, rounds=1, max_workers=1, out=None)
    assert tuned.rates["drawpoint.DataLoader"] > tuned.rates[1, 1]


def test_what_the_step_raises_is_raised():
    def step(batch):
        raise KeyError("step")
    with pytest.raises(KeyError, match="step"):
        drawpoint.tune(make, step, out=None)
    with pytest.raises(ValueError, match="no batch"):
        drawpoint.tune(lambda *_: data.DataLoader([], 4), print, out=None)
