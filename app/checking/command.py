"""`opsmith check my_ops.py[:name]`: prints a line for each check; the exit status is 1 if one fails."""

from __future__ import annotations

import argparse
import ast
import json
import shutil
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any, TextIO

from app.checking.certificate import Certificate, badge
from app.checking.checks import CHECKS, check_names
from app.checking.examination import Inputs, Part, Question, examination, refusal
from app.checking.exhaustive import every_number
from app.checking.findings import Findings, painted
from app.checking.operators import UserOperator, equivalent, find
from app.checking.reproduction import evidence
from app.custom.lookup import UNREADABLE
from app.errors import ConfigError
from app.files import without_tilde, write_whole
from app.ops.dtype import NAMES
from app.printing import escaped, json_alone, say, wrapped

_INDENT = 25
"""The column in which the words of a line begin."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command line."""
    parser.add_argument(
        "operators",
        nargs="+",
        metavar="WHAT",
        help="my_ops.py (all its operators), my_ops.py:name, package.module:name, or a shipped one such as custom.relu",
    )
    parser.add_argument(
        "--like",
        metavar="OPERATOR",
        help="an operator that should compute the same: relu, leaky_relu(negative_slope=0.1)",
    )
    parser.add_argument(
        "--shape",
        action="append",
        default=[],
        metavar="N,N[:TYPE]",
        help="the shape of an input, once for each input (by default found by trying); 4:int64 for integers",
    )
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of the operator")
    parser.add_argument("--range", metavar="LOW,HIGH", help="the interval from which inputs are drawn")
    parser.add_argument("--only", metavar="CHECK,…", help=f"only these checks, of: {', '.join(CHECKS)}")
    parser.add_argument(
        "--also",
        metavar="CHECK,…",
        help="what an operator of another framework must support: compile (otherwise left out), vmap, forward, jit",
    )
    parser.add_argument(
        "--exhaustive",
        action="store_true",
        help="instead, compare an elementwise operator of one input with exact results at all numbers of float16, "
        "bfloat16 and float32",
    )
    parser.add_argument("--certificate", metavar="FILE", help="with --exhaustive: write what it finds, as JSON")
    parser.add_argument("--badge", metavar="FILE", help="with --exhaustive: write the outcome as an SVG image")
    parser.add_argument("--json", action="store_true", help="print a JSON object for each check instead")


def run(options: argparse.Namespace) -> int:
    """Check the named operators; gives 0 if all checks pass, 1 if one fails."""
    with json_alone() if options.json else nullcontext(sys.stdout) as out:  # operators may print, too
        return _run(options, out)


def _run(options: argparse.Namespace, out: TextIO) -> int:
    only = _checks(options.only)
    settings = dict(_setting(text) for text in options.set)
    shapes = [shape_of(text) for text in options.shape]
    within = _range(options.range) if options.range else None
    question = Question(shapes, settings, options.like or "", None, within, only, _checks(options.also, "--also"))
    if options.like:
        equivalent(options.like)
    for name in ("certificate", "badge"):
        if getattr(options, name) and not options.exhaustive:
            raise ConfigError(f"--{name} is written by --exhaustive: give both")
    for name in ("shape", "range", "only", "also"):
        if getattr(options, name) and options.exhaustive:
            raise ConfigError(f"--{name} has no effect with --exhaustive, which tries every number: leave out one")
    operators = [one for word in options.operators for one in find(word)]
    for name in ("certificate", "badge"):
        if getattr(options, name) and len(operators) > 1:
            names = ", ".join(one.name for one in operators)
            raise ConfigError(f"--{name} is a file for one operator, and these are {len(operators)}: {names}. Name one")
    wrong = []
    for number, one in enumerate(operators):
        shown, written = _Shown(one, out if options.json else None, number > 0), list[str]()
        parts = _at_every_number(one, question, options, written) if options.exhaustive else examination(one, question)
        try:
            for part in parts:
                shown.add(part)
        except ConfigError as error:
            if len(operators) == 1:
                raise
            shown.add(refusal(error))
        shown.end(None if options.exhaustive else question)
        if written and not options.json:
            say("\n".join(written))
        if shown.findings.failed:
            wrong.append(one.name)
    if len(operators) > 1 and not options.json:
        failed = f"{len(wrong)} of {len(operators)} operators failed: {', '.join(wrong)}" if wrong else ""
        say(_wrapped("\n" + (failed or f"all {len(operators)} operators passed"), 0))
    return 1 if wrong else 0


def _at_every_number(
    one: UserOperator, question: Question, options: argparse.Namespace, written: list[str]
) -> Iterator[Part]:
    """The verdicts at every number; the files that are asked for are written, and named in `written`."""
    for part in every_number(one, question):
        if not isinstance(part, Certificate):
            yield part
            continue
        yield from part.verdicts
        if options.certificate:
            write_whole(without_tilde(options.certificate), part.as_json())
            written.append(f"The certificate is {options.certificate}")
        if options.badge:
            write_whole(without_tilde(options.badge), badge(part))
            written.append(f"The badge is {options.badge}")


class _Shown:
    """Prints the verdicts on one operator as they are known, as lines with a summary or as JSON objects."""

    def __init__(self, one: UserOperator, json_out: TextIO | None, apart: bool):
        self.findings = Findings(one.label)
        self._one, self._json, self._apart = one, json_out, apart
        self._has_begun = False

    def add(self, part: Part) -> None:
        if isinstance(part, Inputs):
            self.findings.inputs = part
            self._begin(f"; {part}")
            return
        self._begin("")
        self.findings.append(part)
        if self._json:
            row = {"operator": self._one.name, "check": part.check, "state": part.state, "words": part.words}
            print(json.dumps(row), file=self._json, flush=True)
        elif self.findings.shown[-1] is part:
            text = _wrapped(f"  {part.state:6}  {part.check:13}  {part.words}", _INDENT)
            print(f"  {painted(part.state)}{escaped(text[8:])}", flush=True)

    def _begin(self, inputs: str) -> None:
        if not (self._has_begun or self._json):
            say(("\n" if self._apart else "") + _wrapped(self.findings.operator + inputs, 2))
        self._has_begun = True

    def end(self, question: Question | None) -> None:
        if self._json:
            return
        say(_wrapped(f"  {self.findings.summary}", 4))
        if question and self.findings.failed and self._one.foreign is not None:  # what an issue for its authors needs
            say("\n".join(evidence(self._one, question, self.findings)))


def _wrapped(text: str, indent: int) -> str:
    """Text wrapped at words to the width of the terminal, if it is printed on one."""
    return wrapped(text, max(40, shutil.get_terminal_size().columns) if sys.stdout.isatty() else None, indent)


def _checks(text: str | None, option: str = "--only") -> list[str]:
    names = [part.strip() for part in text.split(",")] if text else []
    try:
        check_names(names)
    except ConfigError as error:
        raise ConfigError(f"{option}: {error}") from error
    return names


def _setting(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise ConfigError(f"--set {text}: expected NAME=VALUE, as in --set slope=0.2")
    try:
        return name, ast.literal_eval(value)
    except UNREADABLE:
        return name, value


def shape_of(text: str) -> tuple[tuple[int, ...], str]:
    """The shape and the type in a text such as `4,8` or `4:int64`."""
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
    return low, high
