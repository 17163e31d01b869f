"""Rewrites the source of a function: each construct that may depend on a Tensor becomes a call of `_jit.…`."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from app.jit.convert import branch, logic, loop
from app.jit.convert.build import expression, statements
from app.jit.convert.leaving import with_flags
from app.jit.convert.names import Assigned, Names, declared, suspends


def rewritten(function: ast.FunctionDef) -> ast.FunctionDef:
    """Convert the control flow of a function, and remove its decorators, defaults and annotations."""
    function.decorator_list, function.returns = [], None
    arguments = function.args
    arguments.defaults, arguments.kw_defaults = [], [None] * len(arguments.kwonlyargs)
    for argument in _all_arguments(arguments):
        argument.annotation = None
    Rewriter().function(function)
    return function


def _all_arguments(arguments: ast.arguments) -> list[ast.arg]:
    listed = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return [*listed, *(a for a in (arguments.vararg, arguments.kwarg) if a is not None)]


class Scope:
    """The names of one function of the source."""

    def __init__(self, function: ast.FunctionDef):
        self.parameters = [a.arg for a in _all_arguments(function.args)]
        self.globals = declared(function, ast.Global)
        self.nonlocals = declared(function, ast.Nonlocal)
        self.locals = {*self.parameters, *Assigned(function.body).bound} - self.globals - self.nonlocals
        """The local names of the function."""
        self.bound_inside: dict[str, None] = {}
        """The local names that are assigned in inner functions made by conversion."""

    def names(self, nodes: Sequence[ast.AST]) -> Names:
        """Return the variables of the function that some nodes use."""
        bound = Assigned(nodes).bound
        assigned = [name for name in bound if name in self.locals]
        read = {n.id for node in nodes for n in ast.walk(node) if isinstance(n, ast.Name)} & self.locals
        return Names(assigned, sorted(read.difference(assigned)), [name for name in bound if name not in self.locals])

    def declarations(self, names: list[str], at: ast.AST) -> list[ast.stmt]:
        """Return the `global` and `nonlocal` statements of an inner function that assigns these names."""
        outer = [name for name in names if name in self.globals]
        own = [name for name in names if name not in self.globals]
        self.bound_inside.update(dict.fromkeys(own))
        result: list[ast.stmt] = [ast.Global(outer)] if outer else []
        result += [ast.Nonlocal(own)] if own else []
        return [ast.copy_location(node, at) for node in result]

    def binding(self, at: ast.AST) -> list[ast.stmt]:
        """Return a statement that makes names local without assigning them."""
        names = [n for n in self.bound_inside if n not in self.parameters and n not in self.nonlocals]
        return statements(f"if False:\n    {' = '.join(names)} = None", at) if names else []


class Rewriter(ast.NodeTransformer):
    """Rewrites the nodes of a function and of functions inside it."""

    def __init__(self) -> None:
        self.scopes: list[Scope] = []

    @property
    def scope(self) -> Scope:
        return self.scopes[-1]

    def function(self, node: ast.FunctionDef) -> ast.FunctionDef:
        with_flags(node)
        self.scopes.append(Scope(node))
        node.body = self.block(node.body)
        beginning = [*_docstring(node), *self.scope.binding(node), *self._outer_names(node)]
        node.body = [*beginning, *node.body[len(_docstring(node)) :]]
        self.scopes.pop()
        return node

    def _outer_names(self, node: ast.FunctionDef) -> list[ast.stmt]:
        """Return a statement that says which `global` and `nonlocal` names the function assigns."""
        names = sorted((self.scope.globals | self.scope.nonlocals) & set(Assigned(node.body).bound))
        return statements(f"_jit.about_to_assign({', '.join(map(repr, names))})", node) if names else []

    def block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """Rewrite a list of statements."""
        rewritten: list[ast.stmt] = []
        for statement in body:
            new = self.visit(statement)
            rewritten += new if isinstance(new, list) else [] if new is None else [new]
        return rewritten

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        node.args.defaults = [self.visit(d) for d in node.args.defaults]
        node.decorator_list = [self.visit(d) for d in node.decorator_list]
        return node if suspends(node) else self.function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> Any:
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        return node

    def visit_If(self, node: ast.If) -> Any:
        logic.ask(node.test)
        return branch.rewrite_if(self, node)

    def visit_Try(self, node: ast.Try) -> Any:
        node.body, node.orelse, node.finalbody = map(self.block, (node.body, node.orelse, node.finalbody))
        for handler in node.handlers:
            handler.body = self.block(handler.body)
        return node

    def visit_comprehension(self, node: ast.comprehension) -> Any:
        for test in node.ifs:
            logic.ask(test)
        return self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        logic.ask(node.test)
        return branch.rewrite_choice(self, node)

    def visit_While(self, node: ast.While) -> Any:
        return loop.rewrite_while(self, node)

    def visit_For(self, node: ast.For) -> Any:
        return loop.rewrite_for(self, node)

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        return logic.rewrite_and_or(self, node)

    def visit_Compare(self, node: ast.Compare) -> Any:
        """Rewrite `a is b` as `_jit.is_(a, b)`."""
        self.generic_visit(node)
        ((operator, right), *others) = zip(node.ops, node.comparators, strict=True)
        constant = isinstance(node.left, ast.Constant) or isinstance(right, ast.Constant)
        if others or constant or not isinstance(operator, (ast.Is, ast.IsNot)):
            return node
        call = "_jit.is_(a, b)" if isinstance(operator, ast.Is) else "not _jit.is_(a, b)"
        return expression(call, node, a=node.left, b=right)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        return logic.rewrite_not(self, node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        """Rewrite `x: int = 1` as `x = 1`: a name with an annotation cannot be assigned in an inner function."""
        if node.value is None:
            return ast.copy_location(ast.Pass(), node)
        return self.visit(ast.copy_location(ast.Assign([node.target], node.value), node))

    def visit_Assert(self, node: ast.Assert) -> Any:
        return logic.rewrite_assert(self, node)

    def visit_Call(self, node: ast.Call) -> Any:
        """Rewrite `f(x)` as `_jit.call(f)(x)`, so that called functions of the user are converted too."""
        if self._is_super(node.func):
            outer = self.scopes[0].parameters
            if node.args or not outer:
                return node
            return expression("super(__class__, me)", node, me=outer[0])  # the call may be in an inner function now
        self.generic_visit(node)
        node.func = expression("_jit.call(f)", node, f=node.func)
        return node

    def _is_super(self, function: ast.expr) -> bool:
        """Return whether this is Python's `super`, and no variable of that name."""
        named = isinstance(function, ast.Name) and function.id == "super"
        return named and not any("super" in scope.locals for scope in self.scopes)

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        """Rewrite x in `x[i] = v`, `x[i] += v` and `del x[i]` as `_jit.about_to_change(x)`."""
        self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load):
            node.value = expression("_jit.about_to_change(x)", node, x=node.value)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        """Rewrite `x.shape` as `_jit.shape(x)`, and x in `x.name = v` as `_jit.about_to_change(x, 'name')`."""
        self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load):
            attribute = ast.copy_location(ast.Constant(node.attr), node)
            node.value = expression("_jit.about_to_change(x, attribute)", node, x=node.value, attribute=attribute)
            return node
        return expression("_jit.shape(x)", node, x=node.value) if node.attr == "shape" else node

    def visit_List(self, node: Any) -> Any:
        """Rewrite the display of a list, a dict or a set as `_jit.own([...])`, as is a comprehension."""
        self.generic_visit(node)
        return node if isinstance(getattr(node, "ctx", None), ast.Store) else expression("_jit.own(x)", node, x=node)

    visit_Dict = visit_Set = visit_ListComp = visit_DictComp = visit_SetComp = visit_List  # noqa: N815

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        """Rewrite `[0] * n` and the like in the same way."""
        of_list = isinstance(node.left, ast.List) or isinstance(node.right, ast.List)
        self.generic_visit(node)
        return expression("_jit.own(x)", node, x=node) if of_list else node


def _docstring(node: ast.FunctionDef) -> list[ast.stmt]:
    return node.body[:1] if ast.get_docstring(node, clean=False) is not None else []
