"""The end of a run: its weights, its summary, what the report shows, and the report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from app.data import Dataset
from app.run.activation import Activation
from app.run.checkpoints import CHECKPOINT
from app.run.config import Config
from app.run.console import Console
from app.run.descriptions import describe, describe_layers, write_descriptions
from app.run.events import End
from app.run.folder import SUMMARY, RunFolder
from app.run.learners import Learner
from app.run.network import Network, trained_network
from app.run.nonfinite import warnings_off
from app.run.predictions import predictions_of, write_predictions
from app.run.record import read_run
from app.run.summary import outcome, summary
from app.run.weights import hash_of

ReportWriter = Callable[[Path], Path]
"""Writes the report of a run's folder; returns the page."""


def finish(
    config: Config,
    dataset: Dataset,
    learners: Sequence[Learner],
    folder: RunFolder,
    console: Console,
    write_report: ReportWriter | None,
) -> None:
    """Write the files of a run that has ended, and print its outcome."""
    weights = {learner.operator: learner.weights() for learner in learners}
    for operator, arrays in weights.items():
        folder.save_weights(operator, arrays)
    end = End({operator: hash_of(arrays) for operator, arrays in weights.items()})
    folder.record(end)
    console.record(end)
    run = read_run(folder.path)
    folder.save_text(SUMMARY, summary(run) + "\n")
    console.conclude(summary(run, console.columns), outcome(run), str(folder.path))
    if config.report and write_report is not None:
        activations = [learner.activation for learner in learners]
        networks = [(a, trained_network(config, a, dataset.image_shape, weights[a.name])) for a in activations]
        report_run(dataset, networks, folder.path, console, write_report)
    folder.remove(CHECKPOINT)  # the last step: the run is finished


def report_run(
    dataset: Dataset,
    networks: Sequence[tuple[Activation, Network]],
    folder: Path,
    console: Console,
    write_report: ReportWriter,
) -> None:
    """Store the networks' predictions for the test images and the descriptions of the operators, and write the report.

    A run whose report cannot be written has not failed, so the reason is a note.
    """
    images = dataset.test_images
    try:
        with console.busy("Writing the report"):
            with warnings_off():
                scores = {activation.name: network.scores(images) for activation, network in networks}
                write_predictions(predictions_of(dataset, scores), folder)
                compared = [describe(activation, network, images) for activation, network in networks]
                of_layers = describe_layers([activation for activation, _ in networks])
                write_descriptions([*compared, *of_layers], folder)
            page = write_report(folder)
        console.say(f"The report is {page}")
    except Exception as error:
        console.warn(f"note: the report of this run is incomplete: {error}")
