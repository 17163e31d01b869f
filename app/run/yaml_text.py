"""Strict YAML 1.2: conversion between text and plain data, without surprising types or unsafe features.

Keys are text and occur once, numbers are finite and fit in 64 bits. Tags, aliases, merges, deep nesting and big files
are not needed in a configuration and are refused. Every error names the line and the column.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)
from ruamel.yaml.reader import ReaderError

from app.errors import ConfigError, FileError
from app.files import LARGEST, read_file

MAX_BYTES = LARGEST["configuration"]
MAX_LINE = 2_500
MAX_DEPTH = 16
MAX_VALUES = 4_000
"""The library reads a megabyte, and ten thousand values, in ten seconds; within these limits it takes less than one."""
UNUSABLE = re.compile("[\0\ud800-\udfff]")
NAMELESS = "a null character or half a surrogate pair cannot name anything"
"""Why text with `UNUSABLE` is refused."""

_TAG = "tag:yaml.org,2002:"

# The core schema of YAML 1.2 (ruamel.yaml also takes 1_000 for a number). The first row that fits decides.
_SCALARS: tuple[tuple[str, Callable[[str], Any]], ...] = (
    (r"~|null|Null|NULL|", lambda text: None),
    (r"true|True|TRUE|false|False|FALSE", lambda text: text.lower() == "true"),
    (r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", lambda text: int(text, {"0o": 8, "0x": 16}.get(text[:2], 10))),
    (r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)", float),
)
_PLAIN = re.compile(r"[A-Za-z_/][\w.@/:()=+-]*(?<!:)", re.ASCII)
"""Text that needs no quotes, unless it is a scalar of another type."""

Place = tuple[int, int]
"""A line and a column, counted from 0."""


@dataclass(frozen=True)
class Document:
    """The plain data of a text, and the position of each value."""

    where: str
    """The name of the text in errors."""
    data: Any
    keys: dict[str, Place] = field(default_factory=dict)
    """The position of each key, by its path, such as `$.model.hidden`."""
    values: dict[str, Place] = field(default_factory=dict)
    """The position of each value, by its path, such as `$.model.hidden[0]`."""

    def error(self, path: str, problem: str, of_key: bool = False) -> ConfigError:
        """Return an error at a path, with its line and column if known."""
        place = (self.keys if of_key else self.values).get(path)
        return ConfigError(f"{self.where}: {problem}") if place is None else _error(self.where, *place, problem)


def read(path: str, links: bool = True) -> Document:
    """Read the data in a file; without `links`, not through a symbolic link. Errors of the system stay an OSError."""
    try:
        raw = read_file(path, MAX_BYTES, links)
    except FileError as error:
        raise ConfigError(str(error)) from error
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line, column = raw.count(b"\n", 0, error.start), error.start - raw.rfind(b"\n", 0, error.start) - 1
        raise _error(path, line, column, f"the byte 0x{raw[error.start]:02x} is not UTF-8 text") from None
    return parse(text, path)


@lru_cache(maxsize=64)  # commands read what was typed several times, and comparisons the same file
def parse(text: str, where: str) -> Document:
    """Parse `text`; errors name it `where`. The document is shared: it is not changed."""
    if len(text) > MAX_BYTES:
        raise ConfigError(f"{where}: longer than {MAX_BYTES:,} characters, which no configuration needs")
    for number, content in enumerate(text.split("\n")):
        if len(content) > MAX_LINE:  # the library's time grows quadratically with the length of a line
            raise _error(where, number, MAX_LINE, f"a line of more than {MAX_LINE:,} characters")
    try:
        return _Reader(text, where).document()
    except ReaderError as error:
        before = text[: error.position]
        line, column = before.count("\n"), len(before) - before.rfind("\n") - 1
        problem = f"the character U+{ord(text[error.position]):04X} is not allowed in YAML"
    except MarkedYAMLError as error:
        mark: Any = error.problem_mark or error.context_mark
        line, column = mark.line, mark.column
        problem = ", ".join(filter(None, (error.context, error.problem)))
        if "'\\t'" in problem:
            problem += " (a tab; indent with spaces)"
    raise _error(where, line, column, problem)


def has_comment(text: str) -> bool:
    """Whether a text that `parse` reads has a comment: then its data is another with a letter in place of each #."""
    try:
        marked = parse(text.replace("#", "\ue000"), "").data
    except ConfigError:
        return True
    return json.dumps(marked) != json.dumps(parse(text, "").data).replace("#", "\\ue000")


def write(data: Any, indent: str = "") -> str:
    """Return YAML that `parse` reads back as `data`."""
    if not isinstance(data, dict) or not data:
        return f"{in_a_line(data)}\n"
    text = ""
    for key, value in data.items():
        text += f"{indent}{in_a_line(key)}:"
        if isinstance(value, dict) and value:
            text += f"\n{write(value, f'{indent}  ')}"
        elif isinstance(value, (list, tuple)) and len(in_a_line(value)) > 80:
            text += "\n" + "".join(f"{indent}  - {in_a_line(item)}\n" for item in value)
        else:
            text += f" {in_a_line(value)}\n"
    return text


