"""The text printed at the beginning and the end of a run: settings, tables and verdicts."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any, NamedTuple

from app.data import Dataset
from app.data.dataset import CLASSES
from app.printing import table
from app.run.comparison import Claim, Comparison, Conclusion, Difference, time_ratio
from app.run.config import Config, reference_of
from app.run.events import Cost, Nonfinite, Tested
from app.run.layers import layer_names
from app.run.learners import Learner
from app.run.record import RunRecord
from app.run.statistics import Estimate
from app.run.wording import (
    NOT_COMPARED,
    ONE_SEED,
    SAMPLE,
    count,
    diverged,
    estimated,
    how_tested,
    listed,
    missing_seeds,
    tested,
)


def introduction(
    config: Config,
    dataset: Dataset,
    learners: Sequence[Learner],
    ranks: str = "",
    gradients: Sequence[str] = (),
    note: str = "",
) -> str:
    """Return the lines that describe the run: network, data and a note.

    `ranks` is a line about the ranks that share the work, if there are many; `gradients` are lines about the operators'
    gradients.
    """
    train, test = len(dataset.train_images), len(dataset.test_images)
    held = ""
    if dataset.final_images is not None:
        held, test = f", {test:,} validation", len(dataset.final_images)
    checked = "verified" if dataset.verified else "not verified"
    widths = "-".join(map(str, [dataset.train_images.shape[1], *layer_names(config.model.all_layers), CLASSES]))
    first, *others = (learner.operator for learner in learners)
    operators = first + (f" against {listed(others)}" if others else "")
    lines = [
        f"Data: {train:,} training{held} and {test:,} test images, {dataset.origin} ({checked})",
        *_sample_note(dataset.is_sample),
        f"Network {widths} with {operators}; engine {config.engine}, seed {config.seed}",
        *([ranks] if ranks else []),
        *gradients,
    ]
    width = max(len(learner.operator) for learner in learners)
    lines += [f"{learner.operator:{width}}  {text}" for learner in learners if (text := learner.engine_text())]
    lines += [f"Note: {note}" for note in _changed_shapes(learners)]
    lines += [f"Note: {note}" for note in without_effect(config)]
    return "\n".join([*lines, "", *([f"{note}\n"] if note else [])])


def _changed_shapes(learners: Sequence[Learner]) -> list[str]:
    """Return a line for each network in which operators change the shape, such as the width."""
    notes = []
    for learner in learners:
        pairs = dict.fromkeys(pair for pair in learner.shapes if pair[0] != pair[1])
        if pairs:
            changes = listed([f"{_shape_text(after)} of {_shape_text(before)}" for before, after in pairs])
            notes.append(f"operators in the network of {learner.operator} make {changes} values.")
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
    return notes


# One seed


def summary(run: RunRecord, columns: int | None = None) -> str:
    """Return the final table of a run: the accuracy and the time of each operator."""
    notes = _sample_note(run.start is not None and run.start.data.sample)
    return "\n".join([*_of_one_seed(run, columns), *notes, *failures([run])])


def failures(runs: Sequence[RunRecord]) -> list[str]:
    """Return sentences on numbers that were not finite, epochs that are missing, and losses that diverged."""
    sentences: list[str] = []
    for run in runs:
        sentences += [f"{event.operator}: {event.where}." for event in run.of(Nonfinite)]
        finished = {operator: len(run.epochs(operator)) for operator in run.operators}
        if not any(finished.values()):
            sentences.append("No epoch finished, so there are no results.")
        elif not run.complete:
            epochs, of_each = run.config.train.epochs, ", ".join(f"{o} {done}" for o, done in finished.items())
            sentences.append(f"The run was stopped early. Finished epochs, out of {epochs}: {of_each}.")
    losses = {o: [last.test_loss for run in runs if (last := run.last(o)) is not None] for o in runs[0].operators}
    return [*sentences, *diverged(losses)]


def _of_one_seed(run: RunRecord, columns: int | None) -> list[str]:
    finished = [operator for operator in run.operators if run.epochs(operator)]
    if not finished:
        return []
    rows = [["operator", f"{run.tested_on} accuracy", "seconds per epoch (median)"]]
    rows += [[o, _decimals(run.accuracy(o), 4), _decimals(run.seconds(o), 3)] for o in finished]
    if run.of(Tested):
        rows[0] = ["operator", "validation acc.", "test accuracy", "s per epoch (median)"]
        for row, operator in zip(rows[1:], finished, strict=True):
            row.insert(2, _decimals(run.test_accuracy(operator), 4))
    if len(finished) > 1:
        ratios = ["ratio", *(_ratio_text(run, operator) for operator in finished)]
        rows = [[*row, cell] for row, cell in zip(rows, ratios, strict=True)]
    return table(rows, columns)


def _decimals(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _ratio_text(run: RunRecord, operator: str) -> str:
    """Format the ratio of the times to those of the reference, and its interval; one epoch or two have none."""
    ratio = _ratio(run, operator)
    return "-" if ratio is None else "1.00" if operator == reference_of(run.config) else estimated(ratio, ".2f")


def _ratio(run: RunRecord, operator: str) -> Estimate | None:
    times = run.timed(operator), run.timed(reference_of(run.config))
    return time_ratio([times]) if all(times) else None


def outcome(run: RunRecord) -> dict[str, Any]:
    """Return the summary of a run as data."""
    operators = [_figures(run, operator) for operator in run.operators]
    return {"event": "summary", "finished": run.complete, "operators": operators}


def _figures(run: RunRecord, operator: str) -> dict[str, Any]:
    figures: dict[str, Any] = {"operator": operator, "epochs": len(run.epochs(operator))}
    if (last := run.last(operator)) is not None:
        if run.tested_on == "validation":
            figures |= {"validation_accuracy": last.test_accuracy, "validation_loss": last.test_loss}
        figures |= {"test_accuracy": run.test_accuracy(operator), "test_loss": run.test_loss(operator)}
        figures["seconds"] = run.seconds(operator)
        if operator != reference_of(run.config) and (ratio := _ratio(run, operator)) is not None:
            figures["ratio"] = ratio.mean
    return figures


def _sample_note(is_sample: bool) -> list[str]:
    return [SAMPLE] if is_sample else []


# Several seeds


class Verdict(NamedTuple):
    """A sentence about two operators and its conclusion, which is '' for a sentence about the method."""

    conclusion: str
    sentence: str


def comparison(result: Comparison, columns: int | None = None) -> str:
    """Return the tables and verdicts of a comparison, some of whose seeds may be missing."""
    lines = results_table(result, columns)
    for part in (costs_table(result.costs, columns), printed(verdicts(result))):
        lines += ["", *part] if part else []
    lines += failures(result.runs)
    if len(result.runs) < result.seed_count:
        lines.append(missing_seeds(len(result.runs), result.seed_count))
    return "\n".join(lines)


def comparison_data(result: Comparison) -> dict[str, Any]:
    """Return a comparison as data."""
    return {**result.to_dict(), "verdicts": plain(verdicts(result))}


def results_table(result: Comparison, columns: int | None = None) -> list[str]:
    """Return a table with the accuracy and the epoch time of each operator."""
    ratios = {d.operator: estimated(d.speed, ".2f") for d in result.differences if d.speed is not None}
    rows = [["operator", "test accuracy", "seconds per epoch", f"ratio to {result.first}"]]
    if result.validated:
        rows = [["operator", "validation acc.", "test accuracy", "s per epoch", f"ratio to {result.first}"]]
    for name in result.operators:
        each = [result.accuracies(name), *([result.test_accuracies(name)] if result.validated else [])]
        seconds = result.seconds(name)
        speed = ["not compared", "not compared"]
        if seconds is not None:
            speed = [f"{seconds:.3f}", ratios.get(name, "1.00")]
        rows.append([name, *map(_accuracy, each), *speed])
    return table(rows, columns)


def costs_table(costs: Sequence[Cost], columns: int | None = None) -> list[str]:
    """Return a table with the time of one call of each operator."""
    if not costs:
        return []
    rows = [["operator", "forward", "backward"]]
    rows += [[cost.operator, _micro(cost.forward), _micro(cost.backward)] for cost in costs]
    return ["Time of one call alone, as large as in the network, on one thread, in µs", *table(rows, columns)]


def verdicts(result: Comparison) -> list[Verdict]:
    """Return sentences on how each operator differs from the first, and how this was tested."""
    seeds = len(result.runs)
    sentences = []
    for d in result.differences:
        sentences.append(_of_accuracy(d, result.first, seeds))
        if d.speed is not None:
            sentences.append(_of_speed(d, d.speed, result.first, seeds))
    if any(d.speed is None for d in result.differences):
        sentences.append(Verdict("", NOT_COMPARED))
    sentences.append(Verdict("", how_tested(seeds)))
    return [*sentences, *([Verdict("", ONE_SEED)] if seeds == 1 else [])]


def _of_accuracy(d: Difference, first: str, seeds: int) -> Verdict:
    claim, figures = d.accuracy, tested(d.accuracy, "+.4f")
    sentences: dict[Conclusion, str] = {
        "same": f"{d.operator} has the same weights as {first}, bit for bit",
        "differs": f"{d.operator} is {'more' if claim.mean > 0 else 'less'} accurate than {first}: {figures}",
        "cannot tell": f"whether {d.operator} and {first} differ in accuracy ({count(seeds, 'seed')}): {figures}",
    }
    return Verdict(d.of_accuracy, sentences[d.of_accuracy])


def _of_speed(d: Difference, claim: Claim, first: str, seeds: int) -> Verdict:
    figures = f"time ratio {tested(claim, '.2f')}"
    if claim.conclusion == "differs":
        sentence = f"{d.operator} is {'slower' if claim.mean > 1 else 'faster'} than {first}: {figures}"
    else:
        sentence = f"whether {d.operator} and {first} differ in speed ({count(seeds, 'seed')}): {figures}"
    return Verdict(claim.conclusion, sentence)


def printed(sentences: Sequence[Verdict]) -> list[str]:
    """Format verdicts as lines with their conclusions in a column."""
    return [f"{conclusion:11}  {sentence}" if conclusion else sentence for conclusion, sentence in sentences]


def plain(sentences: Sequence[Verdict]) -> list[str]:
    """Format verdicts as self-contained sentences."""
    starts = {"same": "Same: ", "differs": "Differs: ", "cannot tell": "Cannot tell "}
    return [f"{starts[conclusion]}{sentence}." if conclusion else sentence for conclusion, sentence in sentences]


def _accuracy(values: Sequence[float]) -> str:
    mean = f"{statistics.fmean(values):.4f}"
    return mean if len(values) < 2 else f"{mean} ± {statistics.stdev(values):.4f}"


def _micro(seconds: float) -> str:
    micro = seconds * 1e6
    return f"{micro:.1f}" if micro < 100 else f"{micro:,.0f}"
