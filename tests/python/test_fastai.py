"""fastxtend's recorded fits, run again by fastai's Learner with drawpoint.fastai's callbacks, on a clock that their costs move."""

import json
import math
import os
import subprocess
import sys
import types
from pathlib import Path

import pytest

pytest.importorskip("fastai")
import torch
from fastai.callback.core import Callback, CancelBackwardException, CancelFitException, CancelStepException
from fastai.callback.core import CancelBatchException
from fastai.callback.training import GradientAccumulation
from fastai.callback.tracker import TerminateOnNaNCallback
from fastai.data.core import DataLoaders
from fastai.learner import Learner
from fastai.optimizer import Optimizer

import drawpoint
import drawpoint.fastai as dp_fastai
from drawpoint import _core

OWN = Path(__file__).parents[1] / "golden"
FOLDERS = [Path(folder) for folder in (os.environ.get("DRAWPOINT_GOLDEN_DIR"), OWN) if folder]
CANCELS = {one.__name__: one for one in (CancelBatchException, CancelBackwardException, CancelFitException,
                                         CancelStepException)}


def cases(group):
    found = {}
    for folder in FOLDERS:
        for file in sorted((folder / group).glob("*.json")):
            case = json.loads(file.read_text(encoding="utf-8"))
            found.setdefault(json.dumps(case["input"], sort_keys=True), (case, file))
    return [pytest.param(case, file, id=file.stem) for case, file in found.values()]


class Batches:
    """The recorded batches of one phase, an epoch after the other; a draw takes as long as it took."""

    def __init__(self, clock, epochs):
        self.clock, self.epochs, self.next, self.batch = clock, epochs, 0, None
        self.n = self.bs = 1

    def __len__(self):
        return len(self.epochs[min(self.next, len(self.epochs) - 1)])

    def __iter__(self):
        epoch = self.epochs[self.next]
        self.next += 1
        for batch in epoch:
            self.clock.advance(batch.get("draw", 0))
            self.batch = batch
            yield torch.zeros(batch.get("bs_x", batch["bs"])), torch.zeros(batch["bs"])

    def to(self, device):
        return self


class Replayed(Learner):
    """A Learner whose stages take what the case says."""

    def __init__(self, case, clock, path):
        self.case, self.clock = case, clock
        train, valid = (Batches(clock, case[phase]) for phase in ("train", "valid"))
        replayed = self

        class Costly(Optimizer):
            def step(self):
                replayed.cost("opt_step")

            def zero_grad(self):
                replayed.cost("zero_grad")

        class Model(torch.nn.Linear):
            def forward(self, x):
                replayed.cost("forward" if "forward" in replayed.dl.batch else "predict")
                return x

        super().__init__(DataLoaders(train, valid), Model(1, 1), loss_func=self.costly_loss, opt_func=lambda params, lr: Costly(params, [], lr=lr), path=path)

    def cost(self, stage):
        self.clock.advance(self.dl.batch.get(stage, 0))

    def costly_loss(self, *_):
        self.cost("loss")
        at = self.case.get("nan_loss_at")
        here = at is not None and self.training and [self.epoch, self.iter] == at
        return torch.tensor(math.nan if here else 0.0)

    def _backward(self):
        self.cost("backward")


def gap(clock, costs, order):
    def advance(ns):
        return lambda self: clock.advance(ns)

    return type("Gap", (Callback,), {"order": order, **{event: advance(ns) for event, ns in costs.items()}})()


def thrower(what):
    calls = []

    def throw(self):
        calls.append(None)
        if len(calls) in what["occurrences"]:
            raise CANCELS[what["exception"]]("thrown")

    return type("Thrower", (Callback,), {"order": what.get("order", 0), what["event"]: throw})()


class Wandb(Callback):
    """What drawpoint.fastai asks of fastai's WandbCallback."""
    order, _wandb_step = 70, -1

    def before_fit(self):
        self._wandb_step = -1

    def after_batch(self):
        if self.training:
            self._wandb_step += 1


def replay(case, folder, logs=False, **options):
    clock = _core.ManualClock(case.get("clock_start_ns", 0))
    learn = Replayed(case, clock, folder)
    for one in case.get("gaps", []):
        learn.add_cb(gap(clock, one["ns"], one["order"]))
    throws = case.get("throw", [])
    for one in throws if isinstance(throws, list) else [throws]:
        learn.add_cb(thrower(one))
    if "grad_accum" in case:
        learn.add_cb(GradientAccumulation(case["grad_accum"]))
    if "nan_loss_at" in case:
        learn.add_cb(TerminateOnNaNCallback())
    if logs:
        learn.add_cb(Wandb())
    if case.get("lr_finder"):
        learn.lr_finder = True
    recording = drawpoint.Recording(clock=clock)
    given = case.get("options", {})
    learn.profile(case["mode"], drop_first_batch=given.get("drop_first_batch", True),
                  rolling_average=given.get("rolling_average", 10), record=recording, **options)
    with learn.no_bar(), learn.no_logging():
        learn.fit(case["epochs"])
    return learn


