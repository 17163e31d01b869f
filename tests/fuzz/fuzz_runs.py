"""The readers of configurations, and of what runs leave in their folders: checkpoints, metrics and so the report."""

from __future__ import annotations

import tempfile
from pathlib import Path

import msgspec
import numpy as np
from fuzz_files import put_together, taken_apart
from fuzz_target import Target, in_a_file

from app.errors import AppError, ConfigError, FileError
from app.report.page import page
from app.run import events
from app.run.checkpoints import Checkpoint, read_checkpoint, write_checkpoint
from app.run.config import Config, dump_config, load_config
from app.run.options import CONFIGS
from app.run.record import read_run


def _checkpoint() -> bytes:
    checkpoint = Checkpoint(
        epoch=1,
        config=msgspec.to_builtins(Config()),
        metrics=np.frombuffer(METRICS, np.uint8),
        learners={"relu": {"layers.0.weight": np.ones((2, 3), "float32")}},
        random_state={},
    )
    with tempfile.TemporaryDirectory() as folder:
        write_checkpoint(Path(folder, "one"), checkpoint)
        return Path(folder, "one").read_bytes()


def _read_metrics(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "metrics.jsonl").write_bytes(content)
        list(events.read(Path(folder)))


def _read_run(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "config.yaml").write_text(dump_config(Config()), encoding="utf-8")
        Path(folder, "metrics.jsonl").write_bytes(content)
        page([read_run(Path(folder))])


def _read_words(content: bytes) -> None:
    """Words as a command line has them."""
    load_config(CONFIGS / "seed.yaml", content.decode("utf-8", "surrogateescape").split("\n"))


METRICS = b"""\
{"event": "iteration", "operator": "relu", "epoch": 0, "iteration": 0, "loss": 2.5, "accuracy": 0.125}
{"event": "iteration", "operator": "custom.relu", "epoch": 0, "iteration": 0, "loss": null, "accuracy": 0.5}
{"event": "epoch", "operator": "relu", "epoch": 0, "seconds": 0.5, "test_accuracy": 0.75, "test_loss": 1.5}
{"event": "epoch", "operator": "relu", "epoch": 1, "seconds": 0.25, "test_accuracy": 0.875, "test_loss": null}
{"event": "cost", "operator": "relu", "forward": 1e-06, "backward": 2e-06}
{"event": "nonfinite", "operator": "relu", "epoch": 1, "iteration": 3, "where": "", "what": ""}
"""

RUNS = {
    "config": Target(
        in_a_file(load_config, ".yaml"),
        tuple(path.read_bytes() for path in sorted(CONFIGS.glob("*.yaml"))),
        ConfigError,
    ),
    "words": Target(_read_words, (b"train.epochs=3", b"model.hidden=[8, 9]\nbaseline=null"), ConfigError),
    "checkpoint": Target(in_a_file(read_checkpoint), (_checkpoint(),), FileError),
    "checkpoint checked": Target(
        lambda content: in_a_file(read_checkpoint)(put_together(content)), (taken_apart(_checkpoint()),), AppError
    ),
    "metrics": Target(_read_metrics, (METRICS,), FileError),
    "report": Target(_read_run, (METRICS,), FileError),
}
