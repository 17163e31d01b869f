"""`python -m benchmarks`: measure, print the tables, and write them, the raw figures and the chart."""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks import calls, growth, lenet, machine, paired, report, rounds
from benchmarks.process import ROOT
from benchmarks.work import Data, Work

RESULTS = ROOT / "benchmarks" / "results.json"
PAGE = ROOT / "docs" / "benchmarks.md"


def main(arguments: Sequence[str] | None = None) -> None:
    titles = rounds.titles()
    options = _parser(titles).parse_args(arguments)
    partly = bool(options.only or options.quick)
    results = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    with _data() as (folder, is_sample):
        about = {"machine": machine.describe(), "sample": is_sample}
        print(report.machine_text(**about), flush=True)
        alone = options.growth or options.edit or options.lenet
        keep = (lambda: None) if partly else (lambda: write(results))  # after each part, so that a run may be ended
        if not alone:
            results["contenders"] = {**about, **_contenders(folder, options, titles)}
            keep()
        if options.edit or not (alone or partly):
            print("First runs after an edit ...", flush=True)
            rows = rounds.first_runs(folder, 1 if options.quick else options.rounds)
            results["first runs"] = {**about, "rows": rows}
            print(report.first_runs_table(rows))
            keep()
        if options.lenet or not (alone or partly):
            print("LeNet ...", flush=True)
            rows = lenet.measure(folder, 1 if options.quick else options.rounds)
            results["lenet"] = {**about, "rows": rows}
            print(lenet.table(rows))
            keep()
        if options.growth or not (alone or partly):
            print("Growth ...")
            names = [name for name in growth.CONTENDERS if name in (options.only or titles)]
            results["growth"] = {**about, "points": growth.measure(folder, names, options.quick)}
            print(report.growth_table(results["growth"]["points"], growth.CONTENDERS))
            keep()
    if partly:
        print("\nNothing was written, as --only and --quick measure a part.")


def _parser(titles: dict[str, str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="This project at work beside others.")
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=titles, help=f"some of: {', '.join(titles)}")
    parser.add_argument("--rounds", type=int, default=3, help="how often each contender is run (%(default)s)")
    parser.add_argument("--quick", action="store_true", help="one round of few epochs: does everything run?")
    parser.add_argument("--edit", action="store_true", help="only the first run after an operator was edited")
    parser.add_argument("--lenet", action="store_true", help="only a network of convolutions")
    parser.add_argument("--growth", action="store_true", help="only how time grows with width, batch and depth")
    return parser


@contextmanager
def _data() -> Iterator[tuple[Path, bool]]:
    """MNIST in a folder, as arrays that every process can load at once; and whether it is the sample only."""
    from app.data import load

    dataset = load()
    with tempfile.TemporaryDirectory(prefix="benchmarks-") as folder:
        arrays = (dataset.train_images, dataset.train_labels, dataset.test_images, dataset.test_labels)
        Data(*arrays).save(Path(folder))
        yield Path(folder), dataset.is_sample


def _contenders(folder: Path, options: argparse.Namespace, titles: dict[str, str]) -> dict[str, Any]:
    names = options.only or list(titles)
    print("Contenders ...", flush=True)
    number, epochs = (1, rounds.FIVE) if options.quick else (options.rounds, Work().epochs)
    runs = rounds.measure(folder, names, number, Work(epochs=epochs))
    found: dict[str, Any] = {"rows": [rounds.summary(name, titles[name], runs[name]) for name in names]}
    print(f"\n{report.table(found['rows'])}\n", flush=True)
    if any("missing" in row["problem"] for row in found["rows"]):
        print("Missing ones can be installed: .venv/bin/python -m pip install -e .[bench]\n")
    if not options.only:
        print("Custom over built-in, in one process ...", flush=True)
        found["paired"] = paired.measure(folder, 4 if options.quick else 10)
        print("One call of a custom operator ...", flush=True)
        found["calls"] = calls.measure(1 if options.quick else options.rounds)
    return found


def write(results: dict[str, Any]) -> None:
    """Keep the raw figures, and show them on the page."""
    RESULTS.write_text(json.dumps(results) + "\n", encoding="utf-8")
    texts = {}
    if part := results.get("contenders"):
        texts["benchmarks: machine"] = report.machine_text(part["machine"], part["sample"])
        texts["benchmarks: table"] = report.table(part["rows"])
        texts["benchmarks: paired"] = report.paired_table(part["paired"])
        texts["benchmarks: calls"] = report.calls_table(part["calls"])
    if part := results.get("first runs"):
        about = report.machine_text(part["machine"], part["sample"])
        texts["benchmarks: first runs"] = f"{about}\n\n{report.first_runs_table(part['rows'])}"
    if part := results.get("lenet"):
        about = report.machine_text(part["machine"], part["sample"])
        texts["benchmarks: lenet"] = f"{about}\n\n{lenet.table(part['rows'])}"
    if part := results.get("growth"):
        about = report.machine_text(part["machine"], part["sample"])
        texts["benchmarks: growth"] = f"{about}\n\n{report.growth_table(part['points'], growth.CONTENDERS)}"
    for mark, text in texts.items():
        report.replace_between(PAGE, mark, text)
    if part := results.get("contenders"):
        PAGE.with_suffix(".svg").write_text(report.bars(part["rows"]), encoding="utf-8")
    print("\nWritten:", ", ".join(str(path.relative_to(ROOT)) for path in [RESULTS, PAGE]))
