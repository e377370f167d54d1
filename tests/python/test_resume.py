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
    others = {"batch_size": 4, "samples": 7, "version": 2, "seed": 9, "batch": 14, "epoch": -1, "shuffle": True,
              "drop_last": True, "world_size": 2}
    for key, value in others.items():
        with pytest.raises(ValueError, match=key):
            loader.load_state_dict({**state, key: value})
    assert loader.state_dict() == state


def test_only_batches_in_order_have_one_position(make_loader):
    with pytest.raises(ValueError, match='order="in"'):
        make_loader(order="out").state_dict()


def test_what_the_user_says_is_of_the_next_pass(make_loader):
    loader = make_loader(num_workers=1)
    running = iter(loader)
    next(running)
    loader.set_epoch(5)
    assert loader.state_dict()["epoch"] == 5
    assert len(list(running)) == 12   # it goes on
    loader.set_epoch(0)
    again = iter(loader)
    assert list(running) == [] and len(list(again)) == 13
    state = {**loader.state_dict(), "epoch": 2, "batch": 3}
    loader.load_state_dict(state)
    loader.close()
    assert loader.state_dict() == state
