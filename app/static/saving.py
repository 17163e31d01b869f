"""Files of Programs and of the values that they keep, so that a network can be used where it was not trained."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from app import saving
from app.engine import global_scope
from app.errors import ProgramError
from app.graph import Program, Variable, default_main_program
from app.graph.passes.dead_code import dead_code
from app.graph.written import from_json, to_json

MODEL, PARAMETERS, WEIGHTS = ".pdmodel", ".pdiparams", ".pdparams"


def save(program: Program, model_path: str, protocol: int = 4, **settings: Any) -> None:
    """Write the values that a Program keeps to `model_path.pdparams`."""
    write_values(Path(model_path + WEIGHTS), _persistable(program))


def load(program: Program, model_path: str, executor: Any = None, var_list: Iterable[Variable] | None = None) -> None:
    """Read the values of a Program, or of the variables listed, from what `save` wrote."""
    read_values(Path(model_path + WEIGHTS), _persistable(program) if var_list is None else var_list)


def save_inference_model(
    path_prefix: str,
    feed_vars: Variable | Sequence[Variable],
    fetch_vars: Variable | Sequence[Variable],
    executor: Any = None,
    program: Program | None = None,
    **settings: Any,
) -> None:
    """Write what computes `fetch_vars` from `feed_vars` to `path_prefix.pdmodel`, its parameters to `.pdiparams`."""
    feed, fetch = ([v.name for v in _listed(group)] for group in (feed_vars, fetch_vars))
    needed = _needed(program or default_main_program(), feed, fetch)
    text = json.dumps({"feed": feed, "fetch": fetch, "program": to_json(needed)})
    path = Path(path_prefix + MODEL)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    write_values(Path(path_prefix + PARAMETERS), _persistable(needed))


def _needed(program: Program, feed: list[str], fetch: list[str]) -> Program:
    """A Program of its own with nothing but what computes `fetch` from `feed`."""
    needed = dead_code(program.clone(for_test=True), fetch)
    block = needed.global_block()
    used = {name for op in block.ops for name in (*op.inputs, *op.outputs)}
    missing = [v.name for v in block.vars.values() if v.is_data and v.name in used and v.name not in feed]
    if missing:
        raise ProgramError(f"{', '.join(fetch)} cannot be computed from {', '.join(feed)} alone; feed {missing[0]} too")
    block.vars = {name: v for name, v in block.vars.items() if name in used or name in (*feed, *fetch)}
    return needed


def load_inference_model(path_prefix: str, executor: Any = None, **settings: Any) -> list[Any]:
    """Read what `save_inference_model` wrote: the Program, the names of what it is fed, and what it is asked for."""
    path = Path(path_prefix + MODEL)
    try:
        written = json.loads(path.read_text(encoding="utf-8"))
        program = from_json(written["program"])
        fetch = [program.global_block().var(name) for name in written["fetch"]]
        feed = list(written["feed"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ProgramError(f"{path} cannot be read as a saved Program: {error}") from error
    read_values(Path(path_prefix + PARAMETERS), _persistable(program))
    return [program, feed, fetch]


def write_values(path: Path, variables: Iterable[Variable]) -> None:
    """Write the values that variables have in the global scope."""
    saving.save({v.name: global_scope().value(v.name) for v in variables}, path)


def read_values(path: Path, variables: Iterable[Variable]) -> None:
    """Read the values of variables into the global scope; each must be there, in its shape."""
    values = saving.load(path, return_numpy=True)
    for variable in variables:
        if variable.name not in values:
            raise ProgramError(f"{path} has no value for {variable.name}; it has {', '.join(values) or 'none'}")
        found = values[variable.name].shape
        if found != variable.shape:
            raise ProgramError(f"{variable.name} has shape {list(variable.shape)}, in {path} it has {list(found)}")
        global_scope().values[variable.name] = values[variable.name]


def _persistable(program: Program) -> list[Variable]:
    return [v for v in program.list_vars() if v.persistable]


def _listed(value: Any) -> list[Variable]:
    return list(value) if isinstance(value, (list, tuple)) else [value]
