"""The text printed at the beginning and the end of a run: settings, tables and verdicts."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any, NamedTuple

from app.data import Dataset
from app.data.dataset import CLASSES
from app.printing import table
from app.run.callbacks import Contestant
from app.run.comparison import Claim, Comparison, Difference, time_ratio
from app.run.config import Config
from app.run.events import Cost
from app.run.layers import layer_names
from app.run.statistics import Estimate
from app.run.wording import (
    NOT_COMPARED,
    NOTHING_FINISHED,
    ONE_SEED,
    SAMPLE,
    count,
    diverged,
    estimated,
    how_tested,
    listed,
    tested,
    unfinished,
    unfinished_seeds,
)


def introduction(
    config: Config,
    dataset: Dataset,
    entered: Sequence[Contestant],
    ranks: str = "",
    seeds: Sequence[int] = (),
    gradients: Sequence[str] = (),
) -> str:
    """Return the lines that describe the run: network, data and seeds.

    `ranks` is a line about the ranks that share the work, if there are many; `gradients` are lines about the operators'
    gradients.
    """
    train, test = len(dataset.train_images), len(dataset.test_images)
    held = ""
    if dataset.final_images is not None:
        held, test = f", {test:,} validation", len(dataset.final_images)
    checked = "verified" if dataset.verified else "not verified"
    widths = "-".join(map(str, [dataset.train_images.shape[1], *layer_names(config.model.all_layers), CLASSES]))
    first, *others = (contestant.operator for contestant in entered)
    operators = first + (f" against {listed(others)}" if others else "")
    lines = [
        f"Data: {train:,} training{held} and {test:,} test images, {dataset.origin} ({checked})",
        *_sample_note(dataset),
        f"Network {widths} with {operators}; engine {config.engine}, seed {config.seed}",
        *([ranks] if ranks else []),
        *gradients,
    ]
    width = max(len(contestant.operator) for contestant in entered)
    lines += [f"{c.operator:{width}}  {how}" for c in entered if (how := c.learner.how())]
    lines += [f"Note: {note}" for note in _changed_shapes(entered)]
    lines += [f"Note: {note}" for note in without_effect(config)]
    if seeds:
        epochs = config.train.epochs
        lines.append(
            f"{len(entered)} operators, each trained for {count(epochs, 'epoch')} with {count(len(seeds), 'seed')}: "
            f"{count(len(entered) * len(seeds) * epochs, 'epoch')} in total"
        )
    return "\n".join([*lines, ""])


def _changed_shapes(entered: Sequence[Contestant]) -> list[str]:
    """Return a line for each network in which operators change the shape, such as the width."""
    notes = []
    for contestant in entered:
        pairs = dict.fromkeys(pair for pair in contestant.learner.shapes if pair[0] != pair[1])
        if pairs:
            changes = listed([f"{_shape_text(after)} of {_shape_text(before)}" for before, after in pairs])
            notes.append(f"operators in the network of {contestant.operator} make {changes} values.")
    return notes


def _shape_text(shape: Sequence[int]) -> str:
    return " x ".join(map(str, shape))


def without_effect(config: Config) -> list[str]:
    """Return a line for each changed setting that has no effect on this run."""
    train, default = config.train, Config()
    notes = []
    if train.momentum != default.train.momentum and train.optimizer != "momentum":
        notes.append(f"train.momentum has no effect with train.optimizer={train.optimizer}.")
    if config.data.folder is not None and config.data.source != "auto":
        notes.append(f"data.folder has no effect with data.source={config.data.source}.")
    if config.dist.shape == "none" and config.dist != default.dist:
        notes.append("the settings in dist have no effect with dist.shape=none.")
    return notes


# One seed


def summary(config: Config, dataset: Dataset, entered: Sequence[Contestant], columns: int | None = None) -> str:
    """Return the final table of a run with one seed: the accuracy and the time of each operator."""
    notes = _sample_note(dataset)
    if any(len(contestant.epochs) < config.train.epochs for contestant in entered):
        notes.append(unfinished({c.operator: len(c.epochs) for c in entered}, config.train.epochs))
    notes += diverged({c.operator: [c.epochs[-1].test_loss] for c in entered if c.epochs})
    return "\n".join([*_of_one_seed(entered, dataset.tested_on, columns), *notes])


def _of_one_seed(entered: Sequence[Contestant], tested_on: str, columns: int | None) -> list[str]:
    finished = [contestant for contestant in entered if contestant.epochs]
    if not finished:
        return [NOTHING_FINISHED]
    rows = [["operator", f"{tested_on} accuracy", "seconds per epoch (median)"]]
    rows += [[c.operator, f"{c.epochs[-1].test_accuracy:.4f}", f"{_median_seconds(c):.3f}"] for c in finished]
    if any(c.tested for c in finished):
        rows[0] = ["operator", "validation acc.", "test accuracy", "s per epoch (median)"]
        for row, c in zip(rows[1:], finished, strict=True):
            row.insert(2, f"{c.tested.accuracy:.4f}" if c.tested else "-")
    if len(finished) > 1:
        *others, baseline = finished
        ratios = ["ratio", *(_ratio_text(contestant, baseline) for contestant in others), "1.00"]
        rows = [[*row, cell] for row, cell in zip(rows, ratios, strict=True)]
    return table(rows, columns)


def _ratio_text(contestant: Contestant, baseline: Contestant) -> str:
    """Format the ratio of the times and its interval; one epoch or two have none."""
    return estimated(_ratio(contestant, baseline), ".2f")


def _ratio(one: Contestant, other: Contestant) -> Estimate:
    return time_ratio([(one.epochs, other.epochs)])


def outcome(config: Config, entered: Sequence[Contestant]) -> dict[str, Any]:
    """Return the summary of one seed as data."""
    finished = all(len(contestant.epochs) == config.train.epochs for contestant in entered)
    validated = bool(config.data.validation)
    operators = [_figures(c, entered[-1], validated) for c in entered]
    return {"event": "summary", "finished": finished, "operators": operators}


def _figures(contestant: Contestant, baseline: Contestant, validated: bool) -> dict[str, Any]:
    figures: dict[str, Any] = {"operator": contestant.operator, "epochs": len(contestant.epochs)}
    if contestant.epochs:
        last = contestant.epochs[-1]
        accuracy: float | None = last.test_accuracy
        loss = last.test_loss
        if validated:
            figures |= {"validation_accuracy": accuracy, "validation_loss": loss}
            tested = contestant.tested  # at the end of the run
            accuracy, loss = (None, None) if tested is None else (tested.accuracy, tested.loss)
        figures |= {"test_accuracy": accuracy, "test_loss": loss}
        figures["seconds"] = _median_seconds(contestant)
    if contestant.epochs and baseline.epochs and baseline is not contestant:
        figures["ratio"] = _ratio(contestant, baseline).mean
    return figures


def _median_seconds(contestant: Contestant) -> float:
    return statistics.median(epoch.seconds for epoch in contestant.epochs)


def _sample_note(dataset: Dataset) -> list[str]:
    if not dataset.is_sample:
        return []
    return [SAMPLE]


# Several seeds


class Verdict(NamedTuple):
    """A sentence about two operators and its gist: same, differs or cannot tell; '' for a sentence about the method."""

    gist: str
    sentence: str


def comparison(
    found: Comparison, sentences: Sequence[Verdict], costs: Sequence[Cost], seeds: int, columns: int | None = None
) -> str:
    """Return the tables and verdicts of a comparison, some of whose seeds may be unfinished."""
    finished = len(found.seeds)
    if not finished:
        return "No seed finished, so there is nothing to compare."
    lines = results_table(found, columns)
    for part in (costs_table(costs, columns), printed(sentences)):
        lines += ["", *part] if part else []
    if finished < seeds:
        lines.append(unfinished_seeds(finished, seeds))
    return "\n".join(lines)


def results_table(found: Comparison, columns: int | None = None) -> list[str]:
    """Return a table with the accuracy and the epoch time of each operator."""
    ratios = {d.operator: estimated(d.speed, ".2f") for d in found.differences if d.speed is not None}
    rows = [["operator", "test accuracy", "seconds per epoch", f"ratio to {found.first}"]]
    if found.results[found.first].validation_accuracies:
        rows = [["operator", "validation acc.", "test accuracy", "s per epoch", f"ratio to {found.first}"]]
    for name in found.operators:
        result = found.results[name]
        each = [of_it for of_it in (result.validation_accuracies, result.test_accuracies) if of_it]
        speed = ["not compared", "not compared"]
        if result.seconds_per_epoch is not None:
            speed = [f"{result.seconds_per_epoch:.3f}", ratios.get(name, "1.00")]
        rows.append([name, *map(_accuracy, each), *speed])
    return table(rows, columns)


def costs_table(costs: Sequence[Cost], columns: int | None = None) -> list[str]:
    """Return a table with the time of one call of each operator."""
    if not costs:
        return []
    rows = [["operator", "forward", "backward"]]
    rows += [[cost.operator, _micro(cost.forward), _micro(cost.backward)] for cost in costs]
    return ["Time of one call alone, as large as in the network, on one thread, in µs", *table(rows, columns)]


def verdicts(found: Comparison) -> list[Verdict]:
    """Return sentences on how each operator differs from the first, and how this was tested."""
    seeds = len(found.seeds)
    if not seeds:
        return []
    sentences = []
    for d in found.differences:
        sentences.append(_of_accuracy(d, found.first, seeds))
        if d.speed is not None:
            sentences.append(_of_speed(d, d.speed, found.first, seeds))
    if any(d.speed is None for d in found.differences):
        sentences.append(Verdict("", NOT_COMPARED))
    sentences.append(Verdict("", how_tested(seeds)))
    return [*sentences, *([Verdict("", ONE_SEED)] if seeds == 1 else [])]


def _of_accuracy(d: Difference, first: str, seeds: int) -> Verdict:
    claim, gist = d.accuracy, d.of_accuracy
    if gist == "same":
        return Verdict(gist, f"{d.operator} has the same weights as {first}, bit for bit")
    figures = tested(claim, "+.4f")
    if gist == "differs":
        return Verdict(gist, f"{d.operator} is {'more' if claim.mean > 0 else 'less'} accurate than {first}: {figures}")
    return Verdict(gist, f"whether {d.operator} and {first} differ in accuracy ({count(seeds, 'seed')}): {figures}")


def _of_speed(d: Difference, claim: Claim, first: str, seeds: int) -> Verdict:
    gist = claim.gist
    figures = f"time ratio {tested(claim, '.2f')}"
    if gist == "differs":
        return Verdict(gist, f"{d.operator} is {'slower' if claim.mean > 1 else 'faster'} than {first}: {figures}")
    return Verdict(gist, f"whether {d.operator} and {first} differ in speed ({count(seeds, 'seed')}): {figures}")


def printed(sentences: Sequence[Verdict]) -> list[str]:
    """Format verdicts as lines with their gists in a column."""
    return [f"{gist:11}  {sentence}" if gist else sentence for gist, sentence in sentences]


def plain(sentences: Sequence[Verdict]) -> list[str]:
    """Format verdicts as self-contained sentences."""
    starts = {"same": "Same: ", "differs": "Differs: ", "cannot tell": "Cannot tell "}
    return [f"{starts[gist]}{sentence}." if gist else sentence for gist, sentence in sentences]


def _accuracy(values: Sequence[float]) -> str:
    mean = f"{statistics.fmean(values):.4f}"
    return mean if len(values) < 2 else f"{mean} ± {statistics.stdev(values):.4f}"


def _micro(seconds: float) -> str:
    micro = seconds * 1e6
    return f"{micro:.1f}" if micro < 100 else f"{micro:,.0f}"
