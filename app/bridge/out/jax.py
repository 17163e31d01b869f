"""Operators as functions of JAX, and the files of `export --to jax`.

Expressions are under a jax.custom_jvp, which has all transforms. Kernels are compiled by Numba and called by XLA
itself; those on arrays are under a jax.custom_vjp.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from app.bridge.out.description import Part
from app.bridge.out.names import Names, literal
from app.bridge.out.translation import JAX
from app.bridge.out.writing import (
    EXPRESSIONS,
    ROLES,
    Leaving,
    Modules,
    bracketed,
    filled,
    header,
    over_elements,
    unbracketed,
)
from app.errors import ExportError
from app.ops.dtype import is_float
from app.tensor import grad, to_tensor
from app.version import __version__

_OPERATOR, _GRADIENT = "_operator", "_operator_gradient"
_WIDTH = 120


class _Writer:
    """Writes the module of one operator."""

    def __init__(self, operator: Leaving):
        self.leaving, self.description = operator, operator.description
        self.title = operator.description.title
        self.is_kernel = operator.form != EXPRESSIONS
        self.is_flat = self.is_kernel and self.description.elementwise
        texts = [name for name, value in self.description.settings.items() if isinstance(value, str)]
        if self.is_kernel and texts:
            raise ExportError(
                f"{self.description.name}: its setting {texts[0]} is text, which XLA cannot give a kernel"
            )

    def module(self, proof: str) -> str:
        d = self.description
        needs = "jax and numba" if self.is_kernel else "jax"
        signature = [*d.inputs, *(f"{k}={literal(v)}" for k, v in d.settings.items())]
        call = f"{_OPERATOR}({', '.join([*d.inputs, *d.settings])})"
        parts = {
            "constants": self.leaving.constants,
            "functions": "\n\n\n".join([self.leaving.functions, *self.loops()]),
            "levels": "\n\n\n".join(self.levels()),
            "title": d.title,
            "signature": ", ".join(signature),
            "doc": f'"""{d.doc}"""' if d.doc else "",
            "settings": "\n    ".join(f'{name} = _setting({name}, "{name}")' for name in d.settings),
            "inputs": self.inputs(),
            "call": f"{call}[0]" if len(d.outputs) == 1 else call,
        }
        top = header(self.leaving, "JAX", needs, proof, _limits(self.leaving))
        sections = ["numbers" if d.elementwise else "arrays", *["kernel"] * self.is_kernel]
        sections += ["settings"] if d.settings else []
        return filled("jax_module.txt", sections, self.leaving.imports, header=top, **parts)

    def inputs(self) -> str:
        d = self.description
        if d.elementwise:
            return f"{unbracketed(d.inputs)} = _floats({', '.join(d.inputs)})"
        checks = [
            f'{name} = _checked({name}, {len(spec.shape)}, {has_gradient}, "{name}")'
            for name, spec, has_gradient in zip(d.inputs, d.specs, d.floats, strict=True)
        ]
        return "\n    ".join(checks)

    def test(self, operator: Any, examples: Sequence[np.ndarray], within: tuple[float, float]) -> str:
        d, (low, high) = self.description, within
        random, lines, arrays = np.random.default_rng(0), [], []
        for example in examples:
            if example.dtype.kind == "f":
                lines.append(f"random.uniform({low:g}, {high:g}, {example.shape}).astype(dtype),")
                arrays.append(random.uniform(low, high, example.shape))
            else:
                lines.append(f"np.array({example.tolist()}, dtype=np.{example.dtype.name}),")
                arrays.append(example)
        values, gradients = (_rows(numbers) for numbers in _numbers_of(operator, arrays))
        sections = [] if d.surrogate else ["exact"]
        sections += ["kernel"] if self.is_kernel else []
        sections += ["arrays"] if not d.elementwise else []
        sections += ["no_second"] if d.second is None else []
        sections += ["refusals"] if self.is_kernel or d.second is None else []
        sections += ["empty"] if d.elementwise or (d.row_by_row and len(d.inputs) == 1) else []
        return filled(
            "jax_test.txt",
            sections=sections,
            name=d.title,
            version=__version__,
            floats=bracketed([str(place) for place, has_gradient in enumerate(d.floats) if has_gradient]),
            examples="\n        ".join(lines),
            values=values,
            gradients=gradients,
            order="1" if d.second is None else "2",
            modes='("fwd", "rev")' if d.elementwise else '("rev",)',
        )

    # Functions that give tuples

    def loops(self) -> list[str]:
        """The loops over all elements, if the functions are of single numbers and stay so."""
        return [
            f'@njit(nogil=True, error_model="numpy")\n{over_elements(part, f"{role}_loop", role)}'
            for role, part in zip(ROLES, self.description.parts if self.is_flat else (), strict=False)
        ]

    def value(self, role: str, part: Part, takes: Sequence[str], like: Sequence[str]) -> str:
        """The call of a function, as an expression that gives a tuple. `like` have the shapes of the results."""
        if not self.is_kernel:
            call = f"{role}({', '.join([*takes, *part.settings])})"
            return f"({call},)" if len(part.gives) == 1 else call
        settings = f", {bracketed(part.settings)}" if part.settings else ""
        if self.is_flat:
            like = [takes[0]] * len(part.gives)
            return f"_call({role}_loop, {bracketed(takes)}, {bracketed(like)}, {bracketed(part.settings)}, True)"
        results = bracketed(like) if like else f"_results_of({role}, {bracketed(takes)}{settings})"
        return f"_call({role}, {bracketed(takes)}, {results}{settings})"

    def levels(self) -> list[str]:
        """The operator and its gradient, each with its derivative."""
        d = self.description
        texts = []
        of_gradient = list(d.gradient.takes)
        second = d.second.gives if d.second is not None else ()
        floats = [f"d{take}" in second for take in of_gradient]
        texts.append(self.level(_GRADIENT, ROLES[1], d.gradient, d.second, "", floats, False, d.gradient.gives))
        texts.append(
            self.level(_OPERATOR, ROLES[0], d.forward, d.gradient, _GRADIENT, d.floats, d.surrogate, d.outputs)
        )
        return texts

    def level(
        self, name: str, role: str, part: Part, gradient: Part | None, call: str, floats: Sequence[bool],
        is_surrogate: bool, gives: Sequence[str],
    ) -> str:  # fmt: skip
        """A function with its derivative. `call` gives the gradient, if that has a derivative itself."""
        takes, settings = list(part.takes), list(part.settings)
        names = Names([*takes, *settings, "jax", "jnp"])
        local = {
            key: names.fresh(key)
            for key in ("results", "saved", "arriving", "gradients", "primals", "tangents", "slopes", "one", "zero")
        }
        like = [take for take in takes if f"d{take}" in part.gives] if name == _GRADIENT else []
        value = _called("return ", self.value(role, part, takes, like))
        parts = dict(
            local, name=name, parameters=", ".join([*takes, *settings]), value=value,
            settings_first="".join(f"{s}, " for s in settings), takes=unbracketed(takes), first=takes[0],
        )  # fmt: skip
        is_jvp = self.description.elementwise and not is_surrogate
        kind = "jax.custom_jvp" if is_jvp or gradient is None else "jax.custom_vjp"
        places = tuple(range(len(takes), len(takes) + len(settings)))
        parts["decorator"] = f"@partial({kind}, nondiff_argnums={places})" if settings else f"@{kind}"
        if gradient is None:
            order = "second derivative" if name == _GRADIENT else "gradient"
            return filled("jax_refusal.txt", message=f"{self.description.title} has no {order}", **parts).rstrip()

        def called(arriving: Sequence[str]) -> str:
            values = {
                "input": takes,
                "output": [f"{local['results']}[{n}]" for n in range(len(part.gives))],
                "dout": arriving,
            }
            arguments = [values[kind][place] for kind, place in gradient.sources]
            if call:
                return f"{call}({', '.join([*arguments, *gradient.settings])})"
            return self.value(ROLES[2], gradient, arguments, [t for t in takes if f"d{t}" in gradient.gives])

        if is_jvp:
            units = [
                [local["one" if n == k else "zero"] for n in range(len(part.gives))] for k in range(len(part.gives))
            ]
            slopes = bracketed([called(unit) for unit in units])
            makes = {"one": "ones_like", "zero": "zeros_like"}
            unit_lines = [
                f"{local[unit]} = jnp.{make}({takes[0]})"
                for unit, make in makes.items()
                if re.search(rf"\b{local[unit]}\b", slopes)
            ]
            slopes = _called(f"{local['slopes']} = ", slopes)
            return filled("jax_jvp.txt", gradient=slopes, units="\n    ".join(unit_lines), **parts).rstrip()
        own = [takes[place] for kind, place in gradient.sources if kind == "input"]
        residuals = [t for t in takes if t in own or t == takes[0]]
        residuals += [local["results"]] if any(kind == "output" for kind, _ in gradient.sources) else []
        gradients = iter(range(len(gradient.gives)))
        returned = []
        for take, has_gradient in zip(takes, floats, strict=True):
            place = next(gradients) if f"d{take}" in gradient.gives else None
            returned.append(f"{local['gradients']}[{place}]" if has_gradient and place is not None else "None")
        text = _called(
            f"{local['gradients']} = ", called([f"{local['arriving']}[{n}]" for n in range(len(part.gives))])
        )
        return filled(
            "jax_vjp.txt",
            residuals=bracketed(residuals),
            saved_values=unbracketed(residuals),
            gradient=text,
            returned=unbracketed(returned),
            **parts,
        ).rstrip()


def _limits(one: Leaving) -> list[str]:
    if one.form == EXPRESSIONS:
        return []
    if one.description.elementwise:
        return ["It runs on the CPU, in one thread."]
    forward = "Forward mode (jax.jvp) is refused."
    return [f"It runs on the CPU, in one thread; vmap calls it once for each example. {forward}"]


def _numbers_of(operator: Any, arrays: Sequence[np.ndarray]) -> tuple[list[list[float]], list[list[float]]]:
    """The first numbers of the results here, and of the gradients of the sum of their squares."""
    tensors = [to_tensor(a, stop_gradient=a.dtype.kind != "f") for a in arrays]
    results = operator(*tensors)
    results = [r for r in (results if isinstance(results, (tuple, list)) else [results]) if is_float(r.dtype)]
    gradients = grad([(r * r).sum() for r in results], [t for t in tensors if not t.stop_gradient])
    values, slopes = ([[float(v) for v in t.numpy().ravel()[:4]] for t in some] for some in (results, gradients))
    return values, slopes


def _rows(numbers: Sequence[Sequence[float]]) -> str:
    return "\n".join(f"    [{', '.join(f'{v:.12g}' for v in row)}]," for row in numbers)


def _called(start: str, call: str) -> str:
    """A statement with a call, whose arguments are on a line of their own where it is too long."""
    if len(f"    {start}{call}") <= _WIDTH:
        return call
    function, _, inner = call.partition("(")
    inner = inner[:-1]
    if len(inner) + 8 > _WIDTH:
        tree = ast.parse(call, mode="eval").body
        parts = tree.args if isinstance(tree, ast.Call) else tree.elts if isinstance(tree, ast.Tuple) else []
        inner = ",\n        ".join(map(ast.unparse, parts)) + ","
    return f"{function}(\n        {inner}\n    )"


def _module(one: Leaving, proof: str) -> str:
    return _Writer(one).module(proof)


def _test(one: Leaving, operator: Any, examples: Sequence[np.ndarray], within: tuple[float, float]) -> str:
    return _Writer(one).test(operator, examples, within)


MODULES = Modules("jax", JAX, _module, _test, _limits, only_compiled=True)
write = MODULES.write
