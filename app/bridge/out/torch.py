"""Operators as functions of PyTorch, and the files of `export --to torch`."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from app.bridge.out.description import Description, Part
from app.bridge.out.names import Names, literal
from app.bridge.out.translation import TORCH
from app.bridge.out.writing import (
    EXPRESSIONS,
    KERNEL,
    ROLES,
    Leaving,
    Modules,
    bracketed,
    filled,
    header,
    over_elements,
    unbracketed,
)
from app.version import __version__

_IN_METHODS = (
    *("ctx", "again", "inputs", "output", "gradient", "function", "zeros", "run", "results", "torch", "info", "args"),
)
"""The variables of the templates' methods."""


def _limits(one: Leaving) -> list[str]:
    return ["It runs on the CPU, and has no forward mode."] if one.form == KERNEL else []


def _module(one: Leaving, proof: str) -> str:
    if one.form == EXPRESSIONS:
        return _expressions(one, _Texts(one.description), proof)
    return _kernels(one, _Texts(one.description), proof)


def _unpacked(parts: Sequence[str], value: str) -> str:
    """A statement that takes a tuple apart; '' if there is nothing in it."""
    return f"{unbracketed(parts)} = {value}" if parts else ""


class _Texts:
    """The parts of both kinds of modules."""

    def __init__(self, description: Description):
        d = self.description = description
        self.gradient, self.second = d.gradient, d.second
        self.title = "".join(part[:1].upper() + part[1:] for part in d.title.split("_"))
        names = Names(_IN_METHODS)
        self.inputs = [names.fresh(n) for n in d.inputs]
        self.settings = [names.fresh(n) for n in d.settings]
        self.outputs = ["output"] if len(d.outputs) == 1 else [names.fresh(n) for n in d.outputs]
        self.douts = [names.fresh(f"d{n}") for n in d.outputs]
        self.gradients = [names.fresh(f"d{n}") for n in d.inputs]
        self.tangents = [names.fresh(f"{n}_tangent") for n in d.inputs]
        self.by_setting = dict(zip(d.settings, self.settings, strict=True))
        self.saved = [s for s in dict.fromkeys(self.gradient.sources) if s[0] != "dout"]
        of_saved = Names(_IN_METHODS)
        self.takes = [of_saved.fresh(n) for n in self.gradient.takes]
        self.take_settings = [of_saved.fresh(n) for n in self.gradient.settings]
        self.arriving = [of_saved.fresh(f"d{n}") for n in self.gradient.gives]
        self.take_tangents = [of_saved.fresh(f"{n}_tangent") for n in self.gradient.takes]

    def name_of(self, source: tuple[str, Any]) -> str:
        """The variable of what a parameter of the gradient gets."""
        kind, place = source
        if kind == "output" and len(self.outputs) == 1:
            return self.description.outputs[0] if self.description.outputs[0] not in _IN_METHODS else "result"
        return {"input": self.inputs, "output": self.outputs, "dout": self.douts}[kind][place]

    def common(self) -> dict[str, str]:
        """The parts of the functions of autograd."""
        d, gradient = self.description, self.gradient
        of_settings = [self.by_setting[s] for s in gradient.settings]
        uses_outputs = len(self.outputs) > 1 and any(kind == "output" for kind, _ in self.saved)
        saved = ["output" if s[0] == "output" and len(self.outputs) == 1 else self.name_of(s) for s in self.saved]
        defaults = [f"{n}={literal(v)}" for n, v in d.settings.items()]
        call = ", ".join([*(self.name_of(s) for s in gradient.sources), *of_settings])
        second = self.second_settings()
        return {
            "title": self.title,
            "name": d.title,
            "signature": ", ".join([*d.inputs, *defaults]),
            "doc": f'"""{d.doc}"""' if d.doc else "",
            "parameters": ", ".join([*self.inputs, *self.settings]),
            "unpack_inputs": self._unpacked_inputs([*saved, *of_settings]),
            "unpack_output": _unpacked(self.outputs, "output") if uses_outputs else "",
            "saved": ", ".join(saved),
            "keep_settings": f"ctx.settings = {bracketed(of_settings)}" if of_settings else "",
            "douts": ", ".join(self.douts),
            "unpack_saved": _unpacked([self.name_of(s) for s in self.saved], "ctx.saved_tensors"),
            "unpack_settings": _unpacked(of_settings, "ctx.settings"),
            "return_gradients": self._returned(call),
            "takes": ", ".join(self.takes),
            "unpack_gradient_inputs": _unpacked(
                [*self.takes, *(s if s in second else "_" for s in self.take_settings)], "inputs"
            ),
            "gradient_parameters": ", ".join([*self.takes, *self.take_settings]),
            "keep_second_settings": f"ctx.settings = {bracketed(second)}" if second else "",
        }

    def _unpacked_inputs(self, used: Sequence[str]) -> str:
        """The statement that takes the arguments of forward apart, if any of them is used."""
        names = [name if name in used else "_" for name in (*self.inputs, *self.settings)]
        return _unpacked(names, "inputs") if set(names) != {"_"} else ""

    def second_settings(self) -> list[str]:
        by_name = dict(zip(self.gradient.settings, self.take_settings, strict=True))
        return [by_name[s] for s in self.second.settings] if self.second is not None else []

    def _returned(self, call: str) -> str:
        """The gradients of the inputs, and None for what has none."""
        d = self.description
        gradients = self.gradient.gives
        has = {n: f"d{n}" in gradients and real for n, real in zip(d.inputs, d.floats, strict=True)}
        if len(d.inputs) == 1 and not d.settings:
            return f"return gradient({call})"
        places = {name: self.gradients[place] for place, name in enumerate(d.inputs)}
        targets = [places[n] if has[n] else "_" for n in d.inputs if f"d{n}" in gradients]
        left = f"{targets[0]}" if len(targets) == 1 else unbracketed(targets)
        returned = unbracketed([*(places[n] if has[n] else "None" for n in d.inputs), *["None"] * len(d.settings)])
        return f"{left} = gradient({call})\n        return {returned}"

    def of_gradient(self, call: str) -> str:
        """The backward of the gradient."""
        d, second = self.description, self.second
        start = f"    @staticmethod\n    def backward(ctx, {', '.join(self.arriving)}):\n"
        if second is None:
            return f'{start}        raise NotImplementedError("{d.title} has no second derivative")'
        names = self.second_settings()
        lines = [_unpacked(self.takes, "ctx.saved_tensors")]
        lines += [_unpacked(names, "ctx.settings")]
        arguments = ", ".join([*self.takes, *self.arriving, *names])
        count = len(second.gives)
        has = [f"d{name}" in second.gives for name in self.gradient.takes]
        if all(has) and not self.take_settings:
            lines += [f"return {call}({arguments})"]
        else:
            results = Names([*_IN_METHODS, *self.takes, *self.arriving, *names])
            gradients = [
                results.fresh(f"d{name}") if real else "None" for name, real in zip(self.takes, has, strict=True)
            ]
            left = [f for f in gradients if f != "None"]
            lines += [f"{left[0] if count == 1 else unbracketed(left)} = {call}({arguments})"]
            lines += [f"return {unbracketed([*gradients, *['None'] * len(self.take_settings)])}"]
        return start + _indented(lines)


