"""From the name of an activation to the operator: built in, on the shelf, or in a file of the user's."""

from __future__ import annotations

import ast
import difflib
import hashlib
import importlib
import importlib.util
import inspect
import linecache
import os
import pkgutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import SourceFileLoader
from pathlib import Path
from traceback import walk_tb
from types import CodeType, ModuleType
from typing import Any
from zlib import crc32

from app.custom import shelf
from app.custom.calling import suggestion
from app.custom.foreign import operator_of_framework
from app.custom.operator import home_of
from app.custom.pylayer import PyLayer
from app.errors import AppError, ConfigError, OperatorError
from app.files import LARGEST, read_file, without_tilde
from app.ops import REGISTRY, OpDef
from app.ops.spec import Spec
from app.reading import LIBRARIES

SHIPPED = tuple(sorted(module.name for module in pkgutil.iter_modules(shelf.__path__)))
"""The custom operators on the shelf."""

UNREADABLE = (SyntaxError, TypeError, ValueError, RecursionError, MemoryError)
"""What `ast.literal_eval` raises for text that is no literal."""

OF_FILES = "_operators_of_"
"""The prefix of the names of modules that are files of the user's."""


def built_in_names() -> list[str]:
    """The public operators that take one value and no required setting."""
    return sorted(name for name, op in REGISTRY.items() if op.public and _keeps_shape(op))


def _keeps_shape(op: OpDef) -> bool:
    """Whether an operator can stand between layers: one input, one output of the same shape, and a gradient."""
    is_complete = all(value is not inspect.Parameter.empty for value in op.attributes.values())
    if len(op.inputs) != 1 or not op.differentiable or not is_complete:
        return False
    example = Spec((2, 3), "float32")
    try:
        return op.infer_outputs([example], op.attributes) == (example,)
    except AppError:
        return False


def find_operator(name: str) -> Callable[..., Any]:
    """The operator that `relu`, `custom.relu` or `path/to/file.py:name` stands for.

    A Layer class is returned as it is, because each place in a network has a Layer of its own (see `make_operator`).
    """
    home, _, _ = name.rpartition(":")
    if home and not home.endswith(".py"):
        raise ConfigError(f"{home} is not a Python file; its name must end in .py")
    if not home and not name.startswith("custom.") and name not in built_in_names():
        raise _unknown(name)
    operator = _applied(resolve(name))
    if not callable(operator):
        raise ConfigError(f"{name} is {type(operator).__name__}, expected an operator or a function of one value")
    function: Callable[..., Any] = operator
    return function


def resolve(name: str) -> Any:
    """What `relu`, `custom.relu`, `path/to/file.py:name` or `package.module:name` names, as it is written there."""
    if name.startswith("custom."):
        return on_the_shelf(name)
    home, short = parted(name)
    if short is None:
        if name in REGISTRY and REGISTRY[name].public:
            return REGISTRY[name]
        raise _unknown(name)
    module = module_at(home, as_it_is_now=True)
    thing = named_in(module, short)
    if thing is None:
        names = [k for k, v in vars(module).items() if k != "_" and callable(v) and home_of(v) == module.__name__]
        raise ConfigError(
            f"{home} has no {short!r}{_nearest(short, names)} It has {', '.join(names) or 'no functions of its own'}"
        )
    return thing


def parted(name: str) -> tuple[str, str | None]:
    """The file or module of a name, and the name in it; None if it stands for all names."""
    home, colon, short = name.rpartition(":")
    if not colon or not all(step.isidentifier() for step in short.split(".")):
        return name, None
    return home, short


def named_in(module: ModuleType, path: str) -> Any:
    """The value of a name in a module; a dotted path leads through classes only. None if there is none."""
    first, *others = path.split(".")
    value = getattr(module, first, None)
    for step in others:
        value = vars(value).get(step) if isinstance(value, type) else None
        value = getattr(value, "__func__", value)  # a static method is its function
    return value


def module_at(home: str, as_it_is_now: bool = False) -> ModuleType:
    """The module of a file, or of a name. A file is run again, if it can be, to have it as it is now."""
    return _module_of_file(home, as_it_is_now) if home.endswith(".py") else _module_of_name(home)


