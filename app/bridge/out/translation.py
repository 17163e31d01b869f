"""A function of single numbers as one of tensors: `x / (1 + math.exp(-x))` becomes `x / (1 + torch.exp(-x))`.

Statements stay as they are, with their names. Where a condition depends on the tensors, both branches are computed, and
`where` chooses. Loops over a range that does not depend on them stay loops. Everything else that depends on single
numbers, such as `while`, is refused with its line.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import FunctionType, ModuleType
from typing import Any, NamedTuple, NoReturn

import numpy as np

from app.bridge.out.names import Names, same
from app.bridge.out.tidying import Filling, stores, tidied
from app.custom.for_numba import heaviside
from app.errors import ExportError
from app.functions import python_function, text_of_tree
from app.reading import (
    UnreadableSourceError,
    definition_of,
    one_thread_at_a_time,
    parameters_of,
    place_in,
    variables_around,
)

NUMBER, TENSOR, MASK = "number", "tensor", "mask"
"""What an expression is: a Python number, a tensor of floats, or one of truth values."""
_MOST_BRANCHES = 64


@dataclass(frozen=True)
class Namespace:
    """How a framework writes what tensor expressions need. The texts have places for their parts."""

    module: str
    functions: Mapping[str, str]
    """For the names of `_ROWS`, the framework's functions."""
    where: str
    full: str
    """A tensor like another, filled with a number."""
    cast: str
    """Truth values as numbers of the type of a tensor."""
    maximum: str
    minimum: str
    """Of a tensor `a` and a tensor or number `b`; NaN propagates."""
    larger: str = ""
    smaller: str = ""
    """Of a tensor `a` and a number `b`, which is the result where `a` is NaN or equal. '' for `where`."""
    inverse: str = ""
    """1 / a, if that is faster than to divide."""
    copy: str = ""
    """A copy of a tensor, if results may not be inputs."""
    loses_nan: str = ""
    """The row whose function gives a number for NaN."""
    comparisons: Mapping[str, str] = field(default_factory=dict)
    """Rows that are written as comparisons of a tensor `a`, or its absolute value `size`, for they are faster so."""


_SAME = (
    *("abs", "exp", "exp2", "expm1", "log", "log1p", "log2", "log10", "sqrt", "sin", "cos", "tan", "sinh", "cosh"),
    *("tanh", "floor", "ceil", "trunc", "sign", "hypot", "copysign", "square", "logaddexp", "isnan", "isinf"),
    *("isfinite", "round", "fmod", "remainder", "reciprocal", "deg2rad", "rad2deg"),
)
_INVERSE = ("asin", "acos", "atan", "atan2", "asinh", "acosh", "atanh")

TORCH = Namespace(
    "torch",
    {name: f"torch.{name}" for name in (*_SAME, *_INVERSE, "erf", "erfc", "lgamma")},
    where="torch.where({c}, {a}, {b})",
    full="torch.full_like({like}, {a})",
    cast="{a}.to({like}.dtype)",
    maximum="torch.clamp({a}, min={b})",
    minimum="torch.clamp({a}, max={b})",
    larger="torch.fmax({a}.new_full((), {b}), {a})",
    smaller="torch.fmin({a}.new_full((), {b}), {a})",
    inverse="torch.reciprocal({a})",
    copy="{a}.clone()",
    loses_nan="sign",
    comparisons={"isinf": "{size} == math.inf", "isnan": "{a} != {a}"},  # what Inductor vectorises
)
JAX = Namespace(
    "jnp",
    {name: f"jnp.{name}" for name in _SAME}
    | {name: f"jnp.arc{name[1:]}" for name in _INVERSE}
    | {"erf": "jax.scipy.special.erf", "erfc": "jax.scipy.special.erfc", "lgamma": "jax.scipy.special.gammaln"},
    where="jnp.where({c}, {a}, {b})",
    full="jnp.full_like({like}, {a})",
    cast="{a}.astype({like}.dtype)",
    maximum="jnp.maximum({a}, {b})",
    minimum="jnp.minimum({a}, {b})",
)

