"""Custom operators in a file: of which functions each was made, where these are found, and the hash of their source."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

from app.custom.operator import HOOKS, CustomOperator
from app.custom.references import ChangedOperatorError, Trusted, UnnamedOperatorError, reference_to
from app.custom.source import source_hash
from app.errors import OperatorError, ProgramError
from app.graph.serialise import DAMAGE_ERRORS, value_from_data, value_to_data
from app.ops.definition import OpDef


class OperatorTable:
    """The custom operators of a file that is being written, each under a number."""

    def __init__(self) -> None:
        self.entries: list[dict[str, Any]] = []
        self._numbers: dict[int, int] = {}

    def number_of(self, definition: OpDef) -> int:
        """The number that stands for an operator, which is entered when it is first asked for."""
        if id(definition) not in self._numbers:
            entry = self._entry(definition)
            self._numbers[id(definition)] = len(self.entries)
            self.entries.append(entry)
        return self._numbers[id(definition)]

    def _entry(self, definition: OpDef) -> dict[str, Any]:
        if not isinstance(definition, CustomOperator):
            raise OperatorError(f"{definition.label} cannot be written to a file: nothing says what it was made of")
        origin = definition.origin
        try:
            settings = {name: value_to_data(value) for name, value in origin.settings.items()}
        except ProgramError as error:
            raise OperatorError(f"{definition.label} was made with what cannot be written to a file: {error}") from None
        functions = {name: self._function(thing, definition) for name, thing in origin.functions.items()}
        told = {"name": definition.name, "where": definition.where, "hook": origin.hook, "functions": functions}
        return {**told, "settings": settings} if settings else told

    def _function(self, thing: Any, definition: OpDef) -> dict[str, Any]:
        if isinstance(thing, CustomOperator) and thing is not definition:
            return {"operator": self.number_of(thing)}
        reference = reference_to(thing, definition.label)
        try:
            return {"from": reference, "source_sha256": source_hash(thing)}
        except OperatorError as error:
            raise OperatorError(f"{definition.label} cannot be written to a file: {error}") from error


def read_operators(
    entries: Any, file: str, custom_ops: Any, accept_changed: Collection[str], how: str
) -> Callable[[int], OpDef]:
    """The custom operators of a file by their numbers; nothing is imported unless all that is needed was named.

    `how` is the beginning of the call that reads the file, as errors tell the user to write it.
    """
    trusted = Trusted(custom_ops)
    try:
        needed = list(dict.fromkeys(_references(entries)))
    except DAMAGE_ERRORS as error:
        raise ProgramError(f"{file}: its custom operators cannot be read: {type(error).__name__} {error}") from error
    unnamed = [reference for reference in needed if not trusted.covers(reference)]
    if unnamed:
        raise UnnamedOperatorError(
            f"{file} needs {', '.join(unnamed)}: code of yours, or of whoever made the file, which is run only if you "
            f"name it. If you trust it, say where it lies: {how}, custom_ops={unnamed})",
            unnamed,
        )
    made: list[OpDef] = []
    for entry in entries:
        made.append(_Reading(file, trusted, accept_changed, how, made).operator(entry))
    return lambda number: made[_index(number, made)]


def _index(number: Any, made: Sequence[OpDef]) -> int:
    if not isinstance(number, int) or not 0 <= number < len(made):
        raise ValueError(f"there is no custom operator number {number!r}")
    return number


def _references(entries: Any) -> Iterator[str]:
    for entry in entries:
        for written in entry["functions"].values():
            if "operator" not in written:
                yield written["from"] + ""


class _Reading:
    """One entry of a file being made an operator again."""

    def __init__(self, file: str, trusted: Trusted, accept_changed: Collection[str], how: str, made: list[OpDef]):
        self.file, self.trusted, self.accepted, self.how, self.made = file, trusted, accept_changed, how, made

    def operator(self, entry: Any) -> OpDef:
        try:
            functions = {name: self._function(written) for name, written in entry["functions"].items()}
            settings = {name: value_from_data(value) for name, value in entry.get("settings", {}).items()}
            return HOOKS[entry["hook"]](functions, settings, entry["where"])
        except DAMAGE_ERRORS as error:
            if isinstance(error, OperatorError):
                raise
            raise ProgramError(f"{self.file}: a custom operator cannot be read: {error!r}") from error

    def _function(self, written: Any) -> Any:
        if "operator" in written:
            return self.made[_index(written["operator"], self.made)]
        reference, expected = written["from"], written["source_sha256"]
        found = self.trusted.get(reference)
        if reference not in self.accepted and source_hash(found) != expected:
            raise ChangedOperatorError(
                f"{self.file} was written with another {reference}: its source, or that of a function that it calls, "
                f"has changed since. If the new one will do: {self.how}, accept_changed=[{reference!r}])",
                reference,
            )
        return found
