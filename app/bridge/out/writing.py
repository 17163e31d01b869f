"""An operator as the text of a module for another framework: what templates are filled with, and the targets."""

from __future__ import annotations

import linecache
import re
import symtable
import sys
import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import count
from pathlib import Path
from string import Template
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from app.bridge.out import vectors
from app.bridge.out.description import Description, Part, compiled, describe, describe_on_arrays, spec_of_example
from app.bridge.out.kernels import Kernels
from app.bridge.out.names import Names, literal
from app.bridge.out.translation import Namespace, Translator, UntranslatableError
from app.custom.for_numba import for_numba
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
    """Those of functions of math and NumPy by their own names."""
    constants: str
    """The lines that define what the functions read and, if they compute in vectors, call."""
    functions: str
    """The functions of `ROLES`, as far as there are such, after those that they call."""
    reason: str = ""
    """Why it is a kernel, where it could be expressions; '' otherwise."""


def leaving(
    operator: Any, specs: Sequence[Spec], namespace: Namespace, reserved: Sequence[str], only_compiled: bool = False
) -> Leaving:
    """Translate an operator if its functions are of single numbers, else collect their loops.

    `only_compiled` says that the framework cannot call Python. `reserved` are the names that the module has besides. An
    ExportError says why the operator cannot leave.
    """
    description, reason = describe(operator, specs), ""
    if description.title in _IMPORTS or any(description.title in names for names in _HOMES.values()):
        raise ExportError(
            f"{operator.label}: its file may import something else as {description.title}: give custom_op another name="
        )
    if description.elementwise:
        try:
            return _translated(description, namespace, reserved)
        except UntranslatableError as error:
            reason = str(error)
        if not operator.elementwise:
            description = describe_on_arrays(operator, specs)
    if only_compiled and not description.elementwise:
        description = compiled(operator, description)
    return _collected(description, reserved, reason)


def _translated(description: Description, namespace: Namespace, reserved: Sequence[str]) -> Leaving:
    translator = Translator(namespace, Names([*reserved, *ROLES, description.title]))
    for role, part in zip(ROLES, description.parts, strict=False):
        translator.add(part.function, role, part.takes, part.settings)
    translated = translator.translated
    constants = "\n".join(f"{name} = {literal(value)}" for name, value in translated.constants.items())
    return Leaving(description, EXPRESSIONS, (), constants, translated.source)


def _collected(description: Description, reserved: Sequence[str], reason: str) -> Leaving:
    kernels = Kernels(Names([*reserved, *ROLES, description.title]), in_vectors=True)
    for role, part in zip(ROLES, description.parts, strict=False):
        function, options = part.function, part.options
        if description.elementwise:
            options = {"error_model": "numpy"}
            function = for_numba(function, f"<{description.title}{role} {next(_numbers)}, for Numba>")
        kernels.add(function, role, options, part.parameters)
    constants = "\n".join(f"{name} = {text}" for name, text in kernels.constants.items())
    if kernels.called:
        sections = vectors.sections_for(kernels.called)
        constants = f"{filled(vectors.TEMPLATE, sections)}\n\n{constants}".rstrip()
    one = Leaving(description, KERNEL, tuple(kernels.imports), constants, kernels.source, reason)
    if description.elementwise:
        _check_compiles(one)
    return one


def _check_compiles(leaving: Leaving) -> None:
    """Refuse functions of single numbers that Numba cannot compile, which opsmith itself calls for each element."""
    import numba

    from app.engine.compiled.numba_api import lower
    from app.engine.compiled.read_only import why_refused

    d, text = leaving.description, f"{leaving.constants}\n\n\n{leaving.functions}"
    module = loaded(f"{_imports_of(text, leaving.imports)}\n\n{text}", f"opsmith_{d.title}")
    for role, part in zip(ROLES, d.parts, strict=False):
        function = getattr(module, role).py_func
        try:
            lower(
                function, [*(numba.float64 for _ in part.takes), *(numba.typeof(d.settings[s]) for s in part.settings)]
            )
        except numba.errors.NumbaError as error:
            raise ExportError(
                f"{d.where}: {d.title} cannot be exported. It has no form as tensor expressions: {leaving.reason}. "
                f"Numba cannot compile it: {why_refused(error)}; write that with other functions"
            ) from None


