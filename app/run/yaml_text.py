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

import yaml
from yaml import events

from app.errors import ConfigError, FileError
from app.files import LARGEST, read_file

MAX_BYTES = LARGEST["configuration"]
MAX_DEPTH = 16
UNUSABLE = re.compile("[\0\ud800-\udfff]")
NAMELESS = "a null character or half a surrogate pair cannot name anything"
"""Why text with `UNUSABLE` is refused."""

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # whose parser is used alone, without its constructors
_TAG = "tag:yaml.org,2002:"

# The core schema of YAML 1.2; the library has that of 1.1. The first row that fits decides.
_SCALARS: tuple[tuple[str, Callable[[str], Any]], ...] = (
    (r"~|null|Null|NULL|", lambda text: None),
    (r"true|True|TRUE|false|False|FALSE", lambda text: text.lower() == "true"),
    (r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", lambda text: int(text, {"0o": 8, "0x": 16}.get(text[:2], 10))),
    (r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)", float),
)
_PLAIN = re.compile(r"[A-Za-z_/][\w.@/:()=+-]*(?<!:)", re.ASCII)
"""Text that needs no quotes, unless it is a scalar of another type."""

Mark = tuple[int, int]
"""A line and a column, counted from 0."""


@dataclass(frozen=True)
class Document:
    """The plain data of a text, and the position of each value."""

    where: str
    """The name of the text in errors."""
    data: Any
    keys: dict[str, Mark] = field(default_factory=dict)
    """The position of each key, by its path, such as `$.model.hidden`."""
    values: dict[str, Mark] = field(default_factory=dict)
    """The position of each value, by its path, such as `$.model.hidden[0]`."""
    rest: str = ""
    """The text after the data."""

    def error(self, path: str, problem: str, of_key: bool = False) -> ConfigError:
        """Return an error at a path, with its line and column if known."""
        mark = (self.keys if of_key else self.values).get(path)
        return ConfigError(f"{self.where}: {problem}") if mark is None else _error(self.where, mark, problem)


def read(path: str, links: bool = True) -> Document:
    """Read the data in a file; without `links`, not through a symbolic link. Errors of the system stay an OSError."""
    try:
        raw = read_file(path, MAX_BYTES, links)
    except FileError as error:
        raise ConfigError(str(error)) from error
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = raw[: error.start].decode()
        raise _error(path, _end_of(before), f"the byte 0x{raw[error.start]:02x} is not UTF-8 text") from None
    return parse(text, path)


@lru_cache(maxsize=64)  # commands read what was typed several times, and comparisons the same file
def parse(text: str, where: str) -> Document:
    """Parse `text`; errors name it `where`. The document is shared: it is not changed."""
    if len(text) > MAX_BYTES:
        raise ConfigError(f"{where}: longer than {MAX_BYTES:,} characters, which no configuration needs")
    if unknown := yaml.reader.Reader.NON_PRINTABLE.search(text):
        problem = f"the character U+{ord(unknown[0]):04X} is not allowed in YAML"
        raise _error(where, _end_of(text[: unknown.start()]), problem)
    try:
        return _Reader(text, where).document()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = ", ".join(filter(None, (error.context, error.problem)))
        if text[mark.index :].startswith("\t"):
            problem += " (a tab; indent with spaces)"
        raise _error(where, _end_of(text[: mark.index]), problem) from None


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
    """Builds data from the parser's events."""

    def __init__(self, text: str, where: str):
        self._text, self._events = text, yaml.parse(text, Loader=_LOADER)
        self._document = Document(where, None)
        self._end = 0

    def document(self) -> Document:
        data, documents = None, 0
        for event in self._events:
            if isinstance(event, events.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise _mistake(event, "expected a single document in the stream, but found another document")
            elif isinstance(event, events.NodeEvent):
                data = self._value(event, "$", 0)
        document = self._document
        return Document(document.where, data, document.keys, document.values, self._text[self._end :])

    def _value(self, event: Any, path: str, depth: int) -> Any:
        if isinstance(event, events.AliasEvent):
            raise _mistake(event, f"the alias *{event.anchor} is not allowed here: write the value out")
        if event.tag is not None:
            tag = str(event.tag).replace(_TAG, "!!")
            raise _mistake(event, f"the tag {tag} is not allowed here: write the value alone")
        if depth == MAX_DEPTH:
            raise _mistake(event, f"nested more than {MAX_DEPTH} deep")
        self._document.values[path] = _mark(event)
        value: Any
        if isinstance(event, events.MappingStartEvent):
            value = {}
            while not isinstance(event := next(self._events), events.MappingEndEvent):
                key = self._value(event, f"{path}.?", depth + 1)
                if not isinstance(key, str):
                    raise _mistake(event, "a key must be text")
                if key in value:
                    raise _mistake(event, f"the key {key[:100]!r} occurs twice")
                self._document.keys[f"{path}.{key}"] = _mark(event)
                value[key] = self._value(next(self._events), f"{path}.{key}", depth + 1)
        elif isinstance(event, events.SequenceStartEvent):
            value = []
            while not isinstance(event := next(self._events), events.SequenceEndEvent):
                value.append(self._value(event, f"{path}[{len(value)}]", depth + 1))
        else:
            value = _scalar(event)
        if event.end_mark.index > event.start_mark.index:  # where a block ends, comments may have been skipped
            self._end = event.end_mark.index
        return value


def _scalar(event: Any) -> Any:
    text: str = event.value
    for pattern, value_of in _SCALARS if not event.style else ():
        if re.fullmatch(pattern, text):
            with suppress(ValueError):  # of `.inf` and `.nan`, and of more digits than Python takes
                value = value_of(text)
                if value is None or (isinstance(value, float) and math.isfinite(value)) or -(2**63) <= value < 2**63:
                    return value
            raise _mistake(event, f"{text[:40]} is not a finite number of at most 64 bits")
    if UNUSABLE.search(text):
        raise _mistake(event, f"text with {NAMELESS}")
    return text


def _mark(event: Any) -> Mark:
    return event.start_mark.line, event.start_mark.column


def _end_of(text: str) -> Mark:
    return text.count("\n"), len(text) - text.rfind("\n") - 1


def _mistake(at: Any, problem: str) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=at.start_mark)


def _error(where: str, mark: Mark, problem: str) -> ConfigError:
    return ConfigError(f"{where}: line {mark[0] + 1}, column {mark[1] + 1}: {problem[:300]}")
