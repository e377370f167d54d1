"""Who holds a batch's memory, and when it goes back."""

import gc
import os
import pickle
import random
import threading

import numpy
import pytest
from conftest import is_right


@pytest.fixture
def loader(make_loader):
    pytest.importorskip("torch")
    return make_loader(num_workers=1, as_="torch")


def alive(loader):
    return loader._core.alive


def test_the_last_array_gives_the_batch_back(loader):
    draws = iter(loader)
    x, y = next(draws)
    assert alive(loader) == 1
    v = x[3]
    del x
    assert alive(loader) == 1
    del v
    assert alive(loader) == 1
    del y
    assert alive(loader) == 0


def test_autograd_holds_what_it_saved(loader):
    import torch
    w = torch.ones(4, 2, requires_grad=True)
    x, y = next(iter(loader))
    loss = (x @ w).sum()
    del x, y
    assert alive(loader) == 1
    loss.backward()
    assert alive(loader) == 0
    assert loss.item() > 0


def test_a_capsule_that_nobody_consumed_gives_it_back(make_loader):
    loader = make_loader(num_workers=1, as_="dlpack")
    x, y = next(iter(loader))
    for version in (None, (1, 0)):
        capsule = x.__dlpack__(max_version=version)
        assert "dltensor" in repr(capsule)
        del capsule
    del x, y
    assert alive(loader) == 0


def test_arrays_outlive_their_loader(make_loader):
    loader = make_loader(num_workers=1)
    core = loader._core
    x, y = next(iter(loader))
    loader.close()
    del loader
    gc.collect()
    assert is_right((x, y)) and core.alive == 1
    del x, y
    assert core.alive == 0


def test_a_plain_loop_needs_two_batches_and_new_memory_for_none(make_loader):
    loader = make_loader(num_workers=1, prefetch_depth=4)
    most = 0
    for x, y in loader:
        most = max(most, alive(loader))
        assert x.flags.writeable
    assert most <= 2 and loader._core.replaced == 0


@pytest.mark.parametrize("workers", [0, 2])
def test_all_batches_of_an_epoch_can_be_kept(make_loader, workers):
    loader = make_loader(num_workers=workers, prefetch_depth=2, shuffle=True)
    kept = list(loader)
    assert len(kept) == 13 and loader._core.replaced >= 10
    for _ in loader:
        pass
    assert all(map(is_right, kept))
    del kept, _
    assert alive(loader) == 0


PROGRAMS = int(os.environ.get("DRAWPOINT_LEASE_PROGRAMS", 40))


def are_right(batch):
    return is_right(tuple(map(numpy.asarray, batch)))


def run_program(chance, loader):
    """Keeps, slices, drops, pickles, hands to threads: as programs do."""
    kept, threads = [], []
    for data, targets in loader:
        for _ in range(3):
            action = chance.randrange(6)
            if action == 0:
                kept.append((data, targets))
            elif action == 1:
                at = chance.randrange(len(targets))
                kept.append((data[at:at + 1], targets[at:at + 1]))
            elif action == 2 and kept:
                kept.pop(chance.randrange(len(kept)))
            elif action == 3:
                assert are_right(pickle.loads(pickle.dumps((data, targets))))
            elif action == 4 and kept:
                threads.append(threading.Thread(target=are_right, args=(kept.pop(),)))
                threads[-1].start()
        if chance.randrange(30) == 0:
            break
    assert all(map(are_right, kept))
    for thread in threads:
        thread.join()


@pytest.mark.parametrize("library", ["numpy", "torch", "jax"])
def test_random_programs_leave_nothing_and_change_no_byte(make_loader, library):
    pytest.importorskip(library)
    chance = random.Random(5)
    loaders = [make_loader(num_workers=workers, prefetch_depth=depth, shuffle=True, as_=library)
               for workers in (0, 1, 2) for depth in (1, 2, 5)]
    gc.freeze()   # what is there already need not be looked at each time
    for _ in range(PROGRAMS):
        loader = chance.choice(loaders)
        run_program(chance, loader)
        gc.collect()
        assert alive(loader) == 0
    gc.unfreeze()
    # jax's slices are copies, which keep no batch.
    assert sum(loader._core.replaced for loader in loaders) > (PROGRAMS / 2 if library == "jax" else PROGRAMS)
