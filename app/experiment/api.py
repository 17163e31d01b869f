"""Train, resume, compare: a run, its folder and its report. `opsmith.train` and the commands call these functions."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from contextlib import nullcontext
from pathlib import Path

import msgspec

from app.errors import ConfigError
from app.experiment.results import ComparisonResult, TrainingResult
from app.ranks.launch import launched
from app.run.config import CompareConfig, Config, operators_of
from app.run.console import Console
from app.run.folder import RunFolder, source_file
from app.run.layers import operators_named_in
from app.run.network import Activation, find_all
from app.run.resume import interrupted_run, where_it_goes_on
from app.run.run import Run
from app.run.trust import require_named
from app.run.workers import OpenExecutor


def train(
    config: Config,
    name: str,
    console: Console | None = None,
    given: Sequence[Activation] = (),
) -> TrainingResult:
    """Train the operator of a configuration beside its baseline, into a new folder named after `name`.

    `given` are operator objects, for names that cannot be found from the configuration.
    """
    activations = find_all(operators_of(config), config.model, given)  # before data is downloaded needlessly
    run = Run(config, activations, console or Console(), write_report=_write_report)
    return TrainingResult(run.go(lambda config: RunFolder.new(config, name)), activations)


def resume(
    path: Path,
    overrides: Sequence[str] = (),
    console: Console | None = None,
    custom_ops: Sequence[str] = (),
    given: Sequence[Activation] = (),
) -> TrainingResult:
    """Resume the interrupted run in a folder; the results are as without the interruption. `given` are the operators
    that cannot be imported. Files with others are executed only if `custom_ops` names them.
    """
    console = console or Console()
    launch = launched()
    with nullcontext() if launch is not None and launch.rank else RunFolder.again(path) as folder:
        config, found = interrupted_run(path, overrides)

        def reopened(config: Config) -> RunFolder:
            assert folder is not None, "only rank 0 writes"
            folder.go_on(config, b"" if found is None else found.metrics.tobytes())
            return folder

        activations = _operators_again(path, config, custom_ops, given)
        run = Run(config, activations, console, found=found, write_report=_write_report)
        return TrainingResult(run.go(reopened, where_it_goes_on(config, found)), activations)


def _operators_again(
    path: Path, config: Config, custom_ops: Sequence[str], given: Sequence[Activation]
) -> list[Activation]:
    """Return the operators of a resumed run, found by name or passed as objects."""
    by_name, names = {a.name: a for a in given}, operators_of(config)
    needed = list(dict.fromkeys([*names, *operators_named_in(config.model.all_layers)]))
    unknown = [name for name in by_name if name not in needed]
    if unknown:
        raise ConfigError(f"the run in {path} has no operator {', '.join(unknown)}; it has {', '.join(needed)}")
    lost = [name for name in needed if name not in by_name and (path / source_file(name)).is_file()]
    if lost:
        files = ", ".join(str(path / source_file(name)) for name in lost)
        raise ConfigError(
            f"{', '.join(lost)} cannot be imported, because it was defined in a notebook's cell or similar: define "
            f"it again as it was (its source is in {files}), and call opsmith.resume({str(path)!r}, "
            f"[{', '.join(lost)}])"
        )
    require_named([name for name in needed if name not in by_name], custom_ops, str(path))
    return find_all(names, config.model, given)


def compare(
    config: CompareConfig,
    name: str,
    console: Console | None = None,
    executor: Executor | OpenExecutor | None = None,
    given: Sequence[Activation] = (),
) -> ComparisonResult:
    """Train several operators under equal conditions with several seeds, and test how the others differ from the first.

    An `executor` of `concurrent.futures`, or of a cluster, runs the trainings in parallel; its workers must find the
    operators' files and the data under the same paths.
    """
    if config.dist.shape != "none":
        raise ConfigError(f"a comparison runs in one process, but dist.shape={config.dist.shape} is for several")
    if config.seed + config.seeds > 2**63:
        raise ConfigError(f"seeds={config.seeds}: from seed={config.seed} on, there are {2**63 - config.seed} seeds")
    operators = _operators_of(config)
    model = msgspec.structs.replace(config.model, activation=operators[1])
    config = msgspec.structs.replace(config, model=model, baseline=operators[0], operators=operators)
    activations = find_all(operators, config.model, given)
    chosen = range(config.seed, config.seed + config.seeds)
    workers = (lambda: nullcontext(executor)) if isinstance(executor, Executor) else executor
    run = Run(config, activations, console or Console(), seeds=chosen, workers=workers, write_report=_write_report)
    return ComparisonResult(run.go(lambda config: RunFolder.new(config, f"compare-{name}")), activations)


def _operators_of(config: CompareConfig) -> tuple[str, ...]:
    names = config.operators
    if names is None:
        names = tuple(name for name in (config.baseline, config.model.activation) if name)
    twice = [name for place, name in enumerate(names) if name in names[:place]]
    if twice:
        raise ConfigError(f"{twice[0]} is named twice; a comparison needs different operators")
    if len(names) < 2:
        found = f"only {names[0]} is named" if names else "no operator is named"
        raise ConfigError(
            f"{found}; a comparison needs two or more operators: --with relu,custom.relu, or in Python "
            'opsmith.compare(["relu", "tanh"])'
        )
    return names


def _write_report(folder: Path) -> Path:
    from app.report.report import write_report  # imported late: a run has other things to do first

    return write_report(folder)
