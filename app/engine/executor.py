"""The Executor: it feeds a Program, runs it with an engine, and fetches results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from app.device import set_device
from app.engine import reference
from app.engine.reference import Dataset, stacked
from app.errors import AppError, DtypeError, ProgramError, ShapeError
from app.graph.defaults import default_main_program
from app.graph.interpret import RunValue
from app.graph.program import Program
from app.graph.scope import Scope, global_scope
from app.graph.variable import Variable
from app.ops.spec import UNKNOWN


class Engine(Protocol):
    """Runs Programs on values that the Executor has checked."""

    def run(self, program: Program, feed: dict[str, np.ndarray], fetch: Sequence[str], scope: Scope) -> list[RunValue]:
        """Run a Program once; returns the fetched values."""

    def run_many(
        self, program: Program, dataset: Dataset, feeds: Sequence[str], fetch: Sequence[str], scope: Scope
    ) -> list[np.ndarray]:
        """Run a Program on each batch of a dataset; returns the values of each fetched variable at all batches."""


def _reference(sparse: bool = True) -> Engine:
    return reference.ReferenceEngine()


def _compiled(sparse: bool = True) -> Engine:
    from app.engine.compiled.engine import CompiledEngine  # imported here because importing Numba takes 0.3 s

    return CompiledEngine(sparse)


ENGINES: dict[str, Callable[..., Engine]] = {"reference": _reference, "compiled": _compiled}
"""The engines by name."""


class Executor:
    """Runs Programs with the engine of a given name; every engine computes the same results, except for rounding.

    With `sparse`, the compiled engine may skip the zero bytes of a dataset in its matrix products. A `place` other than
    the CPU is an error.
    """

    def __init__(self, place: object = None, engine: str = "reference", sparse: bool = True):
        set_device("cpu" if place is None else place)
        if engine not in ENGINES:
            raise ProgramError(f"there is no engine {engine!r}; expected one of {', '.join(ENGINES)}")
        self._engine = ENGINES[engine](**({} if sparse else {"sparse": False}))

    def run(
        self,
        program: Any = None,
        feed: Mapping[str, object] | None = None,
        fetch_list: Sequence[Variable | str] | None = None,
        scope: Scope | None = None,
    ) -> list[np.ndarray]:
        """Run a Program once with the values fed; returns the values of the variables in `fetch_list`.

        Lists in `fetch_list` are flattened.

        A value that is fed for a persistable variable is stored in the scope first, as in Paddle.
        """
        program = program or default_main_program()
        scope = scope or global_scope()
        fetch = [_fetch_name(program, item) for item in _flat(fetch_list)]
        fed = _checked_feed(program, feed or {}, fetch)
        return [np.array(value) for value in _run_once(self._engine, program, fed, fetch, scope)]

    def train_from_dataset(
        self,
        program: Program,
        dataset: Dataset,
        feed_list: Sequence[Variable | str],
        fetch_list: Sequence[Variable | str] = (),
        scope: Scope | None = None,
    ) -> list[np.ndarray]:
        """Run a Program on every batch of a dataset; returns the values of `fetch_list` in all batches.

        A dataset with `arrays`, `order` and `batch_size`, such as `opsmith.data.Batches`, may be run in one native
        call.
        """
        scope = scope or global_scope()
        feeds = [_fetch_name(program, item) for item in _listed(feed_list)]
        fetch = [_fetch_name(program, item) for item in _listed(fetch_list)]
        if not hasattr(dataset, "arrays") or _persistable(program, feeds):
            return stacked([self._run_batch(program, feeds, batch, fetch, scope) for batch in dataset], len(fetch))
        for batch in dataset:  # checking one is enough: all batches come from the same arrays
            _checked_batch(program, feeds, batch, fetch)
            break
        _refresh(program, scope)
        return self._engine.run_many(program, dataset, feeds, fetch, scope)

    def _run_batch(
        self, program: Program, feeds: Sequence[str], batch: Sequence[object], fetch: Sequence[str], scope: Scope
    ) -> list[RunValue]:
        return _run_once(self._engine, program, _checked_batch(program, feeds, batch, fetch), fetch, scope)

    def close(self) -> None:
        """Do nothing; it exists for Paddle's programs."""


