"""Control flow as functions, for Variables and Tensors: `cond` and `while_loop`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from app.errors import DtypeError, OperatorError, ShapeError
from app.graph import Program, Variable, default_main_program, in_dynamic_mode
from app.graph.control import append_cond, append_while, traced
from app.listed import as_list
from app.ops.spec import UNKNOWN
from app.reading import place_of
from app.static.structure import Structure
from app.tensor import Tensor

__all__ = ["cond", "while_loop"]


def cond(
    pred: Any,
    true_fn: Callable[[], Any] | None = None,
    false_fn: Callable[[], Any] | None = None,
    return_names: Sequence[str] | None = None,
) -> Any:
    """The result of `true_fn` if `pred` is true, else of `false_fn`. Both must match in structure, shapes and types."""
    for role, function in (("true_fn", true_fn), ("false_fn", false_fn)):
        if function is not None and not callable(function):
            raise OperatorError(f"operator cond: {role} must be a function, found {function!r}")
    if not isinstance(pred, Variable):
        chosen = true_fn if _truth("cond", pred) else false_fn
        return chosen() if chosen is not None else None
    _check_predicate(f"operator cond{_at(true_fn or false_fn)}", pred)
    structures: list[Structure] = []

    def values_of(function: Callable[[], Any] | None) -> Callable[[Any], list[Variable]]:
        def run(block: Any) -> list[Variable]:
            structures.append(Structure.of(function() if function is not None else None))
            return [_variable(pred.program, leaf, f"operator cond{_at(function)}") for leaf in structures[-1].leaves]

        return run

    true, false = traced(pred.program, values_of(true_fn)), traced(pred.program, values_of(false_fn))
    label = f"operator cond: true_fn{_at(true_fn)} and false_fn{_at(false_fn)}"
    _check_alike(label, structures, return_names)
    for path, a, b in zip(structures[0].paths, true.results, false.results, strict=True):
        _check_same_kind(f"{label} must give values of one kind, but {_named(path, return_names)}", a, b)
    return structures[0].filled(append_cond(pred, true, false))


def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Sequence[Any],
) -> list[Any]:
    """Replace `loop_vars` with `body(*loop_vars)` while `cond(*loop_vars)` is true. Returns the last ones."""
    label = f"operator while_loop (condition{_at(cond)}, body{_at(body)})"
    if not callable(cond) or not callable(body):
        raise OperatorError(f"{label}: cond and body must be functions, found {cond!r} and {body!r}")
    if not isinstance(loop_vars, (list, tuple)) or not loop_vars:
        raise OperatorError(f"{label}: loop_vars must be a list of at least one value, found {loop_vars!r}")
    carried = Structure.of(list(loop_vars))
    program = _program_of(carried.leaves)
    if program is None:
        return _loop_now(label, cond, body, list(loop_vars))
    initial = [_variable(program, leaf, label) for leaf in carried.leaves]

    def says(*values: Variable) -> Variable:
        answer = _variable(program, cond(*carried.filled(values)), f"{label}: its condition")
        _check_predicate(label, answer)
        return answer

    def makes(*values: Variable) -> list[Variable]:
        results = Structure.of(_listed(label, body(*carried.filled(values)), len(loop_vars)))
        _check_alike(f"{label}: loop_vars and what body returns", [carried, results], None)
        news = [_follow(program, new, old, label) for new, old in zip(results.leaves, values, strict=True)]
        for path, old, new in zip(carried.paths, values, news, strict=True):
            _check_same_kind(f"{label}: a loop variable keeps its kind, but {_named(path, None)}", old, new)
        return news

    return list(carried.filled(append_while(initial, says, makes)))


# For values that are known now


def _truth(operator: str, pred: Any) -> bool:
    value = np.asarray(pred.numpy() if isinstance(pred, Tensor) else pred)
    if value.size != 1:
        raise ShapeError(
            f"operator {operator}: its condition must be a single boolean, found shape {list(value.shape)}; "
            "reduce it with opsmith.all or opsmith.any"
        )
    return bool(value.reshape(())[()])


def _loop_now(label: str, cond: Callable[..., Any], body: Callable[..., Any], values: list[Any]) -> list[Any]:
    while _truth("while_loop", cond(*values)):
        values = _listed(label, body(*values), len(values))
    return values


def _listed(label: str, results: Any, count: int) -> list[Any]:
    news = as_list(results)
    if len(news) != count:
        raise OperatorError(
            f"{label}: body must return one value for each of the {count} loop_vars; it returned {len(news)}"
        )
    return news


# For values that are known when the Program runs


def _program_of(leaves: Sequence[Any]) -> Program | None:
    """The Program of the values; for numbers, the mode decides."""
    for leaf in leaves:
        if isinstance(leaf, Variable):
            return leaf.program
    eager = in_dynamic_mode() or any(isinstance(leaf, Tensor) for leaf in leaves)
    return None if eager else default_main_program()


def _variable(program: Program, value: Any, label: str) -> Variable:
    if isinstance(value, Tensor):
        raise OperatorError(
            f"{label}: a Tensor was mixed with Variables; a Tensor has a value now, "
            "a Variable only when its Program runs"
        )
    variable = program.current_block().as_variable(value)
    if variable is None:
        raise OperatorError(f"{label}: expected a Variable, found None")
    return variable


def _follow(program: Program, new: Any, old: Variable, label: str) -> Variable:
    """A new value of a loop variable; a Python number takes the type of the old one."""
    if isinstance(new, (bool, int, float)):
        new = np.full([max(size, 1) for size in old.shape] if UNKNOWN not in old.shape else (), new, old.dtype)
    return _variable(program, new, label)


def _check_predicate(label: str, pred: Variable) -> None:
    if pred.dtype != "bool":
        raise DtypeError(f"{label}: its condition {pred.name} must be boolean, found {pred.dtype}; use a comparison")
    if any(size not in (1, UNKNOWN) for size in pred.shape):
        raise ShapeError(
            f"{label}: its condition {pred.name} must be a single boolean, found shape {list(pred.shape)}; "
            "reduce it with opsmith.all or opsmith.any"
        )


def _check_alike(label: str, structures: Sequence[Structure], return_names: Sequence[str] | None) -> None:
    first, second = structures
    if first.shape != second.shape:
        names = f" for {', '.join(return_names)}" if return_names else ""
        raise OperatorError(f"{label} must have one structure{names}; found {first.shape} and {second.shape}")


def _check_same_kind(label: str, a: Variable, b: Variable) -> None:
    if a.dtype != b.dtype:
        raise DtypeError(f"{label} is {a.dtype} and {b.dtype}; use .astype")
    fits = len(a.shape) == len(b.shape) and all(
        m == n or UNKNOWN in (m, n) for m, n in zip(a.shape, b.shape, strict=True)
    )
    if not fits:
        raise ShapeError(f"{label} has shape {list(a.shape)} and {list(b.shape)}; reshape or pad one of them")


def _named(path: str, return_names: Sequence[str] | None) -> str:
    if return_names and path.isdigit() and int(path) < len(return_names):
        return f"{return_names[int(path)]!r}"
    return f"value {path}" if path else "the value"


def _at(function: Any) -> str:
    """Where a function was defined, if known."""
    place = place_of(function)
    return f" ({place})" if place else ""