def _of_one_shape(d: Description) -> list[str]:
    """Lines that make the inputs tensors of floats of one type and shape. In whole numbers, 0.5 would become 0."""
    dtype = Names([*d.inputs, *d.settings]).fresh("dtype")
    first, *others = (f"{name}.dtype" for name in d.inputs)
    for other in others:
        first = f"torch.promote_types({first}, {other})"
    lines = [f"{dtype} = {first}", f"if not {dtype}.is_floating_point:"]
    lines += [f'    raise TypeError(f"{d.title} takes tensors of floats, found {{{dtype}}}")']
    if others:
        together = ", ".join(f"{name}.to({dtype})" for name in d.inputs)
        lines += [f"{', '.join(d.inputs)} = torch.broadcast_tensors({together})"]
    return lines


def _of_axes(d: Description) -> list[str]:
    """Lines that refuse tensors of other axes or types than those for which the gradient was derived."""
    names = Names([*d.inputs, *d.settings])
    tensor, axes, floats = (names.fresh(wish) for wish in ("tensor", "axes", "floats"))
    inputs = zip(d.inputs, d.specs, d.floats, strict=True)
    expected = ", ".join(f"({name}, {len(spec.shape)}, {real})" for name, spec, real in inputs)
    description = ", ".join(
        f"{'floats' if real else 'whole numbers'} with {len(spec.shape)} axes"
        for spec, real in zip(d.specs, d.floats, strict=True)
    )
    return [
        f"for {tensor}, {axes}, {floats} in ({expected}{',' * (len(d.inputs) == 1)}):",
        f"    if {tensor}.ndim != {axes} or {tensor}.is_floating_point() != {floats}:",
        f'        raise ValueError("{d.title} takes {description}")',
    ]


