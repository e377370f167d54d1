"""drawpoint.torch.profile: the parts of a plain loop's steps."""

import copy
import pickle
import time

import pytest

torch = pytest.importorskip("torch")

import drawpoint   # noqa: E402
from watched import ledger_of   # noqa: E402


class Slow(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def forward(self, x):
        time.sleep(0.004)
        return self.layer(x)


def spans(step):
    sums = {}
    for piece in step["spans"]:
        sums[piece["span"]] = sums.get(piece["span"], 0) + piece["ns"]
    return sums


def test_the_parts_of_a_step_are_told_apart_and_tile_it(tmp_path):
    model = Slow()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    before = torch.Tensor.backward, dict(vars(optimizer))
    file = tmp_path / "run.pftrace"
    with drawpoint.torch.profile(model, optimizer, record=file) as p:
        for x in p.watch([torch.ones(8, 4)] * 5):
            loss = model(x).sum()
            time.sleep(0.002)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            time.sleep(0.003)
        assert "backward" in p.report()
    assert torch.Tensor.backward is before[0] and vars(optimizer).keys() == before[1].keys()
    steps = ledger_of(file, tmp_path)["steps"]
    assert len(steps) == 5
    for step in steps:
        sums = spans(step)
        assert sums["forward"] > 3.5e6 and sums["loss"] > 1.5e6 and sums["other"] > 2.5e6
        assert sums["backward"] > 0 and sums["opt_step"] > 0 and sums["zero_grad"] > 0
        in_draw = ("starved", "handoff", "transfer", "between")
        assert sum(ns for span, ns in sums.items() if span not in in_draw) == step["batch_ns"]


def test_gradients_and_results_are_those_without(tmp_path):
    def trained(loop):
        torch.manual_seed(1)
        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        loop(model, optimizer)
        return [value.clone() for value in model.state_dict().values()]

    def train(model, optimizer, batches):
        for x in batches:
            optimizer.zero_grad()
            model(x).sum().backward()
            optimizer.step()

    def watched(model, optimizer):
        with drawpoint.torch.profile(model, optimizer, record=tmp_path / "run.pftrace") as p:
            train(model, optimizer, p.watch(batches))

    batches = [torch.rand(3, 4) for _ in range(4)]
    plain = trained(lambda model, optimizer: train(model, optimizer, batches))
    assert all(torch.equal(a, b) for a, b in zip(plain, trained(watched)))


def test_what_is_no_action_is_refused(tmp_path):
    with drawpoint.Recording(str(tmp_path / "run.pftrace")) as recording:
        recording.mark("forward")   # outside every step: nothing
        with pytest.raises(ValueError, match="opt_step"):
            recording.mark("draw")
    with pytest.raises(ValueError, match="record"):
        drawpoint.torch.profile(record=None)


def test_nothing_is_left_of_a_profile(tmp_path):
    model, optimizer = torch.nn.Linear(2, 1), None
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    mine, backward = optimizer.zero_grad, torch.Tensor.backward
    optimizer.zero_grad = mine
    with pytest.raises(TypeError, match="optimizer"):
        drawpoint.torch.profile(model, object(), record=tmp_path / "one.pftrace").__enter__()
    drawpoint.Recording(str(tmp_path / "one.pftrace")).close()   # is free again
    first = drawpoint.torch.profile(model, optimizer, record=tmp_path / "one.pftrace").__enter__()
    second = drawpoint.torch.profile(model, optimizer, record=tmp_path / "two.pftrace").__enter__()
    copied = copy.deepcopy(model)
    assert pickle.loads(pickle.dumps(model))(torch.ones(1, 2)).shape == (1, 1)
    first.__exit__()
    model(torch.ones(1, 2)).sum().backward()
    second.__exit__()
    copied(torch.ones(1, 2)).sum().backward()
    assert torch.Tensor.backward is backward and not model._forward_hooks
