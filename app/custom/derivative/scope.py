"""What is known of a function that is being derived: its names, which of them have slopes, and where errors point."""

from __future__ import annotations

import ast
import builtins
import inspect
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any, NoReturn

from app.custom.derivative.slopes import FLAT
from app.custom.derivative.terms import names_in
from app.custom.derivative.walrus import without_walrus
from app.custom.numba_functions import function_name, python_function
from app.errors import GradientError, OperatorError
from app.reading import definition_of

_YIELDS = (ast.Yield, ast.YieldFrom, ast.Await)


class UnderivableError(GradientError):
    """A function that no gradient can be derived for: the words name the line and what stands there."""


class Scope:
    """A function's tree, the values that its names have outside of it, and the names that are taken in it."""

    def __init__(self, function: Any, inputs: list[str]):
        self.function: FunctionType = python_function(function)
        self.inputs = inputs
        self.name = function_name(self.function)
        if not isinstance(self.function, FunctionType):
            raise UnderivableError(f"{self.name} is no function with a source in Python")
        self.tree, self.body = self._tree()
        closure = inspect.getclosurevars(self.function)
        self.around: dict[str, Any] = {**self.function.__globals__, **closure.nonlocals}
        self._known = {**vars(builtins), **self.around}
        self.parameters = list(inspect.signature(self.function, follow_wrapped=False).parameters)
        self.taken = names_in(self.tree) | set(self.parameters)
        stored = {n.id for n in ast.walk(self.tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        self.assigned = stored
        self._local = stored | set(self.parameters)
        self.active: dict[str, list[str]] = {name: [name] for name in inputs}
        """The inputs along which a name may have a slope, by the name."""

    def _tree(self) -> tuple[ast.AST, list[ast.stmt]]:
        try:
            node = definition_of(self.function)
        except OperatorError as error:
            raise UnderivableError(str(error)) from error
        if isinstance(node, ast.AsyncFunctionDef) or any(isinstance(n, _YIELDS) for n in ast.walk(node)):
            raise UnderivableError(
                f"{self.place(node)}: {self.name} is a generator or a coroutine, and gives no number"
            )
        missing = [name for name in self.inputs if name not in {a.arg for a in _named(node.args)}]
        if missing:
            raise UnderivableError(
                f"{self.place(node)}: {self.name} takes {missing[0]!r} among any number of arguments (`*args`, "
                "`**kwargs`), which cannot be derived; name its parameters"
            )
        body = [ast.copy_location(ast.Return(node.body), node.body)] if isinstance(node, ast.Lambda) else node.body
        return node, without_walrus([*body], self.refuse)

    def place(self, node: ast.AST) -> str:
        """File and line of a piece of source."""
        file = self.function.__code__.co_filename.rpartition("/")[2]
        return f"{file}:{getattr(node, 'lineno', self.function.__code__.co_firstlineno)}"

    def refuse(self, node: ast.AST, why: str) -> NoReturn:
        """Say that a piece of source cannot be derived."""
        text = ast.unparse(node).partition("\n")[0]
        raise UnderivableError(f"{self.place(node)}: `{text}` {why}")

    def fresh(self, wish: str) -> str:
        """A name that is not taken yet."""
        found, count = wish, 1
        while found in self.taken:
            count += 1
            found = f"{wish.rstrip('0123456789')}{count}"
        self.taken.add(found)
        return found

    def meaning(self, node: ast.AST) -> Any:
        """What a name that the function does not make stands for, or what that has; None where it is not known."""
        if isinstance(node, ast.Name):
            return None if node.id in self._local else self._known.get(node.id)
        if isinstance(node, ast.Attribute):
            owner = self.meaning(node.value)
            return getattr(owner, node.attr, None) if isinstance(owner, ModuleType) else None
        return None

    def depends(self, node: ast.AST) -> list[str]:
        """The inputs along which an expression may have a slope, as the names in it have."""
        if isinstance(node, ast.Name):
            return self.active.get(node.id, [])
        if isinstance(node, ast.Compare) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)):
            return []
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv):
            return []
        if isinstance(node, ast.Call) and _is_among(self.meaning(node.func), FLAT):
            return []
        parts = [node.body, node.orelse] if isinstance(node, ast.IfExp) else ast.iter_child_nodes(node)
        found = {name for part in parts for name in self.depends(part)}
        return [name for name in self.inputs if name in found]

    def settle(self, assignments: Callable[[], list[tuple[str, ast.AST]]]) -> None:
        """Find the names that have slopes, going over what is assigned to them until nothing is added."""
        changed = True
        while changed:
            changed = False
            for target, value in assignments():
                before = self.active.get(target, [])
                found = {*before, *self.depends(value)}
                if len(found) > len(before):
                    self.active[target] = [name for name in self.inputs if name in found]
                    changed = True


def _named(arguments: ast.arguments) -> list[ast.arg]:
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]


def _is_among(value: Any, functions: Any) -> bool:
    try:
        return value in functions
    except TypeError:  # what has no hash is no function of theirs
        return False
