"""fastxtend's profilers for fastai's Learner: the same names, arguments and reports, and a recording.

    import drawpoint.fastai                       # Learner fires before_draw from now on
    learn.profile("simple", record="run.pftrace").fit_one_cycle(5)

Importing this changes fastai: before each batch is drawn, `Learner` fires the event `before_draw`. Where fastxtend's
profilers are imported already, theirs is used.
"""

import sys
from enum import Enum

from fastai.callback import core as _callbacks
from fastai.callback.core import Callback, TrainEvalCallback
from fastai import learner as _learner
from fastai.learner import Learner
from fastai.learner import Recorder as _Recorder
from fastai.torch_core import find_bs, rank_distrib
from fastcore.basics import in_notebook

from . import _core
from .recording import of_this_rank, recording_of


def _all_batches(self):
    self.n_iter = len(self.dl)
    batches = iter(self.dl)
    for number in range(self.n_iter):
        self("before_draw")
        try:
            batch = next(batches)
        except StopIteration:   # fewer than the loader said
            return
        self.one_batch(number, batch)
    for number, batch in enumerate(batches, self.n_iter):   # more, or the loader's own end
        self.one_batch(number, batch)


def _fire_before_draw():
    if hasattr(_callbacks.event, "before_draw") or Learner.all_batches.__module__.startswith("fastxtend"):
        return
    _callbacks.event.before_draw = "before_draw"
    _callbacks._inner_loop.insert(0, "before_draw")   # run_train and run_valid of a callback go for it, too
    _learner._loop.insert(_learner._loop.index("before_batch"), "before_draw")
    Learner.all_batches = _all_batches


class ProfileMode(str, Enum):
    "What `Learner.profile` measures."
    Throughput = "throughput"
    Simple = "simple"


class ThroughputCallback(Callback):
    """Profiles step, draw and batch of a fit, and prints fastxtend's report. Add `ThroughputPostCallback` beside it, or
    call `Learner.profile`; both take themselves away after the fit. `learn.profile_report` and `learn.profile_results`
    are the report as tables.

    show_report, plain, markdown: what is printed. save_csv: the unrounded results go to `learn.path / csv_name`.
    rolling_average: batches per live value, and between two of them. drop_first_batch: leave out the first batch of
    each phase. logger_callback: the name of the callback whose logger gets live values and the report: "wandb".
    record: a file, `run.pftrace`, which `drawpoint diagnose` reads, or a `drawpoint.Recording` that a watched loader
    shares. Further ranks of a distributed run record `run.rank1.pftrace` and so on, and print nothing.
    """
    order, remove_on_fetch = TrainEvalCallback.order + 1, True
    _mode = "throughput"

    def __init__(self, show_report=True, plain=False, markdown=False, save_csv=False, csv_name="throughput.csv",
                 rolling_average=10, drop_first_batch=True, logger_callback="wandb", record=None):
        self.show_report, self.plain, self.markdown = show_report, plain, markdown
        self.save_csv, self.csv_name, self.logger_callback = save_csv, csv_name, logger_callback
        self.recording = _core.Recording() if record is None else recording_of(of_this_rank(record))
        self._owns = self.recording is not record
        self.steps = _core.FitSteps(self.recording, self._mode, rolling_average, drop_first_batch)

    def before_fit(self):
        self.steps.before_fit()

    def before_epoch(self):
        self.steps.before_pass("epoch", self.epoch)

    def before_train(self):
        self.steps.before_pass("train", self.epoch)

    def before_validate(self):
        self.steps.before_pass("valid", self.epoch)

    def before_draw(self):
        self.steps.before_draw(self.training)

    def before_batch(self):
        self.steps.before_batch(self.training, find_bs(self.xb))

    @property
    def _is_trial(self):   # a search for a learning rate, a validation or predictions: the next fit is the one
        return hasattr(self.learn, "lr_finder") or not self.steps.trained

    def _logger(self):
        if self._is_trial or hasattr(self.learn, "gather_preds") or rank_distrib():
            return None
        return _LOGGERS.get(self.logger_callback) if hasattr(self.learn, self.logger_callback) else None

    def _log_batch(self, values):
        logger = self._logger() if values else None
        if logger is not None:
            logger.batch(self.learn, values)

    def _end(self):
        """Whether the profile is over."""
        self.steps.after_fit()
        report, learn = self.steps.report(), self.learn
        if report is None:   # its recording was closed, or is another fit's
            return True
        learn.profile_results = _frame(report["columns"], report["results"])
        learn.profile_report = _frame(report["columns"], report["cells"])
        if self._is_trial:
            return False
        try:
            logger = self._logger()
            if logger is not None:
                logger.fit(learn, report["log"])
            if rank_distrib() == 0:
                self._show(report)
        finally:
            self.close()
        return True

    def _show(self, report):
        if self.show_report:
            if in_notebook() and not self.plain and not self.markdown:
                from IPython.display import display
                display(self.learn.profile_report.style.set_caption("Profiling Results").hide(axis="index"))
            else:
                sys.stdout.write(report["markdown"] if self.markdown else report["plain"])
        if self.save_csv:
            self.learn.path.mkdir(parents=True, exist_ok=True)
            (self.learn.path / self.csv_name).write_text(report["csv"], encoding="utf-8")

    def close(self):
        "Ends the fit, if it was interrupted, and the recording's file."
        self.steps.leave()
        if self._owns:
            self.recording.close()


