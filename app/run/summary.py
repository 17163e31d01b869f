"""The text printed at the beginning and the end of a run: settings, tables and verdicts."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Any, NamedTuple

from app.data import Dataset
from app.data.dataset import CLASSES
from app.printing import table
from app.run.callbacks import Contestant
from app.run.config import Config
from app.run.events import Cost
from app.run.layers import has_operator, told
from app.run.statistics import LEVEL, Difference, Estimate, Outcome, time_ratio


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
    outcomes: Sequence[Outcome],
    found: Sequence[Difference],
    told: Sequence[Verdict],
    costs: Sequence[Cost],
    seeds: int,
    columns: int | None = None,
) -> str:
    """Return the tables and verdicts of a comparison, some of whose seeds may be unfinished."""
    finished = len(outcomes[0].epochs)
    if not finished:
        return "No seed was finished, so there is nothing to compare."
    lines = results_table(outcomes, found, columns)
    for part in (costs_table(costs, columns), printed(told)):
        lines += ["", *part] if part else []
    if finished < seeds:
        lines.append(f"Stopped before its end, after {finished} of {seeds} seeds.")
    return "\n".join(lines)


def results_table(outcomes: Sequence[Outcome], found: Sequence[Difference], columns: int | None = None) -> list[str]:
    """Return a table with the accuracy and the epoch time of each operator."""
    rows = [["operator", "test accuracy", "seconds per epoch", f"ratio to {outcomes[0].operator}"]]
    ratios = ["1.00", *(f"{d.speed.mean:.2f}{_between(d.speed, '.2f')}" for d in found)]
    for result, ratio in zip(outcomes, ratios, strict=True):
        rows.append([result.operator, _accuracy(result.accuracies), f"{result.seconds:.3f}", ratio])
    if outcomes[0].tested:
        rows[0][1:3] = ["validation acc.", "s per epoch"]
        for row, cell in zip(rows, ["test accuracy", *(_accuracy(result.tested) for result in outcomes)], strict=True):
            row.insert(2, cell)
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


def verdicts(found: Sequence[Difference], seeds: int, tested_on: str = "test") -> list[Verdict]:
    """Return sentences on how each operator differs from the first, and how this was tested."""
    if not seeds:
        return []
    told = [verdict for d in found for verdict in (_of_accuracy(d, seeds, tested_on), _of_speed(d, seeds))]
    images = f"the {tested_on} images"
    over = f"the seeds and {images}" if seeds > 1 else f"{images} and the epochs of this one seed"
    how = f"Tested over {over}; family-wise error rate {LEVEL:.0%} (Holm), intervals adjusted alike."
    more = "One seed says nothing about others: use --seeds 5." if seeds == 1 else ""
    return [*told, *(Verdict("", sentence) for sentence in (how, more) if sentence)]


def _of_accuracy(d: Difference, seeds: int, tested_on: str) -> Verdict:
    if d.identical:
        return Verdict("same", f"{d.operator} trained to the weights of {d.first}, to the last bit")
    figures = f"{d.accuracy.mean:+.4f}{_between(d.accuracy, '+.4f')}, {p_value(d.p_accuracy)}"
    if d.p_accuracy > LEVEL:
        images = (
            f"; over the {tested_on} images alone, {p_value(d.p_images)}" if seeds > 1 and d.p_images <= LEVEL else ""
        )
        whether = f"whether {d.operator} is as accurate as {d.first}{_with(seeds)}"
        return Verdict("cannot tell", f"{whether}: {figures}{images}")
    than = f"{'more' if d.accuracy.mean > 0 else 'less'} accurate than {d.first}"
    return Verdict("differs", f"{d.operator} is {than}: {figures}")


def _of_speed(d: Difference, seeds: int) -> Verdict:
    figures = f"an epoch takes {d.speed.mean:.2f} times as long{_between(d.speed, '.2f')}, {p_value(d.p_speed)}"
    if d.p_speed > LEVEL:
        return Verdict("cannot tell", f"whether {d.operator} is as fast as {d.first}{_with(seeds)}: {figures}")
    than = f"{'slower' if d.speed.mean > 1 else 'faster'} than {d.first}"
    return Verdict("differs", f"{d.operator} is {than}: {figures}")


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


def _between(estimate: Estimate, form: str) -> str:
    if not math.isfinite(estimate.high):
        return ""
    return f" ({end_of(estimate.low, form)} to {end_of(estimate.high, form)})"


def end_of(end: float, form: str) -> str:
    """Format an end of an interval. With few seeds the upper end of a ratio may have 20 digits."""
    return f"{end:{form}}" if end < 1000 else "over 1000"


def p_value(p: float) -> str:
    """Format a p-value; never as zero."""
    return "p < 0.0001" if p < 0.0001 else f"p = {p:.2g}"


def _micro(seconds: float) -> str:
    micro = seconds * 1e6
    return f"{micro:.1f}" if micro < 100 else f"{micro:,.0f}"
