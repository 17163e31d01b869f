"""`py_func`: put a Python function, and one for its gradient, into a network as an operator."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from types import BuiltinFunctionType, MethodType
from typing import Any, Literal

import numpy as np

from app.custom.calling import arrays_of, call_function, require_callable, returned_arrays
from app.custom.custom_op import derived_gradient_of
from app.custom.operator import CustomOperator, Origin, makes
from app.custom.read_only import guarded
from app.errors import DtypeError, OperatorError
from app.functions import function_name, python_function
from app.graph.defaults import default_main_program, in_dynamic_mode
from app.graph.program import Block
from app.graph.variable import Variable
from app.ops.definition import OpDef, apply
from app.ops.dtype import castable
from app.ops.size import AnySize
from app.ops.spec import Spec, spec_of
from app.reading import user_place
from app.tensor import Tensor
from app.tensor.dispatch import as_applied, as_results

DERIVE: Literal["derive"] = "derive"
_ALSO_INPUT = (
    "{label}: {name} is both input and output, so its gradient would be taken at the wrong value; give a separate out, "
    "such as opsmith.static.InputSpec.from_tensor(x)"
)
_OUTSIDE = (
    "{label}: its out {place} is a Tensor from outside of the traced function, through which no gradient could flow; "
    "give opsmith.static.InputSpec.from_tensor(out), or a Tensor that the function makes"
)


def py_func(
    func: Callable[..., Any],
    x: Any,
    out: Any,
    backward_func: Callable[..., Any] | Literal["derive"] | None = None,
    skip_vars_in_backward_input: Any = None,
    *,
    row_by_row: bool = False,
    onnx: str | Callable[..., Any] | None = None,
    like: str = "",
    surrogate: bool = False,
) -> Any:
    """Make an operator from `func` and apply it to `x`. The results are put into `out`, which is returned.

    Args:
        func: Takes the inputs as NumPy arrays.
        x: The input, or a list of inputs.
        out: The types and shapes of the results: a Variable, Tensor, array or InputSpec, or a list of them; None for
            a function that returns nothing. Where a float is declared, numbers of other types become floats of it;
            any other result of another type is an error.
        backward_func: Takes the inputs, the outputs and the gradients of the outputs, in that order, and returns the
            gradients of the inputs. None stands for a missing gradient. "derive" derives one from the source of `func`.
        skip_vars_in_backward_input: Inputs and outputs that `backward_func` does not take.
        row_by_row: Declares that each row of the results of both functions depends only on the same row of their
            inputs. An engine may then call them on part of a batch.
        onnx: The equivalent ONNX operator ("Relu"), or a rule that makes several nodes.
        like: An operator that computes the same ("relu"); `opsmith check` compares with it.
        surrogate: Declares that `backward_func` differs from the derivative on purpose, as in a straight-through
            estimator.
    """
    where = user_place()
    require_callable(func, "func", f"operator py_func ({where})")
    label = f"operator py_func.{function_name(func)} ({where})"
    if backward_func not in (None, DERIVE):
        require_callable(backward_func, "backward_func", label)
    inputs, outs = _listed(x), _listed(out)
    skipped = _skipped(label, inputs, outs, _listed(skip_vars_in_backward_input))
    if skipped and backward_func == DERIVE:
        raise OperatorError(
            f"{label}: skip_vars_in_backward_input is for a backward_func of your own; a derived one takes all"
        )
    specs = _declared_specs(label, outs)
    make = _definition if _is_equal_to_itself_only(func, backward_func) else _definition.__wrapped__
    definition = make(func, backward_func, len(inputs), specs, skipped, row_by_row, onnx, like, surrogate, where)
    inputs = as_applied(inputs)
    results = (_append if _in_program([*inputs, *as_applied(outs)]) else _run)(definition, inputs, outs)
    if out is None:
        return None
    return type(out)(results) if _is_list(out) else results[0]


def _is_equal_to_itself_only(*functions: Any) -> bool:
    """Whether `==` of functions is identity; objects of a class with an `__eq__` may be equal and compute otherwise."""
    exact = (MethodType, BuiltinFunctionType, str, type(None))
    return all(isinstance(f, exact) or not any("__eq__" in vars(c) for c in type(f).__mro__[:-1]) for f in functions)


def _listed(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(value) if _is_list(value) else [value]


def _is_list(value: Any) -> bool:
    """Whether a value is a list or tuple, but not a Spec, which is a tuple too."""
    return isinstance(value, (list, tuple)) and not hasattr(value, "shape")


def _declared_specs(label: str, outs: list[Any]) -> tuple[Spec, ...]:
    for out in outs:
        if not (hasattr(out, "shape") and hasattr(out, "dtype")):
            raise OperatorError(
                f"{label}: out must have a shape and a dtype, as a Variable, a Tensor, an array or an InputSpec has; "
                f"found {out!r} ({type(out).__name__})"
            )
    return tuple(spec_of(out) for out in outs)


def _in_program(values: list[Any]) -> bool:
    """Whether the call belongs to a Program: there is a Variable, or the mode is static and there is no Tensor."""
    if any(isinstance(v, Variable) for v in values):
        return True
    return not (in_dynamic_mode() or any(isinstance(v, Tensor) for v in values))


def _skipped(label: str, inputs: list[Any], outs: list[Any], skip: list[Any]) -> tuple[int, ...]:
    """The positions, inputs first and then outputs, of the values that the backward function does not get."""
    places = [id(v) for v in (*inputs, *outs)]
    for value in skip:
        if id(value) not in places:
            raise OperatorError(
                f"{label}: skip_vars_in_backward_input names {getattr(value, 'name', value)}, "
                "which is neither one of its inputs nor one of its outputs"
            )
    unwanted = {id(v) for v in skip}
    return tuple(i for i, place in enumerate(places) if place in unwanted)


def _append(definition: OpDef, inputs: list[Any], outs: list[Any]) -> list[Any]:
    """Append the operator to the Program of its variables."""
    variables_given = [v for v in (*inputs, *outs) if isinstance(v, Variable)]
    program = variables_given[0].program if variables_given else default_main_program()
    block = program.current_block()
    variables = [block.as_variable(v) for v in inputs]
    results = [_declared(block, o, definition) for o in outs]
    for i, out in enumerate(outs):
        if definition.differentiable and any(as_applied(out) is v for v in variables):
            raise OperatorError(_ALSO_INPUT.format(label=definition.label, name=getattr(out, "name", f"output {i}")))
    outputs = as_results(block.append_op(definition, variables, {}, results))
    for i, (out, result) in enumerate(zip(outs, outputs, strict=True)):
        if isinstance(out, Tensor):
            if not result.stop_gradient:
                raise OperatorError(_OUTSIDE.format(label=definition.label, place=i))
            out.set_value(result)
    return list(outputs)


def _declared(block: Block, out: Any, definition: OpDef) -> Variable:
    if isinstance(out, Variable):
        return out
    return block.create_var(block.new_name(definition.name), out.shape, out.dtype)


def _run(definition: OpDef, inputs: list[Any], outs: list[Any]) -> list[Any]:
    """Run the operator on Tensors. Tensors given as `out` become the results."""
    for i, out in enumerate(outs):
        if definition.differentiable and any(out is x for x in inputs):
            raise OperatorError(_ALSO_INPUT.format(label=definition.label, name=f"output {i}"))
    tensors = [v if isinstance(v, Tensor) else Tensor(np.asarray(v)) for v in inputs]
    returned = apply(definition, tensors, {}) if tensors else definition.kernel()
    results = [r if isinstance(r, Tensor) else Tensor(r) for r in _listed(returned)]
    for i, (out, result) in enumerate(zip(outs, results, strict=True)):
        if isinstance(out, Tensor):
            out.take_place_of(result)
            results[i] = out
    return results


@lru_cache(maxsize=128)
def _definition(
    func: Callable[..., Any],
    backward_func: Callable[..., Any] | Literal["derive"] | None,
    inputs: int,
    outs: tuple[Spec, ...],
    skipped: tuple[int, ...],
    row_by_row: bool,
    onnx: str | Callable[..., Any] | None,
    like: str,
    surrogate: bool,
    where: str,
) -> CustomOperator:
    """The operator of a pair of functions, made once for each place of registration, so that eager loops are fast."""
    name = f"py_func.{function_name(func)}"
    x_names = _numbered("x", inputs)
    out_names = _numbered("out", len(outs))
    casts: dict[str, str] = {}
    definition = CustomOperator(
        name,
        func,
        _kernel(func, outs, casts, f"operator {name} ({where})"),
        lambda *specs: outs,
        row_by_row=row_by_row,
        like=like,
        inputs=x_names,
        outputs=out_names,
        effects=not outs,
        onnx=onnx,
        where=where,
    )
    definition.casts = casts
    definition.on_variables = python_function(func)
    settings: dict[str, Any] = {"inputs": inputs, "outs": outs, "skipped": skipped, "row_by_row": row_by_row}
    if isinstance(onnx, str):
        settings["onnx"] = onnx
    if like:
        settings["like"] = like
    if surrogate:
        settings["surrogate"] = definition.surrogate = True
    functions: dict[str, Any] = {"func": func}
    if backward_func == DERIVE:
        settings[DERIVE] = True
    else:
        functions["backward_func"] = backward_func
    definition.origin = Origin("py_func", {k: f for k, f in functions.items() if f is not None}, settings)
    if backward_func == DERIVE:
        definition.derive_when_needed(partial(derived_gradient_of, definition))
    elif callable(backward_func):
        sources = [(kind, i) for kind, names in (("input", x_names), ("output", out_names)) for i in range(len(names))]
        passed = [source for i, source in enumerate(sources) if i not in skipped]
        takes = [*passed, *(("dout", i) for i in range(len(out_names)))]
        definition.differentiate_by(backward_func, takes)
    return definition


def _kernel(func: Callable[..., Any], outs: Sequence[Spec], casts: dict[str, str], label: str) -> Callable[..., Any]:
    """A kernel that calls the user's function on arrays and compares what it returns with what was declared.

    Numbers become floats of the declared type; `casts` gets the returned types. Any other type is an error.
    """
    warned: set[int] = set()
    call = guarded(func)

    def kernel(*arrays: np.ndarray) -> Any:
        inputs = arrays_of(arrays)
        checked = returned_arrays(
            call_function(call, label, inputs, {}), len(outs), label, func, hint="; `out` declares them"
        )
        for i, (array, spec) in enumerate(zip(checked, outs, strict=True)):
            if array.dtype != spec.dtype:
                if not castable(array.dtype, spec.dtype):
                    raise DtypeError(f"{label}: output {i} has type {array.dtype}, but {spec.dtype} was declared")
                casts[f"output {i}"] = array.dtype.name
                checked[i] = array.astype(spec.dtype)
            if i not in warned and not _matches(array.shape, spec.shape):
                warned.add(i)
                warnings.warn(
                    f"{label}: output {i} has shape {list(array.shape)}, but {list(spec.shape)} was declared; "
                    "it is used as returned",
                    RuntimeWarning,
                    stacklevel=2,
                )
        return checked[0] if len(checked) == 1 else tuple(checked)

    return kernel


@makes("py_func")
def _again(functions: Mapping[str, Any], settings: Mapping[str, Any], where: str) -> OpDef:
    required = [settings[name] for name in ("inputs", "outs", "skipped", "row_by_row")]
    optional = settings.get("onnx"), settings.get("like", ""), settings.get("surrogate", False)
    backward_func = DERIVE if settings.get(DERIVE) else functions.get("backward_func")
    return _definition(functions["func"], backward_func, *required, *optional, where)


def _numbered(name: str, count: int) -> list[str]:
    return [name] if count == 1 else [f"{name}{i}" for i in range(count)]


def _matches(shape: Sequence[int], declared: Sequence[AnySize]) -> bool:
    return len(shape) == len(declared) and all(d in (-1, s) for s, d in zip(shape, declared, strict=True))