_ROWS = {
    "absolute": "abs", "fabs": "abs", "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arctan2": "atan2",
    "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh", "rint": "round", "around": "round", "mod": "remainder",
    "radians": "deg2rad", "degrees": "rad2deg",
} | {name: name for name in (*_SAME, *_INVERSE, "erf", "erfc", "lgamma")}  # fmt: skip
_FUNCTIONS: dict[Any, str] = {
    function: row
    for name, row in _ROWS.items()
    for module in (builtins, math, np)
    if callable(function := getattr(module, name, None)) and not (module is math and name == "remainder")
}
"""Functions of numbers by the names of their rows."""
_IN_MATH = {"abs": "fabs", "deg2rad": "radians", "rad2deg": "degrees"}
"""Rows that Python's `math` has under another name."""
_LARGER, _SMALLER = {max: ">", min: "<"}, {np.maximum: "maximum", np.minimum: "minimum"}
_ARITHMETIC = {np.add: ast.Add, np.subtract: ast.Sub, np.multiply: ast.Mult, np.divide: ast.Div, np.power: ast.Pow,
               np.float_power: ast.Pow, math.pow: ast.Pow, pow: ast.Pow, np.floor_divide: ast.FloorDiv}  # fmt: skip
_COMPARING = {np.greater: ast.Gt, np.greater_equal: ast.GtE, np.less: ast.Lt, np.less_equal: ast.LtE,
              np.equal: ast.Eq, np.not_equal: ast.NotEq}  # fmt: skip


class UntranslatableError(ExportError):
    """A function that tensor expressions cannot compute; the message names its line."""


class Value(NamedTuple):
    """An expression, and what it is."""

    source: ast.expr
    kind: str


@dataclass
class Translated:
    """Functions as source, ready to stand in a module that has imported `math` and the framework."""

    functions: list[ast.FunctionDef] = field(default_factory=list)
    constants: dict[str, Any] = field(default_factory=dict)
    """The numbers that they read."""

    @property
    def source(self) -> str:
        return "\n\n\n".join(source_of(f) for f in self.functions)


class Translator:
    """Translates functions, and those that they call, for one module."""

    def __init__(self, namespace: Namespace, names: Names):
        self.namespace, self.names = namespace, names
        self.translated = Translated()
        self._helpers: dict[Any, tuple[str, list[str]] | None] = {}

    @one_thread_at_a_time
    def add(self, function: FunctionType, name: str, tensors: Sequence[str], numbers: Sequence[str]) -> None:
        """Add a function as `name`. It takes tensors of one shape, and then numbers."""
        one = _Function(self, function, dict.fromkeys(tensors, TENSOR))
        one.parameters = [*tensors, *numbers]
        tree, _ = one.translated(name, True)
        self.translated.functions.append(tree)

    def helper(
        self, function: FunctionType, kinds: Sequence[str], node: ast.AST, by: _Function
    ) -> tuple[str, list[str]]:
        """The name of a called function for arguments of these kinds, and the kinds of its results."""
        key = (function, tuple(kinds))
        if key not in self._helpers:
            self._helpers[key] = None
            name = self.names.fresh("_" + function.__name__.strip("_<>"))
            one = _Function(self, function, dict(zip(parameters_of(function), kinds, strict=False)))
            tree, results = one.translated(name, False)
            self._helpers[key] = name, results
            self.translated.functions.append(tree)
        entry = self._helpers[key]
        return entry if entry is not None else by.refuse(node, "is recursive")

    def constant(self, name: str, value: Any) -> str:
        """The name under which the module has a number."""
        constant = self.names.constant(name, value)
        self.translated.constants[constant] = value
        return constant


