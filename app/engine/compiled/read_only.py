"""Checks that custom compiled functions do not write into their inputs.

Numba refuses to compile a function that writes into an array of a read-only type, also through a view or a helper. A
few ways of writing escape its types: `x.flat[0] = 0`, the third argument of `np.dot`, the kernel of a `guvectorize`.
Therefore a function receives the arrays themselves only if LLVM proved that it only reads them; others receive copies.
"""

from __future__ import annotations

import inspect
import linecache
import os
import re
from collections.abc import Sequence
from traceback import walk_tb
from types import FunctionType
from typing import Any

import numba
from numba import types
from numba.core.errors import NumbaError

from app.engine.compiled.numba_api import INPLACE_BINOPS_TO_OPERATORS
from app.reading import LIBRARIES, place

_NUMBA = os.path.dirname(numba.__file__) + os.sep
_PLAIN = re.compile(r"Untyped (?:global|freevar) name '(\w+)': Cannot determine Numba type of <class 'function'>")
"""Numba's message about an unsupported function."""
_REFUSED = re.compile(
    r"Cannot modify readonly array|called with an explicit output that is read-only|setitem\(readonly array"
)
_TYPING = re.compile(r"^During: (?:typing of|lowering) .* at (.+) \((\d+)\)$", re.MULTILINE)
_RAISED = re.compile(r"\.*\s*Raised from (?:None|(.+) \((\d+)\))$", re.MULTILINE)
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_DATA = re.compile(r"arg\..*\.4")
"""The part of an array that is the address of its elements, as Numba names the parameters of what it compiles."""
_IN_PLACE = frozenset(INPLACE_BINOPS_TO_OPERATORS.values())


def array_type(dtype: Any, axes: int) -> types.Array:
    """Return the Numba type of arrays that are passed to a user's function."""
    return types.Array(dtype, axes, "C", readonly=True)


def only_reads(dispatcher: Any, signature: Sequence[Any]) -> bool:
    """Return whether LLVM proved that a function, compiled for these types, does not write into its arrays."""
    compiled = dispatcher.overloads[tuple(signature)]
    try:
        function = compiled.library._shared_module.get_function(compiled.fndesc.llvm_func_name)
    except (AttributeError, NameError):  # a release of Numba that stores its code elsewhere
        return False
    arrays = [argument for argument in function.arguments if _DATA.fullmatch(argument.name)]
    expected = sum(isinstance(kind, types.Array) for kind in signature)
    return len(arrays) == expected and all(_is_read(argument) for argument in arrays)


def _is_read(argument: Any) -> bool:
    return not {b"readonly", b"readnone"}.isdisjoint(argument.attributes)


def where_it_writes(error: BaseException) -> str | None:
    """Return where a function writes into a read-only array, from Numba's error; None if that is not the error."""
    for constraint in _unresolved(error):
        if getattr(constraint, "func", None) in _IN_PLACE:  # Numba raises AttributeError for `x += 1`
            return _line(constraint.loc.filename, constraint.loc.line)
    text = _message(error)
    if not _REFUSED.search(text):
        return None
    return _place(text)


def is_refusal(error: BaseException) -> bool:
    """Return whether an error is Numba's verdict on a function, rather than one that may pass, as of memory."""
    causes: list[BaseException] = [error]
    for each in causes:
        causes += [e for e in (each.__cause__, each.__context__) if e is not None and e not in causes]
    return isinstance(error, NumbaError) and not any(isinstance(e, (MemoryError, OSError)) for e in causes)


def why_refused(error: BaseException, function: Any = None) -> str:
    """Return why Numba cannot compile a function: the first informative line of its error, and the user's line."""
    text = _message(error)
    lines = [_RAISED.sub("", line).strip() for line in text.splitlines()]
    telling = [line for line in lines if line and not line.startswith(("Failed in", "Traceback", "During", "-"))]
    message = telling[0] if telling else f"Numba itself failed, with {type(error).__name__}"
    if message.endswith(":") and len(telling) > 1:  # the signature is in the next line
        message += " " + telling[1]
    if (helper := _PLAIN.match(message)) and _is_users_own(helper[1], function):
        message += f"; put @njit above {helper[1]}"
    code = getattr(getattr(function, "py_func", function), "__code__", None)
    place = _place(text) or _place_of(error)
    return message + (place if place or code is None else _line(code.co_filename, code.co_firstlineno))


def _is_users_own(name: str, function: Any) -> bool:
    """Whether a name in a function is that of a function of the user's, and not of a library such as SciPy."""
    source = getattr(function, "py_func", function)
    if not isinstance(source, FunctionType):
        return False
    helper = inspect.unwrap({**source.__globals__, **inspect.getclosurevars(source).nonlocals}.get(name, source))
    return isinstance(helper, FunctionType) and not helper.__code__.co_filename.startswith(LIBRARIES)


def _message(error: BaseException) -> str:
    """Return Numba's message without the colours that it has where colorama is installed."""
    return _COLOUR.sub("", str(error))


def _place(text: str) -> str:
    """Return the innermost of the user's lines in a Numba error."""
    named = [*_TYPING.findall(text), *_RAISED.findall(text)]
    places = [(file, int(line)) for file, line in named if file and not file.startswith((_NUMBA, "<string>"))]
    return _line(*places[0]) if places else ""


def _place_of(error: BaseException) -> str:
    """Return the line stored in a Numba error."""
    loc: Any = getattr(error, "loc", None)
    if not isinstance(getattr(loc, "line", None), int) or loc.filename.startswith((_NUMBA, "<string>")):
        return ""
    return _line(loc.filename, loc.line)


def _unresolved(error: BaseException) -> list[Any]:
    """Return the operation whose typing failed with an AttributeError."""
    frames = [frame for frame, _ in walk_tb(error.__traceback__)] if isinstance(error, AttributeError) else []
    return [frame.f_locals["self"] for frame in frames if hasattr(frame.f_locals.get("self"), "loc")][-1:]


def _line(file: str, line: int) -> str:
    """` (my_ops.py:7: `x[0] = 1`)`."""
    text = linecache.getline(file, line).strip()
    return f" ({place(file, line)}" + (f": `{text}`)" if text else ")")
