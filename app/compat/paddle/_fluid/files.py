"""paddle.fluid.io: save and load variables and networks in a folder."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from app import static
from app.graph import Program, default_main_program
from app.static.saving import read_values, write_values


def save_persistables(
    executor: Any, dirname: str, main_program: Program | None = None, filename: str | None = None
) -> None:
    write_values(_file(dirname, filename), _persistable(main_program))


def load_persistables(
    executor: Any, dirname: str, main_program: Program | None = None, filename: str | None = None
) -> None:
    read_values(_file(dirname, filename), _persistable(main_program))


def save_params(executor: Any, dirname: str, main_program: Program | None = None, filename: str | None = None) -> None:
    write_values(_file(dirname, filename), (main_program or default_main_program()).all_parameters())


def load_params(executor: Any, dirname: str, main_program: Program | None = None, filename: str | None = None) -> None:
    read_values(_file(dirname, filename), (main_program or default_main_program()).all_parameters())


def save_inference_model(
    dirname: str,
    feeded_var_names: Sequence[str],
    target_vars: Any,
    executor: Any,
    main_program: Program | None = None,
    model_filename: str | None = None,
    params_filename: str | None = None,
) -> list[str]:
    program = main_program or default_main_program()
    feed = [program.global_block().var(name) for name in feeded_var_names]
    static.save_inference_model(_prefix(dirname, model_filename), feed, target_vars, executor, program)
    return [v.name for v in (target_vars if isinstance(target_vars, (list, tuple)) else [target_vars])]


def load_inference_model(
    dirname: str, executor: Any, model_filename: str | None = None, params_filename: str | None = None
) -> list[Any]:
    return static.load_inference_model(_prefix(dirname, model_filename), executor)


def _file(dirname: str, filename: str | None) -> Path:
    return Path(dirname) / (filename or "__params__")


def _prefix(dirname: str, filename: str | None) -> str:
    return str(Path(dirname) / (filename or "__model__"))


def _persistable(program: Program | None) -> Any:
    return [v for v in (program or default_main_program()).list_vars() if v.persistable]
