"""`opsmith export my_ops.py:softmax --to torch`: write an operator as source for another framework, with a test."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from app.bridge.out.writing import TARGETS, write
from app.checking.command import shape_of
from app.checking.examination import Question, subject_of
from app.checking.findings import findings_of
from app.checking.operators import UserOperator, find
from app.checking.subject import Subject
from app.custom.operator import CustomOperator
from app.errors import ConfigError, ExportError
from app.files import refuse_foreign, write_whole
from app.printing import say
from app.run.trust import refuse_without_effect

_MARK, _WITHIN = "Written by opsmith ", 4096


def names_operator(word: str) -> bool:
    """Whether a word of the command line is an operator, and not a trained network."""
    return word.startswith("custom.") or word.endswith(".py") or ".py:" in word


def run(options: argparse.Namespace) -> int:
    """Check the named operators, and write each for each target."""
    for target in options.to:
        if target not in TARGETS:
            raise ConfigError(
                f"an operator is exported --to {', '.join(TARGETS)}; opsmith.onnx.export(operator, ...) writes {target}"
            )
    refuse_without_effect(options.custom_op, options.accept_changed)
    if options.allow_opaque:
        raise ConfigError(f"--allow-opaque is for networks; {options.model} is an operator")
    folder = Path(options.output or ".")
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"--output {folder} is a file; name a folder for the files of the operator")
    question = Question([shape_of(text) for text in options.shape])
    for one in find(options.model):
        _export(one, question, options.to, folder)
    return 0


def _export(one: UserOperator, question: Question, targets: Sequence[str], folder: Path) -> None:
    subject = subject_of(one, question)
    operator = _operator_of(subject)
    findings = findings_of(one, question)
    if findings.failed:
        first = findings.failed[0]
        raise ExportError(
            f"{one.name} fails its check, {first.check}: {first.words}; what is exported has passed `opsmith check`"
        )
    for target in targets:
        written = write(
            target, operator, subject.arrays(), (subject.low, subject.high), f"{findings.summary}, {findings.inputs}"
        )
        for name in written.files:
            refuse_foreign(folder / name, _MARK, _WITHIN, "name another folder with --output")
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in written.files.items():
            write_whole(folder / name, text.encode())
        say(f"{', '.join(str(folder / name) for name in written.files)}: {' '.join(written.notes)}")


def _operator_of(subject: Subject) -> Any:
    """The operator that leaves: the only one that a function applies."""
    operator = subject.operator
    if isinstance(operator.call, CustomOperator):
        return operator.call
    if operator.foreign is not None:
        raise ExportError(f"{operator.name} is a {operator.kind} already: use it as it is")
    if operator.kind != "py_func":
        raise ExportError(
            f"{operator.name} ({operator.kind}) is composed of operators of opsmith; what leaves is one of custom_op "
            "or py_func, whose functions work on numbers or arrays"
        )
    operators = [one for one in subject.definitions() if isinstance(one, CustomOperator)]
    if len(operators) != 1:
        raise ExportError(f"{subject.name} applies {len(operators)} operators of py_func; one is exported at a time")
    return operators[0]
