"""Errors in configurations: where the first one is, what was found, and what is expected."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from app.run import layers

Problem = tuple[str, str, bool]
"""A path such as `$.model.hidden[0]`, what is wrong there, and whether it is the key that is wrong."""


def problems(data: Any, kind: Any, path: str = "$") -> Iterator[Problem]:
    """Yield what makes data unfit for a type."""
    if kind == layers.LayerConfig and isinstance(data, dict) and "type" in data:
        name = data["type"]
        if not isinstance(name, str) or name not in layers.KINDS:
            expected = f"{_one_of(layers.KINDS)}{_hint(name, layers.KINDS)}"
            yield f"{path}.type", f"{_as_written(path)}.type: found {_as_yaml(name)}, expected {expected}", False
            return
        kind = layers.KINDS[name]
    if _is_section(kind) and isinstance(data, dict):
        yield from _of_section(data, kind, path)
        return
    if isinstance(data, (list, tuple)) and (item := _item_of(kind)) is not None:
        for number, value in enumerate(data):
            yield from problems(value, item, f"{path}[{number}]")
    try:
        msgspec.convert(data, kind)
    except msgspec.ValidationError:
        yield path, f"{_as_written(path)}: {unexpected(data, kind)}", False


def unexpected(value: Any, kind: Any) -> str:
    """Say what was found, and what is expected of a type."""
    hint = _hint(value, map(str, get_args(kind))) if get_origin(kind) is Literal else ""
    return f"found {_as_yaml(value)}, expected {_expected(kind)}{hint}"


def sections(struct: type[msgspec.Struct]) -> dict[str, str]:
    """Return the section of each setting that is in one: `train` for `epochs`."""
    kinds = {field.name: field.type for field in msgspec.structs.fields(struct)}
    return {key: name for name, kind in kinds.items() if _is_section(kind) for key in kind.__struct_fields__}


def _of_section(data: dict[str, Any], kind: type[msgspec.Struct], path: str) -> Iterator[Problem]:
    kinds, tag = get_type_hints(kind, include_extras=True), kind.__struct_config__.tag_field
    kinds = {name: kinds[name] for name in kind.__struct_fields__}
    for key in data:
        if key not in kinds and key != tag:
            dotted = {name: f"{section}.{name}" for name, section in sections(kind).items()}
            hint = _hint(key, kinds) or _hint(key, dotted, dotted) or "."
            keys = ", ".join([tag, *kinds] if tag else kinds)
            shown = key if key.isprintable() and 0 < len(key) <= 60 else repr(key[:60])
            yield f"{path}.{key}", f"{_as_written(f'{path}.{shown}')}: unknown key{hint} Known keys here: {keys}", True
    for key, value in data.items():
        if key in kinds:
            yield from problems(value, kinds[key], f"{path}.{key}")
    missing = [f.name for f in msgspec.structs.fields(kind) if f.required and f.name not in data]
    if missing:
        yield (
            path,
            f"{_as_written(path)}: a {data['type']} layer needs {' and '.join(missing)}; found {_as_yaml(data)}",
            False,
        )


def _as_written(path: str) -> str:
    """Convert `$.train.epochs` to `train.epochs`, as on a command line."""
    return path.removeprefix("$.")


def _as_yaml(value: Any) -> str:
    """Format a value as it is written in YAML."""
    if value is None:
        return "nothing (null)"
    if isinstance(value, bool):
        return str(value).lower()
    shown = repr(value[:60] if isinstance(value, str) else value)
    shown = shown if len(shown) <= 70 else f"{shown[:60]}..."
    return f"{shown} (text)" if isinstance(value, str) else shown


def _hint(word: Any, words: Iterable[str], shown: dict[str, str] | None = None) -> str:
    """Ask whether the closest of some words was meant."""
    closest = difflib.get_close_matches(word[:60].lower(), list(words), n=1) if isinstance(word, str) else []
    return f"; did you mean {(shown or {}).get(closest[0], closest[0])!r}?" if closest else ""


def _is_section(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _members(kind: Any) -> tuple[Any, ...]:
    """Return the types of a union, or else the type."""
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)


def _item_of(kind: Any) -> Any:
    """Return the type of the items if a type is a list, or a union with a list."""
    for member in _members(kind):
        if hasattr(member, "__metadata__"):  # of Annotated
            return _item_of(member.__origin__)
        if get_origin(member) is tuple:
            return get_args(member)[0]
    return None


def _expected(kind: Any) -> str:
    for meta in getattr(kind, "__metadata__", ()):
        if meta.description:
            return str(meta.description)
    if get_origin(kind) is Literal:
        return _one_of(get_args(kind))
    if kind == layers.LayerConfig:
        return f"a layer, such as {{type: dense, units: 84}}; types of layers: {', '.join(layers.KINDS)}"
    if kind is NoneType:
        return "null"
    return "a section of `key: value` lines" if _is_section(kind) else " or ".join(map(_expected, get_args(kind)))


def _one_of(words: Iterable[str]) -> str:
    return f"one of {', '.join(map(repr, words))}"
