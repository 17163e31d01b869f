"""An operator as the text of a module for another framework: what templates are filled with, and the targets."""

from __future__ import annotations

import linecache
import sys
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import count
from pathlib import Path
from string import Template
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from app.bridge.out import vectors
from app.bridge.out.description import Description, describe, describe_on_arrays
from app.bridge.out.kernels import Kernels
from app.bridge.out.names import Names
from app.bridge.out.translation import Namespace, Translator, UntranslatableError
from app.errors import ExportError
from app.ops.spec import Spec
from app.version import __version__

EXPRESSIONS, KERNEL = "expressions", "kernel"
ROLES = ("_forward", "_gradient", "_second")
"""The names of an operator's functions in a file."""
_numbers = count(1)


@dataclass(frozen=True)
class Leaving:
    """An operator with its functions as source."""

    description: Description
    form: str
    """EXPRESSIONS or KERNEL."""
    imports: tuple[str, ...]
    constants: str
    """The lines that define what the functions read and, if they compute in vectors, call."""
    functions: str
    """The functions of `ROLES`, as far as there are such, after those that they call."""
    reason: str = ""
    """Why it is a kernel, where it could be expressions; '' otherwise."""


def leaving(operator: Any, specs: Sequence[Spec], namespace: Namespace, reserved: Sequence[str]) -> Leaving:
    """Translate an operator if its functions are of single numbers, else collect their loops.

    `reserved` are the names that the module has besides. An ExportError says why the operator cannot leave.
    """
    description, reason = describe(operator, specs), ""
    if description.gradient is None:
        raise ExportError(f"{operator.label} has no gradient, and is exported with one: {' '.join(description.notes)}")
    if description.elementwise:
        try:
            return _translated(description, namespace, reserved)
        except UntranslatableError as error:
            reason = str(error)
        if not operator.elementwise:
            description = describe_on_arrays(operator, specs)
    return _collected(description, reserved, reason)


def _translated(description: Description, namespace: Namespace, reserved: Sequence[str]) -> Leaving:
    translator = Translator(namespace, Names([*reserved, *ROLES, description.title]))
    for role, part in zip(ROLES, description.parts, strict=False):
        translator.add(part.function, role, part.takes, part.settings)
    translated = translator.translated
    constants = "\n".join(f"{name} = {_number(value)}" for name, value in translated.constants.items())
    return Leaving(
        description, EXPRESSIONS, ("import math",) if translated.reads_math else (), constants, translated.source
    )  # fmt: skip


def _collected(description: Description, reserved: Sequence[str], reason: str) -> Leaving:
    kernels = Kernels(Names([*reserved, *ROLES, description.title]), in_vectors=True)
    for role, part in zip(ROLES, description.parts, strict=False):
        options = {"error_model": "numpy"} if description.elementwise else part.options
        kernels.add(part.function, role, options, part.parameters)
    constants = "\n".join(f"{name} = {text}" for name, text in kernels.constants.items())
    if kernels.called:
        sections = vectors.sections_for(kernels.called)
        constants = f"{filled(vectors.TEMPLATE, sections)}\n\n{constants}".rstrip()
        kernels.imports["import numpy as np"] = None
        if "tanh" in sections:
            kernels.imports["import math"] = None
    return Leaving(description, KERNEL, tuple(kernels.imports), constants, kernels.source, reason)


def _number(value: float) -> str:
    return repr(value) if value - value == 0 else f'float("{value}")'


# Files


class Written(NamedTuple):
    """The files of an operator."""

    files: dict[str, str]
    """Their texts by name: the operator first, then its test."""
    notes: list[str]
    """The form that was chosen, and what the target cannot do."""


@dataclass(frozen=True)
class Target:
    """A framework or language that operators leave for."""

    title: str
    write: Callable[[Any, Sequence[np.ndarray], tuple[float, float], str], Written]
    """From an operator, examples of its inputs, the range of their numbers and what `check` said."""


TARGETS = ("torch", "jax", "c")
"""The names on the command line, and of the modules that have a `TARGET`."""


def target_of(name: str) -> Target:
    """A target by its name. Its module may need the framework."""
    target: Target = import_module(f".{name}", __package__).TARGET
    return target


def notes_of(leaving: Leaving, does_not: Sequence[str]) -> list[str]:
    """What to say about the form of an operator, and what it cannot do."""
    d = leaving.description
    kinds = {EXPRESSIONS: "tensor expressions", KERNEL: "kernels of Numba, called on the framework's memory"}
    lines = [f"Made of {kinds[leaving.form]}."]
    lines += [f"Expressions cannot be what stands in {leaving.reason}."] if leaving.reason else []
    lines += ["Its gradient differs from the derivative on purpose."] if d.surrogate else []
    return [*lines, *d.notes, *does_not]


def header(leaving: Leaving, title: str, needs: str, proof: str, does_not: Sequence[str]) -> str:
    """The docstring of a file: what it is, where it is from, how it was proven, and what it cannot do."""
    d = leaving.description
    lines = [f"{d.title} for {title}.", ""]
    if d.doc:
        lines += [d.doc, ""]
    gradient = (
        "Its gradient is derived." if d.gradient is not None and d.gradient.derived else "Its gradient is written."
    )
    lines += [f"Written by opsmith {__version__} from {d.where}; needs {needs}, and not opsmith. {gradient}"]
    lines += [f"opsmith check: {proof}."] if proof else []
    lines += notes_of(leaving, does_not)
    wrapped = [part for line in lines for part in textwrap.wrap(line, 112) or [""]]
    return '"""' + "\n".join(wrapped).replace("\\", "\\\\").replace('"""', "'''").rstrip() + '\n"""'


def filled(template: str, sections: Sequence[str] = (), **parts: str) -> str:
    """A template with its parts. What follows a line `%% a b` is only for what has the sections a and b."""
    text = (Path(__file__).with_name("templates") / template).read_text(encoding="utf-8")
    first, *others = text.split("\n%%")
    chosen = [first]
    for other in others:
        required, _, body = other.partition("\n")
        if set(required.split()) <= set(sections):
            chosen.append(body)
    empty = {f"${name}" for name, part in parts.items() if not part}
    body_lines = [line for line in "\n".join(chosen).splitlines() if line.strip() not in empty]
    lines = Template("\n".join(body_lines)).substitute(parts).splitlines()
    return _spaced([line.rstrip() for line in lines])


def _spaced(lines: Sequence[str]) -> str:
    """Lines with as many empty ones as a formatter leaves: up to two between definitions, one inside them."""
    spaced: list[str] = []
    empty = 0
    for line in lines:
        if not line:
            empty += 1
            continue
        before = spaced[-1] if spaced else ""
        inner = line.startswith((" ", ")", "]"))
        if before.endswith(":") and not before.lstrip().startswith("#"):
            empty = 0
        spaced += [""] * min(empty, 1 if inner else 2) if spaced else []
        spaced.append(line)
        empty = 0
    return "\n".join(spaced) + "\n"


def loaded(text: str, name: str) -> ModuleType:
    """A module of a text, whose lines tracebacks show. It can be imported, as torch.compile does."""
    name = f"{name}_{next(_numbers)}"
    file = f"<{name}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    module = sys.modules[name] = ModuleType(name)
    exec(compile(text, file, "exec", dont_inherit=True), vars(module))
    return module
