"""`python -m benchmarks`: measure, print the tables, and write them, the raw figures and the chart."""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks import calls, growth, lenet, machine, paired, process, report, rounds
from benchmarks.process import ROOT
from benchmarks.work import Data, Work

RESULTS = ROOT / "benchmarks" / "results.json"
PAGE = ROOT / "docs" / "benchmarks.md"


Measure = Callable[[Path, argparse.Namespace], list[dict[str, Any]]]
Table = Callable[[list[dict[str, Any]]], str]
PARTS: dict[str, tuple[str, Measure, str, Table]] = {
    "first runs": (
        "edit",
        lambda folder, options: rounds.first_runs(folder, _rounds(options)),
        "rows",
        report.first_runs_table,
    ),
    "lenet": ("lenet", lambda folder, options: lenet.measure(folder, _rounds(options)), "rows", lenet.table),
    "growth": (
        "growth",
        lambda folder, options: growth.measure(
            folder, [name for name in growth.CONTENDERS if name in (options.only or [name])], options.quick
        ),
        "points",
        lambda points: report.growth_table(points, growth.CONTENDERS),
    ),
}
"""What is measured after the contenders, by its name in the results: the option for it alone, how it is measured, the
key of its figures, and their table."""


def _rounds(options: argparse.Namespace) -> int:
    return 1 if options.quick else int(options.rounds)


def main(arguments: Sequence[str] | None = None) -> None:
    titles = rounds.titles()
    options = _parser(titles).parse_args(arguments)
    partly = bool(options.only or options.quick or options.avx2)
    process.settings.update(process.AVX2 if options.avx2 else {})
    results = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    with _data() as (folder, is_sample):
        about = {"machine": machine.describe(), "sample": is_sample}
        print(report.machine_text(**about), flush=True)
        alone = options.growth or options.edit or options.lenet
        keep = (lambda: None) if partly else (lambda: write(results))  # after each part, so that a run may be ended
        if not alone:
            results["contenders"] = {**about, **_contenders(folder, options, titles)}
            keep()
        for name, (option, measure, key, table) in PARTS.items():
            if getattr(options, option) or not (alone or partly):
                print(f"{name.capitalize()} ...", flush=True)
                results[name] = {**about, key: measure(folder, options)}
                print(table(results[name][key]))
                keep()
    if partly:
        print("\nNothing was written, as --only and --quick measure a part, and --avx2 another processor.")


def _parser(titles: dict[str, str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="This project at work beside others.")
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=titles, help=f"some of: {', '.join(titles)}")
    parser.add_argument("--rounds", type=int, default=3, help="how often each contender is run (%(default)s)")
    parser.add_argument("--quick", action="store_true", help="one round of few epochs: does everything run?")
    parser.add_argument("--edit", action="store_true", help="only the first run after an operator was edited")
    parser.add_argument("--lenet", action="store_true", help="only a network of convolutions")
    parser.add_argument("--growth", action="store_true", help="only how time grows with width, batch and depth")
    parser.add_argument("--avx2", action="store_true", help="with the instructions of a processor without AVX-512")
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
        found["calls"] = calls.measure(_rounds(options))
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
    for name, (_, _, key, table) in PARTS.items():
        if part := results.get(name):
            about = report.machine_text(part["machine"], part["sample"])
            texts[f"benchmarks: {name}"] = f"{about}\n\n{table(part[key])}"
    for mark, text in texts.items():
        report.replace_between(PAGE, mark, text)
    if part := results.get("contenders"):
        PAGE.with_suffix(".svg").write_text(report.bars(part["rows"]), encoding="utf-8")
    print("\nWritten:", ", ".join(str(path.relative_to(ROOT)) for path in [RESULTS, PAGE]))
