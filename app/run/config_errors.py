"""Errors in configurations: where the first one is, what was found, and what is expected."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from app.run import layers

Problem = tuple[str, str, bool]
"""A path such as `$.model.hidden[0]`, what is wrong there, and whether it is the key that is wrong."""


def problem(data: Any, kind: Any, error: msgspec.ValidationError) -> Problem:
    """Return what makes data unfit for a type, of which msgspec's error has the path."""
    place = re.search(r" - at `(\$[\w.\[\]]*)`\Z", str(error))
    path = place[1] if place else "$"
    value, kind = _at(path, data, kind)
    written = path.removeprefix("$.")
    if _is_section(kind) and isinstance(value, dict):
        tag, keys = kind.__struct_config__.tag_field, list(kind.__struct_fields__)
        unknown = next((key for key in value if key not in keys and key != tag), None)
        if unknown is None:
            missing = [f.name for f in msgspec.structs.fields(kind) if f.required and f.name not in value]
            needs = f"a {value.get(tag)} layer needs {' and '.join(missing)}; found {_as_yaml(value)}"
            return path, f"{written}: {needs}", False
        dotted = {name: f"{section}.{name}" for name, section in sections(kind).items()}
        closest = hint(unknown, keys) or hint(unknown, dotted, dotted) or "."
        shown = unknown if unknown.isprintable() and 0 < len(unknown) <= 60 else repr(unknown[:60])
        known_keys = ", ".join([tag, *keys] if tag else keys)
        key = f"{path}.{shown}".removeprefix("$.")
        return f"{path}.{unknown}", f"{key}: unknown key{closest} Known keys here: {known_keys}", True
    return path, f"{written}: {unexpected(value, kind)}".removeprefix("$: "), False


def unexpected(value: Any, kind: Any) -> str:
    """Say what was found, and what is expected of a type."""
    closest = hint(value, map(str, get_args(kind))) if get_origin(kind) is Literal else ""
    return f"found {_as_yaml(value)}, expected {_expected(kind)}{closest}"


def sections(struct: type[msgspec.Struct]) -> dict[str, str]:
    """Return the section of each setting that is in one: `train` for `epochs`."""
    kinds = {field.name: field.type for field in msgspec.structs.fields(struct)}
    return {key: name for name, kind in kinds.items() if _is_section(kind) for key in kind.__struct_fields__}


def _at(path: str, value: Any, kind: Any) -> tuple[Any, Any]:
    """Return the value at a path of some data, and the type that it should have there."""
    for part in re.findall(r"\w+", path):
        if part.isdigit():
            value, kind = value[int(part)], next(get_args(one)[0] for one in _members(kind) if get_origin(one) is tuple)
        elif part == "type":
            return value[part], Literal[tuple(layers.KINDS)]
        else:
            value, kind = value[part], get_type_hints(kind, include_extras=True)[part]
        if kind == layers.LayerConfig and isinstance(value, dict) and value.get("type") in (*layers.KINDS,):
            kind = layers.KINDS[value["type"]]
    return value, kind


def _members(kind: Any) -> tuple[Any, ...]:
    """Return the types of a union, or else the type, without annotations."""
    kind = getattr(kind, "__origin__", kind) if hasattr(kind, "__metadata__") else kind
    parts = get_args(kind) if get_origin(kind) in (Union, UnionType) else ()
    return tuple(member for part in parts for member in _members(part)) or (kind,)


def _as_yaml(value: Any) -> str:
    """Format a value as it is written in YAML."""
    if value is None:
        return "nothing (null)"
    if isinstance(value, bool):
        return str(value).lower()
    shown = repr(value[:60] if isinstance(value, str) else value)
    shown = shown if len(shown) <= 70 else f"{shown[:60]}..."
    return f"{shown} (text)" if isinstance(value, str) else shown


def hint(word: Any, words: Iterable[str], shown: dict[str, str] | None = None) -> str:
    """Ask whether the closest of some words was meant."""
    closest = difflib.get_close_matches(word[:60].lower(), list(words), n=1) if isinstance(word, str) else []
    return f"; did you mean {(shown or {}).get(closest[0], closest[0])!r}?" if closest else ""


def _is_section(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _expected(kind: Any) -> str:
    for meta in getattr(kind, "__metadata__", ()):
        if meta.description:
            return str(meta.description)
    if get_origin(kind) is Literal:
        return f"one of {', '.join(map(repr, get_args(kind)))}"
    if kind == layers.LayerConfig:
        return f"a layer, such as {{type: dense, units: 84}}; types of layers: {', '.join(layers.KINDS)}"
    if kind is NoneType:
        return "null"
    return "a section of `key: value` lines" if _is_section(kind) else " or ".join(map(_expected, get_args(kind)))
