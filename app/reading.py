"""Reading a user's function: its parameters, and the tree of its source, checked against the code that Python runs."""

from __future__ import annotations
import __future__

import ast
import contextlib
import copy
import functools
import inspect
import itertools
import linecache
import os
import re
import sys
import sysconfig
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from traceback import walk_tb
from types import CodeType, FrameType, FunctionType, MethodType, TracebackType
from typing import Any, NamedTuple, ParamSpec, TypeAlias, TypeVar

from app.errors import AppError, OperatorError

P = ParamSpec("P")
R = TypeVar("R")
_turn = threading.RLock()


def one_thread_at_a_time(function: Callable[P, R]) -> Callable[P, R]:
    """A function that makes trees of source, or code of trees, made to wait until no other thread does.

    Python 3.11 counts the depth of a tree for the whole process, and raises SystemError where threads take turns.
    """

    @functools.wraps(function)
    def call(*args: P.args, **settings: P.kwargs) -> R:
        with _turn:
            return function(*args, **settings)

    return call


Definition: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_UNPARSED = (SyntaxError, ValueError, RecursionError, MemoryError)

PACKAGE = __name__.partition(".")[0]
"""The name of this package: `app` in a checkout, `opsmith` where it is installed."""

_PACKAGE = os.path.dirname(__file__) + os.sep  # not resolved: code objects keep symbolic links, too
_INSTALLED = tuple({sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib")})
LIBRARIES = (_PACKAGE, *_INSTALLED)
"""The folders of this package, of Python's own library and of installed packages."""
_SHELF = os.path.join(_PACKAGE, "custom", "shelf") + os.sep
_ANY = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}
_STARTED = time.time()
_FUTURE = functools.reduce(int.__or__, (getattr(__future__, n).compiler_flag for n in __future__.all_feature_names))
COMPILER_FLAGS = inspect.CO_OPTIMIZED | _FUTURE
"""The flags of a code that Numba clears if the function is called while a profiler runs; no function needs them."""
_verified: dict[str, tuple[Any, str]] = {}
"""For each file, the text that code of it was found in, and the import that this was of.

The text stays good when the file is edited afterwards, until it is imported again.
"""


def public_name(module: str) -> str:
    """The name of a module by which files refer to it: one of ours begins with `opsmith`, in a checkout, too."""
    top, dot, rest = module.partition(".")
    return f"opsmith{dot}{rest}" if top == PACKAGE else module


class UnreadableSourceError(OperatorError):
    """A function whose source cannot be read."""


class NoSourceError(UnreadableSourceError):
    """A function without source, made by `python -c` or `exec`."""


class ChangedSourceError(UnreadableSourceError):
    """A function whose file was edited after it was imported, so that its source is not what Python runs."""


def signature_of(function: Any) -> inspect.Signature:
    """The signature of a function. `functools.wraps` shows the signature of another function than the one called.

    So the wrapper's own counts, unless it takes any arguments at all, and so passes them on as they are.
    """
    if isinstance(function, MethodType):
        whole = signature_of(function.__func__)
        first, *others = whole.parameters.values()
        return whole if first.kind is first.VAR_POSITIONAL else whole.replace(parameters=others)
    own, wrapped = inspect.signature(function, follow_wrapped=False), getattr(function, "__wrapped__", None)
    if wrapped is None or not {p.kind for p in own.parameters.values()} >= _ANY:
        return own
    inner = signature_of(wrapped)
    named = [name for name, p in own.parameters.items() if p.kind not in _ANY]
    return inner if named == [*inner.parameters][: len(named)] else own


def parameters_of(function: Any) -> Mapping[str, inspect.Parameter]:
    """The parameters of a function."""
    return signature_of(function).parameters


def definition_of(function: FunctionType) -> Definition:
    """The `def` or the lambda of a function, as a tree of the caller's own, with the line numbers of its file.

    The source was compiled and compared with the function's code, so it is what Python runs: a ChangedSourceError says
    where it is not, and a NoSourceError where there is none.
    """
    return definition_in(function.__code__, function.__globals__)


def definition_in(code: CodeType, around: dict[str, Any]) -> Definition:
    """As `definition_of`, for a function's code and globals."""
    source = _source_of(code, around)
    definition = _one_of(source.definitions_at(code), source.codes, _without_flags(code))
    if definition is None:
        raise UnreadableSourceError(f"{code.co_name} cannot be distinguished from others on its line, {place_in(code)}")
    try:
        return copy.deepcopy(definition)
    except RecursionError:
        raise too_deep(definition, code) from None


def variables_around(function: FunctionType) -> dict[str, Any]:
    """The global variables of a function, and those of functions around it, which hide globals of the same name."""
    variables = dict(function.__globals__)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            variables[name] = cell.cell_contents
        except ValueError:
            raise UnreadableSourceError(
                f"{function.__name__} uses {name}, a variable of the function around it, which has no value yet "
                f"({place_in(function.__code__)}); assign it before the operator is applied"
            ) from None
    return variables


def definitions_of(function: FunctionType) -> list[Definition]:
    """The `def` of a function, or all lambdas on its line that may be it. The trees are shared: change a copy."""
    code = function.__code__
    return _source_of(code, function.__globals__).definitions_at(code)


def source_text(thing: Any) -> str:
    """The lines that define a function or a class; '' where they cannot be read, or are not what Python runs."""
    thing = inspect.unwrap(thing)
    if isinstance(thing, FunctionType):
        return _text_at([thing], lambda source: source.definitions_at(thing.__code__))
    if not isinstance(thing, type):
        return ""
    own = [getattr(value, "__func__", value) for value in vars(thing).values()]
    methods = [f for f in own if isinstance(f, FunctionType) and f.__module__ == thing.__module__]
    if not methods:  # there is no code to compare the source with
        with contextlib.suppress(OSError, TypeError):
            return inspect.getsource(thing)

    def around(source: _Source) -> list[ast.ClassDef]:
        classes = [c for c in ast.walk(source.tree) if isinstance(c, ast.ClassDef) and c.name == thing.__name__]
        held = [node for f in methods for node in source.definitions_at(f.__code__)]
        return [c for c in classes if any(node in c.body for node in held)]

    return _text_at(methods, around)


def _text_at(functions: Sequence[FunctionType], find: Callable[[_Source], Sequence[Definition | ast.ClassDef]]) -> str:
    """The lines of what is found in the source of functions; '' if that of one of them has changed."""
    text = ""
    for function in functions:
        try:
            source = _source_of(function.__code__, function.__globals__)
        except NoSourceError:  # such as an `__init__` that a dataclass was given
            continue
        except UnreadableSourceError:
            return ""
        for node in find(source):
            text = "\n".join(source.text.split("\n")[_first_line(node) - 1 : node.end_lineno]) + "\n"
    return text


def place(file: str, line: int) -> str:
    """A line of source, as in messages: `my_ops.py:7`, `Cell In[3], line 7` in a notebook, and of a derived function
    `line 5 of swish_grad, derived from my_ops.py:7`."""
    if derived := re.fullmatch(r"<(\w+) \d+, (derived from .*)>", file):
        return f"line {line} of {derived[1]}, {derived[2]}"
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    cell = None if shell is None else shell.compile.format_code_name(file)
    return f"{os.path.basename(file)}:{line}" if cell is None else f"{' '.join(cell)}, line {line}"


def place_in(code: CodeType, line: int = 0) -> str:
    """The line on which a function begins, or another line of its file, as in messages."""
    return place(code.co_filename, line or code.co_firstlineno)


def place_of(function: Any) -> str:
    """The line on which a function begins, as in messages; '' for one that is not written in Python."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return "" if code is None else place_in(code)


def is_users(file: str) -> bool:
    """Whether a file is not of this package or of Python's import system. The operators of the shelf count as the
    user's.
    """
    return file.startswith(_SHELF) or not file.startswith((_PACKAGE, "<frozen"))


def user_place() -> str:
    """The innermost line of the user's code that is running, as in messages; '' if there is none."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not is_users(frame.f_code.co_filename):
        frame = frame.f_back
    return "" if frame is None else place(frame.f_code.co_filename, frame.f_lineno)


def user_line(traceback: TracebackType | None) -> tuple[str, int] | None:
    """The file and the number of the last line of the user's code in a traceback."""
    lines = [(frame.f_code.co_filename, line) for frame, line in walk_tb(traceback)]
    return next((each for each in reversed(lines) if _is_written_by_user(each[0])), None)


def _is_written_by_user(file: str) -> bool:
    return is_users(file) and not file.startswith(_INSTALLED)


def traceback_of_users(error: BaseException) -> list[str]:
    """The traceback of an error as IPython shows it, with the frames of the user's code only.

    Those of its causes, such as an error that the user's function raised, come last: the message names them.
    """
    shell = sys.modules["IPython"].get_ipython()
    shown: TracebackType | None = None
    for link in reversed([link for each in _with_causes(error) for link in _links(each.__traceback__)]):
        code = link.tb_frame.f_code
        if _is_written_by_user(code.co_filename) and linecache.getlines(code.co_filename, link.tb_frame.f_globals):
            shown = TracebackType(shown, link.tb_frame, link.tb_lasti, link.tb_lineno)
    cause, context, suppressed = error.__cause__, error.__context__, error.__suppress_context__
    error.__cause__ = error.__context__ = None  # IPython would show all their frames, too
    try:
        lines: list[str] = shell.InteractiveTB.structured_traceback(type(error), error, shown, tb_offset=0)
    finally:
        error.__cause__, error.__context__, error.__suppress_context__ = cause, context, suppressed
    return lines


AppError._render_traceback_ = traceback_of_users


def _with_causes(error: BaseException) -> list[BaseException]:
    errors = [error]
    while errors[-1].__cause__ is not None and errors[-1].__cause__ not in errors:
        errors.append(errors[-1].__cause__)
    return errors


def _links(traceback: TracebackType | None) -> Iterator[TracebackType]:
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


def future_flags(code: CodeType) -> int:
    """The `from __future__` statements that a code was compiled under, as `compile` takes them."""
    return code.co_flags & _FUTURE


def too_deep(node: ast.AST, code: CodeType) -> UnreadableSourceError:
    """The error for source nested deeper than Python's recursion limit. It names the deepest line."""
    depth, line = 0, code.co_firstlineno
    waiting = [(node, 0, line)]
    while waiting:
        here, level, above = waiting.pop()
        at = getattr(here, "lineno", above)
        if level > depth:
            depth, line = level, at
        waiting += [(child, level + 1, at) for child in ast.iter_child_nodes(here)]
    return UnreadableSourceError(
        f"{place_in(code, line)}: an expression is nested too deeply ({depth} levels) to be read; compute parts of it "
        "in variables of their own"
    )


class _Source(NamedTuple):
    """A source, its tree, the codes that Python makes of it, and its definitions by name, outer ones first."""

    text: str
    tree: ast.Module
    codes: tuple[CodeType, ...]
    definitions: Mapping[str, list[Definition]]

    def definitions_at(self, code: CodeType) -> list[Definition]:
        """The definitions that may have become this code."""
        return [node for node in self.definitions.get(code.co_name, ()) if _first_line(node) == code.co_firstlineno]


def _source_of(code: CodeType, around: dict[str, Any]) -> _Source:
    name, code = code.co_name, _without_flags(code)
    texts = filter(None, (_text_before(code.co_filename, around), _text(code.co_filename, around)))
    for text, one_by_one in itertools.product(texts, (False, True)):
        try:
            source = _parsed(text, future_flags(code), one_by_one)
        except _UNPARSED as error:
            raise UnreadableSourceError(f"the source of {name}, {code.co_filename}, cannot be read: {error}") from error
        if (code in source.codes or _was_rewritten(code)) and source.definitions_at(code):
            _verified[code.co_filename] = (around.get("__spec__"), text)
            return source
    if not _text(code.co_filename, around):
        where = "Python's prompt keeps none before Python 3.13" if code.co_filename == "<stdin>" else code.co_filename
        raise NoSourceError(
            f"the source of {name} cannot be read ({where}); define it in a file, or in a cell without a magic such as "
            "%%time"
        )
    raise ChangedSourceError(
        f"{code.co_filename} has changed since {name} was imported from it; restart Python to use the new version"
    )


def _text_before(file: str, around: Mapping[str, Any]) -> str:
    imported, text = _verified.get(file, (None, ""))
    return text if imported is around.get("__spec__") else ""


def _text(file: str, around: dict[str, Any]) -> str:
    linecache.checkcache(file)
    text = "".join(linecache.getlines(file, around))
    return text if text.strip() else ""


@one_thread_at_a_time
@functools.lru_cache(maxsize=32)
def _parsed(text: str, future: int, one_by_one: bool = False) -> _Source:
    """A source with the codes that Python makes of the whole text, or of each of its statements by itself.

    IPython compiles the statements of a cell one by one. The code of a function then differs: a method of a name is
    called in another way if the text that is compiled imports that name.
    """
    flags = future | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT  # as notebook cells are compiled
    tree: ast.Module = compile(text, "", "exec", flags | ast.PyCF_ONLY_AST, dont_inherit=True)
    parts = [ast.Module([statement], []) for statement in tree.body] if one_by_one else [text]
    whole = [_without_flags(compile(part, "", "exec", flags, dont_inherit=True)) for part in parts]
    codes = [inner for code in whole for inner in codes_in(code)]
    definitions: dict[str, list[Definition]] = {}
    for node in ast.walk(tree):
        if isinstance(node, _DEFINITIONS):
            definitions.setdefault("<lambda>" if isinstance(node, ast.Lambda) else node.name, []).append(node)
    return _Source(text, tree, tuple(codes), definitions)


def _without_flags(code: CodeType) -> CodeType:
    """A code without `COMPILER_FLAGS`."""
    constants = (_without_flags(each) if isinstance(each, CodeType) else each for each in code.co_consts)
    return code.replace(co_flags=code.co_flags & ~COMPILER_FLAGS, co_consts=tuple(constants))


def codes_in(code: CodeType) -> Iterator[CodeType]:
    """A code and those inside it, outer ones first."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes_in(constant)


def _was_rewritten(code: CodeType) -> bool:
    """Whether a tool rewrote the code during import, as pytest does with assertions."""
    names = {name for inner in codes_in(code) for name in (*inner.co_names, *inner.co_varnames)}
    if not any(name.startswith("@") for name in names):
        return False
    try:
        status = os.stat(code.co_filename)
    except OSError:
        return False
    return max(status.st_mtime, status.st_ctime) < _STARTED


def _first_line(node: Definition | ast.ClassDef) -> int:
    decorators = [] if isinstance(node, ast.Lambda) else node.decorator_list
    return min(each.lineno for each in (node, *decorators))


def _one_of(nodes: list[Definition], codes: Sequence[CodeType], code: CodeType) -> Definition | None:
    """The definition on a line that became this code; None if that is ambiguous."""
    if len(nodes) == 1:
        return nodes[0]
    alike = [c for c in codes if (c.co_name, c.co_firstlineno) == (code.co_name, code.co_firstlineno)]
    in_order = sorted(nodes, key=lambda node: (node.lineno, node.col_offset))
    equal = [n for n, c in zip(in_order, alike, strict=False) if c == code] if len(alike) == len(nodes) else []
    return equal[0] if equal else None
