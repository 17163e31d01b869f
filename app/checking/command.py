"""`python -m app check my_ops.py[:name]`: a verdict a line on each custom operator; exit status 1 if any fails."""

from __future__ import annotations

import argparse
import ast
import json
import math
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from app.checking.checks import CHECKS, examine
from app.checking.examples import inputs_for
from app.checking.finding import Found, equivalent, find
from app.checking.subject import Subject
from app.checking.verdict import FAILED, NOTE, OK, Verdict
from app.errors import AppError, BoundsError, ConfigError, ReadOnlyError
from app.ops.dtype import NAMES
from app.printing import say

_REFUSED: dict[type[AppError], str] = {ReadOnlyError: "untouched", BoundsError: "bounds"}
"""The checks that an operator fails which nobody should run."""
_SIZES = re.compile(r"\[[\d, ]*\]")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command line may say."""
    parser.add_argument(
        "operators",
        nargs="+",
        metavar="WHAT",
        help="my_ops.py (all in it), my_ops.py:name, package.module:name, or a shipped one such as custom.relu",
    )
    parser.add_argument(
        "--like", metavar="OPERATOR", help="what it should compute the same as: relu, leaky_relu(negative_slope=0.1) …"
    )
    parser.add_argument(
        "--shape",
        action="append",
        default=[],
        metavar="N,N[:TYPE]",
        help="the shape of an input, once for each (found by trying otherwise); 4:int64 for whole numbers",
    )
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of the operator")
    parser.add_argument("--range", metavar="LOW,HIGH", help="the numbers that its inputs are drawn from")
    parser.add_argument("--only", metavar="CHECK,…", help=f"these checks alone, of: {', '.join(CHECKS)}")
    parser.add_argument("--json", action="store_true", help="print an object a line instead")


def run(options: argparse.Namespace) -> int:
    """Examine what is named; gives 0 if everything holds, 1 if a check fails."""
    only = _checks(options.only)
    settings = dict(_setting(text) for text in options.set)
    shapes = [_shape(text) for text in options.shape]
    within = _range(options.range) if options.range else None
    if options.like:
        equivalent(options.like)
    operators = [one for word in options.operators for one in find(word)]
    wrong = 0
    for number, one in enumerate(operators):
        subject, verdicts = None, []
        try:
            subject = inputs_for(one, shapes, settings, options.like or "", within)
            verdicts = list(examine(subject, only))
        except AppError as error:
            if isinstance(error, ConfigError) and len(operators) == 1:
                raise
            verdicts = [Verdict(FAILED, str(error), _REFUSED.get(type(error), "runs"))]
        wrong += any(v.failed for v in verdicts)
        _show(one, subject, verdicts, number, options.json)
    return 1 if wrong else 0


def _show(one: Found, subject: Subject | None, verdicts: list[Verdict], number: int, as_json: bool) -> None:
    if as_json:
        for v in verdicts:
            print(json.dumps({"operator": one.name, "check": v.check, "state": v.state, "words": v.words}))
        sys.stdout.flush()
        return
    given = f"; checked on {', '.join(map(str, subject.inputs))}" if subject else ""
    between = f" in [{subject.low:g}, {subject.high:g}]" if subject else ""
    say(("\n" if number else "") + one.label + given + between)
    for v in _without_repeats(verdicts):
        say(f"  {v.state:6}  {v.check:13}  {v.words}")
    counts = {state: sum(v.state == state for v in verdicts) for state in (OK, NOTE)}
    bad = [v.check for v in verdicts if v.failed]
    say(f"  {_ending(bad, counts)}")


def _without_repeats(verdicts: list[Verdict]) -> Iterator[Verdict]:
    """The verdicts; what one says again with other sizes, as all do where backward raises, points to the first."""
    told: dict[str, str] = {}
    for v in verdicts:
        words = _SIZES.sub("", v.words)
        before = next((check for error, check in told.items() if error in words), None)
        if v.failed and before is None:
            told[words] = v.check
        yield v if before is None or not v.failed else replace(v, words=f"for the same reason as {before}")


def _ending(bad: list[str], counts: dict[str, int]) -> str:
    kept = f"{counts[OK]} hold" + (f", {counts[NOTE]} to know" if counts["note"] else "")
    return f"{len(bad)} FAILED ({', '.join(dict.fromkeys(bad))}); {kept}" if bad else kept


def _checks(text: str | None) -> list[str]:
    names = [part.strip() for part in text.split(",")] if text else []
    for name in names:
        if name not in CHECKS:
            raise ConfigError(f"--only: there is no check {name!r}; there are {', '.join(CHECKS)}")
    return names


def _setting(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise ConfigError(f"--set {text}: expected NAME=VALUE, as in --set slope=0.2")
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return name, value


def _shape(text: str) -> tuple[tuple[int, ...], str]:
    sizes, _, dtype = text.partition(":")
    try:
        shape = tuple(int(part) for part in sizes.strip("[]()").split(",") if part.strip())
    except ValueError:
        raise ConfigError(f"--shape {text}: expected whole numbers with commas, as in --shape 4,8") from None
    if any(size < 1 for size in shape):
        raise ConfigError(f"--shape {text}: sizes must be at least 1")
    if dtype and dtype not in NAMES:
        raise ConfigError(f"--shape {text}: there is no type {dtype!r}; there are {', '.join(NAMES)}")
    return shape, dtype or "float64"


def _range(text: str) -> tuple[float, float]:
    try:
        low, high = (float(part) for part in text.split(","))
    except ValueError:
        raise ConfigError(f"--range {text}: expected two numbers, as in --range=-1,1") from None
    if not low < high:
        raise ConfigError(f"--range {text}: the first number must be below the second")
    if not math.isfinite(high - low):
        raise ConfigError(f"--range {text}: expected finite numbers, less than 1e308 apart")
    return low, high
