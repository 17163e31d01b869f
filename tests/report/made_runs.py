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
from app.run import answers
from app.run.config import Config, ModelConfig, TrainConfig, dump_config

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
    seeds: Sequence[int | None] = (None,),
    costs: bool = True,
    alike: bool = False,
    changes: Mapping[str, Mapping[str, float | None]] = MappingProxyType({}),
    others: Sequence[Mapping[str, Any]] = (),
) -> Path:
    """The folder of a run that finished so many of its epochs; `alike` makes all networks the same.

    `changes` are other figures in the epochs of an operator, and `others` more events at the end.
    """
    folder.mkdir(parents=True, exist_ok=True)
    model = ModelConfig(activation=operators[0], hidden=(6,))
    train = TrainConfig(epochs=EPOCHS, batch_size=50)
    described = Config(model=model, baseline=operators[1] if len(operators) > 1 else None, train=train)
    (folder / "config.yaml").write_text(dump_config(described), encoding="utf-8")
    events = [_start(operators)]
    for seed in seeds:
        for epoch in range(finished):
            for place, operator in enumerate(operators):
                events += _epoch(operator, epoch, 0 if alike else place, {} if seed is None else {"seed": seed})
    for event in events:
        if event["event"] == "epoch":
            event.update(changes.get(event["operator"], {}))
    for place, operator in enumerate(operators if costs else ()):
        events.append({"event": "cost", "operator": operator, "forward": 1e-5, "backward": 2e-5 * (1 + place)})
    lines = [json.dumps(event) + "\n" for event in (*events, *others)]
    (folder / "metrics.jsonl").write_text("".join(lines), encoding="utf-8")
    _keep_networks(folder, operators, alike)
    return folder


def page_of(folder: Path) -> str:
    """The report that is written for a run."""
    return write_report(folder).read_text(encoding="utf-8")


def compared(folder: Path, operators: Sequence[str] = ("relu", "tanh", "sigmoid"), seeds: int = 3) -> Path:
    """A comparison: of the others one is the same as the first, one cannot be told from it, and the rest differ."""
    made_run(folder, operators, seeds=tuple(range(seeds)))
    several = seeds > 1
    accuracies = {name: [0.90 - 0.02 * n + 0.001 * seed for seed in range(seeds)] for n, name in enumerate(operators)}
    differences = []
    for n, name in enumerate(operators[1:], 1):
        accuracy = _claim(-0.02 * n, 0.01, 0.9 if n < 3 else 1e-9, several)
        speed = _claim(1.5, 0.2, 0.001, several)
        differences.append({"operator": name, "identical": n == 1, "accuracy": accuracy, "speed": speed})
    found = {
        "operators": list(operators),
        "first": operators[0],
        "seeds": list(range(seeds)),
        "results": {
            name: {"engine": "", "test_accuracies": accuracies[name], "seconds_per_epoch": 0.5} for name in operators
        },
        "differences": differences,
        "costs": [],
        "verdicts": [],
    }
    (folder / "comparison.json").write_text(json.dumps(found), encoding="utf-8")
    return folder


def _claim(mean: float, reach: float, p: float, several: bool) -> dict[str, Any]:
    ends = {"low": mean - reach, "high": mean + reach} if several else {"low": None, "high": None}
    return {"mean": mean, **ends, "p": p, "p_seeds": p}


def _start(operators: Sequence[str]) -> dict[str, Any]:
    data = {"origin": "made-up digits", "verified": False, "sample": False, "training": IMAGES, "test": IMAGES}
    return {
        "event": "start",
        "at": "2026-01-02 03:04:05",
        "machine": {"processor": "An <abacus> & beads", "cores": "2"},
        "data": {**data, "shape": [SIDE, SIDE]},
        "engines": dict.fromkeys(operators, "all 7 operators native"),
    }


def _epoch(operator: str, epoch: int, place: int, seed: dict[str, int]) -> list[dict[str, Any]]:
    about = {"operator": operator, "epoch": epoch, **seed}
    better = 0.1 * epoch + 0.02 * place + 0.01 * seed.get("seed", 0)
    iterations = [
        {"event": "iteration", **about, "iteration": i, "loss": 2 - better - 0.01 * i, "accuracy": 0.4 + better}
        for i in range(4)
    ]
    measured = {"seconds": 0.5 + 0.1 * place, "test_accuracy": 0.5 + better, "test_loss": 1.9 - better}
    return [*iterations, {"event": "epoch", **about, **measured}]


def _keep_networks(folder: Path, operators: Sequence[str], alike: bool) -> None:
    digits = dataset()
    scores, right = {}, np.eye(10)[digits.test_labels] * 4
    for place, operator in enumerate(operators):
        random = np.random.default_rng(1 if alike else 1 + place)
        scores[operator] = (right + random.standard_normal(right.shape) * 1.6).astype(np.float32)
        weights = random.standard_normal((SIDE * SIDE, 6)).astype(np.float32)
        save_file({"layers.0.weight": weights}, folder / f"weights-{place}.safetensors", {"operator": operator})
    answers.keep(answers.answers(digits, scores), folder)