def split_settings(text: str) -> tuple[str, dict[str, Any]]:
    """The name and the settings in a text such as `custom.leaky_relu(slope=0.2)`."""
    name, bracket, rest = text.partition("(")
    if not bracket:
        return text, {}
    try:
        call = ast.parse(f"f({rest}", mode="eval").body
        if not isinstance(call, ast.Call) or call.args or not isinstance(call.func, ast.Name):
            raise ValueError("settings are given by name")
        names = [str(k.arg) for k in call.keywords if k.arg is not None]
        if len(set(names)) < len(call.keywords):
            raise ValueError("settings are given by name, and each once")
        return name, {n: ast.literal_eval(k.value) for n, k in zip(names, call.keywords, strict=True)}
    except UNREADABLE as error:
        raise ConfigError(f"{text!r} cannot be read; write settings as in leaky_relu(negative_slope=0.1)") from error


def make_operator(named: str | Callable[..., Any]) -> Callable[..., Any]:
    """The operator of a name, or one that is given, for one place in a network: of a class of Layers, a new one."""
    operator = find_operator(named) if isinstance(named, str) else _applied(named)
    if not callable(operator):
        raise ConfigError(f"an operator or its name is expected, found {operator!r}")
    return operator() if isinstance(operator, type) else operator


def on_the_shelf(name: str) -> Any:
    """What `custom.relu` names: an operator, a function or a class, as its file defines it."""
    short = name.partition(".")[2]
    if short not in SHIPPED:
        raise _unknown(name)
    return getattr(importlib.import_module(f"{shelf.__name__}.{short}"), short)


def _applied(operator: Any) -> Any:
    """The function to call: of a PyLayer class, or of an operator of another framework, its `apply`."""
    operator = operator_of_framework(operator) or operator
    return operator.apply if isinstance(operator, type) and issubclass(operator, PyLayer) else operator


def values_taken(operator: Any) -> Sequence[str]:
    """The names of an operator's inputs; () for a function or a class, which does not declare them."""
    return operator.inputs if isinstance(operator, OpDef) else ()


def _unknown(name: str) -> ConfigError:
    shipped = [f"custom.{short}" for short in SHIPPED]
    single = [one for one in shipped if len(values_taken(on_the_shelf(one))) < 2]
    return ConfigError(
        f"there is no operator {name!r}{_nearest(name, [*built_in_names(), *shipped])} "
        f"There are {', '.join([*built_in_names(), *single])}, and your own as path/to/file.py:name"
    )


def _nearest(name: str, names: Sequence[str]) -> str:
    same = [one for one in names if one.rpartition(".")[2] == name.lower()]
    close = [*same, *difflib.get_close_matches(name, names, 1)]
    return f"; did you mean {close[0]!r}?" if close else "."


def _module_of_file(path: str, as_it_is_now: bool) -> ModuleType:
    """The module of a file; the file is run if it was not imported, or may have been edited since.

    A module that is running, or is part of a package, cannot be run once more by itself.
    """
    file = without_tilde(path).resolve()
    if not file.is_file():
        names = [one.stem for one in file.parent.glob("*.py")] if file.parent.is_dir() else []
        closest = difflib.get_close_matches(file.stem, names, 1, cutoff=0.75)
        hint = f"; did you mean '{closest[0]}.py'?" if closest else ""
        raise ConfigError(f"there is no file {file}{hint}")
    for module in list(sys.modules.values()):
        file_of_module = getattr(module, "__file__", None)
        if (
            file_of_module
            and os.path.basename(file_of_module) == file.name  # of thousands, for which a Path takes long
            and Path(file_of_module).resolve() == file
            and OF_FILES not in module.__name__
            and not (as_it_is_now and _can_run_again(module))
        ):
            return module
    return _run_file(file)


def _can_run_again(module: ModuleType) -> bool:
    running = module.__name__ == "__main__" or getattr(module.__spec__, "_initializing", False)
    return not running and not module.__package__


def _module_of_name(name: str) -> ModuleType:
    """The module of a name, which may be in the working folder. Whatever importing it raises is an AppError."""
    if "" not in sys.path:  # as in `python -m`, and not in the command `opsmith`
        sys.path.insert(0, "")
    try:
        return importlib.import_module(name)
    except (AppError, KeyboardInterrupt):
        raise
    except ImportError as error:
        raise ConfigError(f"the module {name} cannot be imported: {error}") from error
    except BaseException as error:  # such as a SyntaxError, or SystemExit
        raise OperatorError(f"the module {name} cannot be imported: {type(error).__name__}: {error}") from error