def _run_once(
    engine: Engine, program: Program, fed: dict[str, np.ndarray], fetch: Sequence[str], scope: Scope
) -> list[RunValue]:
    _refresh(program, scope)
    for name in _persistable(program, fed):
        scope.values[name] = np.array(fed.pop(name))
    return engine.run(program, fed, fetch, scope)


def _persistable(program: Program, names: Iterable[str]) -> list[str]:
    return [name for name in names if program.global_block().var(name).persistable]


def _refresh(program: Program, scope: Scope) -> None:
    """Set learning rates to the values of their schedules."""
    for name, rate in program.schedulers.items():
        scope.values[name] = np.asarray(rate.get_lr(), program.global_block().var(name).dtype)


def _fetch_name(program: Program, item: Variable | str) -> str:
    if not isinstance(item, (str, Variable)):
        raise ProgramError(f"expected a Variable or its name, found a {type(item).__name__}")
    name = item if isinstance(item, str) else item.name
    program.global_block().var(name)
    return name


def _flat(items: Any) -> list[Any]:
    """Flatten nested lists."""
    if isinstance(items, (list, tuple)):
        return [each for item in items for each in _flat(item)]
    return list(_listed(items))


def _listed(items: Any) -> Sequence[Any]:
    if items is None:
        return []
    return list(items) if isinstance(items, (list, tuple)) else [items]


def _checked_batch(
    program: Program, feeds: Sequence[str], batch: Sequence[object], fetch: Sequence[str]
) -> dict[str, np.ndarray]:
    if len(batch) != len(feeds):
        raise ProgramError(f"a batch has {len(batch)} arrays, but {len(feeds)} variables to feed: {', '.join(feeds)}")
    return _checked_feed(program, dict(zip(feeds, batch, strict=True)), fetch)


def _checked_feed(program: Program, feed: Mapping[str, object], fetch: Sequence[str]) -> dict[str, np.ndarray]:
    variables = program.global_block().vars
    operators = program.global_block().ops
    unfed = [name for name, v in variables.items() if v.is_data and name not in feed]
    missing = [name for name in unfed if name in fetch or any(name in op.inputs for op in operators)]
    if missing:
        raise ProgramError(f"nothing was fed for {', '.join(missing)}; fed were {', '.join(feed) or 'none'}")
    fed = {}
    for name, value in feed.items():
        if name not in variables:
            data = [n for n, v in variables.items() if v.is_data]
            raise ProgramError(
                f"{name!r} was fed, but the Program has no such variable; its data are {', '.join(data)}"
            )
        v = variables[name]
        if not v.is_data and not v.persistable and any(name in op.outputs for op in operators):
            raise ProgramError(f"{name} was fed, but the Program computes it; feed its data, and fetch {name}")
        fed[name] = _checked_array(v, value)
    return fed


def _checked_array(variable: Variable, value: object) -> np.ndarray:
    """A fed value as an array, checked against the declared shape and type."""
    try:
        array = np.asarray(value)
    except AppError:
        raise
    except Exception as error:
        raise ProgramError(f"what was fed for {variable.name} is not an array: {error}") from error
    fits = len(array.shape) == len(variable.shape) and all(
        want in (UNKNOWN, size) for want, size in zip(variable.shape, array.shape, strict=True)
    )
    if not fits:
        raise ShapeError(f"{variable.name} takes shape {list(variable.shape)}, but was fed {list(array.shape)}")
    if array.dtype == variable.dtype:
        return array
    if not hasattr(value, "dtype") and np.can_cast(array.dtype, variable.dtype, "same_kind"):
        return array.astype(variable.dtype)
    raise DtypeError(f"{variable.name} takes {variable.dtype}, but was fed {array.dtype}; use .astype")
