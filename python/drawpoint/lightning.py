"""DrawpointProfiler: a profiler of Lightning's Trainer that records what `drawpoint diagnose` reads.

    profiler = drawpoint.lightning.DrawpointProfiler("run.pftrace")
    trainer = lightning.Trainer(profiler=profiler)
    trainer.fit(model, profiler.watch(train_loader), profiler.watch(valid_loader, phase="valid"))
"""

import sys

# Trainer asks for a base class of its own.
if "pytorch_lightning" in sys.modules and "lightning.pytorch" not in sys.modules:
    from pytorch_lightning.profilers import SimpleProfiler
else:
    from lightning.pytorch.profilers import SimpleProfiler

from . import _core
from .recording import is_file, of_this_rank, recording_of
from .watching import watch

# What the end of one of Lightning's actions is for a step: training_step computes the loss, too.
_ENDS = {"training_step": ("after_pred", "after_loss"), "validation_step": ("after_pred", "after_loss", "after_batch"),
         "backward": ("before_step",), "optimizer_step": ("after_step",), "run_training_batch": ("after_batch",)}


class DrawpointProfiler(SimpleProfiler):
    """Lightning's SimpleProfiler, which also records each step: its draw, transfer, forward (`training_step`, with the
    loss), backward, opt_step, and callbacks: what follows, up to the next draw. Pass the loaders through `watch`, so that
    the recording has what their workers do and how large batches are.

    record: a file (of further ranks `run.rank1.pftrace` and so on), or a `drawpoint.Recording`. It ends with `close()`,
    or as the program does. Steps of a sanity check are not recorded. With manual optimization, what comes before the
    optimizer's step is forward. Not for strategies that fork or spawn their ranks. Costs two microseconds for each
    action that Lightning profiles, of which Lightning's own profiler takes half of one.
    """

    _steps = None   # Lightning ends a profiler that could not be made, too

    def __init__(self, record, dirpath=None, filename=None, extended=True):
        super().__init__(dirpath, filename, extended)
        self.recording, self._owns = recording_of(of_this_rank(record)), is_file(record)
        if self.recording is None:
            raise ValueError("DrawpointProfiler: record= must say where to: a file or a Recording")
        self._steps = _core.FitSteps(self.recording)
        self._epoch, self._in_epoch, self._trains, self._steps_by_hand = 0, False, None, False

    def watch(self, loader, *, name="train", phase="train"):
        """`drawpoint.watch` into this profiler's recording."""
        return watch(loader, self.recording, name=name, phase=phase)

    def report(self):
        """The report on what is recorded so far, as text."""
        return self.recording.report()

    def close(self):
        """Ends the file."""
        if self._owns:
            self.recording.close()

    def setup(self, stage, local_rank=None, log_dir=None):
        super().setup(stage, local_rank, log_dir)
        if stage in ("fit", "validate"):
            self._epoch, self._trains = 0, None
            self._steps.before_fit()
            self._in_epoch = stage == "validate"

    def teardown(self, stage):
        super().teardown(stage)
        if self._steps is not None:
            self._steps.after_batch()
            self._steps.after_fit()

    def start(self, action_name):
        super().start(action_name)
        if action_name == "run_training_epoch":
            self._steps.before_pass("epoch", self._epoch)
            self._in_epoch = True
        elif action_name.endswith("].train_dataloader_next"):
            self._draw(True)
        elif action_name.endswith("].val_next") and self._in_epoch:   # else it is the sanity check
            self._draw(False)
        elif action_name.endswith(".backward"):
            self._steps.mark("before_backward")
        elif action_name == "optimizer_step":   # of a module that optimizes by itself, within its training_step
            self._steps_by_hand = True
            for event in ("after_pred", "after_loss", "before_backward", "before_step"):
                self._steps.mark(event)

    def stop(self, action_name):
        super().stop(action_name)
        what = action_name.rpartition(".")[2]
        if what == "batch_to_device":
            if self._trains is not None:
                self._steps.before_batch(self._trains, 0)
        elif what in _ENDS and not (what == "training_step" and self._steps_by_hand):
            for event in _ENDS[what]:
                self._steps.mark(event, cancels=False)   # accumulated gradients are no cancel
        elif action_name == "run_training_epoch":
            self._steps.after_batch()
            self._steps.after_pass("epoch")
            self._epoch += 1
            self._trains, self._in_epoch = None, False

    def _draw(self, trains):
        self._steps.after_batch()
        self._steps_by_hand = False
        if trains is not self._trains:   # validation runs within an epoch, once or more
            self._steps.before_pass("train" if trains else "valid", self._epoch)
            self._trains = trains
        self._steps.before_draw(trains)
