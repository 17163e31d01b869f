"""`opsmith watch my_ops.py`: on every save, check the operators of a file, train briefly with them, and print what came
of it.

Each version is examined in a fork of this process, which has imported everything but the file: no state of an earlier
version remains, and imports take no time.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from app.errors import AppError, ConfigError
from app.printing import PLAIN, RED, escaped, in_colour
from app.run.options import CONFIGS, add_overrides
from app.signals import die_with_parent, kill_group

CHECKS = ("gradient", "untouched", "repeatable")
"""The checks that training relies on. `check` runs all checks."""
_PACKAGE, _PAUSE, _STATE = os.path.join(str(Path(__file__).parents[1]), ""), 0.05, "state.json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command-line arguments."""
    parser.add_argument("operators", metavar="WHAT", help="my_ops.py (all operators in it) or my_ops.py:name")
    parser.add_argument("--config", default=str(CONFIGS / "quick.yaml"), help="the configuration (%(default)s)")
    add_overrides(parser)


def run(options: argparse.Namespace) -> int:
    """Watch until Ctrl-C."""
    from app.checking import checks, examples  # noqa: F401 - imported before forking, like the training loop
    from app.data import load
    from app.run import run  # noqa: F401
    from app.run.config import load_config

    file = Path(options.operators if options.operators.endswith(".py") else options.operators.rpartition(":")[0])
    if not file.is_file():
        raise ConfigError(f"there is no file {options.operators} to watch")
    config = load_config(options.config, options.overrides)
    config = msgspec.structs.replace(config, report=False, costs=False, check=False)
    load(config.data.source, config.data.sources, config.data.folder)  # an error of the data ends the command
    print(f"Watching {escaped(str(file))}. Save it to check it and train with it; Ctrl-C stops.", flush=True)
    context = multiprocessing.get_context("fork" if hasattr(os, "fork") else "spawn")
    process: Any = None
    seen: dict[Path, int] = {}
    with tempfile.TemporaryDirectory() as scratch:
        try:
            while True:
                time.sleep(_PAUSE)
                stamps = _stamps([file.resolve(), *map(Path, _state(scratch)["files"])])
                changed = not seen or any(seen.get(one, stamp) != stamp for one, stamp in stamps.items())
                time.sleep(_PAUSE if changed else 0)
                if changed and file.resolve() in stamps and stamps == _stamps([*stamps]):  # presumably whole
                    _stop(process)
                    arguments = (os.getpid(), options.operators, config, scratch, time.monotonic())
                    process = context.Process(target=_examine, args=arguments)  # type: ignore[attr-defined]
                    process.start()
                    seen = stamps
                seen = {**stamps, **seen}
                if process is not None and process.exitcode:
                    _print(f"{file}  the process ended with status {process.exitcode}", time.monotonic(), wrong=True)
                    process = None
        except KeyboardInterrupt:  # the only way to end it
            print("\nStopped.")
        finally:
            _stop(process)
    return 0


def _print(line: str, saved: float, wrong: bool = False) -> None:
    line = f"{RED}{escaped(line)}{PLAIN}" if wrong and in_colour(sys.stdout) else escaped(line)
    print(f"{time.strftime('%H:%M:%S')}  {line}  [{time.monotonic() - saved:.1f} s]", flush=True)


def _stamps(files: list[Path]) -> dict[Path, int]:
    """Return the modification time of each file that exists and has content: many editors empty a file to write it."""
    states = {file: file.stat() for file in files if file.exists()}
    return {file: state.st_mtime_ns for file, state in states.items() if state.st_size}


def _stop(process: Any) -> None:
    if process is not None:
        if hasattr(os, "killpg"):
            kill_group(process.pid)
        process.kill()
        process.join()


def _state(scratch: str) -> dict[str, Any]:
    """Return the files that the last version imported, and the figures of each operator."""
    file = Path(scratch, _STATE)
    state: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {"files": [], "figures": {}}
    return state


def _examine(parent: int, operators: str, config: Any, scratch: str, saved: float) -> None:
    """Print a line for each operator of a version."""
    if hasattr(os, "setsid"):
        os.setsid()  # with the processes that operators start; Ctrl-C is for the watcher
    die_with_parent(parent)
    from app.checking.checks import examine
    from app.checking.examples import inputs_for
    from app.checking.finding import find

    name, state = operators, _state(scratch)
    file = operators if operators.endswith(".py") else operators.rpartition(":")[0]
    try:
        for one in find(operators):
            name = one.name
            wrong = [f"{v.check} FAILED: {v.words}" for v in examine(inputs_for(one), CHECKS) if v.failed]
            if wrong:
                _print(f"{name}  {'; '.join(wrong)}", saved, wrong=True)
            else:
                line, state["figures"][name] = trained_line(name, f"{file}:{name}", config, state["figures"].get(name))
                _print(line, saved)
    except AppError as error:
        _print(f"{name}  {error}", saved, wrong=True)
    names = [getattr(module, "__file__", None) for module in [*sys.modules.values()]]
    paths = [Path(name) for name in names if name]
    inside = [p for p in paths if p.is_relative_to(Path(file).resolve().parent) and not str(p).startswith(_PACKAGE)]
    state["files"] = [str(path) for path in inside if "site-packages" not in path.parts]
    Path(scratch, _STATE).write_text(json.dumps(state))


def trained_line(name: str, reference: str, config: Any, last: Any) -> tuple[str, tuple[float, float | None]]:
    """Train with an operator; return a line about it, compared with the figures of its last version and with the
    baseline, and its figures."""
    from app.run.comparison import time_ratio
    from app.run.console import Console
    from app.run.folder import RunFolder
    from app.run.record import read_run
    from app.run.run import train

    model = msgspec.structs.replace(config.model, activation=reference)
    with tempfile.TemporaryDirectory() as folder:
        config = msgspec.structs.replace(config, model=model, operators=None, output=folder)
        train(config, partial(RunFolder.new, name="watch"), Console(False, None, brief=True))
        run = read_run(Path(folder))
    accuracy, baseline, ratio = run.accuracy(reference) or 0.0, config.baseline, None
    beside = [f"{accuracy - last[0]:+.4f} from the last version"] if last else []
    speed = f"epoch {run.seconds(reference):.3f} s"
    if baseline:
        beside.append(f"{accuracy - (run.accuracy(baseline) or 0.0):+.4f} from {baseline}")
        ratio = time_ratio([(run.timed(reference), run.timed(baseline))]).mean
        speed += f", {ratio:.2f} times {baseline}'s" + (f" (was {last[1]:.2f})" if last and last[1] else "")
    listed = f" ({', '.join(beside)})" if beside else ""
    return f"{name}  gradient ok  accuracy {accuracy:.4f}{listed}  {speed}", (accuracy, ratio)