def frame(table):
    return [list(row) for row in table.itertuples(index=False)]


@pytest.mark.parametrize("case, file", cases("g2_fastxtend"))
def test_reports_are_fastxtends(case, file, tmp_path, capsys):
    learn = replay(case["input"], tmp_path, save_csv=True)
    printed = capsys.readouterr().out
    trial = case["input"].get("lr_finder", False)
    names = [one.name for one in learn.cbs]
    assert any(name in ("throughput", "simple_profiler") for name in names) == trial
    assert (printed == "") == trial
    if case["output"].get("error"):   # there ours has a report
        assert printed.startswith("\nProfiling Results:\n")
        return
    if "profile_results" in case["output"]:   # else it is in the texts alone
        results, report = case["output"]["profile_results"], case["output"]["profile_report"]
        assert learn.profile_results.columns.tolist() == results["columns"]
        for ours, theirs in zip(frame(learn.profile_results), results["rows"], strict=True):
            assert [str(cell) if isinstance(cell, str) else pytest.approx(cell, rel=1e-9) for cell in theirs] == ours
        assert [[str(cell) for cell in row] for row in report["rows"]] == frame(learn.profile_report)
    if trial:
        return
    assert printed == file.with_suffix(".plain.txt").read_text(encoding="utf-8")
    assert (tmp_path / "simpleprofiler.csv").read_bytes() == file.with_suffix(".csv").read_bytes()
    replay(case["input"], tmp_path, markdown=True)
    assert capsys.readouterr().out == file.with_suffix(".markdown.md").read_text(encoding="utf-8")


def logged_cases():
    return [one for one in cases("g2_fastxtend") if one.values[0]["output"].get("log")]


@pytest.mark.parametrize("case, file", logged_cases())
def test_live_values_are_fastxtends(case, file, tmp_path, monkeypatch):
    points, tables = [], []
    stub = types.SimpleNamespace(
        log=lambda values, step=None: tables.append(values) if step is None else points.append((step, values)),
        summary={}, Table=lambda dataframe: dataframe)
    monkeypatch.setitem(sys.modules, "wandb", stub)
    replay(case["input"], tmp_path, logs=True, show_report=False)
    theirs, computed = [], False
    for entry in case["output"]["log"]:   # the original sends a log point again and again: its first time counts
        if entry[0] == "_log_dict":
            computed = True
        elif entry[0] == "logger" and computed:
            theirs.append((entry[1]["train_iter"], entry[2]))
            computed = False
    assert len(points) == len(theirs) > 0
    for (step, ours), (their_step, values) in zip(points, theirs):
        assert step + 1 == their_step   # of fastai's own values of this batch
        assert ours == {name: pytest.approx(value, rel=1e-9) for name, value in values.items()}
    assert [list(one) for one in tables] == [["profile_report", "profile_results"]]
    assert "train/forward_duration" in stub.summary or case["input"]["mode"] == "throughput"


@pytest.mark.parametrize("mode", ["simple", "throughput"])
def test_the_training_loop_shows_before_draw(mode, capsys):
    [case] = [one.values[0]["input"] for one in cases("g2_fastxtend") if one.id == "simple_3ep_ragged"][:1] or \
        [cases("g2_fastxtend")[0].values[0]["input"]]
    learn = Replayed(case, _core.ManualClock(), Path("."))
    learn.profile(mode)
    learn.show_training_loop()
    printed = capsys.readouterr().out
    name = "SimpleProfiler" if mode == "simple" else "Throughput"
    assert f"- before_draw    : [{name}Callback]\n" in printed
    golden = FOLDERS[0] / "g3_events" / f"show_training_loop_{mode}.txt"
    if golden.exists():   # of a learner with more callbacks
        others = ("LogDispatch", "ProgressCallback", "CastToTensor")
        lines = golden.read_text().splitlines()
        for other in others:
            lines = [line.replace(f", {other}", "").replace(f"{other}, ", "").replace(other, "") for line in lines]
        for other in others:
            printed = printed.replace(f", {other}", "").replace(f"{other}, ", "").replace(other, "")
        assert printed.splitlines() == lines