class _Function:
    """The translation of one function."""

    def __init__(self, translator: Translator, function: FunctionType, kinds: Mapping[str, str]):
        self.all, self.function, self.text = translator, function, translator.namespace
        try:
            tree, around = definition_of(function), variables_around(function)
        except UnreadableSourceError as error:
            raise UntranslatableError(str(error)) from None
        self.body = [ast.Return(tree.body)] if isinstance(tree, ast.Lambda) else list(tree.body)
        self.parameters = [p.arg for p in (*tree.args.posonlyargs, *tree.args.args, *tree.args.kwonlyargs)]
        self.around: dict[str, Any] = {**vars(builtins), **around}
        self.env = {p: Value(ast.Name(p, ast.Load()), kinds.get(p, NUMBER)) for p in self.parameters}
        self.stores = [n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        assigned = set(self.stores)
        self.locals = {*self.parameters, *assigned}
        self.used_names = set(self.locals)
        for name in self.locals & {"math", "jax", self.text.module}:
            raise UntranslatableError(f"{place_in(function.__code__)}: a variable is called {name} like a module")
        self.temporary: set[str] = set()
        tensors = [p for p in self.parameters if kinds.get(p) == TENSOR]
        self.like = next((p for p in tensors if p not in assigned), "")
        self.first = tensors[0] if tensors else ""
        self.branches = 0
        self.conditions: dict[str, ast.expr] = {}
        """Those that are variables, by name."""
        self.definitions: dict[str, ast.expr] = {}
        """The values of variables that are assigned once, and so have no other."""
        self.output: list[ast.stmt] = []
        """Where the statements go that run before the one that is translated."""

    def translated(self, name: str, as_tensors: bool) -> tuple[ast.FunctionDef, list[str]]:
        """The function under a name, and the kinds of its results; `as_tensors` makes all of them tensors of floats."""
        statements: list[ast.stmt] = []
        if self.first and not self.like:  # it assigns to all its parameters
            self.like = self.fresh("like")
            statements.append(_assign(self.like, _name(self.first)))  # left out if it is not used
        values = self.block(self.body, self.env, statements, False)
        if values is None:
            self.refuse(self.body[-1], "may be the last line that runs, and returns nothing")
        if as_tensors:
            values = [self.tensor(value) for value in values]
            values = [self.own(value, place, values, statements) for place, value in enumerate(values)]
        sources = [value.source for value in values]
        statements.append(ast.Return(sources[0] if len(sources) == 1 else ast.Tuple(sources, ast.Load())))
        if self.like not in self.parameters:
            self.temporary.add(self.like)
        arguments = ast.arguments([], [ast.arg(p) for p in self.parameters], None, [], [], None, [])
        tree = ast.FunctionDef(name, arguments, tidied(statements, self.temporary, self.fresh), [])
        if hasattr(tree, "type_params"):
            tree.type_params = []
        return tree, [value.kind for value in values]

    def own(self, value: Value, place: int, values: Sequence[Value], statements: Sequence[ast.stmt]) -> Value:
        """A result that is no input, and no other result."""
        source, others = value.source, [other.source for other in values[:place]]
        for s in reversed(statements):  # a variable may be another name of an input
            if isinstance(source, ast.Name) and source.id in stores(s):
                source = s.value if isinstance(s, ast.Assign) and isinstance(s.targets[0], ast.Name) else source
        is_other = isinstance(source, (ast.Name, ast.IfExp)) or any(ast.dump(source) == ast.dump(o) for o in others)
        return Value(self.filled(self.text.copy, a=value.source), TENSOR) if is_other and self.text.copy else value

    def refuse(self, node: ast.AST, why: str) -> NoReturn:
        line = getattr(node, "lineno", 0)
        text = ast.unparse(node).partition("\n")[0]
        raise UntranslatableError(f"{place_in(self.function.__code__, line)}: `{text}` {why}")

    def fresh(self, wish: str) -> str:
        """A name for a variable that the function does not have."""
        name, number = wish, 1
        while name in self.used_names or name in self.around:
            number += 1
            name = f"{wish}_{number}"
        self.used_names.add(name)
        return name

    # Statements

    def block(
        self, statements: Sequence[ast.stmt], env: dict[str, Value], output: list[ast.stmt], in_branch: bool
    ) -> list[Value] | None:
        """Translate statements into `output`; gives the values that they return, or None if they go on."""
        for place, s in enumerate(statements):
            rest, self.output = [*statements[place + 1 :]], output
            if isinstance(s, ast.Return):
                if s.value is None:
                    self.refuse(s, "returns nothing")
                return self.values(s.value, env)
            if isinstance(s, ast.If):
                returns = any(isinstance(n, ast.Return) for n in ast.walk(s))
                if returns:
                    return self.either(s, rest, env, output, in_branch)
                self.merged(s, env, output, in_branch)
            elif isinstance(s, ast.Assign) and len(s.targets) == 1:
                self.assigned(s.targets[0], s.value, env, output, in_branch)
            elif isinstance(s, ast.AnnAssign):
                if s.value is not None:
                    self.assigned(s.target, s.value, env, output, in_branch)
            elif isinstance(s, ast.AugAssign) and isinstance(s.target, ast.Name):
                value = ast.copy_location(ast.BinOp(ast.Name(s.target.id, ast.Load()), s.op, s.value), s)
                self.assigned(s.target, value, env, output, in_branch)
            elif isinstance(s, ast.For):
                self.loop(s, env, output, in_branch)
            elif isinstance(s, ast.While):
                self.refuse(s, "is a loop that goes on as long as each number needs")
            elif not (isinstance(s, ast.Pass) or (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))):
                self.refuse(s, "is a statement about single numbers")
        return None

    def values(self, node: ast.expr, env: dict[str, Value]) -> list[Value]:
        return [self.value(part, env) for part in (node.elts if isinstance(node, ast.Tuple) else [node])]

    def store(self, name: str, value: Value, env: dict[str, Value], output: list[ast.stmt], in_branch: bool) -> None:
        """Assign to a variable; inside a branch that may not be taken, to a new one."""
        target = name
        if in_branch:
            target = self.fresh(name)
            self.temporary.add(target)
        if not (isinstance(value.source, ast.Name) and value.source.id == target):
            output.append(_assign(target, value.source))
        if self.stores.count(name) == 1 and name not in self.parameters:
            self.definitions[target] = value.source
        env[name] = Value(_name(target), value.kind)

    def assigned(
        self, target: ast.expr, value: ast.expr, env: dict[str, Value], output: list[ast.stmt], in_branch: bool
    ) -> None:
        if isinstance(target, ast.Name):
            self.store(target.id, self.value(value, env), env, output, in_branch)
            return
        if not (isinstance(target, ast.Tuple) and all(isinstance(t, ast.Name) for t in target.elts)):
            self.refuse(target, "is assigned to, and is no variable")
        wishes = [t.id for t in target.elts if isinstance(t, ast.Name)]
        if isinstance(value, ast.Tuple) and len(value.elts) == len(wishes):
            elements = self.values(value, env)
            sources: ast.expr = ast.Tuple([v.source for v in elements], ast.Load())
            kinds = [v.kind for v in elements]
        elif isinstance(value, ast.Call):
            sources, kinds = self.called_function(value, self.meaning(value.func), env)
            if len(kinds) != len(wishes):
                self.refuse(value, f"gives {len(kinds)} values, and {len(wishes)} are taken")
        else:
            self.refuse(value, "is taken apart, and is no call of a function")
        targets = [self.fresh(w) if in_branch else w for w in wishes]
        stored = ast.Tuple([ast.Name(t, ast.Store()) for t in targets], ast.Store())
        output.append(ast.Assign([stored], sources, lineno=0))
        env.update({w: Value(_name(t), k) for w, t, k in zip(wishes, targets, kinds, strict=True)})

    def condition(self, test: ast.expr, env: dict[str, Value], output: list[ast.stmt]) -> Value:
        """A condition, as a variable if it is used twice."""
        value = self.truth(test, env)
        name = self.fresh("condition")
        self.temporary.add(name)
        self.conditions[name] = value.source
        output.append(_assign(name, value.source))
        return Value(_name(name), value.kind)

    def either(
        self, s: ast.If, rest: list[ast.stmt], env: dict[str, Value], output: list[ast.stmt], in_branch: bool
    ) -> list[Value]:
        """The values that are returned after a branch, in one of whose sides there is a return."""
        self.branches += 1
        if self.branches > _MOST_BRANCHES:
            self.refuse(s, "is one branch too many: too many ways lead to a return")
        condition = self.condition(s.test, env, output)
        yes, no = (self.block([*part, *rest], dict(env), output, True) for part in (s.body, s.orelse))
        if yes is None or no is None:
            self.refuse(s, "has a side after which nothing is returned")
        if len(yes) != len(no):
            self.refuse(s, f"returns {len(yes)} values on one side, and {len(no)} on the other")
        return [self.chosen(condition, a, b) for a, b in zip(yes, no, strict=True)]

    def merged(self, s: ast.If, env: dict[str, Value], output: list[ast.stmt], in_branch: bool) -> None:
        """A branch without a return: what it assigns is chosen after both sides are computed."""
        condition = self.condition(s.test, env, output)
        yes, no = dict(env), dict(env)
        for part, inside in ((s.body, yes), (s.orelse, no)):
            if self.block(part, inside, output, True) is not None:
                self.refuse(s, "returns")
        for name in [n for n in {**yes, **no} if yes.get(n) is not env.get(n) or no.get(n) is not env.get(n)]:
            a, b = yes.get(name), no.get(name)
            value = self.chosen(condition, a, b) if a and b else a or b
            assert value is not None
            self.store(name, value, env, output, in_branch)

    def loop(self, s: ast.For, env: dict[str, Value], output: list[ast.stmt], in_branch: bool) -> None:
        """A loop over a range of numbers stays one. Variables that become tensors in it are tensors from the start."""
        call = s.iter
        if in_branch:
            self.refuse(s, "is a loop inside a branch that depends on the input")
        if not (isinstance(call, ast.Call) and self.meaning(call.func) is range and isinstance(s.target, ast.Name)):
            self.refuse(s, "is a loop over something other than a range")
        bounds = [self.value(a, env) for a in call.args]
        if any(b.kind != NUMBER for b in bounds):
            self.refuse(s, "is a loop that depends on the input")
        for node in ast.walk(s):
            if isinstance(node, (ast.Return, ast.Break, ast.Continue)) or s.orelse:
                self.refuse(node if not s.orelse else s, "leaves a loop")
        target = s.target.id
        while True:
            inner = {**env, target: Value(_name(target), NUMBER)}
            body: list[ast.stmt] = []
            self.block(s.body, inner, body, False)
            changed = [n for n in env if n != target and inner[n].kind != env[n].kind]
            widened = [n for n in changed if env[n].kind != TENSOR]
            if not widened:
                break
            for name in widened:
                self.store(name, self.tensor(env[name]), env, output, False)
        for name in changed:
            self.store(name, self.tensor(inner[name]), inner, body, False)
        env.update(inner)
        header = ast.Call(call.func, [b.source for b in bounds], [])
        output.append(ast.For(ast.Name(target, ast.Store()), header, body or [ast.Pass()], [], lineno=0))

    # Expressions

    def value(self, node: ast.expr, env: dict[str, Value]) -> Value:
        if isinstance(node, ast.Constant) and isinstance(node.value, (bool, int, float, str)):
            return Value(node, NUMBER)
        if isinstance(node, ast.Name):
            return env[node.id] if node.id in env else self.constant(node)
        if isinstance(node, ast.Attribute):
            return self.constant(node)
        if isinstance(node, ast.BinOp):
            return self.arithmetic(node, node.op, self.value(node.left, env), self.value(node.right, env))
        if isinstance(node, ast.UnaryOp):
            return self.signed(node, env)
        if isinstance(node, ast.IfExp):
            test = self.truth(node.test, env)
            return self.chosen(test, self.value(node.body, env), self.value(node.orelse, env))
        if isinstance(node, (ast.Compare, ast.BoolOp)):
            return self.truth(node, env)
        if isinstance(node, ast.Call):
            return self.called(node, env)
        return self.refuse(node, "has no counterpart for tensors")

    def tensor(self, value: Value) -> Value:
        """A value as a tensor of floats."""
        if value.kind == TENSOR:
            return value
        return Value(self.filled(self.text.full if value.kind == NUMBER else self.text.cast, a=value.source), TENSOR)

    def number(self, value: Value) -> Value:
        """A value for arithmetic: truth values become numbers."""
        return self.tensor(value) if value.kind == MASK else value

    def filled(self, text: str, **parts: ast.expr) -> ast.expr:
        """A text of the namespace with its parts."""
        tree = ast.parse(text.format(**{key: f"_{key}_" for key in ("a", "b", "c", "size", "like")}), mode="eval").body
        if not self.like and "{like}" in text:
            raise UntranslatableError(f"{place_in(self.function.__code__)}: a number is chosen by no input")
        values = {f"_{key}_": part for key, part in parts.items()} | {"_like_": _name(self.like)}
        return Filling(values).visit(tree)

    def chosen(self, condition: Value, a: Value, b: Value) -> Value:
        """One of two values."""
        if condition.kind == NUMBER:
            kind = a.kind if a.kind == b.kind else TENSOR
            if ast.dump(a.source) == ast.dump(b.source):
                return a
            if kind == TENSOR:
                a, b = self.tensor(a), self.tensor(b)
            return Value(ast.IfExp(condition.source, a.source, b.source), kind)
        if a.kind == MASK and (b.kind == MASK or _is_truth(b)):
            return Value(self.filled(self.text.where, c=condition.source, a=a.source, b=b.source), MASK)
        a, b = self.number(a), self.number(b)
        if a.kind == b.kind == NUMBER:
            if _is_constant(a, 1) and _is_constant(b, 0):
                return self.tensor(condition)
            a = self.tensor(a)
        if ast.dump(a.source) == ast.dump(b.source):
            return a
        limited = self.limited(condition.source, a.source, b.source)
        if limited is not None:
            return Value(limited, TENSOR)
        return Value(self.filled(self.text.where, c=condition.source, a=a.source, b=b.source), TENSOR)

    def limited(self, condition: ast.expr, a: ast.expr, b: ast.expr) -> ast.expr | None:
        """`a if a > 2 else 2` and the like as one function, also where `a` is NaN; None for anything else.

        `where` has a branch for each number in PyTorch, and takes many times as long where the branches alternate.
        """
        condition = self.conditions.get(condition.id, condition) if isinstance(condition, ast.Name) else condition
        if not (self.text.larger and isinstance(condition, ast.Compare) and len(condition.ops) == 1):
            return None
        left, op, right = condition.left, condition.ops[0], condition.comparators[0]
        if _literal(left) is not None:
            left, right, op = right, left, _MIRRORED.get(type(op), ast.Eq)()
        is_tensor_first = ast.dump(a) == ast.dump(left)
        tensor, number = (a, b) if is_tensor_first else (b, a)
        same_sides = ast.dump(tensor) == ast.dump(left) and repr(_literal(number)) == repr(_literal(right))
        if _literal(number) is None or not same_sides or not isinstance(tensor, ast.Name):
            return None
        if is_tensor_first and isinstance(op, (ast.Gt, ast.Lt)):
            text = self.text.larger if isinstance(op, ast.Gt) else self.text.smaller
        elif not is_tensor_first and isinstance(op, (ast.Gt, ast.Lt)):
            text = self.text.minimum if isinstance(op, ast.Gt) else self.text.maximum
        else:
            return None
        return self.filled(text, a=tensor, b=number)

    def arithmetic(self, node: ast.expr, op: ast.operator, left: Value, right: Value) -> Value:
        if not isinstance(op, (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow, ast.FloorDiv, ast.Mod)):
            self.refuse(node, "works on bits or matrices")
        left, right = self.number(left), self.number(right)
        kind = NUMBER if left.kind == right.kind == NUMBER else TENSOR
        if isinstance(op, ast.Div) and _is_constant(left, 1) and kind == TENSOR and self.text.inverse:
            return Value(self.filled(self.text.inverse, a=right.source), TENSOR)
        return Value(ast.BinOp(left.source, op, right.source), kind)

    def signed(self, node: ast.UnaryOp, env: dict[str, Value]) -> Value:
        if isinstance(node.op, ast.Not):
            inner = self.truth(node.operand, env)
            return Value(ast.UnaryOp(ast.Not() if inner.kind == NUMBER else ast.Invert(), inner.source), inner.kind)
        if not isinstance(node.op, (ast.USub, ast.UAdd)):
            self.refuse(node, "works on bits")
        value = self.number(self.value(node.operand, env))
        return Value(ast.UnaryOp(node.op, value.source), value.kind)

    def truth(self, node: ast.expr, env: dict[str, Value]) -> Value:
        """A condition: a truth value of settings, or one for each element."""
        if isinstance(node, ast.Compare):
            sides = [self.number(self.value(part, env)) for part in (node.left, *node.comparators)]
            if not all(isinstance(op, (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)) for op in node.ops):
                if any(side.kind != NUMBER for side in sides):
                    self.refuse(node, "is a comparison without a counterpart for tensors")
                return Value(ast.Compare(sides[0].source, node.ops, [s.source for s in sides[1:]]), NUMBER)
            pairs = [
                Value(ast.Compare(a.source, [op], [b.source]), NUMBER if a.kind == b.kind == NUMBER else MASK)
                for a, op, b in zip(sides, node.ops, sides[1:], strict=False)
            ]
            return self.together(ast.And(), pairs)
        if isinstance(node, ast.BoolOp):
            return self.together(node.op, [self.truth(part, env) for part in node.values])
        value = self.value(node, env)
        if value.kind == TENSOR:
            return Value(ast.Compare(value.source, [ast.NotEq()], [ast.Constant(0)]), MASK)
        return value

    def together(self, op: ast.boolop, parts: list[Value]) -> Value:
        if len(parts) == 1:
            return parts[0]
        if all(part.kind == NUMBER for part in parts):
            return Value(ast.BoolOp(op, [part.source for part in parts]), NUMBER)
        whole: ast.expr | None = None
        for part in parts:
            source = part.source
            if part.kind == NUMBER and not isinstance(source, ast.Compare):
                source = ast.Call(_name("bool"), [source], [])
            bits = ast.BitAnd() if isinstance(op, ast.And) else ast.BitOr()
            whole = source if whole is None else ast.BinOp(whole, bits, source)
        assert whole is not None
        return Value(whole, MASK)

    # Names and calls

    def meaning(self, node: ast.expr) -> Any:
        """What a name or an attribute of a module is; None if that is not known."""
        if isinstance(node, ast.Attribute):
            home = self.meaning(node.value)
            return getattr(home, node.attr, None) if isinstance(home, ModuleType) else None
        return self.around.get(node.id) if isinstance(node, ast.Name) and node.id not in self.locals else None

    def constant(self, node: ast.Name | ast.Attribute) -> Value:
        value = self.meaning(node)
        value = value.item() if isinstance(value, np.generic) else value
        if type(value) not in (bool, int, float):
            self.refuse(node, f"is {type(value).__name__}, and not a number")
        for name in ("pi", "e", "inf", "nan"):
            if isinstance(node, ast.Attribute) and node.attr == name and same(float(value), getattr(math, name)):
                return Value(ast.Attribute(_name("math"), name, ast.Load()), NUMBER)
        wish = node.id if isinstance(node, ast.Name) else node.attr
        return Value(self.of_module(self.all.constant(wish, value), node), NUMBER)

    def of_module(self, name: str, node: ast.AST) -> ast.Name:
        """A name of the module, which no variable of the function may hide."""
        if name in self.used_names:
            self.refuse(node, f"would be called {name} like a variable; rename the variable")
        return _name(name)

    def called(self, node: ast.Call, env: dict[str, Value]) -> Value:
        function = self.meaning(node.func)
        if function is np.heaviside:
            function = heaviside
        if isinstance(function, FunctionType) or isinstance(python_function(function), FunctionType):
            source, kinds = self.called_function(node, function, env)
            if len(kinds) != 1:
                self.refuse(node, f"gives {len(kinds)} values, and one is taken")
            return Value(source, kinds[0])
        if node.keywords or any(isinstance(a, ast.Starred) for a in node.args) or function is None:
            self.refuse(node, "is a call without a counterpart for tensors")
        if function is np.clip and len(node.args) == 3:
            clipped = self.value(node.args[0], env)
            for one_sided, bound in zip((np.maximum, np.minimum), node.args[1:], strict=True):
                if not (isinstance(bound, ast.Constant) and bound.value is None):
                    limited = self.of_library(node, one_sided, [clipped, self.value(bound, env)])
                    assert limited is not None
                    clipped = limited
            return clipped
        args = [self.value(a, env) for a in node.args]
        try:
            value = self.of_library(node, function, args)
        except TypeError:  # an unhashable value is no function of these tables
            value = None
        return value if value is not None else self.refuse(node, "has no counterpart for tensors")

    def of_library(self, node: ast.Call, function: Any, args: list[Value]) -> Value | None:
        """A call of a function of Python, math or NumPy; None if it is not known."""
        alone = all(a.kind == NUMBER for a in args)
        if function in _LARGER or function in (np.fmax, np.fmin):
            sign = ast.Gt if function in (max, np.fmax) else ast.Lt
            return self.extreme(node, args, sign, function in (np.fmax, np.fmin))
        if function in _SMALLER and len(args) == 2:
            a, b = (self.number(a) for a in args)
            if alone:
                larger = "max" if function is np.maximum else "min"
                return Value(ast.Call(_name(larger), [a.source, b.source], []), NUMBER)
            a, b = (a, b) if a.kind == TENSOR else (b, a)
            text = getattr(self.text, _SMALLER[function])
            return Value(self.filled(text, a=a.source, b=b.source), TENSOR)
        if function in _ARITHMETIC and len(args) == 2:
            return self.arithmetic(node, _ARITHMETIC[function](), *args)
        if function in _COMPARING and len(args) == 2:
            sides = [self.number(a) for a in args]
            test = ast.Compare(sides[0].source, [_COMPARING[function]()], [sides[1].source])
            return Value(test, NUMBER if alone else MASK)
        if function is np.where and len(args) == 3:
            return self.chosen(self.true(args[0]), args[1], args[2])
        if function in (float, np.float64, np.float32) and len(args) == 1 and (alone or function is float):
            return Value(ast.Call(_name("float"), [args[0].source], []), NUMBER) if alone else self.number(args[0])
        if function in (int, bool) and len(args) == 1:
            if alone:
                return Value(ast.Call(_name(function.__name__), [args[0].source], []), NUMBER)
            one = args[0] if args[0].kind == MASK else self.true(args[0]) if function is bool else None
            return one or Value(_call(self.text.functions["trunc"], [args[0].source]), TENSOR)
        row = _FUNCTIONS.get(function)
        if row is None:
            return None
        args = [self.number(a) for a in args]
        if alone:
            name = _IN_MATH.get(row, row)
            if row in ("abs", "round"):
                return Value(_call(row, [a.source for a in args]), NUMBER)
            return Value(_call(f"math.{name}", [a.source for a in args]), NUMBER) if hasattr(math, name) else None
        if len(args) != (2 if row in _PAIRS else 1):
            return None
        if row in _PAIRS:
            args = [self.tensor(a) for a in args]
        if row == self.text.loses_nan or row in self.text.comparisons:
            args = [self.repeatable(a) for a in args]
        if row in self.text.comparisons:
            tensor = args[0].source
            size = tensor if self.is_not_negative(tensor) else _call(self.text.functions["abs"], [tensor])
            return Value(self.filled(self.text.comparisons[row], a=tensor, size=size), MASK)
        value = Value(_call(self.text.functions[row], [a.source for a in args]), MASK if row in _TRUTHS else TENSOR)
        if row == self.text.loses_nan:
            number = Value(ast.Compare(args[0].source, [ast.Eq()], [args[0].source]), MASK)
            return self.chosen(number, value, args[0])
        return value

    def is_not_negative(self, node: ast.expr) -> bool:
        """Whether an expression is a power of e or a variable that is one."""
        node = self.definitions.get(node.id, node) if isinstance(node, ast.Name) else node
        return isinstance(node, ast.Call) and ast.unparse(node.func) == self.text.functions["exp"]

    def true(self, value: Value) -> Value:
        if value.kind != TENSOR:
            return value
        return Value(ast.Compare(value.source, [ast.NotEq()], [ast.Constant(0)]), MASK)

    def extreme(self, node: ast.Call, args: list[Value], sign: type[ast.cmpop], skips_nan: bool) -> Value:
        """max or min as Python compares; those of NumPy that skip NaN."""
        if len(args) < 2:
            self.refuse(node, "chooses among the elements of one value")
        best, *others = (self.repeatable(self.number(arg)) for arg in args)
        for arg in others:
            kind = NUMBER if best.kind == arg.kind == NUMBER else MASK
            test: ast.expr = ast.Compare(arg.source, [sign()], [best.source])
            if skips_nan:
                nan = ast.Compare(best.source, [ast.NotEq()], [best.source])
                test = ast.BinOp(test, ast.BitOr(), nan)
            best = (
                self.repeatable(self.chosen(Value(test, kind), arg, best))
                if len(others) > 1
                else self.chosen(Value(test, kind), arg, best)
            )
        return best

    def repeatable(self, value: Value) -> Value:
        """A value that can be written twice: a variable or a constant."""
        if isinstance(value.source, (ast.Name, ast.Constant)) or _literal(value.source) is not None:
            return value
        name = self.fresh("value")
        self.temporary.add(name)
        self.output.append(_assign(name, value.source))
        return Value(_name(name), value.kind)

    def called_function(self, node: ast.Call, function: Any, env: dict[str, Value]) -> tuple[ast.expr, list[str]]:
        """The call of a function of the user's, or of one that was derived, and the kinds of its results."""
        source = python_function(function)
        if not isinstance(source, FunctionType):
            self.refuse(node, "calls something whose source is not known")
        if any(isinstance(a, ast.Starred) for a in node.args) or any(k.arg is None for k in node.keywords):
            self.refuse(node, "gives any number of arguments")
        try:
            bound = inspect.signature(source).bind(*node.args, **{k.arg: k.value for k in node.keywords if k.arg})
        except TypeError as error:
            self.refuse(node, f"does not fit its function: {error}")
        args: list[Value] = []
        for name, parameter in parameters_of(source).items():
            if name in bound.arguments:
                args.append(self.value(bound.arguments[name], env))
            elif type(parameter.default) in (bool, int, float, str):
                args.append(Value(ast.Constant(parameter.default), NUMBER))
            else:
                self.refuse(node, f"omits {name}, whose default is not a number")
        name, kinds = self.all.helper(source, [a.kind for a in args], node, self)
        return ast.Call(self.of_module(name, node), [a.source for a in args], []), kinds


