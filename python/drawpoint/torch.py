"""profile(): a plain PyTorch loop, its steps divided into forward, loss, backward, opt_step and zero_grad."""

import torch

from .recording import is_file, recording_of
from .watching import watch


def _nothing(*_):
    pass


def _hook_of_a_copy():
    """What a hook becomes in a copy of its model, which is in no profile."""
    return _nothing


class _Marks:
    """A hook that marks the end of an action."""

    def __init__(self, recording, action):
        self._recording, self._action = recording, action

    def __call__(self, *_):
        self._recording.mark(self._action)

    def __reduce__(self):
        return _hook_of_a_copy, ()


class profile:
    """Records a loop with what each step does.

        with drawpoint.torch.profile(model, optimizer, record="run.pftrace") as p:
            for x, y in p.watch(loader):
                ...

    forward: up to the end of the model's call. loss: up to `backward()`. backward: up to the optimizer's step. opt_step,
    zero_grad: those of the optimizer. What follows is `other`. By hooks of the model and the optimizer and, until the
    end of `with`, around `torch.Tensor.backward`; of a device they time what the loop's thread does. Without model or
    optimizer these parts are in what follows them. A third of a microsecond for each
    part. One loop at a time.
    """

    def __init__(self, model=None, optimizer=None, *, record):
        self._model, self._optimizer, self._undo = model, optimizer, []
        self.recording, self._owns = recording_of(record), is_file(record)
        if self.recording is None:
            raise ValueError("profile: record= must say where to: a file or a Recording")

    def watch(self, loader, *, name="train", phase="train"):
        """`drawpoint.watch` into this recording."""
        return watch(loader, self.recording, name=name, phase=phase)

    def report(self):
        """The report on what is recorded so far, as text."""
        return self.recording.report()

    def __enter__(self):
        try:
            self.recording.divide_steps()
            if self._model is not None:
                self._undo.append(self._model.register_forward_hook(_Marks(self.recording, "forward")).remove)
            if self._optimizer is not None:
                self._hang_into_optimizer()
            self._undo.append(_wrap_backward(self.recording))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        while self._undo:
            self._undo.pop()()
        if self._owns:
            self.recording.close()

    def _hang_into_optimizer(self):
        optimizer, recording = self._optimizer, self.recording
        if not hasattr(optimizer, "register_step_pre_hook"):
            raise TypeError(f"profile: optimizer must be PyTorch's, got {type(optimizer).__name__}")
        own, zero_grad = vars(optimizer), optimizer.zero_grad
        was = own.get("zero_grad")
        self._undo.append(optimizer.register_step_pre_hook(_Marks(recording, "other")).remove)
        self._undo.append(optimizer.register_step_post_hook(_Marks(recording, "opt_step")).remove)

        def marked_zero_grad(*arguments, **named):
            recording.mark("other")
            zero_grad(*arguments, **named)
            recording.mark("zero_grad")

        def undo():
            if own.get("zero_grad") is marked_zero_grad:
                own.pop("zero_grad")
                if was is not None:
                    own["zero_grad"] = was

        own["zero_grad"] = marked_zero_grad
        self._undo.append(undo)


def _wrap_backward(recording):
    def backward(self, *arguments, **named):
        if backward.ended:
            return backward.inner(self, *arguments, **named)
        recording.mark("loss")
        result = backward.inner(self, *arguments, **named)
        recording.mark("backward")
        return result

    def undo():
        backward.ended = True
        while getattr(torch.Tensor.backward, "ended", False):   # also of a profile that ended in between
            torch.Tensor.backward = torch.Tensor.backward.inner

    backward.inner, backward.ended = torch.Tensor.backward, False
    torch.Tensor.backward = backward
    return undo