class Points(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        return torch.full((4,), float(index)), torch.tensor(float(index % 2))


def learner(loader, folder, **options):
    model = torch.nn.Sequential(torch.nn.Linear(4, 1), torch.nn.Flatten(0))
    torch.nn.init.zeros_(model[0].weight)
    torch.nn.init.zeros_(model[0].bias)
    return Learner(DataLoaders(loader, loader, device=torch.device("cpu")), model,
                   loss_func=torch.nn.functional.mse_loss, lr=1e-5, path=folder, **options)


def weights_after_fit(loader, folder, **options):
    learn = learner(loader, folder)
    if options:
        learn.profile("simple", show_report=False, **options)
    with learn.no_bar(), learn.no_logging():
        learn.fit(2)
    return torch.cat([one.detach().flatten() for one in learn.model.parameters()])


def test_a_profiled_fit_trains_as_one_that_is_not(tmp_path):
    loader = torch.utils.data.DataLoader(Points(), 8)
    assert torch.equal(weights_after_fit(loader, tmp_path), weights_after_fit(loader, tmp_path, record=tmp_path / "a.pftrace"))


def test_a_fit_that_is_interrupted_can_be_profiled_again(tmp_path, capsys):
    class Stop(Callback):
        def before_fit(self):
            self.left = 3

        def after_batch(self):
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt("by the user")

    file = tmp_path / "run.pftrace"
    learn = learner(torch.utils.data.DataLoader(Points(), 8), tmp_path)
    with learn.no_bar(), learn.no_logging():
        with pytest.raises(KeyboardInterrupt):
            learn.profile("simple", record=file).fit(1, cbs=Stop())
        learn.profile("throughput", record=file, plain=True).fit(1)
    assert capsys.readouterr().out.count("Profiling Results:") == 1
    assert not [one for one in learn.cbs if "rofile" in one.name or "throughput" in one.name]
    assert rows_of(file, "report")["conservation"]["steps"] == 16


def test_a_validation_or_predictions_do_not_use_the_profile_up(tmp_path, capsys):
    loader = torch.utils.data.DataLoader(Points(), 8)
    learn = learner(loader, tmp_path).profile("simple", record=tmp_path / "run.pftrace")
    with learn.no_bar(), learn.no_logging():
        learn.validate()
        learn.get_preds(dl=loader)
        assert capsys.readouterr().out == ""
        learn.fit(1)
    assert capsys.readouterr().out.startswith("\nProfiling Results:\n")


@pytest.mark.parametrize("said, drawn", [(6, 6), (9, 8)])
def test_a_loader_whose_length_is_wrong_ends_where_it_ends(said, drawn, tmp_path):
    class Loader:
        def __init__(self):
            self.inner, self.ends = torch.utils.data.DataLoader(Points(), 8), 0

        def __len__(self):
            return said

        def __iter__(self):
            yield from self.inner
            self.ends += 1

    loader, file = Loader(), tmp_path / "run.pftrace"
    learn = learner(loader, tmp_path).profile("simple", show_report=False, record=file)
    with learn.no_bar(), learn.no_logging():
        learn.fit(1)
    assert loader.ends == 2   # of training and of validation
    assert rows_of(file, "report")["conservation"]["steps"] == 16


def rows_of(file, *what):
    program = os.environ["DRAWPOINT_PROGRAM"]
    out = subprocess.run([program, *what, str(file), "--json"], capture_output=True, text=True, check=True)
    return json.loads(out.stdout)


def test_the_recording_has_steps_actions_and_what_the_workers_of_a_watched_loader_do(tmp_path):
    file = tmp_path / "run.pftrace"
    recording = drawpoint.Recording(str(file))
    loader = drawpoint.watch(torch.utils.data.DataLoader(Points(), 8, num_workers=2), recording)
    weights_after_fit(loader, tmp_path, record=recording)
    recording.close()
    report = rows_of(file, "report")
    assert report["conservation"]["max_residual_ns"] == report["conservation"]["untiled_ns"] == 0
    assert report["conservation"]["steps"] == 32   # 2 epochs of 8 batches, and of 8 of validation
    assert {stage["stage"]: stage["calls"] for stage in report["stages"]} == {"getitem": 256, "collate": 32}
    assert [worker["samples"] for worker in report["workers"]] == [128, 128]
    calls = {(row["phase"], row["action"]): row["calls"] for row in report["rows"]}
    for action in ("draw", "forward", "loss", "backward", "opt_step", "zero_grad"):
        assert calls["train", action] == 15   # without the first
    assert calls["valid", "predict"] == 15
    assert ("valid", "backward") not in calls
