"""Folders of runs that never ran: what a run of the loop leaves behind, with figures that a test chooses."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from app.data import Dataset
from app.run import answers
from app.run.config import Config, ModelConfig, TrainConfig, dump_config

HOSTILE = "</script><img src=x onerror=window.taken=1><script>window.taken=1</script>{{7*7}}$title.py:f"
"""A name that a configuration may give an operator, and that would run if it were taken for a part of the page."""
IMAGES, SIDE = 200, 8


def config(operators: Sequence[str], epochs: int, **settings: Any) -> Config:
    baseline = operators[1] if len(operators) > 1 else None
    model = ModelConfig(activation=operators[0], hidden=(6,))
    return Config(model=model, baseline=baseline, train=TrainConfig(epochs=epochs, batch_size=50), **settings)


def dataset() -> Dataset:
    random = np.random.default_rng(0)
    images = random.integers(0, 256, (IMAGES, SIDE * SIDE), dtype=np.uint8)
    labels = np.arange(IMAGES) % 10
    return Dataset(images, labels, images, labels, (SIDE, SIDE), "made-up digits", False)


def made_run(
    folder: Path,
    operators: Sequence[str] = ("custom.relu", "relu"),
    epochs: int = 3,
    finished: int | None = None,
    seeds: Sequence[int | None] = (None,),
    costs: bool = True,
    alike: bool = False,
) -> Path:
    """The folder of a run that finished so many of its epochs; `alike` makes all networks the same."""
    folder.mkdir(parents=True, exist_ok=True)
    described = config(operators, epochs)
    (folder / "config.yaml").write_text(dump_config(described), encoding="utf-8")
    events = [_start(operators)]
    for seed in seeds:
        for epoch in range(epochs if finished is None else finished):
            for place, operator in enumerate(operators):
                events += _epoch(operator, epoch, 0 if alike else place, {} if seed is None else {"seed": seed})
    for place, operator in enumerate(operators if costs else ()):
        events += [_cost(operator, place, size) for size in (1000, 50_000)]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events), encoding="utf-8")
    _keep_networks(folder, operators, alike)
    return folder


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
    return [
        *iterations,
        {
            "event": "epoch",
            **about,
            "seconds": 0.5 + 0.1 * place,
            "test_accuracy": 0.5 + better,
            "test_loss": 1.9 - better,
        },
        {"event": "activations", **about, "layer": 0, "mean": 0.3, "zeros": 0.4, "dead": 0.5 * place},
    ]


def _cost(operator: str, place: int, size: int) -> dict[str, Any]:
    return {
        "event": "cost",
        "operator": operator,
        "size": size,
        "forward": 1e-9 * size,
        "backward": 2e-9 * size * (1 + place),
    }


def _keep_networks(folder: Path, operators: Sequence[str], alike: bool) -> None:
    digits = dataset()
    scores, right = {}, np.eye(10)[digits.test_labels] * 4
    for place, operator in enumerate(operators):
        random = np.random.default_rng(1 if alike else 1 + place)
        scores[operator] = (right + random.standard_normal(right.shape) * 1.6).astype(np.float32)
        weights = random.standard_normal((SIDE * SIDE, 6)).astype(np.float32)
        save_file({"layers.0.weight": weights}, folder / f"weights-{place}.safetensors", {"operator": operator})
    answers.keep(answers.answers(digits, scores), folder)
