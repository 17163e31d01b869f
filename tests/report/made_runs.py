"""Folders of runs that never ran: what a run of the loop leaves behind, with figures that a test chooses."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from app.data import Dataset
from app.report.report import write_report
from app.run import predictions
from app.run.config import CompareConfig, Config, ModelConfig, TrainConfig, dump_config
from app.run.weights import hash_of

HOSTILE = "</script><img src=x onerror=window.taken=1><script>window.taken=1</script>{{7*7}}$title.py:f"
"""A name that a configuration may give an operator, and that would run if it were taken for a part of the page."""
IMAGES, SIDE = 200, 8
EPOCHS = 3


def dataset() -> Dataset:
    random = np.random.default_rng(0)
    images = random.integers(0, 256, (IMAGES, SIDE * SIDE), dtype=np.uint8)
    labels = np.arange(IMAGES) % 10
    return Dataset(images, labels, images, labels, (SIDE, SIDE), "made-up digits", False)


def made_run(
    folder: Path,
    operators: Sequence[str] = ("custom.relu", "relu"),
    finished: int = EPOCHS,
    seed: int = 0,
    costs: bool = True,
    alike: bool = False,
    changes: Mapping[str, Mapping[str, float | None]] = MappingProxyType({}),
    others: Sequence[Mapping[str, Any]] = (),
) -> Path:
    """The folder of a run that finished so many of its epochs; `alike` makes all networks the same.

    `changes` are other figures in the epochs of an operator, and `others` more events at the end.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.yaml").write_text(dump_config(Config(**_settings(operators), seed=seed)), encoding="utf-8")
    events = [_start(operators)]
    for epoch in range(finished):
        for place, operator in enumerate(operators):
            events += _epoch(operator, epoch, 0 if alike else place)
    for event in events:
        if event["event"] == "epoch":
            event.update(changes.get(event["operator"], {}))
    for place, operator in enumerate(operators if costs else ()):
        events.append({"event": "cost", "operator": operator, "forward": 1e-5, "backward": 2e-5 * (1 + place)})
    lines = [json.dumps(event) + "\n" for event in (*events, *others)]
    (folder / "metrics.jsonl").write_text("".join(lines), encoding="utf-8")
    _keep_networks(folder, operators, len(operators) if alike else 1)
    return folder


def _settings(operators: Sequence[str]) -> dict[str, Any]:
    model = ModelConfig(activation=operators[0], hidden=(6,))
    train = TrainConfig(epochs=EPOCHS, batch_size=50)
    return {"model": model, "baseline": operators[1] if len(operators) > 1 else None, "train": train}


def page_of(folder: Path) -> str:
    """The report that is written for a run."""
    return write_report(folder).read_text(encoding="utf-8")


def compared(folder: Path, operators: Sequence[str] = ("relu", "tanh", "sigmoid"), seeds: int = 3) -> Path:
    """A comparison: of the others one is the same as the first, one cannot be told from it, and the rest differ."""
    folder.mkdir(parents=True, exist_ok=True)
    listed = {**_settings(operators), "operators": tuple(operators)}
    (folder / "config.yaml").write_text(dump_config(CompareConfig(**listed, seeds=seeds)), encoding="utf-8")
    for seed in range(seeds):
        run, noise = folder / f"seed-{seed}", 0.02 * (-1) ** seed
        lower = [0.0, 0.0, noise, *(0.06 * n + 0.001 * seed for n in range(1, len(operators)))]
        changes = {
            name: {"test_accuracy": 0.9 + 0.005 * seed - less} for name, less in zip(operators, lower, strict=False)
        }
        made_run(run, operators, seed=seed, changes=changes)
        end = {"event": "end", "weights": _keep_networks(run, operators, 2)}
        with (run / "metrics.jsonl").open("a", encoding="utf-8") as metrics:
            metrics.write(json.dumps(end) + "\n")
        config = Config(**listed, seed=seed)
        (run / "config.yaml").write_text(dump_config(config), encoding="utf-8")
        (run / "summary.txt").touch()
    return folder


def _start(operators: Sequence[str]) -> dict[str, Any]:
    data = {"origin": "made-up digits", "verified": False, "sample": False, "training": IMAGES, "test": IMAGES}
    return {
        "event": "start",
        "at": "2026-01-02 03:04:05",
        "machine": {"processor": "An <abacus> & beads", "cores": "2"},
        "data": {**data, "shape": [SIDE, SIDE], "hash": "of the digits"},
        "engines": dict.fromkeys(operators, "compiled"),
        "sources": dict.fromkeys(operators),
    }


def _epoch(operator: str, epoch: int, place: int) -> list[dict[str, Any]]:
    about = {"operator": operator, "epoch": epoch}
    better = 0.1 * epoch + 0.02 * place
    iterations = [
        {"event": "iteration", **about, "iteration": i, "loss": 2 - better - 0.01 * i, "accuracy": 0.4 + better}
        for i in range(4)
    ]
    measured = {"seconds": 0.5 + 0.1 * place, "test_accuracy": 0.5 + better, "test_loss": 1.9 - better}
    return [*iterations, {"event": "epoch", **about, **measured}]


def _keep_networks(folder: Path, operators: Sequence[str], alike: int) -> dict[str, str]:
    """Write the weights and the predictions, of which the first `alike` are the same; return the hashes of weights."""
    digits = dataset()
    scores, hashes, right = {}, {}, np.eye(10)[digits.test_labels] * 4
    for place, operator in enumerate(operators):
        random = np.random.default_rng(max(alike, 1 + place))
        scores[operator] = (right + random.standard_normal(right.shape) * 1.6).astype(np.float32)
        weights = {"layers.0.weight": random.standard_normal((SIDE * SIDE, 6)).astype(np.float32)}
        save_file(weights, folder / f"weights-{place}.safetensors", {"operator": operator})
        hashes[operator] = hash_of(weights)
    predictions.write_predictions(predictions.predictions_of(digits, scores), folder)
    return hashes
