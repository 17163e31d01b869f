"""`py_func`: hook a Python function, and one for its gradient, into a network as an operator."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from app.custom.functions import (
    as_arrays,
    attach_backward,
    call_function,
    function_name,
    is_compiled,
    registered_at,
    require_callable,
)
from app.errors import DtypeError, OperatorError
from app.graph import names
from app.graph.defaults import default_main_program, in_dynamic_mode
from app.graph.program import Block, Variable
from app.ops.definition import OpDef, apply
from app.ops.dtype import canonical
from app.ops.spec import Spec
from app.tensor import Tensor


def py_func(
    func: Callable[..., Any],
    x: Any,
    out: Any,
    backward_func: Callable[..., Any] | None = None,
    skip_vars_in_backward_input: Any = None,
) -> Any:
    """Make an operator of `func` and apply it to `x`; its results go to `out`, which is returned.

    `func` gets the inputs as NumPy arrays. `out` says the types and shapes that it returns: Variables, Tensors,
    arrays or InputSpecs, one or a list, or None for a function that only looks. `backward_func` gets the inputs,
    the outputs and the gradients of the outputs, in that order and less the variables to skip, and returns the
    gradients of the inputs. An output without gradient is passed as None, and None is returned for an input
    without one.
    """
    require_callable(func, "func", "py_func", registered_at())
    inputs, outs = _listed(x), _listed(out)
    skipped = _skipped(func, inputs, outs, _listed(skip_vars_in_backward_input))
    specs = tuple(Spec(tuple(-1 if s is None else s for s in o.shape), canonical(o.dtype)) for o in outs)
    definition = _definition(func, backward_func, len(inputs), specs, skipped)
    if any(isinstance(v, Variable) for v in (*inputs, *outs)) or not (inputs or outs or in_dynamic_mode()):
        results: list[Any] = _append(definition, inputs, outs)
    else:
        results = _run(definition, inputs, outs)
    if out is None:
        return None
    return type(out)(results) if _is_list(out) else results[0]


def _listed(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(value) if _is_list(value) else [value]


def _is_list(value: Any) -> bool:
    """A list or tuple, and not a Spec, which is a tuple too."""
    return isinstance(value, (list, tuple)) and not hasattr(value, "shape")


def _skipped(func: Any, inputs: list[Any], outs: list[Any], skip: list[Any]) -> tuple[int, ...]:
    """The places, inputs first and outputs after them, of the values that the backward function does not get."""
    places = {id(v): i for i, v in enumerate([*inputs, *outs])}
    for value in skip:
        if id(value) not in places:
            name = getattr(value, "name", value)
            raise OperatorError(
                f"operator py_func.{function_name(func)} ({registered_at()}): skip_vars_in_backward_input names "
                f"{name}, which is neither one of its inputs nor one of its outputs"
            )
    return tuple(sorted(places[id(v)] for v in skip))


def _append(definition: OpDef, inputs: list[Any], outs: list[Any]) -> list[Any]:
    """Append the operator to the Program that its variables belong to."""
    known = [v for v in (*inputs, *outs) if isinstance(v, Variable)]
    program = known[0].program if known else default_main_program()
    block = program.current_block()
    variables = [block.as_variable(v) for v in inputs]
    results = [_declared(block, o, definition) for o in outs]
    flows = definition.differentiable and any(v is not None and not v.stop_gradient for v in variables)
    for result in results:
        result.stop_gradient = result.stop_gradient or not flows
    return block.append_op(definition, variables, {}, results)


def _declared(block: Block, out: Any, definition: OpDef) -> Variable:
    if isinstance(out, Variable):
        return out
    return block.create_var(names.generate(definition.name), out.shape, out.dtype)


def _run(definition: OpDef, inputs: list[Any], outs: list[Any]) -> list[Any]:
    """Run the operator on Tensors; Tensors given as `out` become the results."""
    tensors = [v if isinstance(v, Tensor) else Tensor(np.asarray(v)) for v in inputs]
    results = apply(definition, tensors, {}) if tensors else definition.kernel()
    results = _listed(results) if not isinstance(results, np.ndarray) else [results]
    results = [r if isinstance(r, Tensor) else Tensor(r) for r in results]
    for i, (out, result) in enumerate(zip(outs, results, strict=True)):
        if isinstance(out, Tensor):
            out.take_place_of(result)
            results[i] = out
    return results


@lru_cache(maxsize=512)
def _definition(
    func: Callable[..., Any],
    backward_func: Callable[..., Any] | None,
    inputs: int,
    outs: tuple[Spec, ...],
    skipped: tuple[int, ...],
) -> OpDef:
    """The operator of a pair of functions; the same one for the same pair, so that eager loops make it once."""
    where = registered_at()
    name = f"py_func.{function_name(func)}"
    label = f"operator {name} ({where})"
    warned: set[int] = set()

    def kernel(*arrays: np.ndarray) -> Any:
        result = call_function(func, label, arrays, {})
        checked = as_arrays(result, len(outs), label, func)
        for i, (array, spec) in enumerate(zip(checked, outs, strict=True)):
            if array is None or array.dtype != spec.dtype:
                found = "None" if array is None else array.dtype
                raise DtypeError(f"{label}: output {i} has type {found}, but {spec.dtype} was declared")
            if i not in warned and not _matches(array.shape, spec.shape):
                warned.add(i)
                warnings.warn(
                    f"{label}: output {i} has shape {list(array.shape)}, but {list(spec.shape)} was declared; "
                    "it is used as returned",
                    RuntimeWarning,
                    stacklevel=2,
                )
        return checked[0] if len(checked) == 1 else tuple(checked)

    x_names = _numbered("x", inputs)
    out_names = _numbered("out", len(outs))
    definition = OpDef(
        name,
        kernel,
        lambda *specs: outs,
        inputs=x_names,
        outputs=out_names,
        effects=not outs,
        native=func if is_compiled(func) else None,
        where=where,
    )
    if backward_func is not None:
        require_callable(backward_func, "backward_func", name, where)
        seen = [n for i, n in enumerate([*x_names, *out_names]) if i not in skipped]
        attach_backward(definition, backward_func, [*seen, *("d" + n for n in out_names)], keep_type=False)
    return definition


def _numbered(name: str, count: int) -> list[str]:
    return [name] if count == 1 else [f"{name}{i}" for i in range(count)]


def _matches(shape: Sequence[int], declared: Sequence[int]) -> bool:
    return len(shape) == len(declared) and all(d in (-1, s) for s, d in zip(shape, declared, strict=True))
