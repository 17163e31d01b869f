"""Saving and loading Programs and their values."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

from app import saving
from app.engine import Scope, global_scope
from app.errors import ProgramError
from app.graph import Program, Variable, default_main_program
from app.graph.passes.dead_code import dead_code
from app.listed import as_list
from app.static.model_file import SavedModel, read_model, write_model

VALUES = ".pdparams"


def save(program: Program, model_path: str) -> None:
    """Write the persistable values of a Program to `model_path.pdparams`."""
    write_values(Path(model_path + VALUES), program._persistable())


def load(program: Program, model_path: str, *, var_list: Iterable[Variable] | None = None) -> None:
    """Read the values of a Program, or of the listed variables, from a file that `save` wrote."""
    read_values(Path(model_path + VALUES), program._persistable() if var_list is None else var_list)


def save_inference_model(
    path_prefix: str,
    feed_vars: Variable | Sequence[Variable],
    fetch_vars: Variable | Sequence[Variable],
    *,
    program: Program | None = None,
    scope: Scope | None = None,
) -> None:
    """Save the part of a Program that computes `fetch_vars` from `feed_vars`, as `path_prefix.json` and `.safetensors`.

    Custom operators are written as references to their functions, with a hash of the source of these.
    """
    feed, fetch = ([v.name for v in as_list(group)] for group in (feed_vars, fetch_vars))
    write_model(path_prefix, for_use(program or default_main_program(), feed, fetch, scope or global_scope()))


def for_use(program: Program, feed: list[str], fetch: list[str], scope: Scope) -> SavedModel:
    """The part of a Program that computes `fetch` from `feed`, with its values."""
    needed = reduced(program.clone(for_test=True), feed, fetch)
    return SavedModel(needed, feed, fetch, {v.name: scope.value(v.name) for v in needed._persistable()})


def reduced(program: Program, feed: list[str], fetch: list[str]) -> Program:
    """The Program without operators that are not needed to compute `fetch` from `feed`."""
    needed = dead_code(program, fetch)
    block = needed.global_block()
    used = {name for op in block.ops for name in (*op.inputs, *op.outputs)}
    missing = [v.name for v in block.vars.values() if v.is_data and v.name in used and v.name not in feed]
    if missing:
        raise ProgramError(f"{', '.join(fetch)} cannot be computed from {', '.join(feed)} alone; feed {missing[0]} too")
    block.vars = {name: v for name, v in block.vars.items() if name in used or name in (*feed, *fetch)}
    return needed


def load_inference_model(
    path_prefix: str,
    *,
    custom_ops: Any = (),
    accept_changed: Collection[str] = (),
) -> list[Any]:
    """Load a model that `save_inference_model` wrote. Returns the Program, the names of its inputs, and its outputs.

    The parameters go to the global scope, where they replace values of the same names, such as those of another loaded
    model. To keep models apart, load and run each of them under `scope_guard(Scope())`.

    Args:
        path_prefix: The path without `.json`.
        custom_ops: The custom operators of files that may be loaded: "my_ops.py:swish", "package.ops:swish", a whole
            file or module, or the function itself.
        accept_changed: Names of operators whose source may have changed since the model was saved.
    """
    model = read_model(path_prefix, custom_ops, accept_changed)
    global_scope().values.update(model.values)
    return [model.program, model.inputs, [model.program.global_block().var(name) for name in model.outputs]]


def write_values(path: Path, variables: Iterable[Variable]) -> None:
    """Write the values that variables have in the global scope."""
    saving.save({v.name: global_scope().value(v.name) for v in variables}, path)


def read_values(path: Path, variables: Iterable[Variable]) -> None:
    """Read the values of variables into the global scope; each must be there, in its shape."""
    values = saving.load(path, return_numpy=True)
    listed = list(variables)
    for variable in listed:
        if variable.name not in values:
            raise ProgramError(f"{path} has no value for {variable.name}; it has {', '.join(values) or 'none'}")
        shape = values[variable.name].shape
        if shape != variable.shape:
            raise ProgramError(f"{variable.name} has shape {list(variable.shape)}, in {path} it has {list(shape)}")
    global_scope().values.update({variable.name: variable.fitting(values[variable.name]) for variable in listed})