# Texts


def bracketed(parts: Sequence[str]) -> str:
    """A tuple."""
    return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"


def unbracketed(parts: Sequence[str]) -> str:
    """A tuple, without parentheses if it has several elements."""
    return bracketed(parts) if len(parts) < 2 else ", ".join(parts)


def over_elements(part: Part, name: str, call: str, by_name: bool = False) -> str:
    """A function of single numbers as `name`, with a loop over arrays with one axis; `call` is what the loop calls."""
    names = Names([*part.parameters, "np", call])
    place, results = names.fresh("i"), [names.fresh(result) for result in part.gives]
    arguments = [f"{p}[{place}]" if p in part.takes else p for p in part.parameters]
    if by_name:
        arguments = [f"{p}={argument}" for p, argument in zip(part.parameters, arguments, strict=True)]
    lines = [f"def {name}({', '.join(part.parameters)}):"]
    lines += [f"    {result} = np.empty_like({part.takes[0]})" for result in results]
    lines += [f"    for {place} in range({part.takes[0]}.size):"]
    lines += [f"        {', '.join(f'{r}[{place}]' for r in results)} = {call}({', '.join(arguments)})"]
    return "\n".join([*lines, f"    return {', '.join(results)}"])


_IMPORTS = {
    **{name: f"import {name}" for name in ("ctypes", "math", "os", "shutil", "subprocess", "jax", "pytest", "torch")},
    "jnp": "import jax.numpy as jnp",
    "np": "import numpy as np",
    "make_array": "from numba.np.arrayobj import make_array, populate_array",
}
_HOMES = {
    "concurrent.futures": ("ThreadPoolExecutor",),
    "functools": ("cache", "partial"),
    "jax.custom_derivatives": ("SymbolicZero",),
    "jax.test_util": ("check_grads",),
    "llvmlite": ("ir",),
    "numba": ("cfunc", "njit", "types"),
    "numba.core": ("cgutils",),
    "numba.extending": ("intrinsic", "overload"),
    "numba.np.numpy_support": ("from_dtype",),
    "pathlib": ("Path",),
}
"""Where the names are from that modules may read, besides those that are imported as modules."""


def _imports_of(text: str, more: Iterable[str]) -> str:
    """The imports of the names that a module reads, and others, as a formatter sorts them."""
    read = _names_read(symtable.symtable(text, "", "exec"))
    lines = {*more, *(line for name, line in _IMPORTS.items() if name in read)}
    for home, names in _HOMES.items():
        used = [name for name in names if name in read]
        lines |= {f"from {home} import {', '.join(used)}"} if used else set()
    own = {line for line in lines if line.split()[1].partition(".")[0] in sys.stdlib_module_names}
    groups = [sorted(group, key=lambda line: (line.startswith("from"), line)) for group in (own, lines - own)]
    return "\n\n".join("\n".join(group) for group in groups if group)


def _names_read(table: symtable.SymbolTable) -> set[str]:
    """The global names that a module reads, of which some may be its own."""
    is_module = table.get_type() == "module"
    read = {s.get_name() for s in table.get_symbols() if s.is_referenced() and (is_module or s.is_global())}
    return read.union(*map(_names_read, table.get_children()))


# Files


class Written(NamedTuple):
    """The files of an operator."""

    files: dict[str, str]
    """Their texts by name: the operator first, then its test."""
    notes: list[str]
    """The form that was chosen, and what the target cannot do."""