class ThroughputPostCallback(Callback):
    "The pair of `ThroughputCallback`: it is called after other callbacks."
    order, remove_on_fetch = _Recorder.order - 1, True
    _pair = ThroughputCallback

    def before_fit(self):
        pair = [one for one in self.learn.cbs if type(one) is self._pair]
        if not pair:
            raise RuntimeError(f"drawpoint: {type(self).__name__} needs a {self._pair.__name__} beside it")
        self._profiler = pair[-1]
        self._steps = self._profiler.steps

    def after_batch(self):
        self._profiler._log_batch(self._steps.after_batch())

    def after_train(self):
        self._steps.after_pass("train")

    def after_validate(self):
        self._steps.after_pass("valid")

    def after_epoch(self):
        self._steps.after_pass("epoch")

    def after_fit(self):
        if self._profiler._end():
            self.learn.remove_cbs([self._pair, type(self)])


class SimpleProfilerCallback(ThroughputCallback):
    """Profiles every action of a step: also forward, loss, backward, opt_step, zero_grad, and predict of a validation.
    Add `SimpleProfilerPostCallback` beside it, or call `Learner.profile`. Else it is as `ThroughputCallback`."""
    order, remove_on_fetch = TrainEvalCallback.order + 1, True
    _mode = "simple"

    def __init__(self, show_report=True, plain=False, markdown=False, save_csv=False, csv_name="simpleprofiler.csv",
                 rolling_average=10, drop_first_batch=True, logger_callback="wandb", record=None):
        super().__init__(show_report, plain, markdown, save_csv, csv_name, rolling_average, drop_first_batch,
                         logger_callback, record)

    def before_backward(self):
        self.steps.mark("before_backward")

    def before_step(self):
        self.steps.mark("before_step")

    def after_batch(self):
        self.steps.mark("after_batch")


class SimpleProfilerPostCallback(ThroughputPostCallback):
    "The pair of `SimpleProfilerCallback`: it is called after other callbacks."
    order, remove_on_fetch = _Recorder.order - 1, True
    _pair = SimpleProfilerCallback

    def after_pred(self):
        self._steps.mark("after_pred")

    def after_loss(self):
        self._steps.mark("after_loss")

    def after_step(self):
        self._steps.mark("after_step")


def _frame(columns, rows):
    import pandas
    return pandas.DataFrame(rows, columns=columns)


class _Wandb:
    @staticmethod
    def batch(learn, values):
        import wandb
        wandb.log(values, step=learn.wandb._wandb_step + 1)

    @staticmethod
    def fit(learn, log):
        import wandb
        for name, values in log.items():
            wandb.summary[name] = values
        wandb.log({name: wandb.Table(dataframe=getattr(learn, name)) for name in ("profile_report", "profile_results")})


_LOGGERS = {"wandb": _Wandb}


def _profile(self, mode=ProfileMode.Throughput, show_report=True, plain=False, markdown=False, save_csv=False,
             csv_name="simpleprofiler.csv", rolling_average=10, drop_first_batch=True, logger_callback="wandb",
             record=None):
    """Profiles the next fit: mode "throughput" or "simple". Returns the learner. Arguments: `ThroughputCallback`."""
    mode = ProfileMode(mode)
    pre, post = ((ThroughputCallback, ThroughputPostCallback) if mode is ProfileMode.Throughput else
                 (SimpleProfilerCallback, SimpleProfilerPostCallback))
    for old in [one for one in self.cbs if isinstance(one, ThroughputCallback)]:   # of a fit that was interrupted
        old.close()
    self.remove_cbs([ThroughputCallback, ThroughputPostCallback])
    self.add_cbs([pre(show_report, plain, markdown, save_csv, csv_name, rolling_average, drop_first_batch,
                      logger_callback, record), post()])
    return self


_fire_before_draw()
if not hasattr(Learner, "profile"):
    Learner.profile = _profile
