"""Error messages for configurations: where the error is, what was found, and what is allowed."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import inspect

from app.run import layers


def unknown_key(data: Any, struct: type[msgspec.Struct], path: str = "$") -> tuple[str, str] | None:
    """Return the path of the first key in `data` that is unknown to `struct` or a nested struct, and a description."""
    if not isinstance(data, dict):
        return None
    fields = {field.name: field.type for field in msgspec.structs.fields(struct)}
    tag = struct.__struct_config__.tag_field
    for key, value in data.items():
        here = f"{path}.{key}"
        if key == tag:
            continue
        if key not in fields:
            nearest = nearest_of(key, fields) or (_in_a_section(key, fields) if path == "$" else None)
            hint = f"; did you mean {nearest!r}?" if nearest else "."
            known = [tag, *fields] if tag else [*fields]
            at = _as_written(f"{path}.{_shown_key(key)}")
            return here, f"{at}: unknown key{hint} Known keys here: {', '.join(known)}"
        if _is_struct(fields[key]) and (problem := unknown_key(value, fields[key], here)):
            return problem
        if key == "layers" and isinstance(value, list):
            for number, layer in enumerate(value):
                kind = layers.KINDS.get(str(layer["type"])) if isinstance(layer, dict) and "type" in layer else None
                if kind is not None and (problem := unknown_key(layer, kind, f"{here}[{number}]")):
                    return problem
    return None


def wrong_value(data: Any, struct: type[msgspec.Struct], path: str) -> str:
    """Describe the value at `path` (such as `$.model.hidden[0]`) and what `struct` allows there."""
    allowed: Any = inspect.type_info(struct)
    for step in path.replace("[", ".").replace("]", "").split(".")[1:]:
        allowed = _inner(_meant(allowed, data), step)
        data = data[int(step) if step.isdecimal() else step] if step != "type" or "type" in data else None
    if (reason := _of_layer(data, allowed)) is not None:
        return f"{_as_written(path)}: {reason}"
    hint = ""
    if isinstance(data, str) and isinstance(allowed, inspect.LiteralType):
        nearest = nearest_of(data, map(str, allowed.values))
        hint = f"; did you mean {nearest!r}?" if nearest else ""
    return f"{_as_written(path)}: found {found(data)}, expected {_expected(allowed)}{hint}"


def _as_written(path: str) -> str:
    """Convert `$.train.epochs` to `train.epochs`, as on a command line."""
    return path.removeprefix("$.")


def found(value: Any) -> str:
    """Format a value as it is written in YAML."""
    if value is None:
        return "nothing (null)"
    if isinstance(value, bool):
        return str(value).lower()
    shown = repr(value[:60] if isinstance(value, str) else value)
    shown = shown if len(shown) <= 70 else f"{shown[:60]}..."
    return f"{shown} (text)" if isinstance(value, str) else shown


def nearest_of(word: str, known: Iterable[str]) -> str | None:
    """Return the known word closest to `word`."""
    matches = difflib.get_close_matches(word[:60].lower(), list(known), n=1)
    return matches[0] if matches else None


def _in_a_section(key: str, fields: dict[str, Any]) -> str | None:
    """Return `train.epochs` for a plain `epochs`."""
    dotted = {
        inner.name: f"{name}.{inner.name}"
        for name, kind in fields.items()
        if _is_struct(kind)
        for inner in msgspec.structs.fields(kind)
    }
    nearest = nearest_of(key, dotted)
    return dotted[nearest] if nearest else None


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _shown_key(key: str) -> str:
    return key if key.isprintable() and 0 < len(key) <= 60 else repr(key[:60])


def _inner(kind: Any, step: str) -> Any:
    """Return the type one step further down the path."""
    if isinstance(kind, inspect.Metadata):
        kind = kind.type
    if isinstance(kind, inspect.StructType):
        return next(field.type for field in kind.fields if field.name == step)
    if isinstance(kind, inspect.UnionType):  # only one of the types in a union has parts, except for layers
        if step == "type":
            return inspect.LiteralType(tuple(layers.KINDS))
        kinds = [one.type if isinstance(one, inspect.Metadata) else one for one in kind.types]
        kind = next(one for one in kinds if isinstance(one, inspect.VarTupleType))
    return kind.item_type


def _meant(kind: Any, data: Any) -> Any:
    """Return the member of a union of layers that the data names; return any other type unchanged."""
    if isinstance(kind, inspect.UnionType) and isinstance(data, dict):
        for one in kind.types:
            if isinstance(one, inspect.StructType) and one.tag == data.get("type"):
                return one
    return kind


def _of_layer(data: Any, kind: Any) -> str | None:
    """Describe an error in a layer as a whole; None if the error is elsewhere."""
    if not isinstance(kind, inspect.UnionType) or not any(isinstance(one, inspect.StructType) for one in kind.types):
        return None
    if not isinstance(data, dict) or "type" not in data:
        types = ", ".join(layers.KINDS)
        return f"found {found(data)}, expected a layer, such as {{type: dense, units: 84}}; types of layers: {types}"
    meant = _meant(kind, data)
    if isinstance(meant, inspect.StructType):
        missing = [field.name for field in meant.fields if field.required and field.name not in data]
        return f"a {data['type']} layer needs {' and '.join(missing)}; found {found(data)}" if missing else None
    nearest = nearest_of(str(data["type"]), layers.KINDS)
    hint = f"; did you mean {nearest!r}?" if nearest else ""
    return f"found the type {data['type']!r}, expected one of {', '.join(map(repr, layers.KINDS))}{hint}"


def _expected(kind: Any) -> str:
    if isinstance(kind, inspect.Metadata) and kind.extra_json_schema:
        return str(kind.extra_json_schema["description"])
    if isinstance(kind, inspect.LiteralType):
        return f"one of {', '.join(map(repr, kind.values))}"
    if isinstance(kind, inspect.UnionType):
        return " or ".join(map(_expected, kind.types))
    if isinstance(kind, inspect.NoneType):
        return "null"
    return "a section of `key: value` lines"