@dataclass(frozen=True)
class Modules:
    """How operators become modules of a framework."""

    name: str
    """As in NAME_torch.py, and in the names of templates."""
    namespace: Namespace
    module: Callable[[Leaving, str], str]
    """The text of a module; the second argument is what `check` said."""
    test: Callable[[Leaving, Any, Sequence[np.ndarray], tuple[float, float]], str]
    """The text of its test, from the operator, examples of its inputs and the range of their numbers."""
    limits: Callable[[Leaving], Sequence[str]]
    """What the framework cannot do with it, in sentences."""
    only_compiled: bool = False
    """Whether the modules cannot call functions in Python."""

    def leaving(self, operator: Any, examples: Sequence[Any]) -> Leaving:
        """An operator with its functions as source, for the axes and types of these inputs."""
        folder, names = (
            Path(__file__).with_name("templates"),
            {*_IMPORTS, *(n for home in _HOMES.values() for n in home)},
        )
        for template in folder.glob(f"{self.name}_*.txt"):
            names |= set(re.findall(r"[A-Za-z_]\w*", template.read_text(encoding="utf-8")))
        names |= {f"{role}_{kind}" for role in ROLES for kind in ("loop", "operator")}
        names |= {f"_run{role}" for role in ROLES}
        specs = [spec_of_example(e) for e in examples]
        return leaving(operator, specs, self.namespace, sorted(names), self.only_compiled)

    def function(self, operator: Any, *examples: Any) -> Callable[..., Any]:
        """An operator as a function of the framework."""
        one = self.leaving(operator, examples)
        title = one.description.title
        made: Callable[..., Any] = getattr(loaded(self.module(one, ""), f"opsmith_{title}_{self.name}"), title)
        return made

    def write(self, operator: Any, examples: Sequence[np.ndarray], within: tuple[float, float], proof: str) -> Written:
        """The files of an operator."""
        one = self.leaving(operator, examples)
        name = f"{one.description.title}_{self.name}.py"
        texts = {name: self.module(one, proof), f"test_{name}": self.test(one, operator, examples, within)}
        return Written(texts, notes_of(one, self.limits(one)))


TARGETS = {"torch": "PyTorch", "jax": "JAX", "c": "C"}
"""The targets that operators leave for, by their names on the command line, which are those of their modules."""


def write(
    target: str, operator: Any, examples: Sequence[np.ndarray], within: tuple[float, float], proof: str
) -> Written:
    """The files of an operator for a target, from examples of its inputs, their range and what `check` said."""
    written: Written = import_module(f".{target}", __package__).write(operator, examples, within, proof)
    return written


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
    gradient = f"Its gradient is {'derived' if d.gradient.derived else 'written'}."
    lines += [f"Written by opsmith {__version__} from {d.where}; needs {needs}, and not opsmith. {gradient}"]
    lines += [f"opsmith check: {proof}."] if proof else []
    lines += notes_of(leaving, does_not)
    wrapped = [part for line in lines for part in textwrap.wrap(line, 112) or [""]]
    return '"""' + "\n".join(wrapped).replace("\\", "\\\\").replace('"""', "'''").rstrip() + '\n"""'


def filled(template: str, sections: Sequence[str] = (), imports: Iterable[str] = (), **parts: str) -> str:
    """A template with its parts. What follows a line `%% a b` is only for what has the sections a and b.

    `$imports` stands for the imports of what the module reads, and for these `imports`.
    """
    text = (Path(__file__).with_name("templates") / template).read_text(encoding="utf-8")
    first, *others = text.split("\n%%")
    chosen = [first]
    for other in others:
        required, _, body = other.partition("\n")
        if set(required.split()) <= set(sections):
            chosen.append(body)
    empty = {f"${name}" for name, part in parts.items() if not part}
    body_lines = [line for line in "\n".join(chosen).splitlines() if line.strip() not in empty]
    module = Template("\n".join(body_lines)).substitute(parts, imports=_HERE)
    if _HERE in module:
        module = module.replace(_HERE, _imports_of(module, imports))
    return _spaced([line.rstrip() for line in module.splitlines()])


_HERE = "# imports"
"""A line in their place."""


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
