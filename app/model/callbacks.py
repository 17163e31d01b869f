"""Callbacks of Model: they report progress, save weights, stop training, or change the learning rate."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from app.errors import AppError
from app.model.progress import Progress
from app.optimizer.lr import LRScheduler as Schedule

__all__ = ["Callback", "LRScheduler", "ModelCheckpoint", "ProgBarLogger"]


def __dir__() -> list[str]:
    return __all__


class Callback:
    """The base class: override the methods you need. `model` is the Model, `params` the settings of the run."""

    def __init__(self) -> None:
        self.model: Any = None
        self.params: dict[str, Any] = {}

    def set_model(self, model: Any) -> None:
        """Set `model`, before anything else is called."""
        self.model = model

    def set_params(self, params: dict[str, Any]) -> None:
        """Set `params`, the settings of this run."""
        self.params = params

    def on_train_begin(self, logs: Any = None) -> None:
        """Before the first epoch."""

    def on_train_end(self, logs: Any = None) -> None:
        """After the last epoch."""

    def on_eval_begin(self, logs: Any = None) -> None:
        """Before an evaluation."""

    def on_eval_end(self, logs: Any = None) -> None:
        """After an evaluation, with its metrics."""

    def on_predict_begin(self, logs: Any = None) -> None:
        """Before predictions are made."""

    def on_predict_end(self, logs: Any = None) -> None:
        """After predictions were made."""

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Before an epoch."""

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """After an epoch, with its metrics."""

    def on_train_batch_begin(self, step: int, logs: Any = None) -> None:
        """Before a batch is trained on."""

    def on_train_batch_end(self, step: int, logs: Any = None) -> None:
        """After a batch was trained on."""

    def on_eval_batch_begin(self, step: int, logs: Any = None) -> None:
        """Before a batch is evaluated."""

    def on_eval_batch_end(self, step: int, logs: Any = None) -> None:
        """After a batch was evaluated."""

    def on_predict_batch_begin(self, step: int, logs: Any = None) -> None:
        """Before predictions of a batch."""

    def on_predict_batch_end(self, step: int, logs: Any = None) -> None:
        """After predictions of a batch."""


class Callbacks:
    """Several callbacks, called in order: `call("on_epoch_begin", epoch)`."""

    def __init__(self, callbacks: Iterable[Callback], model: Any, params: dict[str, Any]):
        self._callbacks = list(callbacks)
        for callback in self._callbacks:
            callback.set_model(model)
            callback.set_params(params)

    def call(self, moment: str, *args: Any) -> None:
        """Call a method of every callback."""
        for callback in self._callbacks:
            getattr(callback, moment)(*args)


class ProgBarLogger(Callback):
    """Prints progress: with verbose 1 a bar, with 2 a line every `log_freq` batches."""

    def __init__(self, log_freq: int = 1, verbose: int = 2):
        super().__init__()
        self.log_freq, self.verbose = log_freq, verbose
        self._progress: Progress | None = None

    def _say(self, text: str) -> None:
        if self.verbose:
            print(text, flush=True)

    def _begin(self, steps: int | None) -> None:
        self._steps, self._progress = steps, Progress(steps, self.verbose)

    def _report(self, step: int, logs: dict[str, Any], names: Iterable[str]) -> None:
        last = self._steps is not None and step + 1 == self._steps
        if self._progress is not None and ((step + 1) % self.log_freq == 0 or last):
            self._progress.report(step + 1, [(name, logs[name]) for name in names if name in logs])
            self._printed = step

    def _finish(self, logs: Any, names: Iterable[str]) -> None:
        """Print the last report of a pass of unknown length."""
        if self._steps is None and self._progress is not None and logs and logs.get("step") != self._printed:
            self._progress.report(logs["step"] + 1, [(name, logs[name]) for name in names if name in logs])

    def on_train_begin(self, logs: Any = None) -> None:
        self._say("The loss is that of the last batch; the metrics are over all batches of the epoch so far.")

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._say(f"Epoch {epoch + 1}/{self.params['epochs']}")
        self._begin(self.params["steps"])
        self._printed = -1

    def on_train_batch_end(self, step: int, logs: Any = None) -> None:
        self._report(step, logs, self.params["metrics"])

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self._finish(logs, self.params["metrics"])

    def on_eval_begin(self, logs: Any = None) -> None:
        self._say("Eval begin...")
        self._begin((logs or {}).get("steps"))
        self._printed, self._samples = -1, 0

    def on_eval_batch_end(self, step: int, logs: Any = None) -> None:
        self._samples += logs["batch_size"]
        self._report(step, logs, self.params["metrics"])

    def on_eval_end(self, logs: Any = None) -> None:
        self._finish(logs, self.params["metrics"])
        self._say(f"Eval samples: {self._samples}")

    def on_predict_begin(self, logs: Any = None) -> None:
        self._say("Predict begin...")
        self._begin((logs or {}).get("steps"))
        self._printed, self._samples = -1, 0

    def on_predict_batch_end(self, step: int, logs: Any = None) -> None:
        self._samples += logs["batch_size"]
        self._report(step, logs, ())

    def on_predict_end(self, logs: Any = None) -> None:
        self._say(f"Predict samples: {self._samples}")


class ModelCheckpoint(Callback):
    """Saves weights and optimiser state in a folder, every `save_freq` epochs and at the end."""

    def __init__(self, save_freq: int = 1, save_dir: str | None = None):
        super().__init__()
        self.save_freq, self.save_dir = save_freq, save_dir

    def _save(self, name: str) -> None:
        path = Path(str(self.save_dir)) / name
        print(f"save checkpoint at {path.absolute()}")
        self.model.save(str(path))

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        if self.save_dir and epoch % self.save_freq == 0:
            self._save(str(epoch))

    def on_train_end(self, logs: Any = None) -> None:
        if self.save_dir:
            self._save("final")


class LRScheduler(Callback):
    """Advances the learning-rate schedule after every batch, or after every epoch."""

    def __init__(self, by_step: bool = True, by_epoch: bool = False):
        super().__init__()
        if by_step and by_epoch:
            raise AppError("LRScheduler: choose by_step or by_epoch, not both")
        self.by_step, self.by_epoch = by_step, by_epoch

    def _step(self, wanted: bool) -> None:
        schedule = getattr(self.model._optimizer, "_learning_rate", None)
        if wanted and isinstance(schedule, Schedule):
            schedule.step()

    def on_train_batch_end(self, step: int, logs: Any = None) -> None:
        self._step(self.by_step)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self._step(self.by_epoch)