def in_a_line(value: Any) -> str:
    """Return YAML of a value in a line."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{in_a_line(key)}: {in_a_line(item)}' for key, item in value.items())}}}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(in_a_line, value))}]"
    if not isinstance(value, str):
        return json.dumps(value)
    if _PLAIN.fullmatch(value) and not any(re.fullmatch(pattern, value) for pattern, _ in _SCALARS):
        return value
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in escaped) + '"'


class _Reader:
    """Builds data from the parser's events; the library's constructors never run."""

    def __init__(self, text: str, where: str):
        yaml = YAML(typ="safe", pure=True)
        _, self._parser = yaml.get_constructor_parser(text)
        self._library = yaml
        self._found = Document(where, None)
        self._count = 0

    def document(self) -> Document:
        data, documents = None, 0
        while (event := self._next()) is not None:
            if isinstance(event, DocumentStartEvent):
                documents += 1
                if event.version or event.tags:
                    raise _mistake(event, "a directive such as %YAML is not allowed here: remove it")
                if documents > 1:
                    raise _mistake(event, "expected a single document in the stream, but found another document")
            elif isinstance(event, NodeEvent):
                data = self._value(event, "$", 0)
        return Document(self._found.where, data, self._found.keys, self._found.values)

    def _next(self) -> Event | None:
        try:
            return self._parser.get_event() if self._parser.check_event() else None
        except (MarkedYAMLError, ReaderError):
            raise
        except Exception:  # the library itself fails on %YAML 1.2, and on "\\U99999999"
            problem = "a directive such as %YAML, or a character code out of range, is not allowed here"
            raise MarkedYAMLError(problem=problem, problem_mark=self._library.reader.get_mark()) from None

    def _following(self) -> Event:
        event = self._next()
        assert event is not None, "the parser ends every collection"
        return event

    def _value(self, event: Any, path: str, depth: int) -> Any:
        if isinstance(event, AliasEvent):
            raise _mistake(event, f"the alias *{event.anchor} is not allowed here: write the value out")
        if event.tag is not None:
            raise _mistake(
                event, f"the tag {str(event.tag).replace(_TAG, '!!')} is not allowed here: write the value alone"
            )
        if depth == MAX_DEPTH:
            raise _mistake(event, f"nested more than {MAX_DEPTH} deep")
        self._count += 1
        if self._count > MAX_VALUES:
            raise _mistake(event, f"more than {MAX_VALUES:,} values, which no configuration needs")
        self._found.values[path] = _place(event)
        if isinstance(event, MappingStartEvent):
            return self._mapping(path, depth)
        if isinstance(event, SequenceStartEvent):
            items: list[Any] = []
            while not isinstance(item := self._following(), SequenceEndEvent):
                items.append(self._value(item, f"{path}[{len(items)}]", depth + 1))
            return items
        assert isinstance(event, ScalarEvent)
        return _scalar(event)

    def _mapping(self, path: str, depth: int) -> dict[str, Any]:
        mapping: dict[str, Any] = {}
        while not isinstance(event := self._following(), MappingEndEvent):
            key = self._value(event, f"{path}.?", depth + 1)
            if not isinstance(key, str):
                raise _mistake(event, "a key must be text")
            if key in mapping:
                raise _mistake(event, f"the key {key[:100]!r} occurs twice")
            here = f"{path}.{key}"
            self._found.keys[here] = _place(event)
            mapping[key] = self._value(self._following(), here, depth + 1)
        return mapping


def _scalar(event: ScalarEvent) -> Any:
    text: str = event.value
    for pattern, value_of in _SCALARS if event.style is None else ():
        if re.fullmatch(pattern, text):
            with suppress(ValueError):  # of `.inf` and `.nan`, and of more digits than Python takes
                value = value_of(text)
                if value is None or (isinstance(value, float) and math.isfinite(value)) or -(2**63) <= value < 2**63:
                    return value
            raise _mistake(event, f"{text[:40]} is not a finite number of at most 64 bits")
    if UNUSABLE.search(text):
        raise _mistake(event, f"text with {NAMELESS}")
    return text


def _place(event: Any) -> Place:
    return event.start_mark.line, event.start_mark.column


def _mistake(at: Any, problem: str) -> MarkedYAMLError:
    return MarkedYAMLError(problem=problem, problem_mark=at.start_mark)


def _error(where: str, line: int, column: int, problem: str) -> ConfigError:
    return ConfigError(f"{where}: line {line + 1}, column {column + 1}: {problem[:300]}")