class _Loader(SourceFileLoader):
    """Runs a file and keeps the text that was run, which is the source of its functions from then on."""

    def get_code(self, fullname: str) -> CodeType:
        content = self.get_data(self.path)
        # Without a modification time, linecache keeps the lines even if the file is edited.
        linecache.cache[self.path] = (len(content), None, _lines(content), self.path)
        return self.source_to_code(content, self.path)


def _lines(content: bytes) -> list[str]:
    try:
        lines = importlib.util.decode_source(content).splitlines(keepends=True)
    except (SyntaxError, UnicodeDecodeError):  # compiling it raises the error
        return []
    return [*lines[:-1], lines[-1].rstrip("\n") + "\n"] if lines else []


def _place_in(file: Path, error: BaseException) -> str:
    """The file and its last line in the traceback of an error; only the file if it is not in there."""
    if isinstance(error, SyntaxError) and error.filename == str(file):
        return f"{file}:{error.lineno}"
    lines = [line for frame, line in walk_tb(error.__traceback__) if frame.f_code.co_filename == str(file)]
    return f"{file}:{lines[-1]}" if lines else str(file)


_ran: dict[Path, tuple[bytes, ModuleType]] = {}
"""The files that were run: the hash of the text, as modification times may be equal or put back, and the module."""


def _run_file(file: Path) -> ModuleType:
    """The module of a file, which is run again only if it changed, because its operators may be compiled."""
    if file.suffix != ".py":
        raise ConfigError(f"{file} is not a Python file; its name must end in .py")
    try:
        text = hashlib.sha256(read_file(file, LARGEST["source"])).digest()
    except OSError as error:
        raise OperatorError(f"{file} cannot be read: {error.strerror or error}") from error
    entry = _ran.get(file)
    if entry is None or entry[0] != text:
        _ran.pop(file, None)  # running it may raise
        entry = _ran[file] = text, _module_of_text(file)
    return entry[1]


@contextmanager
def _importing_from(folder: Path) -> Iterator[dict[str, str]]:
    """Let a file import modules of its folder, as when Python runs it.

    Importing a module of the folder fails if Python would import one of the same name from elsewhere instead. Yields
    the names of these, with where they would be imported from.
    """
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    names = {one.stem for one in folder.glob("*.py")} | {one.parent.name for one in folder.glob("*/*.py")}
    hidden = {name: place for name in names if name.isidentifier() and (place := _elsewhere(name, folder))}
    imported = {name: module for name, module in sys.modules.items() if name.partition(".")[0] in hidden}
    refused = {**imported, **hidden}
    sys.modules.update(dict.fromkeys(refused))  # type: ignore[arg-type]  # Python does not import what is None
    try:
        yield hidden
    finally:
        for name in refused:
            sys.modules.pop(name, None)
        sys.modules.update(imported)


def _elsewhere(name: str, folder: Path) -> str:
    """Where, outside of a folder and of the libraries, an import would find a name of the folder; '' if nowhere."""
    try:
        spec = None if name.startswith("__") else importlib.util.find_spec(name)
    except ValueError:  # a module that no import made
        return ""
    own = [file for file in (folder / f"{name}.py", folder / name / "__init__.py") if file.is_file()]
    if spec is None or (spec.has_location and not own):  # a folder without __init__.py is imported only if nothing else
        return ""
    place = str(spec.origin if spec.has_location else next(iter(spec.submodule_search_locations or []), folder))
    is_here = Path(place).resolve() in [file.resolve() for file in (*own, folder, folder / name)]
    return "" if is_here or place.startswith(LIBRARIES) else place


def _module_of_text(file: Path) -> ModuleType:
    name = f"{OF_FILES}{file.stem}_{crc32(bytes(file)):08x}"
    spec = importlib.util.spec_from_file_location(name, file, loader=_Loader(name, str(file)))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module.__name__] = module
    hidden: dict[str, str] = {}
    try:
        with _importing_from(file.parent) as hidden:
            spec.loader.exec_module(module)
    except AppError as error:
        raise type(error)(f"{_place_in(file, error)}: {error}") from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        missing = str(error.name).partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
        if missing in hidden:
            raise OperatorError(
                f"{_place_in(file, error)}: {missing} would be imported from {hidden[missing]}, not from this folder, "
                "which has one of that name, too: rename one, or use the two in different processes"
            ) from error
        message = error.msg if isinstance(error, SyntaxError) else error
        raise OperatorError(
            f"{_place_in(file, error)}: running the file raised {type(error).__name__}: {message}{suggestion(error)}"
        ) from error
    return module
