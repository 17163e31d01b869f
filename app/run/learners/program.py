"""A learner whose network is Programs run by an engine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from app.data import Batches
from app.engine import Executor, Scope
from app.engine.watch import OperatorRun, watch_program
from app.graph import Program, names, program_guard, static_mode
from app.nn import functional
from app.ops.loss import accuracy
from app.ranks.data_parallel import data_parallel
from app.ranks.same import check_agreement
from app.ranks.shares import run_share
from app.ranks.world import World, current
from app.run.activation import Activation
from app.run.config import Config
from app.run.learners.learner import Learner, PerIteration, optimizer_of
from app.run.network import ImageShape, Network, pixels_of
from app.static import data


class ProgramLearner(Learner):
    """Runs the network as startup, training and test Programs, in the original form and in the form for this rank."""

    def __init__(self, config: Config, activation: Activation, image_shape: ImageShape, rank: int | None = None):
        """`rank` is that of a Program that is only inspected."""
        super().__init__(config, activation)
        self._world = World() if config.dist.shape == "none" else current()
        self.main, self.startup = Program(), Program()
        self.startup.random_seed = config.seed
        with names.guard(), program_guard(self.main, self.startup), static_mode():
            image = data("image", [None, pixels_of(image_shape)], "uint8")
            label = data("label", [None], "int64")
            network = Network(config.model, activation, image_shape, config.data.pixel_range)
            self.shapes = network.shapes
            scores = network(image)
            self.fetch = [functional.cross_entropy(scores, label, ignore_index=None).name, accuracy(scores, label).name]
            self.test = self.main.clone(for_test=True)
            parameters = dict(network.named_parameters())
            optimizer = optimizer_of(config.train, self.schedule, list(parameters.values()))
            _, trained = optimizer.minimize(self.main.global_block().var(self.fetch[0]))
        self.main_here, shape = self.main, config.dist.shape
        if shape != "none" and (rank is not None or self._world.size > 1):
            self.main_here = data_parallel(self.main, rank or self._world.rank, shape, loss=self.fetch[0])
        self._feed = [image.name, label.name]
        self._paths = {path: variable.name for path, variable in parameters.items()}
        changing = {variable.name for variable, _ in trained}
        activation.require_gradients(
            [path for path, p in parameters.items() if not p.stop_gradient and p.name not in changing]
        )
        self._scope = Scope()
        _, drawn = self.startup.next_seed() or (0, 1)
        self.streams.place = config.seed, drawn - 1  # after those of the initial weights
        self._native = config.engine == "compiled"
        self._executor = Executor(engine=config.engine, sparse=config.sparse == "auto")
        self._executor.run(self.startup, scope=self._scope)
        values = self._scope.values
        of_first = self._world.copies_of_rank_0([values[name] for name in self._paths.values()])
        values.update(zip(self._paths.values(), of_first, strict=True))

    def compile(self, batches: Batches) -> None:
        copies = Scope()
        copies.values = {name: value.copy() for name, value in self._scope.values.items()}
        with self.streams.drawing(advance=False):
            self._run(self.main_here, batches, copies)

    def train(self, batches: Batches) -> PerIteration:
        with self.streams.drawing():
            return self._run(self.main_here, batches, self._scope)

    def measure(self, batches: Batches) -> PerIteration:
        with self.streams.drawing(advance=False):
            return self._run(self.test, batches, self._scope)

    def _run(self, program: Program, batches: Batches, scope: Scope) -> PerIteration:
        arguments = (program, batches, self._feed, self.fetch, scope)
        if self._world.size == 1:
            loss, score = self._executor.train_from_dataset(*arguments)
        else:
            loss, score = run_share(self._world, self._executor, *arguments)
        return loss, score

    def replay(self, batches: Batches, training: bool) -> Iterator[OperatorRun]:
        program = self.main if training else self.test
        for batch in batches:
            feed: dict[str, Any] = dict(zip(self._feed, batch, strict=True))
            with self.streams.drawing():
                runs = list(watch_program(program, feed, self._scope))
            yield from runs

    def end_epoch(self) -> None:
        super().end_epoch()
        check_agreement(self._world, self.weights())

    def engine_text(self) -> str:
        if not self._native:
            return ""
        from app.engine.compiled.explain import in_short  # imported late, like Numba

        name = "" if self.activation.of_layers else self.activation.name.rpartition(":")[2]
        return in_short(self.main_here, self.fetch, name)

    def weights(self) -> dict[str, np.ndarray]:
        return {path: self._scope.value(name).copy() for path, name in self._paths.items()}

    def values(self) -> dict[str, np.ndarray]:
        """Return the arrays of a network that do not depend on the number of ranks."""
        lasting = {v.name for v in self.main.list_vars() if v.persistable}
        return {name: value for name, value in self._scope.values.items() if name in lasting}

    def assign(self, name: str, value: np.ndarray) -> None:
        self._scope.values[name][...] = value  # in place: the ranks may share this memory