# Expressions


def _expressions(one: Leaving, texts: _Texts, proof: str) -> str:
    d = one.description
    common = texts.common()
    of_gradient = texts.of_gradient("_second")
    if texts.second is not None:
        of_gradient += "\n\n" + _jvp_of_gradient(texts)
    plain = texts.second is None and len(texts.outputs) == len(texts.inputs) == 1
    return filled(
        "torch_expressions.txt",
        sections=[] if plain else ["pushed"],
        **common,
        header=header(one, "PyTorch", "torch", proof, _limits(one)),
        imports=one.imports,
        constants=one.constants,
        functions=one.functions,
        of_gradient=of_gradient,
        checks="\n    ".join(_of_one_shape(d)),
        tangents=", ".join([*texts.tangents, *(["*_"] if d.settings else [])]),
        return_tangents=_tangents(texts),
    )


def _tangents(texts: _Texts) -> str:
    """Forward mode, by the gradient."""
    gradient, count = texts.gradient, len(texts.outputs)
    settings = [texts.by_setting[s] for s in gradient.settings]
    if count == len(texts.tangents) == 1 and ("dout", 0) in gradient.sources:
        arguments = [texts.tangents[0] if s[0] == "dout" else texts.name_of(s) for s in gradient.sources]
        return f"return _{texts.title}Gradient.apply({', '.join([*arguments, *settings])})"
    call = f"_{texts.title}Gradient.apply({', '.join([*map(texts.name_of, gradient.sources), *settings])})"
    backward = f"lambda {', '.join(texts.douts)}: {call}"
    return _broken("return _forward_mode", [backward, bracketed(texts.tangents), str(count)])


def _jvp_of_gradient(texts: _Texts) -> str:
    """Forward mode of the gradient, by the second derivative."""
    settings = texts.second_settings()
    names = [*texts.take_tangents, *(["*_"] if texts.take_settings else [])]
    backward = f"lambda {', '.join(texts.arriving)}: _second({', '.join([*texts.takes, *texts.arriving, *settings])})"
    lines = [_unpacked(texts.takes, "ctx.saved_tensors"), _unpacked(settings, "ctx.settings")]
    arguments = [backward, bracketed(texts.take_tangents), str(len(texts.arriving))]
    lines += [_broken("return _forward_mode", arguments)]
    return f"    @staticmethod\n    def jvp(ctx, {', '.join(names)}):\n" + _indented(lines)


def _broken(function: str, arguments: Sequence[str]) -> str:
    """A call in a method, on several lines if it is too long for one."""
    text = ", ".join(arguments)
    if len(function + text) < 109:
        return f"{function}({text})"
    lines = [text] if len(text) < 107 else [f"{argument}," for argument in arguments]
    return "\n            ".join([f"{function}(", *lines]) + "\n        )"


def _indented(lines: Iterable[str]) -> str:
    return "\n".join("        " + line for line in lines if line)


# Kernels


