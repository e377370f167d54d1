"""profile(): a plain PyTorch loop, its steps divided into forward, loss, backward, opt_step and zero_grad."""

import torch

from .recording import is_file, recording_of
from .watching import watch


class profile:
    """Records a loop with what each step does.

        with drawpoint.torch.profile(model, optimizer, record="run.pftrace") as p:
            for x, y in p.watch(loader):
                ...

    forward: up to the end of the model's call. loss: up to `backward()`. backward: up to the optimizer's step. opt_step,
    zero_grad: those of the optimizer. What follows is `other`. By hooks of the model and the optimizer and, until the
    end of `with`, around `torch.Tensor.backward`; of a device they time what the loop's thread does. Without model or
    optimizer these parts are in what follows them. About three microseconds a step. One loop at a time.
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
        mark = self.recording.mark
        self.recording.divide_steps()
        if self._model is not None:
            self._undo.append(self._model.register_forward_hook(lambda *_: mark("forward")).remove)
        if self._optimizer is not None:
            optimizer, zero_grad = self._optimizer, self._optimizer.zero_grad
            self._undo.append(optimizer.register_step_pre_hook(lambda *_: mark("other")).remove)
            self._undo.append(optimizer.register_step_post_hook(lambda *_: mark("opt_step")).remove)

            def marked_zero_grad(*arguments, **named):
                mark("other")
                zero_grad(*arguments, **named)
                mark("zero_grad")

            optimizer.zero_grad = marked_zero_grad
            self._undo.append(lambda: vars(optimizer).pop("zero_grad", None))
        backward = torch.Tensor.backward

        def marked_backward(self, *arguments, **named):
            mark("loss")
            backward(self, *arguments, **named)
            mark("backward")

        torch.Tensor.backward = marked_backward
        self._undo.append(lambda: setattr(torch.Tensor, "backward", backward))
        return self

    def __exit__(self, *_):
        while self._undo:
            self._undo.pop()()
        if self._owns:
            self.recording.close()
