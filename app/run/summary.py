"""The text printed at the beginning and the end of a run: settings, tables and verdicts."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Any, NamedTuple

from msgspec import UNSET

from app.data import Dataset
from app.data.dataset import CLASSES
from app.printing import table
from app.run.callbacks import Contestant
from app.run.comparison import Claim, Comparison, Difference, time_ratio
from app.run.config import Config
from app.run.events import Cost
from app.run.layers import has_operator, told
from app.run.statistics import LEVEL, Estimate


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
    widths = "-".join(map(str, [dataset.train_images.shape[1], *told(config.model.all_layers), CLASSES]))
    first, *others = (contestant.operator for contestant in entered)
    operators = first + (f" against {' and '.join(others)}" if others else "")
    lines = [
        f"Data: {train:,} training{held} and {test:,} test images, {dataset.origin} ({checked})",
        *_sample_note(dataset),
        f"Network {widths} with {operators}; engine {config.engine}, seed {config.seed}",
        *([ranks] if ranks else []),
        *gradients,
    ]
    width = max(len(contestant.operator) for contestant in entered)
    lines += [f"{c.operator:{width}}  {how}" for c in entered if (how := c.learner.how())]
    if not has_operator(config.model.all_layers):
        lines.append("Note: without hidden layers there is nothing for an activation to work on.")
    lines += [f"Note: {note}" for note in without_effect(config, train)]
    if seeds:
        epochs = config.train.epochs
        lines.append(
            f"{len(entered)} operators, each trained for {_many(epochs, 'epoch')} with {_many(len(seeds), 'seed')}: "
            f"{_many(len(entered) * len(seeds) * epochs, 'epoch')} in all"
        )
    return "\n".join([*lines, ""])


def without_effect(config: Config, images: int) -> list[str]:
    """Return a line for each changed setting that has no effect on this run."""
    train, default = config.train, Config()
    notes = []
    if train.momentum != default.train.momentum and train.optimizer != "momentum":
        notes.append(f"train.momentum has no effect with train.optimizer={train.optimizer}.")
    if train.batch_size > images:
        notes.append(f"train.batch_size={train.batch_size} is more than there are images, so it is {images}.")
    if config.model.layers is not None:
        for name in ("hidden", "dropout"):
            if getattr(config.model, name) != getattr(default.model, name):
                notes.append(f"model.{name} has no effect with model.layers.")
    elif config.model.dropout and not config.model.hidden:
        notes.append("model.dropout has no effect without hidden layers.")
    if config.data.folder is not None and config.data.source != "auto":
        notes.append(f"data.folder has no effect with data.source={config.data.source}.")
    if config.dist.shape == "none" and config.dist != default.dist:
        notes.append("the settings in dist have no effect with dist.shape=none.")
    return notes


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


# One seed


def summary(config: Config, dataset: Dataset, entered: Sequence[Contestant], columns: int | None = None) -> str:
    """Return the final table of a run with one seed: the accuracy and the time of each operator."""
    notes = _sample_note(dataset)
    if any(len(contestant.epochs) < config.train.epochs for contestant in entered):
        finished = ", ".join(f"{contestant.operator} {len(contestant.epochs)}" for contestant in entered)
        notes.append(f"Stopped before its end. Epochs finished, of {config.train.epochs}: {finished}.")
    lost = [c.operator for c in entered if c.epochs and c.epochs[-1].diverged]
    if lost:
        notes.append(f"The loss of {' and '.join(lost)} became NaN or infinite: try a smaller train.learning_rate.")
    return "\n".join([*_of_one_seed(entered, dataset.tested_on, columns), *notes])


def _of_one_seed(entered: Sequence[Contestant], tested_on: str, columns: int | None) -> list[str]:
    finished = [contestant for contestant in entered if contestant.epochs]
    if not finished:
        return ["No epoch was finished, so there is nothing to show."]
    rows = [["operator", f"{tested_on} accuracy", "seconds per epoch (median)"]]
    rows += [[c.operator, f"{c.epochs[-1].test_accuracy:.4f}", f"{_median_seconds(c):.3f}"] for c in finished]
    if any(c.tested for c in finished):
        rows[0] = ["operator", "validation acc.", "test accuracy", "s per epoch (median)"]
        for row, c in zip(rows[1:], finished, strict=True):
            row.insert(2, f"{c.tested.accuracy:.4f}" if c.tested else "-")
    if len(finished) > 1:
        *others, baseline = finished
        ratios = ["ratio", *(_ratio_told(contestant, baseline) for contestant in others), "1.00"]
        rows = [[*row, cell] for row, cell in zip(rows, ratios, strict=True)]
    return table(rows, columns)


def _ratio_told(contestant: Contestant, baseline: Contestant) -> str:
    """Format the ratio of the times and its interval; a single epoch has no interval."""
    found = _time_ratio(contestant, baseline)
    return f"{ratio(contestant, baseline):.2f}{_between(found, '.2f') or ' (one epoch)'}"


def _time_ratio(one: Contestant, other: Contestant) -> Estimate:
    done = min(len(one.epochs), len(other.epochs))
    return time_ratio([(one.epochs[:done], other.epochs[:done])])


def ratio(one: Contestant, other: Contestant) -> float:
    """Return the median over epochs of the ratio of the two times in the same epoch."""
    pairs = zip(one.epochs, other.epochs, strict=False)
    return statistics.median(a.seconds / b.seconds for a, b in pairs)


def outcome(config: Config, entered: Sequence[Contestant]) -> dict[str, Any]:
    """Return the summary of one seed as data."""
    finished = all(len(contestant.epochs) == config.train.epochs for contestant in entered)
    return {"event": "summary", "finished": finished, "operators": [_figures(c, entered[-1]) for c in entered]}


def _figures(contestant: Contestant, baseline: Contestant) -> dict[str, Any]:
    figures: dict[str, Any] = {"operator": contestant.operator, "epochs": len(contestant.epochs)}
    if contestant.epochs:
        last = contestant.epochs[-1]
        accuracy, loss = last.test_accuracy, None if last.diverged else last.test_loss
        if (tested := contestant.tested) is not None:
            figures |= {"validation_accuracy": accuracy, "validation_loss": loss}
            accuracy, loss = tested.accuracy, tested.loss
        figures |= {"test_accuracy": accuracy, "test_loss": loss}
        figures["seconds"] = _median_seconds(contestant)
    if contestant.epochs and baseline.epochs and baseline is not contestant:
        figures["ratio"] = ratio(contestant, baseline)
    return figures


def _median_seconds(contestant: Contestant) -> float:
    return statistics.median(epoch.seconds for epoch in contestant.epochs)


def _sample_note(dataset: Dataset) -> list[str]:
    if not dataset.is_sample:
        return []
    return ["Note: this is the small sample, not the full MNIST; accuracies are lower than the full set gives."]


# Several seeds


class Verdict(NamedTuple):
    """A sentence about two operators and its gist: same, differs or cannot tell; '' for a sentence about the method."""

    gist: str
    sentence: str


def comparison(
    found: Comparison, told: Sequence[Verdict], costs: Sequence[Cost], seeds: int, columns: int | None = None
) -> str:
    """Return the tables and verdicts of a comparison, some of whose seeds may be unfinished."""
    finished = len(found.seeds)
    if not finished:
        return "No seed was finished, so there is nothing to compare."
    lines = results_table(found, columns)
    for part in (costs_table(costs, columns), printed(told)):
        lines += ["", *part] if part else []
    if finished < seeds:
        lines.append(f"Stopped before its end, after {finished} of {seeds} seeds.")
    return "\n".join(lines)


def results_table(found: Comparison, columns: int | None = None) -> list[str]:
    """Return a table with the accuracy and the epoch time of each operator."""
    ratios = {d.operator: f"{d.speed.mean:.2f}{_between(d.speed, '.2f')}" for d in found.differences}
    rows = [["operator", "test accuracy", "seconds per epoch", f"ratio to {found.first}"]]
    if found.results[found.first].validation_accuracies:
        rows = [["operator", "validation acc.", "test accuracy", "s per epoch", f"ratio to {found.first}"]]
    for name in found.operators:
        result = found.results[name]
        each = [of_it for of_it in (result.validation_accuracies, result.test_accuracies) if of_it]
        rows.append([name, *map(_accuracy, each), f"{result.seconds_per_epoch:.3f}", ratios.get(name, "1.00")])
    return table(rows, columns)


def costs_table(costs: Sequence[Cost], columns: int | None = None) -> list[str]:
    """Return a table with a row per array size and the call time of each operator."""
    if not costs:
        return []
    taken = {(c.operator, c.size): f"{_micro(c.forward)} + {_micro(c.backward)}" for c in costs}
    operators = list(dict.fromkeys(cost.operator for cost in costs))
    rows = [["numbers", *operators]]
    for size in sorted({cost.size for cost in costs}):
        rows.append([f"{size:,}", *(taken.get((operator, size), "-") for operator in operators)])
    return ["The operator alone, on one thread: microseconds forward + backward", *table(rows, columns)]


def verdicts(found: Comparison, tested_on: str = "test") -> list[Verdict]:
    """Return sentences on how each operator differs from the first, and how this was tested."""
    seeds = len(found.seeds)
    if not seeds:
        return []
    told = []
    for d in found.differences:
        told += [_of_accuracy(d, found.first, seeds, tested_on), _of_speed(d, found.first, seeds)]
    images = f"the {tested_on} images"
    over = f"the seeds and {images}" if seeds > 1 else f"{images} and the epochs of this one seed"
    how = f"Tested over {over}; family-wise error rate {LEVEL:.0%} (Holm), intervals adjusted alike."
    more = "One seed says nothing about others: use --seeds 5." if seeds == 1 else ""
    return [*told, *(Verdict("", sentence) for sentence in (how, more) if sentence)]


def _of_accuracy(d: Difference, first: str, seeds: int, tested_on: str) -> Verdict:
    claim, gist = d.accuracy, d.of_accuracy
    if gist == "same":
        return Verdict(gist, f"{d.operator} trained to the weights of {first}, to the last bit")
    figures = f"{claim.mean:+.4f}{_between(claim, '+.4f')}, {p_value(claim.p)}"
    if gist == "differs":
        return Verdict(gist, f"{d.operator} is {'more' if claim.mean > 0 else 'less'} accurate than {first}: {figures}")
    if seeds > 1 and claim.p_images is not UNSET and claim.p_images <= LEVEL:
        figures += f"; over the {tested_on} images alone, {p_value(claim.p_images)}"
    return Verdict(gist, f"whether {d.operator} is as accurate as {first}{_with(seeds)}: {figures}")


def _of_speed(d: Difference, first: str, seeds: int) -> Verdict:
    claim, gist = d.speed, d.speed.gist
    figures = f"an epoch takes {claim.mean:.2f} times as long{_between(claim, '.2f')}, {p_value(claim.p)}"
    if gist == "differs":
        return Verdict(gist, f"{d.operator} is {'slower' if claim.mean > 1 else 'faster'} than {first}: {figures}")
    return Verdict(gist, f"whether {d.operator} is as fast as {first}{_with(seeds)}: {figures}")


def _with(seeds: int) -> str:
    return f", with {_many(seeds, 'seed')}"


def printed(told: Sequence[Verdict]) -> list[str]:
    """Format verdicts as lines with their gists in a column."""
    return [f"{gist:11}  {sentence}" if gist else sentence for gist, sentence in told]


def plain(told: Sequence[Verdict]) -> list[str]:
    """Format verdicts as self-contained sentences."""
    return [f"{gist.capitalize()}: {sentence}." if gist else sentence for gist, sentence in told]


def _accuracy(values: Sequence[float]) -> str:
    mean = f"{statistics.fmean(values):.4f}"
    return mean if len(values) < 2 else f"{mean} ± {statistics.stdev(values):.4f}"


def _between(estimate: Estimate | Claim, form: str) -> str:
    low, high = estimate.low, estimate.high
    if low is None or high is None or not math.isfinite(high):
        return ""
    return f" ({end_of(low, form)} to {end_of(high, form)})"


def end_of(end: float, form: str) -> str:
    """Format an end of an interval. With few seeds the upper end of a ratio may have 20 digits."""
    return f"{end:{form}}" if end < 1000 else "over 1000"


def p_value(p: float) -> str:
    """Format a p-value; never as zero."""
    return "p < 0.0001" if p < 0.0001 else f"p = {p:.2g}"


def _micro(seconds: float) -> str:
    micro = seconds * 1e6
    return f"{micro:.1f}" if micro < 100 else f"{micro:,.0f}"