def _kernels(one: Leaving, texts: _Texts, proof: str) -> str:
    d = one.description
    rows = d.elementwise or (d.row_by_row and len(d.inputs) == 1)
    loops = [
        f'@njit(nogil=True, error_model="numpy")\n{over_elements(part, f"{role}_loop", role)}'
        for role, part in zip(ROLES, d.parts if d.elementwise else (), strict=False)
    ]
    parts: dict[str, str] = {}
    for role, part in zip(("forward", "gradient", "second"), d.parts, strict=False):
        parts |= _operator(one, role, part)
    sections = ["elementwise" if d.elementwise else "arrays"]
    sections += ["rows"] if rows else []
    sections += ["second"] if d.second is not None else []
    needs = "torch and numba" if loops or "@njit" in one.constants + one.functions else "torch"
    return filled(
        "torch_kernels.txt",
        sections=sections,
        **texts.common(),
        **parts,
        header=header(one, "PyTorch", needs, proof, _limits(one)),
        imports=one.imports,
        constants=one.constants,
        functions=one.functions,
        loops="\n\n\n".join(loops),
        flat=".reshape(-1)" if d.elementwise else "",
        shape=".reshape(tensors[0].shape)" if d.elementwise else "",
        run="_by_rows(function, arrays, settings)" if rows else "function(*arrays, *settings)",
        most=str(max(len(d.outputs), len(texts.gradient.gives))),
        of_gradient=texts.of_gradient("_run_second"),
        checks="\n    ".join(_of_one_shape(d) if d.elementwise else _of_axes(d)),
    )


def _operator(one: Leaving, role: str, part: Part) -> dict[str, str]:
    """The parts of the functions that run a kernel."""
    settings = one.description.settings
    typed = [f"{name}: torch.Tensor" for name in part.takes]
    typed += [f"{name}: {type(settings[name]).__name__}" for name in part.settings]
    count = len(part.gives)
    tensors = ["torch.Tensor"] * count
    digest = hashlib.sha256((one.functions + one.constants + ", ".join(typed)).encode()).hexdigest()[:8]
    returns = "torch.Tensor" if count == 1 else f"tuple[{', '.join(tensors)}]"
    definition = f"def _run_{role}({', '.join(typed)}) -> {returns}:"
    if len(definition) > 120:
        definition = f"def _run_{role}(\n    {', '.join(typed)}\n) -> {returns}:"
    parts = {
        "definition": definition,
        "function": f"_{role}_loop" if one.description.elementwise else f"_{role}",
        "tensors": ", ".join(part.takes) + "," * (len(part.takes) == 1),
        "numbers": ", ".join(part.settings) + "," * (len(part.settings) == 1),
        "unpacked": "results[0]" if count == 1 else f"tuple(results[:{count}])",
        "signature": ", ".join(part.parameters),
        "operator": f"{one.description.title}_{role}_{digest}",
    }
    return {f"{role}_{key}": value for key, value in parts.items()}


# Tests


def _test(one: Leaving, _: Any, examples: Sequence[np.ndarray], within: tuple[float, float]) -> str:
    d = one.description
    low, high = within
    lines = []
    for example in examples:
        shape = f"{example.shape}"
        if example.dtype.kind == "f":
            lines.append(f"drawn({shape}),")
        else:
            lines.append(f"torch.tensor({example.tolist()}, dtype=torch.{example.dtype.name}),")
    translated = one.form == EXPRESSIONS
    sections = ["expressions" if translated else "kernel"]
    sections += [] if d.surrogate else ["exact"]
    sections += ["second"] if d.second is not None else ["no_second"]
    sections += ["rows"] if d.elementwise or (d.row_by_row and len(d.inputs) == 1) else []
    modes = (
        ["check_batched_grad", "check_forward_ad", "check_batched_forward_grad"]
        if translated
        else ["check_batched_grad"]
    )
    settings = [f"{literal(v)}" for v in d.settings.values()]
    return filled(
        "torch_test.txt",
        sections=sections,
        name=d.title,
        examples="\n        ".join(lines),
        version=__version__,
        batched=repr(translated),
        low=f"{low:g}",
        span=f"{high - low:g}",
        modes=", ".join(f'"{mode}": True' for mode in modes),
        with_defaults=f"({', '.join(['*x', *settings])})" if settings else "tuple(x)",
    )


MODULES = Modules("torch", TORCH, _module, _test, _limits)
write = MODULES.write
