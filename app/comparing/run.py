"""The run of a comparison: every operator from the same weights, on the same batches, once with each seed."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from app.comparing.outcome import Difference, Outcome, as_data, differences
from app.comparing.seed_console import SeedConsole
from app.comparing.words import Verdict, alone, plain, printed, table, verdicts
from app.data import Batches, Dataset, load
from app.errors import AppError
from app.reporting.leaving import leave_report
from app.training.activation import Activation, find_activations
from app.training.comparison import Comparison
from app.training.config import Config
from app.training.costs import SIZES, Cost, measure_costs
from app.training.interruption import Interruption
from app.training.learners import make_learner
from app.training.metrics import Metrics, start_event
from app.training.run_folder import COMPARISON, RunFolder
from app.training.stepping.finite import steps_for
from app.training.stepping.steps import warm_up
from app.training.telling.summary import introduction
from app.training.trusted import NOBODY, Trust
from app.training.watcher import Contestant

COST_SIZES = (*SIZES, 1_000_000)
COST_SECONDS = 0.3


def compare(config: Config, operators: Sequence[str], seeds: int, name: str, trust: Trust = NOBODY) -> None:
    """Compare operators with the first of them. However it ends, it says and keeps what it had."""
    activations = find_activations(operators, trust)  # before any data is fetched in vain
    dataset = load(config.data.source, config.data.sources, config.data.folder)
    with Interruption() as interruption:
        _Run(config, activations, range(config.seed, config.seed + seeds), dataset, interruption).run(name)


class _Run:
    def __init__(
        self,
        config: Config,
        activations: Sequence[Activation],
        seeds: Sequence[int],
        dataset: Dataset,
        interruption: Interruption,
    ):
        self.config, self.activations, self.seeds = config, activations, seeds
        self.dataset, self.interruption = dataset, interruption
        self.console = SeedConsole()
        self.outcomes = [Outcome(activation.name) for activation in activations]
        self.costs: list[Cost] = []
        self.finished = 0

    def run(self, name: str) -> None:
        entered = self._enter(self.seeds[0])
        self.console.say(introduction(self.config, self.dataset, entered))
        self._warm_up(entered)
        with RunFolder.new(self.config, f"compare-{name}") as folder:
            try:
                self._compare(entered, folder)
            except BaseException:
                with contextlib.suppress(AppError, OSError):  # what ended the comparison is what is to be told
                    self._end(entered, folder)
                raise
            self._end(entered, folder)

    def _compare(self, entered: list[Contestant], folder: RunFolder) -> None:
        folder.record(start_event(self.dataset, entered))
        self._train(entered, self.seeds[0], folder)
        for contestant in entered:
            folder.save_weights(contestant.operator, contestant.learner.weights())
        for seed in self.seeds[1:]:
            again = self._enter(seed)
            self._warm_up(again)
            self._train(again, seed, folder)
        warn, check = self.console.warn, self.interruption.check
        self.costs = measure_costs(self.config, self.activations, folder.record, warn, check, COST_SIZES, COST_SECONDS)

    def _enter(self, seed: int) -> list[Contestant]:
        """The operators in their networks, with the first weights that a seed gives."""
        config = self._with(seed)
        pixels = self.dataset.train_images.shape[1]
        return [Contestant(a.name, make_learner(config, a, pixels), activation=a) for a in self.activations]

    def _with(self, seed: int) -> Config:
        return msgspec.structs.replace(self.config, seed=seed)

    def _warm_up(self, entered: Sequence[Contestant]) -> None:
        data = self.dataset
        batches = Batches(data.train_images, data.train_labels, None, self.config.train.batch_size)
        for contestant in entered:
            self.interruption.check()
            warm_up(contestant, batches[:1])
        self.interruption.check()

    def _train(self, entered: Sequence[Contestant], seed: int, folder: RunFolder) -> None:
        """Train every operator with one seed, each time another one first: what comes first may have it easier."""

        def record(event: dict[str, Any]) -> None:
            folder.record({**event, "seed": seed})

        first = self.finished % len(entered)
        turns = [*entered[first:], *entered[:first]]
        self.console.begin_seed(seed, self.finished, len(self.seeds), [c.operator for c in entered], self.config.train)
        steps = steps_for(self.config.train.on_nonfinite, record, self.console.warn)
        watchers = [Metrics(record), self.console, steps, self.interruption]
        Comparison(self._with(seed), self.dataset, turns, watchers, steps=steps).run()
        for outcome, contestant in zip(self.outcomes, entered, strict=True):
            self._note(outcome, contestant)
        self.finished += 1
        self.console.end_seed(entered)

    def _note(self, outcome: Outcome, contestant: Contestant) -> None:
        """Keep what a trained network is worth."""
        data, weights = self.dataset, contestant.learner.weights()
        tests = Batches(data.test_images, data.test_labels, None, self.config.train.eval_batch_size)
        outcome.how = contestant.learner.how()
        outcome.epochs.append(contestant.epochs)
        outcome.right.append(contestant.learner.scores(tests).argmax(axis=1) == data.test_labels)
        outcome.fingerprints.append(_fingerprint(weights))

    def _end(self, entered: Sequence[Contestant], folder: RunFolder) -> None:
        """Say and keep what there is; of the networks, those of the first seed."""
        for outcome in self.outcomes:  # a seed that was not finished with all operators counts for none
            outcome.shorten(self.finished)
        found = differences(self.outcomes) if self.finished else []
        told = verdicts(found, self.finished) if self.finished else []
        text = "\n".join(self._summary(found, told))
        data = as_data(self.outcomes, found, self.seeds[: self.finished], self.costs) | {"verdicts": plain(told)}
        folder.save_summary(text)
        folder.save_text(COMPARISON, json.dumps(data, indent=2, allow_nan=False) + "\n")
        self.console.conclude(text, {"event": "comparison", **data}, str(folder.path))
        leave_report(folder.path, self.dataset, entered, self.config, self.console)

    def _summary(self, found: Sequence[Difference], told: Sequence[Verdict]) -> list[str]:
        if not self.finished:
            return ["No seed was finished, so there is nothing to compare."]
        lines = table(self.outcomes, found)
        for part in (alone(self.costs), printed(told)):
            lines += ["", *part] if part else []
        if self.finished < len(self.seeds):
            lines.append(f"Stopped before its end, after {self.finished} of {len(self.seeds)} seeds.")
        return lines


def _fingerprint(weights: Mapping[str, np.ndarray]) -> str:
    digest = hashlib.sha256()
    for path, array in sorted(weights.items()):
        digest.update(f"{path} {array.dtype} {array.shape}\n".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()
