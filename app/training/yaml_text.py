"""Strict YAML: text to plain data and back, so that a file means what it seems to mean and can do no harm.

Scalars follow YAML 1.2 (`1e-3` is a number, `yes` is text), keys are text and occur once, numbers are finite
and fit in 64 bits. Tags, aliases, merges, deep nesting and big files have no use in a configuration and are
refused.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import yaml
from yaml.reader import ReaderError

from app.errors import ConfigError, FileError
from app.files import read_file

MAX_BYTES = 1_000_000
MAX_DEPTH = 16
MAX_VALUES = 10_000  # a value takes hundreds of times the memory of its text

_TAG = "tag:yaml.org,2002:"

# The core schema of YAML 1.2: kind, spelling, possible first characters. The first row that fits decides.
_SCALARS = (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", list("-+0123456789")),
    (
        "float",
        r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
        list("-+.0123456789"),
    ),
)


def read(path: str) -> Any:
    """The plain data in a file. What the operating system refuses stays an OSError."""
    try:
        raw = read_file(path, MAX_BYTES)
    except FileError as error:
        raise ConfigError(str(error)) from error
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line, column = raw.count(b"\n", 0, error.start), error.start - raw.rfind(b"\n", 0, error.start) - 1
        raise _error(path, line, column, f"the byte 0x{raw[error.start]:02x} is not UTF-8 text") from None
    return parse(text, path)


def parse(text: str, where: str) -> Any:
    """The plain data that `text` holds; `where` is what an error calls its origin."""
    if len(text) > MAX_BYTES:
        raise ConfigError(f"{where}: longer than {MAX_BYTES:,} characters, which no configuration needs")
    try:
        return _plain(_Loader(text).root())
    except ReaderError as error:
        before = text[: error.position]
        line, column = before.count("\n"), len(before) - before.rfind("\n") - 1
        problem = f"the character U+{ord(text[error.position]):04X} is not allowed in YAML"
    except yaml.MarkedYAMLError as error:
        mark: Any = error.problem_mark or error.context_mark
        line, column = mark.line, mark.column
        problem = ", ".join(filter(None, (error.context, error.problem)))
        if "'\\t'" in problem:
            problem += " (a tab; indent with spaces)"
    raise _error(where, line, column, problem)


def write(data: Any) -> str:
    """The YAML that `parse` reads back to `data`."""
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)


class _Loader(yaml.SafeLoader):
    """Composes nodes only; `_plain` turns them into data, so that no constructor of PyYAML ever runs."""

    depth = 0
    values = 0

    def root(self) -> yaml.Node | None:
        try:
            return self.get_single_node()
        except (ValueError, OverflowError):  # PyYAML itself stumbles, such as over "\U99999999"
            problem = "a character code or a version that is out of range"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=self.get_mark()) from None

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event: Any = self.peek_event()
        if isinstance(event, yaml.AliasEvent):
            raise _mistake(event, f"the alias *{event.anchor} is not allowed here: write the value out")
        if event.tag is not None:
            tag = event.tag.replace(_TAG, "!!")
            raise _mistake(event, f"the tag {tag} is not allowed here: write the value alone")
        if self.depth == MAX_DEPTH:
            raise _mistake(event, f"nested more than {MAX_DEPTH} deep")
        if self.values == MAX_VALUES:
            raise _mistake(event, f"more than {MAX_VALUES:,} values, which no configuration needs")
        self.values += 1
        self.depth += 1
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


class _Dumper(yaml.SafeDumper):
    """Quotes what `_Loader` would otherwise take for another type; lists of numbers stay on one line."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def represent_items(self, data: Sequence[Any]) -> yaml.Node:
        numbers = all(isinstance(item, int | float) for item in data)
        return self.represent_sequence(f"{_TAG}seq", data, flow_style=numbers)

    def represent_text(self, data: str) -> yaml.Node:
        # PyYAML loses some line separators in any other style
        return self.represent_scalar(f"{_TAG}str", data, style=None if data.isprintable() else '"')


_Dumper.add_representer(str, _Dumper.represent_text)
_Dumper.add_representer(list, _Dumper.represent_items)
_Dumper.add_representer(tuple, _Dumper.represent_items)
for _class in (_Loader, _Dumper):
    _class.yaml_implicit_resolvers = {}  # those of YAML 1.1
    for _kind, _spelling, _first in _SCALARS:
        _class.add_implicit_resolver(f"{_TAG}{_kind}", re.compile(rf"(?:{_spelling})\Z"), _first)


def _plain(node: yaml.Node | None) -> Any:
    if node is None:
        return None  # nothing but comments
    if isinstance(node, yaml.SequenceNode):
        return [_plain(item) for item in node.value]
    if isinstance(node, yaml.MappingNode):
        mapping: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = _plain(key_node)
            if not isinstance(key, str):
                raise _mistake(key_node, "a key must be text")
            if key in mapping:
                raise _mistake(key_node, f"the key {key[:100]!r} occurs twice")
            mapping[key] = _plain(value_node)
        return mapping
    return _scalar(node)


def _scalar(node: yaml.Node) -> Any:
    text = node.value
    kind = node.tag.removeprefix(_TAG)
    if kind == "null":
        return None
    if kind == "bool":
        return text.lower() == "true"
    if kind in ("int", "float"):
        try:
            return _integer(text) if kind == "int" else _finite(text)
        except ValueError:
            raise _mistake(node, f"{text[:40]} is not a finite number of at most 64 bits") from None
    if re.search("[\0\ud800-\udfff]", text):
        raise _mistake(node, "text with a null character or half a surrogate pair cannot name anything")
    return text


def _integer(text: str) -> int:
    number = int(text, base={"0o": 8, "0x": 16}.get(text[:2], 10))
    if not -(2**63) <= number < 2**63:
        raise ValueError(text)
    return number


def _finite(text: str) -> float:
    number = float(text)  # which does not know `.inf` and `.nan`: a ValueError too
    if math.isinf(number):
        raise ValueError(text)
    return number


def _mistake(at: Any, problem: str) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=at.start_mark)


def _error(where: str, line: int, column: int, problem: str) -> ConfigError:
    return ConfigError(f"{where}: line {line + 1}, column {column + 1}: {problem[:200]}")
