"""What is known of a function that is being derived: its names, which of them have slopes, and its lines for errors."""

from __future__ import annotations

import ast
import builtins
import inspect
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any, NoReturn

from app.derivative.powers import make_float_powers
from app.derivative.slopes import is_flat
from app.derivative.terms import names_in
from app.errors import GradientError, OperatorError
from app.functions import function_name, python_function, unused
from app.reading import definition_of, place_in, variables_around

_YIELDS = (ast.Yield, ast.YieldFrom, ast.Await)


class UnderivableError(GradientError):
    """No gradient can be derived for a function. The message has the line and its source."""


class Scope:
    """A function's tree, the values of its global names, and the names that are in use."""

    def __init__(self, function: Any, inputs: list[str]):
        self.function: FunctionType = python_function(function)
        self.inputs = inputs
        self.name = function_name(self.function)
        if not isinstance(self.function, FunctionType):
            raise UnderivableError(f"{self.name} is not a Python function with a source")
        self.tree, self.body = self._tree()
        self.extra: dict[str, Any] = {}
        """The variables that the derived function has in addition to those of this function."""
        try:
            self.around = variables_around(self.function)
        except OperatorError as error:
            raise UnderivableError(str(error)) from None
        self._globals = {**vars(builtins), **self.around}
        self.parameters = list(inspect.signature(self.function, follow_wrapped=False).parameters)
        self.all_names = names_in(self.tree) | set(self.parameters)
        stored = {n.id for n in ast.walk(self.tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        self.assigned = stored
        self.local = stored | set(self.parameters)
        """The names that are variables of the function itself, and so hide globals."""
        self.active: dict[str, list[str]] = {name: [name] for name in inputs}
        """For each name the inputs along which it may have a slope."""

    def _tree(self) -> tuple[ast.AST, list[ast.stmt]]:
        try:
            node = definition_of(self.function)
        except OperatorError as error:
            raise UnderivableError(str(error)) from None
        if isinstance(node, ast.AsyncFunctionDef) or any(isinstance(n, _YIELDS) for n in ast.walk(node)):
            raise UnderivableError(
                f"{self.place(node)}: {self.name} is a generator or a coroutine, and does not return a number"
            )
        unnamed = [name for name in self.inputs if name not in {a.arg for a in _named(node.args)}]
        if unnamed:
            raise UnderivableError(
                f"{self.place(node)}: {self.name} takes {unnamed[0]!r} among any number of arguments (`*args`, "
                "`**kwargs`), which cannot be derived; name its parameters"
            )
        if self.inputs:
            make_float_powers(node, self.inputs)
        body = [ast.copy_location(ast.Return(node.body), node.body)] if isinstance(node, ast.Lambda) else node.body
        for part in ast.walk(node):
            if isinstance(part, ast.NamedExpr):
                self.refuse(part, "assigns inside an expression; write the assignment as a statement of its own")
        return node, [*body]

    def place(self, node: ast.AST) -> str:
        """File and line of a node."""
        return place_in(self.function.__code__, getattr(node, "lineno", 0))

    def refuse(self, node: ast.AST, why: str) -> NoReturn:
        """Raise the error for a node that cannot be derived; `written` is what the user wrote in its place."""
        node = getattr(node, "written", node)
        lines = ast.unparse(node).split("\n")
        text = lines[len(node.decorator_list) if isinstance(node, ast.FunctionDef) else 0]
        raise UnderivableError(f"{self.place(node)}: `{text}` {why}")

    def fresh(self, wish: str) -> str:
        """A name that is not in use."""
        name = unused(wish, self.all_names)
        self.all_names.add(name)
        self.local.add(name)
        return name

    def add_variable(self, wish: str, value: Any) -> str:
        """Give the derived function a variable; gives its name."""
        name = self.fresh(wish)
        self.extra[name] = self.around[name] = value
        return name

    def meaning(self, node: ast.AST) -> Any:
        """The value of a global name, or of an attribute of a module; None if it is not known."""
        if isinstance(node, ast.Name):
            return None if node.id in self.local else self._globals.get(node.id)
        if isinstance(node, ast.Attribute):
            owner = self.meaning(node.value)
            return getattr(owner, node.attr, None) if isinstance(owner, ModuleType) else None
        return None

    def is_idle(self, node: ast.stmt) -> bool:
        """Whether a statement does nothing that a derived function repeats: it is text, or prints."""
        value = node.value if isinstance(node, ast.Expr) else None
        prints = isinstance(value, ast.Call) and self.meaning(value.func) is print
        return isinstance(value, ast.Constant) or prints

    def arguments_of(self, node: ast.Call, function: FunctionType) -> inspect.BoundArguments:
        """What each parameter of a user's function gets in a call."""
        if any(isinstance(part, ast.Starred) for part in node.args) or any(k.arg is None for k in node.keywords):
            self.refuse(node, "gives any number of arguments, and cannot be derived")
        signature = inspect.signature(function, follow_wrapped=False)
        try:
            return signature.bind(*node.args, **{str(k.arg): k.value for k in node.keywords})
        except TypeError as error:
            self.refuse(node, f"calls {function_name(function)} with arguments that cannot be derived: {error}")

    def numbers_of(self, node: ast.Call) -> list[ast.expr]:
        """The arguments in a call of a function of numbers."""
        if node.keywords or any(isinstance(part, ast.Starred) for part in node.args):
            self.refuse(node, "can be derived only with positional arguments")
        return node.args

    def depends(self, node: ast.AST) -> list[str]:
        """The inputs along which an expression may have a slope."""
        if isinstance(node, ast.Name):
            return self.active.get(node.id, [])
        if isinstance(node, ast.Compare) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)):
            return []
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv):
            return []
        if isinstance(node, ast.Call) and is_flat(self.meaning(node.func)):
            return []
        parts = [node.body, node.orelse] if isinstance(node, ast.IfExp) else ast.iter_child_nodes(node)
        names = {name for part in parts for name in self.depends(part)}
        return [name for name in self.inputs if name in names]

    def settle(self, assignments: Callable[[], list[tuple[str, ast.AST]]]) -> None:
        """Find the names that have slopes, by going over the assignments until nothing is added."""
        changed = True
        while changed:
            changed = False
            for target, value in assignments():
                before = self.active.get(target, [])
                names = {*before, *self.depends(value)}
                if len(names) > len(before):
                    self.active[target] = [name for name in self.inputs if name in names]
                    changed = True


def _named(arguments: ast.arguments) -> list[ast.arg]:
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]


def function_tree(name: str, arguments: ast.arguments, body: list[ast.stmt]) -> ast.FunctionDef:
    """The definition of a function, in every version of Python."""
    tree = ast.FunctionDef(name, arguments, body, [])
    if hasattr(tree, "type_params"):
        tree.type_params = []
    return tree
