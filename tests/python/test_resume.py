"""Going on from a state: the same batches, in a loader of other workers and depth."""

import pytest


def drawn(loader, epochs):
    return [targets.tolist() for _ in range(epochs) for _, targets in loader]


@pytest.mark.parametrize("stop", range(0, 39, 3))
def test_a_state_of_any_batch_goes_on_with_the_next(make_loader, stop):
    whole = drawn(make_loader(shuffle=True, seed=4), 3)
    first = make_loader(shuffle=True, seed=4, num_workers=2, prefetch_depth=4)
    left, state = stop, first.state_dict()
    while left > 0:
        for _ in first:
            left -= 1
            state = first.state_dict()
            if left == 0:
                break
    assert (state["epoch"], state["batch"]) == divmod(stop, 13)
    second = make_loader(shuffle=True, seed=4, num_workers=1, prefetch_depth=1)
    second.load_state_dict(state)
    assert second.state_dict() == state
    assert drawn(second, 3 - state["epoch"]) == whole[stop:]


def test_states_of_other_loaders_are_refused(make_loader):
    loader = make_loader()
    state = loader.state_dict()
    for key, value in {"batch_size": 4, "samples": 7, "version": 2, "seed": 9, "batch": 14, "epoch": -1}.items():
        with pytest.raises(ValueError, match=key):
            loader.load_state_dict({**state, key: value})
    assert loader.state_dict() == state
