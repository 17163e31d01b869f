"""Operators as C99, for `export --to c`: forward and backward with arrays and their sizes."""

from __future__ import annotations

import linecache
import math
import re
import textwrap
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

import numpy as np

from app.bridge.out.c_code import CFunction, c_function, function_name
from app.bridge.out.description import Description, Part, describe, results_of, spec_of_example
from app.bridge.out.kernels import Kernels
from app.bridge.out.names import Names, literal
from app.bridge.out.writing import Written, filled, over_elements
from app.derivative.scope import UnderivableError
from app.errors import ExportError
from app.ops.spec import Spec
from app.reading import parameters_of
from app.version import __version__

_SIZE = "n"
"""Of the arrays of an elementwise function."""
_numbers = count(1)


def write(operator: Any, examples: Sequence[np.ndarray], within: tuple[float, float], proof: str) -> Written:
    """A source file of C, and its test in Python, which compiles it."""
    specs = [spec_of_example(e) for e in examples]
    description = describe(operator, specs)
    outputs = results_of(operator, specs)
    title, forward = description.title, function_name(description.title)
    try:
        parts = (description.forward, forward), (description.gradient, f"{title}_gradient")
        functions = [_c(description, part, name, specs, outputs) for part, name in parts]
    except UnderivableError as error:
        raise ExportError(f"{operator.label} cannot be written in C: {error}") from None
    notes = [f"Made of two functions of C99, {forward} and {title}_gradient."]
    texts = {
        f"{title}.c": _module(description, functions, specs, proof),
        f"test_{title}_c.py": _test(description, functions, examples, within, outputs),
    }
    return Written(texts, notes)


def _c(d: Description, part: Part, name: str, specs: Sequence[Spec], outputs: Sequence[Spec]) -> CFunction:
    by_kind = {"input": list(specs), "output": list(outputs), "dout": list(outputs)}
    values: dict[str, Any] = dict(d.settings)
    for take, (kind, place) in zip(part.takes, part.sources, strict=True):
        spec = Spec((4,), "float64") if d.elementwise else by_kind[kind][place]
        values[take] = spec if spec.shape else np.zeros((), spec.dtype).item()
    if d.elementwise:
        return c_function(name, _over_arrays(part), [values[p] for p in part.parameters], _SIZE)
    return c_function(name, part.function, [values[p] for p in parameters_of(part.function)])


def _over_arrays(part: Part) -> Any:
    """A function of single numbers on arrays with one axis."""
    call = Names([*part.parameters, "np"]).fresh("function")
    text, file = over_elements(part, "over_arrays", call, by_name=True) + "\n", f"<over arrays {next(_numbers)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    space: dict[str, Any] = {"np": np, call: part.function, "__name__": part.function.__module__}
    exec(compile(text, file, "exec", dont_inherit=True), space)
    return space["over_arrays"]


# Files


def _module(d: Description, functions: Sequence[CFunction], specs: Sequence[Spec], proof: str) -> str:
    lines = [f"{d.title} in C99."] + (["", d.doc] if d.doc else [])
    gradient = "derived" if d.gradient.derived else "written"
    lines += ["", f"Written by opsmith {__version__} from {d.where}. Its gradient is {gradient}."]
    lines += [f"opsmith check: {proof}."] if proof else []
    lines += ["Its gradient differs from the derivative on purpose."] if d.surrogate else []
    lines += [
        "Arrays lie row by row, and do not overlap; each is followed by its sizes, and results come last."
        if not d.elementwise
        else "All arrays have n numbers, and do not overlap; results come last.",
        "A function returns 0, 1 if there is no memory, or 2 if sizes or values do not fit.",
    ]
    wrapped = [part for line in lines for part in textwrap.wrap(line, 100) or [""]]
    header = "/* " + "\n   ".join(line.replace("*/", "* /") for line in wrapped).replace("\n   \n", "\n\n") + " */"
    helpers = {name: text for function in functions for name, text in function.helpers.items()}
    texts = [_with_shapes(function) for function in functions]
    return filled("c_module.txt", header=header, helpers="\n\n".join(helpers.values()), functions="\n\n".join(texts))


