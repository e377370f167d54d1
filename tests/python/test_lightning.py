"""Lightning's Trainer with drawpoint.lightning's profiler."""

import json
import os
import subprocess

import pytest

pytest.importorskip("lightning")
import lightning.pytorch as lightning   # noqa: E402
import torch   # noqa: E402

from drawpoint.lightning import DrawpointProfiler   # noqa: E402
from training import BATCH, SAMPLES, Points, digest, loss_of, new_model, torch_loader, train_plainly   # noqa: E402


class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.model = new_model()

    def training_step(self, batch, number):
        return loss_of(self.model, batch)

    def validation_step(self, batch, number):
        loss_of(self.model, batch)

    def configure_optimizers(self):
        return torch.optim.SGD(self.model.parameters(), lr=1e-3)


def train(loader, valid=None, epochs=2, profiler=None, folder=None, **options):
    module = Module()
    trainer = lightning.Trainer(max_epochs=epochs, accelerator="cpu", logger=False, enable_checkpointing=False,
                                enable_progress_bar=False, enable_model_summary=False, profiler=profiler,
                                default_root_dir=folder, **options)
    trainer.fit(module, loader, valid)
    return digest(module.model)


@pytest.fixture(scope="module")
def expected():
    return train_plainly(torch_loader())


def reported(file, *what):
    said = subprocess.run([os.environ["DRAWPOINT_PROGRAM"], *what, str(file), "--json"], capture_output=True, text=True,
                          check=True)
    return json.loads(said.stdout)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_profiled_run_trains_as_one_that_is_not_and_is_recorded(workers, tmp_path, expected):
    file = tmp_path / "run.pftrace"
    profiler = DrawpointProfiler(file)
    valid = profiler.watch(torch_loader(), name="valid", phase="valid")
    assert train(profiler.watch(torch_loader(workers)), valid, profiler=profiler, folder=tmp_path) == expected
    assert "run_training_epoch" in profiler.summary()   # Lightning's own table
    profiler.close()
    report = reported(file, "report")
    assert report["conservation"]["steps"] == 32   # not those of the sanity check
    assert report["conservation"]["max_residual_ns"] == report["conservation"]["untiled_ns"] == 0
    calls = {(row["phase"], row["action"]): row["calls"] for row in report["rows"]}
    for action in ("draw", "forward", "backward", "opt_step", "callbacks"):
        assert calls["train", action] == 15, action   # without the first
    assert calls["valid", "predict"] == 15
    samples = {stage["stage"]: stage["calls"] for stage in report["stages"]}
    # of the sanity check, too: two batches, or with workers those that were made ahead, less what came too late
    assert 2 * 2 * SAMPLES <= samples["getitem"] <= 2 * 2 * SAMPLES + 8 * BATCH


def test_without_watch_the_loop_is_recorded(tmp_path, expected):
    file = tmp_path / "run.pftrace"
    profiler = DrawpointProfiler(file)
    assert train(torch_loader(2), profiler=profiler, folder=tmp_path) == expected
    profiler.close()
    assert reported(file, "report")["conservation"]["steps"] == 16


def test_validation_within_an_epoch_is_a_pass_of_its_own(tmp_path, expected):
    file = tmp_path / "run.pftrace"
    profiler = DrawpointProfiler(file)
    train(profiler.watch(torch_loader()), profiler.watch(torch_loader(), name="valid", phase="valid"), profiler=profiler,
          folder=tmp_path, val_check_interval=0.5)
    profiler.close()
    report = reported(file, "report")
    assert report["conservation"]["steps"] == 16 + 2 * 2 * 8
    assert report["conservation"]["max_residual_ns"] == 0


def test_a_step_that_raises_leaves_a_whole_recording(tmp_path):
    class Failing(Module):
        def training_step(self, batch, number):
            if number == 5:
                raise ValueError("of the user's")
            return super().training_step(batch, number)

    file = tmp_path / "run.pftrace"
    profiler = DrawpointProfiler(file)
    trainer = lightning.Trainer(max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False,
                                enable_progress_bar=False, enable_model_summary=False, profiler=profiler)
    with pytest.raises(ValueError, match="of the user's"):
        trainer.fit(Failing(), profiler.watch(torch_loader(2)))
    profiler.close()
    report = reported(file, "report")
    assert report["conservation"]["max_residual_ns"] == 0
    assert report["conservation"]["steps"] == 6


def test_a_draw_that_raises_is_a_failed_step(tmp_path):
    class Missing(Points):
        def __getitem__(self, index):
            if index == 20:
                raise OSError("no such photograph")
            return super().__getitem__(index)

    file = tmp_path / "run.pftrace"
    profiler = DrawpointProfiler(file)
    with pytest.raises(OSError, match="no such photograph"):
        train(profiler.watch(torch.utils.data.DataLoader(Missing(), BATCH)), profiler=profiler, folder=tmp_path)
    profiler.close()
    assert reported(file, "report")["conservation"]["max_residual_ns"] == 0
    out = tmp_path / "run.json"
    subprocess.run([os.environ["DRAWPOINT_PROGRAM"], "export", str(file), "--to", "json", "-o", str(out)], check=True,
                   capture_output=True)
    assert [step["status"] for step in json.loads(out.read_text())["steps"]] == ["complete", "complete", "failed"]


def test_a_module_that_optimizes_by_itself(tmp_path, expected):
    class ByHand(Module):
        def __init__(self):
            super().__init__()
            self.automatic_optimization = False

        def training_step(self, batch, number):
            optimizer = self.optimizers()
            optimizer.zero_grad()
            self.manual_backward(loss_of(self.model, batch))
            optimizer.step()

    file = tmp_path / "run.pftrace"
    profiler, module = DrawpointProfiler(file), ByHand()
    trainer = lightning.Trainer(max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=False,
                                enable_progress_bar=False, enable_model_summary=False, profiler=profiler)
    trainer.fit(module, profiler.watch(torch_loader()))
    profiler.close()
    assert digest(module.model) == expected
    report = reported(file, "report")
    assert report["conservation"]["max_residual_ns"] == 0
    seconds = {row["action"]: row["total_s"] for row in report["rows"] if row["phase"] == "train"}
    assert seconds["forward"] > 0 and seconds["opt_step"] > 0 and seconds.get("backward", 0) < seconds["forward"]


def epochs_of(file):
    """(epoch, batch) of each training step, and of each batch of the loader."""
    out = file.with_suffix(".json")
    subprocess.run([os.environ["DRAWPOINT_PROGRAM"], "export", str(file), "--to", "json", "-o", str(out)], check=True,
                   capture_output=True)
    rows = json.loads(out.read_text())
    return [[(row["epoch"], row["batch"]) for row in rows[table]] for table in ("steps", "batches")]


def test_epochs_go_on_in_a_second_fit(tmp_path):
    file = tmp_path / "run.pftrace"
    profiler = DrawpointProfiler(file)
    loader = profiler.watch(torch_loader(2))
    for _ in range(2):
        train(loader, profiler=profiler, folder=tmp_path)
    profiler.close()
    steps, batches = epochs_of(file)
    assert steps == batches == [(epoch, batch) for epoch in range(4) for batch in range(8)]