_PAIRS = {"hypot", "copysign", "atan2", "fmod", "remainder", "logaddexp"}
_TRUTHS = {"isnan", "isinf", "isfinite"}


def source_of(function: ast.FunctionDef) -> str:
    """The text of a function, as a formatter leaves it."""
    lines = text_of_tree(ast.fix_missing_locations(function)).splitlines()
    for place, line in enumerate(lines):
        start, opening, rest = line.partition("return (" if line.strip().startswith("return") else " = (")
        if opening and isinstance(_parsed(f"({rest}"), ast.Tuple):
            lines[place] = f"{start}{opening[:-1]}{rest[:-1]}"
    return "\n".join(line if '"' in line else line.replace("'", '"') for line in lines)


def _parsed(text: str) -> ast.expr | None:
    try:
        return ast.parse(text, mode="eval").body
    except SyntaxError:
        return None


def _name(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _assign(name: str, value: ast.expr) -> ast.Assign:
    return ast.Assign([ast.Name(name, ast.Store())], value, lineno=0)


def _call(name: str, args: Sequence[ast.expr]) -> ast.expr:
    return ast.Call(ast.parse(name, mode="eval").body, list(args), [])


_MIRRORED: dict[type[ast.cmpop], type[ast.cmpop]] = {ast.Gt: ast.Lt, ast.Lt: ast.Gt}


def _literal(node: ast.expr) -> float | None:
    """A number that is written down."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _literal(node.operand)
        return -inner if inner is not None else None
    is_number = isinstance(node, ast.Constant) and type(node.value) in (int, float)
    return float(node.value) if is_number else None  # type: ignore[attr-defined]


def _is_constant(value: Value, number: int) -> bool:
    return isinstance(value.source, ast.Constant) and value.source.value == number


def _is_truth(value: Value) -> bool:
    return isinstance(value.source, ast.Constant) and isinstance(value.source.value, bool)
