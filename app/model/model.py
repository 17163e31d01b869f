"""`Model`: a network with an optimiser, a loss and metrics, and the loops for training, evaluation and prediction."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from app import jit
from app.errors import AppError
from app.io import DataLoader, Dataset, IterableDataset
from app.listed import as_list
from app.metric import Metric
from app.model.callbacks import Callback, Callbacks, LRScheduler, ModelCheckpoint, ProgBarLogger
from app.model.summary import summary
from app.nn.layer import Layer
from app.reading import parameters_of
from app.saving import load, save
from app.tensor import Tensor, no_grad, to_tensor


class Model:
    """A network with its training loop: call `prepare`, then `fit`, `evaluate` and `predict`."""

    def __init__(self, network: Layer, inputs: Any = None, labels: Any = None):
        if not isinstance(network, Layer):
            raise AppError(f"Model takes a Layer, not {type(network).__name__}")
        self.network, self.stop_training = network, False
        self._inputs = inputs
        self._input_count = _count_of(network.forward) if inputs is None else len(_listed(inputs))
        self._optimizer: Any = None
        self._loss: Any = None
        self._metrics: list[Metric] = []

    def prepare(self, optimizer: Any = None, loss: Any = None, metrics: Any = None, amp_configs: Any = None) -> None:
        """Set the optimiser, the loss and the metrics."""
        self._metrics = _listed(metrics)
        wrong = [metric for metric in self._metrics if not isinstance(metric, Metric)]
        if wrong:
            raise AppError(f"Model.prepare: metrics are app.metric.Metric objects, not {wrong[0]!r}")
        if loss is not None and not callable(loss):
            raise AppError(f"Model.prepare: the loss is a Layer or a function, not {loss!r}")
        self._optimizer, self._loss = optimizer, loss

    # One batch

    def train_batch(self, inputs: Any, labels: Any = None, update: bool = True) -> Any:
        """Train on a batch. Returns the losses, and the metrics if there are any."""
        if self._optimizer is None or self._loss is None:
            raise AppError("Model: call prepare(optimizer, loss) before training")
        self.network.train()
        outputs, labels = self._outputs(inputs), _tensors(labels)
        losses = _listed(self._loss(*outputs, *labels))
        total = losses[0]
        for loss in losses[1:]:
            total = total + loss
        total.backward()
        if update:
            self._optimizer.step()
            self._optimizer.clear_grad(set_to_zero=False)
        return self._figures(losses, outputs, labels)

    @no_grad()
    def eval_batch(self, inputs: Any, labels: Any = None) -> Any:
        """Evaluate a batch. Returns the losses, and the metrics if there are any."""
        self.network.eval()
        outputs, labels = self._outputs(inputs), _tensors(labels)
        losses = [] if self._loss is None else _listed(self._loss(*outputs, *labels))
        return self._figures(losses, outputs, labels)

    @no_grad()
    def predict_batch(self, inputs: Any) -> list[np.ndarray]:
        """The outputs of the network for a batch."""
        self.network.eval()
        return [output.numpy() for output in self._outputs(inputs)]

    def _outputs(self, inputs: Any) -> list[Any]:
        return _listed(self.network(*_tensors(inputs)))

    def _figures(self, losses: Sequence[Any], outputs: Sequence[Any], labels: Sequence[Any]) -> Any:
        figures = [np.asarray(loss) for loss in losses]
        found = [metric.update(*_listed(metric.compute(*outputs, *labels))) for metric in self._metrics]
        return (figures, found) if found and figures else found or figures

    # Many batches

    def fit(
        self,
        train_data: Any = None,
        eval_data: Any = None,
        batch_size: Any = 1,
        epochs: int = 1,
        eval_freq: int = 1,
        log_freq: int = 10,
        save_dir: str | None = None,
        save_freq: int = 1,
        verbose: int = 2,
        drop_last: bool = False,
        shuffle: bool = True,
        num_workers: int = 0,
        callbacks: Any = None,
        accumulate_grad_batches: int = 1,
        num_iters: int | None = None,
    ) -> None:
        """Train for `epochs` epochs or, if it is given, for `num_iters` batches; evaluate every `eval_freq` epochs."""
        sizes = list(batch_size) if isinstance(batch_size, (list, tuple)) else [batch_size, batch_size]
        loader = _loader(train_data, sizes[0], shuffle, drop_last, num_workers)
        if num_iters is not None:
            if eval_data is not None:
                raise AppError("Model.fit: num_iters does not go with eval_data; call evaluate() after fit()")
            count = _steps(loader, None)
            epochs = num_iters // count + 1 if count else epochs
        params = {"epochs": epochs, "steps": _steps(loader, num_iters), "save_dir": save_dir, "batch_size": sizes[0]}
        called = self._callbacks(callbacks, params, log_freq, verbose, save_freq, save_dir)
        logs: dict[str, Any] = {}
        self.stop_training = False
        self._accumulate = accumulate_grad_batches
        called.call("on_train_begin", logs)
        for epoch in range(epochs):
            called.call("on_epoch_begin", epoch, logs)
            logs = self._pass(loader, called, "train", num_iters)
            called.call("on_epoch_end", epoch, logs)
            if num_iters is not None and (num_iters := num_iters - logs.get("step", 0) - 1) <= 0:
                break
            if eval_data is not None and epoch % eval_freq == 0:
                logs = self._evaluate(_loader(eval_data, sizes[1], False, False, num_workers), called, None)
            if self.stop_training:
                break
        called.call("on_train_end", logs)

    def evaluate(
        self,
        eval_data: Any,
        batch_size: int = 1,
        log_freq: int = 10,
        verbose: int = 2,
        num_workers: int = 0,
        callbacks: Any = None,
        num_iters: int | None = None,
    ) -> dict[str, Any]:
        """Evaluate a data set. Returns the loss of the last batch, and the metrics over all batches."""
        loader = _loader(eval_data, batch_size, False, False, num_workers)
        params = {"steps": _steps(loader, num_iters), "batch_size": batch_size}
        logs = self._evaluate(loader, self._callbacks(callbacks, params, log_freq, verbose), num_iters)
        return {name: logs[name] for name in self._names() if name in logs}

    def predict(
        self,
        test_data: Any,
        batch_size: int = 1,
        num_workers: int = 0,
        stack_outputs: bool = False,
        verbose: int = 1,
        callbacks: Any = None,
    ) -> list[Any]:
        """The outputs for a data set: for each output a list of batches or, with `stack_outputs`, one array."""
        loader = _loader(test_data, batch_size, False, False, num_workers)
        params = {"steps": _steps(loader, None), "batch_size": batch_size}
        called = self._callbacks(callbacks, params, 1, verbose)
        called.call("on_predict_begin", {"steps": _steps(loader, None)})
        batches: list[list[np.ndarray]] = []
        logs: dict[str, Any] = {}
        for step, (inputs, _) in enumerate(self._split(loader)):
            called.call("on_predict_batch_begin", step, logs)
            batches.append(self.predict_batch(inputs))
            logs = {"step": step, "batch_size": len(batches[-1][0])}
            called.call("on_predict_batch_end", step, logs)
        called.call("on_predict_end", logs)
        outputs = [list(output) for output in zip(*batches, strict=True)]
        return [np.concatenate(output) for output in outputs] if stack_outputs else outputs

    def _evaluate(self, loader: Any, called: Callbacks, limit: int | None) -> dict[str, Any]:
        called.call("on_eval_begin", {"steps": _steps(loader, limit), "metrics": self._names()})
        logs = self._pass(loader, called, "eval", limit)
        called.call("on_eval_end", logs)
        return logs

    def _pass(self, loader: Any, called: Callbacks, mode: str, limit: int | None) -> dict[str, Any]:
        """Train on, or evaluate, every batch. Returns the metrics of the last one."""
        for metric in self._metrics:
            metric.reset()
        logs: dict[str, Any] = {}
        last = _steps(loader, limit)
        for step, (inputs, labels) in enumerate(self._split(loader)):
            if limit is not None and step >= limit:
                break
            called.call(f"on_{mode}_batch_begin", step, logs)
            if mode == "train":
                update = (step + 1) % self._accumulate == 0 or step + 1 == last
                found = self.train_batch(inputs, labels, update)
            else:
                found = self.eval_batch(inputs, labels)
            logs = {**self._named(found), "step": step, "batch_size": len(inputs[0])}
            called.call(f"on_{mode}_batch_end", step, logs)
        return logs

    def _named(self, found: Any) -> dict[str, Any]:
        """Losses and metrics by name; metrics are over all batches so far."""
        losses = found[0] if isinstance(found, tuple) else found if self._loss is not None else []
        logs: dict[str, Any] = {"loss": [float(loss) for loss in losses]} if len(losses) else {}
        for metric in self._metrics:
            logs.update(zip(_listed(metric.name()), _listed(metric.accumulate()), strict=True))
        return logs

    def _names(self) -> list[str]:
        loss = [] if self._loss is None else ["loss"]
        return [*loss, *(name for metric in self._metrics for name in _listed(metric.name()))]

    def _split(self, loader: Iterable[Any]) -> Iterator[tuple[list[Any], list[Any]]]:
        """Split each batch into the inputs of the network and the labels."""
        for batch in loader:
            fields = _listed(batch)
            yield fields[: self._input_count], fields[self._input_count :]

    def _callbacks(
        self,
        given: Any,
        params: dict[str, Any],
        log_freq: int,
        verbose: int,
        save_freq: int = 1,
        save_dir: str | None = None,
    ) -> Callbacks:
        """The given callbacks and the default ones."""
        listed: list[Callback] = _listed(given)
        if verbose and not any(isinstance(c, ProgBarLogger) for c in listed):
            listed = [ProgBarLogger(log_freq, verbose), *listed]
        if not any(isinstance(c, LRScheduler) for c in listed):
            listed = [LRScheduler(), *listed]
        if save_dir and not any(isinstance(c, ModelCheckpoint) for c in listed):
            listed.append(ModelCheckpoint(save_freq, save_dir))
        return Callbacks(listed, self, {**params, "verbose": verbose, "metrics": self._names()})

    # State

    def parameters(self, include_sublayers: bool = True) -> list[Any]:
        """The parameters of the network."""
        return self.network.parameters(include_sublayers)

    def save(self, path: str, training: bool = True) -> None:
        """Save the weights in `path.pdparams` and the optimiser state in `path.pdopt`.

        With `training=False`, save the network itself instead, for `app.jit.load`, which needs none of its code.
        """
        if not training:
            if self._inputs is None:
                raise AppError(
                    "Model.save, not for training, needs to know the inputs: Model(network, inputs=[InputSpec(…)])"
                )
            jit.save(self.network, path, _listed(self._inputs))
            return
        save(self.network.state_dict(), f"{path}.pdparams")
        if self._optimizer is not None and (state := self._optimizer.state_dict()):
            save(state, f"{path}.pdopt")

    def load(self, path: str, skip_mismatch: bool = False, reset_optimizer: bool = False) -> None:
        """Load what `save` wrote. With `skip_mismatch`, weights whose shapes do not match are skipped."""
        state = load(f"{path}.pdparams")
        if skip_mismatch:
            own = self.network.state_dict()
            wrong = [name for name in state if name in own and list(state[name].shape) != list(own[name].shape)]
            if wrong:
                warnings.warn(f"Model.load: skipped, because shapes differ: {', '.join(wrong)}", stacklevel=2)
            state = {name: value for name, value in state.items() if name not in wrong}
        self.network.set_state_dict(state)
        if self._optimizer is not None and not reset_optimizer and Path(f"{path}.pdopt").is_file():
            self._optimizer.set_state_dict(load(f"{path}.pdopt"))

    def summary(self, input_size: Any = None, dtype: Any = None) -> dict[str, int]:
        """Print a table of the layers. The input size is by default that of the Model's `inputs`."""
        size = self._inputs if input_size is None else input_size
        if size is None:
            raise AppError("Model.summary takes input_size=, as the Model was made without inputs=")
        return summary(self.network, size, dtype)


def _count_of(forward: Any) -> int:
    """The number of inputs of a network: the parameters of `forward` without a default."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    taken = [p for p in parameters_of(forward).values() if p.kind in kinds and p.default is p.empty]
    return max(len(taken), 1)


def _listed(value: Any) -> list[Any]:
    return [] if value is None else as_list(value)


def _tensors(values: Any) -> list[Any]:
    return [value if isinstance(value, Tensor) else to_tensor(value) for value in _listed(values)]


def _loader(data: Any, batch_size: int, shuffle: bool, drop_last: bool, num_workers: int) -> Any:
    if data is None:
        raise AppError("Model: a data set, or a DataLoader, is needed")
    if isinstance(data, Dataset):
        mixed = shuffle and not isinstance(data, IterableDataset)
        return DataLoader(data, batch_size=batch_size, shuffle=mixed, drop_last=drop_last, num_workers=num_workers)
    return data


def _steps(loader: Any, limit: int | None) -> int | None:
    try:
        count = len(loader)
    except TypeError:
        return limit
    return count if limit is None else min(count, limit)