def _with_shapes(function: CFunction) -> str:
    """A function after a comment with the shapes of its results."""
    shapes = [f"{name}{''.join(f'[{size}]' for size in sizes)}" for name, sizes in function.sizes.items()]
    return (f"/* Results: {', '.join(shapes)}. */\n" if shapes else "") + function.text


def _test(
    d: Description,
    functions: Sequence[CFunction],
    examples: Sequence[np.ndarray],
    within: tuple[float, float],
    outputs: Sequence[Spec],
) -> str:
    low, high = within
    lines, whole = [], (math.prod(np.broadcast_shapes(*(e.shape for e in examples))),) if d.elementwise else None
    for example in examples:
        if example.dtype.kind == "f":
            shape = whole or example.shape
            lines.append(f"random.uniform({low:g}, {high:g}, {shape}),")
        else:
            lines.append(f"np.array({example.tolist()}, dtype=np.{example.dtype.name}),")
    kernels = Kernels(Names(["np", "ctypes", "os", "shutil", "subprocess", "pytest", "Path", "inputs", "library"]))
    for role, part in (("_forward", d.forward), ("_gradient", d.gradient)):
        kernels.add(part.function, role, None, part.parameters)
    names = {"input": "x", "output": "y", "dout": "dy"}
    takes = {
        f"{names[kind]}[{place}]": bool(d.elementwise or (d.specs if kind == "input" else outputs)[place].shape)
        for kind, place in d.gradient.sources
    }
    inputs = {f"x[{place}]": bool(d.elementwise or d.specs[place].shape) for place in range(len(d.inputs))}
    forward_settings, settings = ([literal(d.settings[s]) for s in part.settings] for part in (d.forward, d.gradient))
    parts = {
        "constants": "\n".join(f"{name} = {text}" for name, text in kernels.constants.items()),
        "functions": re.sub(r"^@njit.*\n", "", kernels.source, flags=re.MULTILINE),
        "examples": "\n        ".join(lines),
        "sizes": "1 if place == 0 else 0" if d.elementwise else "a.ndim",
        "forward_name": functions[0].name,
        "forward_numbers": _list(forward_settings),
        "forward_arrays": _list(take for take, has_axes in inputs.items() if has_axes),
        "forward_c_numbers": _list([*_without_axes(inputs), *_numbers_of(d, d.forward)]),
        "forward_types": _types(functions[0]),
        "gradient_takes": _list(takes),
        "gradient_numbers": _list(settings),
        "gradient_arrays": _list(take for take, has_axes in takes.items() if has_axes),
        "gradient_c_numbers": _list([*_without_axes(takes), *_numbers_of(d, d.gradient)]),
        "gradient_types": _types(functions[1]),
    }
    section = "elementwise" if d.elementwise else "arrays"
    return filled("c_test.txt", [section], kernels.imports, name=d.title, version=__version__, **parts)


def _list(parts: Any) -> str:
    return f"[{', '.join(parts)}]"


def _without_axes(takes: Mapping[str, bool]) -> list[str]:
    """The values without axes, which C functions take as numbers."""
    return [f"{take}.item()" for take, has_axes in takes.items() if not has_axes]


def _numbers_of(d: Description, part: Part) -> list[str]:
    """The settings that a C function takes; texts are constants in it."""
    return [literal(d.settings[name]) for name in part.settings if not isinstance(d.settings[name], str)]


def _types(function: CFunction) -> str:
    """The types of results; None for those that are the macro's."""
    kinds = {"double": '"float64"', "float": '"float32"', "int64_t": '"int64"', "bool": '"bool"'}
    return _list(kinds.get(kind.split()[0], "None") for what, kind, _ in function.arguments if what == "result")
