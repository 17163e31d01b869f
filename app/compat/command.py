"""`opsmith run`: run a program that was written for Paddle or PyTorch on this framework."""

from __future__ import annotations

import argparse
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType, TracebackType

from app.command_line import FAILED
from app.compat import importing
from app.errors import AppError
from app.files import LARGEST, read_file


class ScriptError(AppError):
    """A script that cannot be run."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("script", metavar="SCRIPT", nargs="?", help="the program, run as `python SCRIPT` would run it")
    parser.add_argument("arguments", metavar="ARGUMENTS", nargs=argparse.REMAINDER, help="arguments of the program")


def run(options: argparse.Namespace) -> int:
    if not options.script:
        raise ScriptError("which script? Give the path of a Python file")
    return run_script(options.script, options.arguments)


def run_script(script: str, arguments: list[str]) -> int:
    """Run a script like Python, with the façades in place of the packages; return the exit status."""
    path = Path(script).absolute()
    source = _read(script)
    _set_the_stage(script, path, arguments)
    importing.install()
    try:
        exec(_compile(source, path), sys.modules["__main__"].__dict__)
    except ScriptError:
        raise
    except Exception as error:  # the script's own error: shown as by Python, without other frames
        shown = error.with_traceback(_from_the_script(error.__traceback__, str(path)))
        sys.excepthook(type(shown), shown, shown.__traceback__)
        return FAILED
    return 0


def _read(script: str) -> bytes:
    try:
        source = read_file(script, LARGEST["source"])
    except OSError as error:
        raise ScriptError(f"{script} cannot be run: {error.strerror}") from error
    if b"\0" in source:
        raise ScriptError(f"{script} cannot be run: it is not a Python file: it has bytes that are not text")
    return source


def _compile(source: bytes, path: Path) -> CodeType:
    try:
        return compile(source, str(path), "exec", dont_inherit=True)
    except SyntaxError as error:
        if path.suffix in (".py", ".pyw"):
            raise
        raise ScriptError(
            f"{path.name} cannot be run: it is not a Python file; line {error.lineno}: {error.msg}"
        ) from error


def _set_the_stage(script: str, path: Path, arguments: list[str]) -> None:
    """Set up `sys` and `__main__` as when Python itself runs a script."""
    main = ModuleType("__main__")
    main.__dict__.update(
        __file__=str(path),
        __cached__=None,
        __loader__=SourceFileLoader("__main__", str(path)),
        __builtins__=__builtins__,
    )
    sys.modules["__main__"] = main
    sys.argv = [script, *arguments]
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = str(path.resolve().parent)


def _from_the_script(traceback: TracebackType | None, path: str) -> TracebackType | None:
    while traceback is not None and traceback.tb_frame.f_code.co_filename != path:
        traceback = traceback.tb_next
    return traceback
