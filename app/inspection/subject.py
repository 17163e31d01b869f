"""The Programs to inspect: of a configuration, of a saved model, or of a function that builds a network."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app import static
from app.checking.examples import inputs_for
from app.checking.findings import one_of
from app.checking.operators import UserOperator
from app.custom.lookup import find_operator
from app.errors import AppError, ConfigError
from app.graph import Program, Variable, names, static_mode
from app.graph.statements import Watched
from app.ops.definition import REGISTRY
from app.run.trust import refuse_without_effect
from app.static.model_file import SavedModel, paths_of

if TYPE_CHECKING:
    from app.run.activation import Activation
    from app.run.config import Config

BATCH = 256
"""The default batch size."""


@dataclass
class Subject:
    """A startup and a main Program, and what is fetched from the main one."""

    name: str
    startup: Program
    main: Program
    fetch: list[str]
    built: Watched
    """What each statement appended to them; empty if they were read from a file."""
    batch: int = BATCH
    of_rank: Program | None = None
    """The main Program as one of several ranks runs it; None for a single process."""
    sparse: bool = True
    """Whether products may skip zero bytes."""
    is_operator: bool = False
    """Whether the main Program is an operator with its gradient, and there is no startup."""

    @property
    def runs(self) -> Program:
        """The main Program that an engine gets."""
        return self.main if self.of_rank is None else self.of_rank


def of_configuration(path: str, overrides: Sequence[str], rank: int | None = None) -> Subject:
    """The Programs that training with a configuration runs, on one rank (by default the first) if it is for several."""
    from app.run.activation import find_all
    from app.run.config import load_config

    config = load_config(path, overrides)
    (activation,) = find_all([config.model.activation], config.model)
    return of_network(config, activation, Path(path).name, rank)


def of_network(config: Config, activation: Activation, name: str, rank: int | None = None) -> Subject:
    """The Programs that train the network of a configuration."""
    from app.run import network
    from app.run.learners import program as learner

    if config.dist.shape == "none" and rank is not None:
        raise ConfigError(f"rank {rank}: {name} is for one process; add dist.shape=allreduce")
    with static.watch(learner.__file__, network.__file__) as built:
        learning = learner.ProgramLearner(config, activation, (28, 28), rank or 0)
    size = config.train.batch_size
    of_rank = None if learning.main_here is learning.main else learning.main_here
    return Subject(name, learning.startup, learning.main, learning.fetch, built, size, of_rank, config.sparse == "auto")


def of_model(model: SavedModel, name: str) -> Subject:
    """The Program of a saved model."""
    return Subject(name, Program(), model.program, list(model.outputs), Watched(()))


def of_word(word: str, custom_op: Sequence[str] = (), accept_changed: Sequence[str] = ()) -> Subject:
    """The saved model, the run, the operator or the function that a word names."""
    from app.use.models import read_named_model

    if Path(word).is_dir() or paths_of(word)[0].is_file():
        model, path = read_named_model(word, custom_op, accept_changed)
        return of_model(model, path.name)
    if not (".py" in word or ":" in word or word.startswith("custom.") or word in REGISTRY):
        raise ConfigError(
            f"{word}: there is no saved model {paths_of(word)[0]}; "
            "expected one, a run's folder, an operator, or a function that builds a network: file.py:function"
        )
    refuse_without_effect(custom_op, accept_changed)
    one = one_of(word)
    return of_operator(one) if one.parameters else of_function(word)


def of_operator(one: UserOperator) -> Subject:
    """The Program of an operator on rows of numbers, and of its gradient."""
    examined = inputs_for(one)
    shapes = [[None, *i.shape[1:]] if i.name not in one.shapes else list(i.shape) for i in examined.inputs]
    with examined.in_program(shapes) as (program, data, outputs):
        differentiated = [x for x in data if not x.stop_gradient]
        flowing = [y for y in outputs if not y.stop_gradient]
        gradients = (
            [g for g in static.gradients(flowing, differentiated) if g is not None]
            if differentiated and flowing
            else []
        )
    fetch = [value.name for value in (*outputs, *gradients)]
    return Subject(one.name, Program(), program, fetch, Watched(()), is_operator=True)


def of_function(word: str, function: Callable[..., Any] | None = None) -> Subject:
    """The Programs that a function builds; without one, the function `file.py:function` of a word."""
    function = function or find_operator(word)
    startup, main = Program(), Program()
    code = getattr(inspect.unwrap(function), "__code__", None)
    watched = static.watch(code.co_filename if code is not None else "")
    with names.guard(), static.program_guard(main, startup), static_mode(), static.scope_guard(static.Scope()), watched:
        try:
            result = function()
        except AppError as error:
            raise type(error)(f"{word}: {error}") from error
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise AppError(f"{word} raised {type(error).__name__}: {error}") from error
    if isinstance(result, Program):
        return Subject(word, watched.startup or startup, result, ends_of(result), watched)
    outputs = _variables(result)
    if not outputs:
        raise AppError(
            f"{word} returned {type(result).__name__}, expected the loss or the outputs of the network, or its Program"
        )
    return Subject(word, watched.startup or startup, outputs[0].program, [v.name for v in outputs], watched)


def _variables(value: Any) -> list[Variable]:
    """The Variables in what a function returned."""
    if isinstance(value, Variable):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [v for item in value for v in _variables(item)] if isinstance(value, (list, tuple)) else []


def ends_of(program: Program) -> list[str]:
    """What a Program makes and neither reads nor keeps: its results."""
    block = program.global_block()
    read = {name for op in block.ops for name in op.inputs}
    outputs = dict.fromkeys(name for op in block.ops for name in op.outputs)
    return [name for name in outputs if name not in read and not block.var(name).persistable]
