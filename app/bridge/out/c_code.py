"""A function on arrays as a C99 function, written from the small language in which gradients are derived."""

from __future__ import annotations

import ast
import io
import math
import re
import tokenize
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from app.derivative.arrays.complete import CompleteReader
from app.derivative.arrays.core import (
    Alloc,
    Assign,
    Break,
    Copied,
    Expr,
    For,
    Forget,
    Guard,
    If,
    Stmt,
    Store,
    While,
    blocks_of,
    element_of,
    is_shape,
    names_of,
    parts_of,
    same,
    walk,
)
from app.derivative.arrays.flow import without_dead
from app.derivative.arrays.reader import Reader
from app.derivative.arrays.values import Array, constant_int, wider
from app.derivative.scope import UnderivableError
from app.reading import UnreadableSourceError, place_in, source_text

_TYPES = {"float": "double", "int": "int64_t", "bool": "bool"}
"""The types of numbers. As in Numba, they do not become less exact with those of the arrays."""

_SAME = (
    *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "cbrt", "sin", "cos", "tan", "asin", "acos"),
    *("atan", "atan2", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "floor", "ceil", "trunc", "erf", "erfc"),
    *("lgamma", "hypot", "copysign", "fmod", "pow", "fabs"),
)
_FUNCTIONS = {
    **{name: name for name in _SAME},
    **{f"arc{name}": f"a{name}" for name in ("sin", "cos", "tan", "tan2", "sinh", "cosh", "tanh")},
    "gamma": "tgamma", "power": "pow", "float_power": "pow", "rint": "rint", "round": "rint", "isnan": "isnan",
    "isinf": "isinf", "isfinite": "isfinite", "maximum": "maximum", "minimum": "minimum", "logaddexp": "logaddexp",
    "sign": "sign", "square": "square", "reciprocal": "reciprocal", "fmax": "fmax", "fmin": "fmin",
}  # fmt: skip
"""The functions of math and NumPy by their names in C; those that C does not have are among the helpers."""
_TO_INTEGERS = {"int", "math.floor", "math.ceil", "math.trunc", "round"}
_TO_BOOLS = {"isnan", "isinf", "isfinite"}

_HELPERS = {
    "max": "static double max(double a, double b) {\n    return b > a ? b : a;\n}",
    "min": "static double min(double a, double b) {\n    return b < a ? b : a;\n}",
    "max_int": "static int64_t max_int(int64_t a, int64_t b) {\n    return b > a ? b : a;\n}",
    "min_int": "static int64_t min_int(int64_t a, int64_t b) {\n    return b < a ? b : a;\n}",
    "maximum": "static double maximum(double a, double b) {\n    return a >= b || isnan(a) ? a : b;\n}",
    "minimum": "static double minimum(double a, double b) {\n    return a <= b || isnan(a) ? a : b;\n}",
    "sign": "static double sign(double x) {\n    return isnan(x) ? x : (x > 0) - (x < 0);\n}",
    "square": "static double square(double x) {\n    return x * x;\n}",
    "reciprocal": "static double reciprocal(double x) {\n    return 1 / x;\n}",
    "logaddexp": """static double logaddexp(double a, double b) {
    return a == b ? a + log(2.0) : (a > b ? a : b) + log1p(exp(-fabs(a - b)));
}""",
    "power": """static int64_t power(int64_t x, int64_t n) {
    int64_t result = 1;
    for (int64_t i = 0; i < n; i++) {
        result *= x;
    }
    return result;
}""",
    "floor_divide": """static int64_t floor_divide(int64_t a, int64_t b) {
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}""",
    "remainder_of": """static int64_t remainder_of(int64_t a, int64_t b) {
    return a - b * (a / b - (a % b != 0 && (a < 0) != (b < 0)));
}""",
    "modulo": """static double modulo(double a, double b) {
    double rest = fmod(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}""",
    "quotient": """static double quotient(double a, double b) {
    double rest = fmod(a, b);
    return b == 0 ? a / b : rint((a - rest) / b) - (rest != 0 && (rest < 0) != (b < 0));
}""",
    "place": """/* An index below 0 counts from the end. */
static int64_t place(int64_t i, int64_t size) {
    return i < 0 ? i + size : i;
}""",
    "new_array": """/* An array of zeros in place of a former one; NULL if there is no memory. */
static void *new_array(void *former, int64_t count, size_t size) {
    free(former);
    return calloc(count > 0 ? (size_t)count : 1, size);
}""",
}
_EXTREME = """static int64_t NAME(const TYPE *x, int64_t size, int64_t step) {
    int64_t at = 0;
    for (int64_t i = 1; i < size && !isnan(x[at * step]); i++) {
        if (!(x[i * step] SIGN x[at * step])) {
            at = i;
        }
    }
    return at;
}"""
"""np.argmax and np.argmin, where NaN is the extreme."""
_RESERVED = {
    *_FUNCTIONS.values(), *_HELPERS, *_TO_BOOLS, "argmax", "argmin", "status", "end", "real", "memcpy",
    "memset", "free", "calloc", "llabs", "NULL", "bool", "true", "false", "int64_t", "size_t", "INFINITY",
    "NAN", "main", *("auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else"),
    *("enum", "extern", "float", "for", "goto", "if", "inline", "int", "long", "register", "restrict", "return"),
    *("short", "signed", "sizeof", "static", "struct", "switch", "typedef", "union", "unsigned", "void"),
    *("volatile", "while"),
}  # fmt: skip
"""Names that mean something else in C."""

_LIBRARY = {
    "abs", "acosh", "atexit", "atof", "atoi", "bsearch", "div", "exit", "fdim", "fma", "frexp", "gamma", "getenv",
    "ilogb", "j0", "j1", "jn", "labs", "ldexp", "ldiv", "llrint", "llround", "logb", "lrint", "lround", "malloc",
    "memchr", "memcmp", "memmove", "modf", "nan", "nearbyint", "nextafter", "qsort", "rand", "random", "realloc",
    "remainder", "remquo", "round", "scalbn", "signbit", "srand", "system", "y0", "y1", "yn",
}  # fmt: skip
"""Other functions of the included headers, whose names a file's own functions cannot have."""


def function_name(title: str) -> str:
    """The name of the forward function of an operator."""
    return f"{title}_forward" if title in _RESERVED | _LIBRARY else title


_OPS: dict[type[ast.AST], tuple[str, int]] = {
    ast.Mult: ("*", 12), ast.Div: ("/", 12), ast.Add: ("+", 11), ast.Sub: ("-", 11), ast.Lt: ("<", 9),
    ast.LtE: ("<=", 9), ast.Gt: (">", 9), ast.GtE: (">=", 9), ast.Eq: ("==", 8), ast.NotEq: ("!=", 8),
    ast.And: ("&&", 5), ast.Or: ("||", 4),
}  # fmt: skip
"""The operators of C, and how strongly they bind."""
_CALL, _UNARY, _CHOICE = 15, 14, 3
_SIGNS: dict[type[ast.unaryop], str] = {ast.USub: "-", ast.UAdd: "+", ast.Not: "!"}
_WHOLE: dict[type[ast.operator], str] = {ast.FloorDiv: "floor_divide", ast.Mod: "remainder_of"}


@dataclass
class CFunction:
    """A function of C."""

    name: str
    text: str
    arguments: list[tuple[str, str, str]] = field(default_factory=list)
    """Of each argument: what it is (array, size, number or result), its type and its name."""
    helpers: dict[str, str] = field(default_factory=dict)
    sizes: dict[str, list[str]] = field(default_factory=dict)
    """Of each result that is an array, its sizes in C."""


def c_function(name: str, function: Any, specs: Sequence[Any], shared: str = "") -> CFunction:
    """A function on arrays in C. Arrays are followed by their sizes; results come last.

    An UnderivableError names the line that cannot be written in C. With `shared`, the name of a size, all arrays have
    one axis of this size.
    """
    reader = _Reader(function, specs)
    return _Writer(reader, shared).function(name)


class _Reader(CompleteReader):
    """Writes products as loops."""

    def _whole_section(self, value: Array) -> Expr | None:
        return None


class _Writer:
    """Writes one function."""

    def __init__(self, reader: Reader, shared: str):
        self.reader = reader
        self.source = reader.read()
        self.source.body = without_dead(self.source.body, self.source.outputs)
        self.variables = self.source.variables
        self.shared = shared
        self.lines: list[str] = []
        self.line = 0
        """The user's line that is written."""
        self.helpers: dict[str, str] = {}
        self.least_of_loops: dict[str, int | None] = {}
        """For the variables of loops, a number that they are not less than."""
        self.pending: list[str] = []
        self.may_fail = False
        self.comments = _comments(reader.scope.function)
        self.names: dict[str, str] = {}
        self.arrays = [
            *self.source.inputs,
            *(k for k, v in self.variables.items() if v.rank and k not in self.source.inputs),
        ]

    def function(self, name: str) -> CFunction:
        source, results = self.source, self.source.outputs
        arguments: list[tuple[str, str, str]] = []
        for key in source.inputs:
            arguments.append(("array", f"const {self.element_type(key)} *restrict ", self.name(key)))
            arguments += [
                ("size", "int64_t ", s) for s in self.sizes_of_input(key) if ("size", "int64_t ", s) not in arguments
            ]
        arguments += [("number", _TYPES[self.variables[s].kind] + " ", self.name(s)) for s in source.settings]
        for key in results:
            kind = f"{self.element_type(key)} *restrict " if self.variables[key].rank else "real *restrict "
            arguments.append(
                ("result", kind, self.name(key) if self.variables[key].rank else f"{self.name(key)}_result")
            )
        inner = [key for key in self.arrays if key not in source.inputs and key not in results]
        self.block(source.body, 1, self.declarations(source.body))
        stores = [
            f"    *{self.name(key)}_result = {self.name(key)};" for key in results if not self.variables[key].rank
        ]
        before = [f"    {self.element_type(key)} *{self.name(key)} = NULL;" for key in inner]
        after = [f"    free({self.name(key)});" for key in inner]
        if self.may_fail:
            before.insert(0, "    int status = 0;")
            after = ["end:", *after, "    return status;"]
        else:
            after.append("    return 0;")
        head = _wrapped(f"int {name}(", [kind + text for _, kind, text in arguments])
        text = "\n".join([head, *before, *self.lines, *stores, *after, "}"])
        sizes = {
            self.name(key): [self.text(self.definition(d)) for d in self.reader.dims[key]]
            for key in results
            if self.variables[key].rank
        }
        return CFunction(name, text, arguments, self.helpers, sizes)

    # Names

    def name(self, key: str) -> str:
        if key not in self.names:
            text = key if key.isascii() else "".join(c if c.isascii() else f"u{ord(c):x}" for c in key)
            while text in {*_RESERVED, self.shared, *self.names.values()}:
                text += "_"
            self.names[key] = text
        return self.names[key]

    def sizes_of_input(self, key: str) -> list[str]:
        if self.shared:
            return [self.shared]
        return [self.name(f"{key}_{axis}") for axis in range(self.variables[key].rank)]

    def element_type(self, key: str) -> str:
        variable = self.variables[key]
        if variable.kind != "float":
            return _TYPES[variable.kind]
        dtype = "" if variable.dtype is None else ast.unparse(variable.dtype).removeprefix("np.")
        return {"": "double", "float64": "double", "float32": "float"}.get(dtype, "real")

    # Statements

    def declarations(self, body: Sequence[Stmt]) -> dict[int, list[str]]:
        """The variables that are declared before a statement, by its identity, or with it if it assigns them.

        A variable is declared in the innermost block that holds all of its uses, if it is assigned there first.
        Otherwise, as where a loop carries it on, it is declared at the beginning of the function.
        """
        result: dict[int, list[str]] = {}
        numbers = {s.name for s in walk(body) if isinstance(s, Assign)}
        for key in sorted(numbers, key=list(self.variables).index):
            if key in self.source.settings:
                continue
            place = None if key in self.source.outputs else _first_assignment(body, key)
            result.setdefault(id(place) if place is not None else 0, []).append(key)
        for key in result.get(0, []):
            self.add(1, f"{_TYPES[self.variables[key].kind]} {self.name(key)} = 0;")
        return result

    def add(self, depth: int, text: str, line: int = 0) -> None:
        for number in [n for n in self.comments if n < line or (n == line and self.comments[n][1])]:
            self.lines.append(f"{'    ' * depth}/* {self.comments.pop(number)[0]} */")
        behind = f"  /* {self.comments.pop(line)[0]} */" if line in self.comments else ""
        self.lines.append("    " * depth + text + behind)

    def block(self, body: Sequence[Stmt], depth: int, declared: Mapping[int, list[str]]) -> None:
        for statement in body:
            self.statement(statement, depth, declared)

    def statement(self, s: Stmt, depth: int, declared: Mapping[int, list[str]]) -> None:
        self.line = s.line or self.line
        if isinstance(s, Assign):
            kind = f"{_TYPES[self.variables[s.name].kind]} " if s.name in declared.get(id(s), ()) else ""
            self.add(depth, f"{kind}{self.assignment(self.name(s.name), s.name, s.value, kind != '')};", s.line)
        elif isinstance(s, Store):
            self.store(s, depth)
        elif isinstance(s, (Alloc, Copied)):
            self.new(s, depth)
        elif isinstance(s, For):
            variable, start, stop = self.name(s.var), self.text(s.start), self.text(s.stop)
            sign, step = ("<", s.step) if s.step > 0 else (">", -s.step)
            change = ("++" if s.step > 0 else "--") if step == 1 else f" {'+' if s.step > 0 else '-'}= {step}"
            least = self.least(s.start if s.step > 0 else s.stop)
            self.least_of_loops[s.var] = None if least is None else least + (s.step < 0)
            self.add(
                depth, f"for (int64_t {variable} = {start}; {variable} {sign} {stop}; {variable}{change}) {{", s.line
            )
            self.block(s.body, depth + 1, declared)
            self.add(depth, "}")
        elif isinstance(s, While):
            self.add(depth, f"while ({self.text(s.test)}) {{", s.line)
            self.block(s.body, depth + 1, declared)
            self.add(depth, "}")
        elif isinstance(s, If):
            self.branch(s, depth, declared)
        elif isinstance(s, Break):
            self.add(depth, "break;", s.line)
        elif isinstance(s, Guard):
            if self.is_evident(s.test):
                return
            self.may_fail = True
            message = s.message.replace("*/", "* /")
            self.add(depth, f"if (!({self.text(s.test)})) {{  /* {message} */", s.line)
            self.add(depth + 1, "status = 2;")
            self.add(depth + 1, "goto end;")
            self.add(depth, "}")
        else:
            assert isinstance(s, Forget)

    def is_evident(self, test: Expr) -> bool:
        """Whether a guard compares a size with itself."""
        if not isinstance(test, ast.Compare) or not isinstance(test.ops[0], (ast.Eq, ast.LtE)) or len(test.ops) > 1:
            return False
        return self.kind(test.left) == "int" and same(test.left, test.comparators[0])

    def branch(self, s: If, depth: int, declared: Mapping[int, list[str]], word: str = "if") -> None:
        self.add(depth, f"{word} ({self.text(s.test)}) {{", s.line)
        self.block(s.body, depth + 1, declared)
        if len(s.orelse) == 1 and isinstance(s.orelse[0], If):
            return self.branch(s.orelse[0], depth, declared, "} else if")
        if s.orelse:
            self.add(depth, "} else {")
            self.block(s.orelse, depth + 1, declared)
        return self.add(depth, "}")

    def assignment(self, target: str, key: str, value: Expr, is_first: bool) -> str:
        left = value.left if isinstance(value, ast.BinOp) else None
        if isinstance(value, ast.BinOp) and not is_first and type(value.op) in (ast.Add, ast.Sub, ast.Mult, ast.Div):
            whole = isinstance(value.op, ast.Div) and self.kind(value.left) != "float"
            if isinstance(left, ast.Name) and left.id == key and not whole:
                return f"{target} {_OPS[type(value.op)][0]}= {self.text(value.right)}"
        return f"{target} = {self.text(value)}"

    def store(self, s: Store, depth: int) -> None:
        if any(isinstance(i, ast.Slice) for i in s.index):
            self.refuse("stores a section")
        target, value = self.element(s.array, s.index), s.value
        if s.add:
            minus = isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.USub)
            inner = value.operand if minus and isinstance(value, ast.UnaryOp) else value
            return self.add(depth, f"{target} {'-' if minus else '+'}= {self.text(inner)};", s.line)
        if isinstance(value, ast.BinOp) and type(value.op) in (ast.Add, ast.Sub, ast.Mult, ast.Div):
            read = element_of(value.left)
            if read is not None and self.element(*read) == target and self.variables[s.array].kind == "float":
                return self.add(depth, f"{target} {_OPS[type(value.op)][0]}= {self.text(value.right)};", s.line)
        return self.add(depth, f"{target} = {self.text(value)};", s.line)

    def new(self, s: Alloc | Copied, depth: int) -> None:
        name = self.name(s.name)
        count = self.count(s.name)
        if s.name not in self.source.outputs:
            self.may_fail = True
            self.helper("new_array")
            self.add(depth, f"{name} = new_array({name}, {count}, sizeof *{name});", s.line)
            self.add(depth, f"if (!{name}) {{")
            self.add(depth + 1, "status = 1;")
            self.add(depth + 1, "goto end;")
            self.add(depth, "}")
        elif (isinstance(s, Alloc) and s.kind == "zeros") or (isinstance(s, Copied) and s.function == "zeros_like"):
            self.add(depth, f"memset({name}, 0, {self.bytes(name, count)});", s.line)
        if isinstance(s, Copied) and s.function == "copy":
            self.add(depth, f"memcpy({name}, {self.name(s.source)}, {self.bytes(name, count)});")
        if isinstance(s, Alloc) and s.fill is not None:
            variable = next(v for v in ("i", "j", "k", "each", "each_element") if v not in self.variables)
            self.add(depth, f"for (int64_t {variable} = 0; {variable} < {count}; {variable}++) {{")
            self.add(depth + 1, f"{name}[{variable}] = {self.text(s.fill)};")
            self.add(depth, "}")

    def count(self, key: str) -> str:
        return " * ".join(self.text(d, 12) for d in self.reader.dims[key])

    def bytes(self, name: str, count: str) -> str:
        return f"(size_t)({count}) * sizeof *{name}" if " " in count else f"(size_t){count} * sizeof *{name}"

    # Expressions

    def refuse(self, why: str) -> NoReturn:
        place = place_in(self.reader.scope.function.__code__, self.line)
        raise UnderivableError(f"{place}: the function {why}, which cannot be written in C")

    def helper(self, name: str) -> str:
        self.helpers[name] = _HELPERS[name]
        return name

    def definition(self, size: Expr) -> Expr:
        return ast.parse(self.reader.canonical(size), mode="eval").body

    def element(self, array: str, index: Sequence[Expr]) -> str:
        """An element of an array, which lies row by row."""
        text = ""
        for axis, (each, size) in enumerate(zip(index, self.reader.dims[array], strict=True)):
            place, length = self.text(each), self.text(size, 13)
            if not self.is_natural(each):
                place = f"{self.helper('place')}({place}, {self.text(size)})"
            elif axis + 1 < len(index) and not axis:
                place = self.text(each, 12)
            if axis and text != "0":
                text = f"({text})" if axis > 1 else text
                place = f"{text} * {length}" + (f" + {place}" if place != "0" else "")
            text = place
        return f"{self.name(array)}[{text}]"

    def is_natural(self, node: Expr) -> bool:
        """Whether an integer is certain not to be negative."""
        least = self.least(node)
        return least is not None and least >= 0

    def least(self, node: Expr) -> int | None:
        """A number that an integer is certain not to be less than; None if none is known."""
        if constant_int(node) is not None:
            return constant_int(node)
        if isinstance(node, ast.Name):
            return self.least_of_loops.get(node.id, self.least_assigned(node.id))
        if isinstance(node, ast.Subscript):
            return 0 if is_shape(node.value) else None
        if isinstance(node, ast.BinOp):
            left, right = self.least(node.left), self.least(node.right)
            constant = constant_int(node.right)
            if isinstance(node.op, ast.Sub) and constant is not None and left is not None:
                return left - constant
            if isinstance(node.op, ast.Mod) and right is not None and right > 0:
                return 0
            if left is not None and right is not None and isinstance(node.op, ast.Add):
                return left + right
            both = left is not None and right is not None and min(left, right) >= 0
            return 0 if both and isinstance(node.op, (ast.Mult, ast.FloorDiv)) else None
        is_place = isinstance(node, ast.Call) and ast.unparse(node.func) in ("np.argmax", "np.argmin")
        return 0 if is_place else None

    def least_assigned(self, key: str) -> int | None:
        """The same for a variable, by what is assigned to it."""
        if self.variables[key].kind != "int" or key in self.source.settings or key in self.pending:
            return None
        self.pending.append(key)
        values = [self.least(s.value) for s in walk(self.source.body) if isinstance(s, Assign) and s.name == key]
        self.pending.pop()
        return None if not values or None in values else min(v for v in values if v is not None)

    def kind(self, node: Expr) -> str:
        """Whether an expression is a float, an int or a bool."""
        if isinstance(node, ast.Constant):
            return type(node.value).__name__
        if isinstance(node, ast.Name):
            return self.variables[node.id].kind
        if isinstance(node, ast.Subscript):
            read = element_of(node)
            return "int" if read is None else self.variables[read[0]].kind
        if isinstance(node, ast.BinOp):
            return (
                "float" if isinstance(node.op, ast.Div) else wider("int", self.kind(node.left), self.kind(node.right))
            )
        if isinstance(node, ast.UnaryOp):
            return "bool" if isinstance(node.op, ast.Not) else wider("int", self.kind(node.operand))
        if isinstance(node, ast.IfExp):
            return wider(self.kind(node.body), self.kind(node.orelse))
        if isinstance(node, ast.Call):
            text = ast.unparse(node.func)
            if text in _TO_INTEGERS or text in ("np.argmax", "np.argmin"):
                return "int"
            short = text.rpartition(".")[2]
            if short in _TO_BOOLS or text == "bool":
                return "bool"
            same = short in ("max", "min", "abs", "absolute", "maximum", "minimum")
            return wider("int", *map(self.kind, node.args)) if same else "float"
        return "bool" if isinstance(node, (ast.Compare, ast.BoolOp)) else "float"

    def text(self, node: Expr, binding: int = 0) -> str:
        """An expression, in parentheses if it binds less than what is around it."""
        text, strength = self.expression(node)
        return f"({text})" if strength < binding else text

    def expression(self, node: Expr) -> tuple[str, int]:
        """An expression, and how strongly it binds."""
        if isinstance(node, ast.Constant):
            return _number(node.value)
        if isinstance(node, ast.Name):
            return self.name(node.id), _CALL
        if isinstance(node, ast.Attribute):
            value = {"inf": math.inf, "nan": math.nan, "pi": math.pi, "e": math.e}.get(node.attr)
            return _number(value) if value is not None else self.refuse(f"has `{ast.unparse(node)}`")
        if isinstance(node, ast.Subscript):
            return self.subscript(node), _CALL
        if isinstance(node, ast.UnaryOp):
            sign = _SIGNS[type(node.op)]
            inner = self.text(node.operand, _UNARY)
            return (f"{sign}({inner})" if inner.startswith(sign) else f"{sign}{inner}"), _UNARY
        if isinstance(node, ast.BinOp):
            return self.operation(node)
        if isinstance(node, (ast.Compare, ast.BoolOp)):
            return self.comparison(node)
        if isinstance(node, ast.IfExp):
            parts = (self.text(node.test, 4), self.text(node.body, 4), self.text(node.orelse, _CHOICE))
            return "{} ? {} : {}".format(*parts), _CHOICE
        if isinstance(node, ast.Call):
            return self.call(node)
        return self.refuse(f"has `{ast.unparse(node)}`")

    def subscript(self, node: ast.Subscript) -> str:
        read = element_of(node)
        if read is not None:
            return self.element(*read)
        axis = constant_int(node.slice)
        if is_shape(node.value) and axis is not None:
            array = node.value.value.id  # type: ignore[attr-defined]
            if array in self.source.inputs:
                return self.sizes_of_input(array)[axis]
            return self.text(self.reader.dims[array][axis], _CALL)
        return self.refuse(f"has `{ast.unparse(node)}`")

    def operation(self, node: ast.BinOp) -> tuple[str, int]:
        left, right, op = node.left, node.right, type(node.op)
        kind = wider("int", self.kind(left), self.kind(right))
        if op in (ast.FloorDiv, ast.Mod) and kind == "int":
            if self.is_natural(left) and self.is_natural(right):
                return f"{self.text(left, 12)} {'/' if op is ast.FloorDiv else '%'} {self.text(right, 13)}", 12
            return (
                f"{self.helper(_WHOLE[op])}({self.text(left)}, {self.text(right)})",
                _CALL,
            )
        if op is ast.FloorDiv:
            return f"{self.helper('quotient')}({self.text(left)}, {self.text(right)})", _CALL
        if op is ast.Mod:
            return f"{self.helper('modulo')}({self.text(left)}, {self.text(right)})", _CALL
        if op is ast.Pow:
            if kind == "int":
                if not self.is_natural(right):
                    self.refuse(f"has `{ast.unparse(node)}` of integers")
                return f"{self.helper('power')}({self.text(left)}, {self.text(right)})", _CALL
            if constant_int(right) == 2:
                return f"{self.helper('square')}({self.text(left)})", _CALL
            return f"pow({self.text(left)}, {self.text(right)})", _CALL
        if op not in _OPS:
            self.refuse(f"has `{ast.unparse(node)}`")
        sign, strength = _OPS[op]
        before = self.text(left, strength)
        if op is ast.Div and kind == "int":
            before = f"(double){self.text(left, _UNARY)}"
        return f"{before} {sign} {self.text(right, strength + 1)}", strength

    def comparison(self, node: ast.Compare | ast.BoolOp) -> tuple[str, int]:
        if isinstance(node, ast.BoolOp):
            sign, strength = _OPS[type(node.op)]
            return f" {sign} ".join(self.text(part, max(strength, 6)) for part in node.values), strength
        parts = []
        for left, op, right in zip([node.left, *node.comparators], node.ops, node.comparators, strict=False):
            if type(op) not in _OPS:
                self.refuse(f"has `{ast.unparse(node)}`")
            sign, strength = _OPS[type(op)]
            parts.append(f"{self.text(left, 10)} {sign} {self.text(right, 10)}")
        return (" && ".join(parts), 5) if len(parts) > 1 else (parts[0], strength)

    def call(self, node: ast.Call) -> tuple[str, int]:
        text, arguments = ast.unparse(node.func), node.args
        short = text.rpartition(".")[2]
        if text in ("np.argmax", "np.argmin"):
            return self.place_of_extreme(short, arguments[0]), _CALL
        inner = [self.text(a) for a in arguments]
        is_whole = all(self.kind(a) != "float" for a in arguments)
        if text in ("max", "min"):
            return f"{self.helper(text + '_int' if is_whole else text)}({', '.join(inner)})", _CALL
        if short in ("abs", "absolute"):
            return f"{'llabs' if is_whole else 'fabs'}({inner[0]})", _CALL
        if text in _TO_INTEGERS:
            rounded = {"int": "", "math.trunc": "", "round": "rint"}.get(text, short)
            cast = f"{rounded}({inner[0]})" if rounded and not is_whole else self.text(arguments[0], _UNARY)
            return f"(int64_t){cast}", _UNARY
        if text in ("float", "np.float64", "np.float32"):
            return f"({'float' if short == 'float32' else 'double'}){self.text(arguments[0], _UNARY)}", _UNARY
        if text == "bool":
            return f"{self.text(arguments[0], 9)} != 0", 8
        if short in ("maximum", "minimum") and is_whole:
            return f"{self.helper(f'{short[:3]}_int')}({', '.join(inner)})", _CALL
        if short not in _FUNCTIONS or text.rpartition(".")[0] not in ("np", "math"):
            self.refuse(f"calls {text}")
        name = _FUNCTIONS[short]
        if name in _HELPERS:
            self.helper(name)
        return f"{name}({', '.join(inner)})", _CALL

    def place_of_extreme(self, name: str, section: Expr) -> str:
        """np.argmax or np.argmin along one axis."""
        read = element_of(section)
        if read is None or sum(isinstance(i, ast.Slice) for i in read[1]) != 1:
            self.refuse(f"has `np.{name}({ast.unparse(section)})`")
        array, index = read
        axis = next(n for n, i in enumerate(index) if isinstance(i, ast.Slice))
        part = index[axis]
        assert isinstance(part, ast.Slice)
        kind = self.element_type(array)
        if part.step is not None or self.variables[array].kind != "float":
            self.refuse(f"has `np.{name}({ast.unparse(section)})`")
        dims = self.reader.dims[array]
        low: Expr = part.lower or ast.Constant(0)
        high = part.upper or dims[axis]
        first = self.element(array, [low if n == axis else i for n, i in enumerate(index)])
        size = self.text(high) if part.lower is None else f"{self.text(high)} - {self.text(low, 12)}"
        step = " * ".join(self.text(d, 12) for d in dims[axis + 1 :]) or "1"
        helper = name if kind == "real" else f"{name}_{kind}"
        parts = {"NAME": helper, "TYPE": kind, "SIGN": "<=" if name == "argmax" else ">="}
        self.helpers[helper] = re.sub("NAME|TYPE|SIGN", lambda match: parts[match[0]], _EXTREME)
        return f"{helper}(&{first}, {size}, {step})"


def _number(value: Any) -> tuple[str, int]:
    if isinstance(value, bool):
        return ("true" if value else "false"), _CALL
    if isinstance(value, float) and not math.isfinite(value):
        text = "NAN" if value != value else "INFINITY" if value > 0 else "-INFINITY"
        return text, _UNARY if text[0] == "-" else _CALL
    text = repr(value)
    return text, _UNARY if text[0] == "-" else _CALL


def _first_assignment(body: Sequence[Stmt], key: str) -> Assign | None:
    """The assignment with which a variable can be declared, in the innermost block with all of its uses."""
    uses = [s for s in body if _uses(s, key)]
    if not uses:
        return None
    first = uses[0]
    if isinstance(first, Assign):
        return first if key not in names_of(first.value) else None
    if len(uses) > 1 or isinstance(first, While):
        return None
    inside = [b for b in blocks_of(first) if any(_uses(s, key) for s in b)]
    if len(inside) != 1 or any(key in names_of(part) for part in parts_of(first)):
        return None
    return _first_assignment(inside[0], key)


def _uses(statement: Stmt, key: str) -> bool:
    return any(
        getattr(s, "name", "") == key or any(key in names_of(part) for part in parts_of(s)) for s in walk([statement])
    )


def _wrapped(head: str, parts: Sequence[str]) -> str:
    """The head of a function, with its parameters in lines of at most 100 characters."""
    one = f"{head}{', '.join(parts)}) {{"
    if len(one) <= 100:
        return one
    lines = [""]
    for part in parts:
        if len(lines[-1]) + len(part) > 90:
            lines.append("")
        lines[-1] += f"{part}, "
    return "\n".join([head, *(f"        {line.rstrip()}" for line in lines)]).removesuffix(",") + ") {"


def _comments(function: Any) -> dict[int, tuple[str, bool]]:
    """The comments of a function by their lines, and whether they have the line for themselves."""
    first, result = function.__code__.co_firstlineno, {}
    try:
        for token in tokenize.generate_tokens(io.StringIO(source_text(function)).readline):
            if token.type == tokenize.COMMENT:
                alone = token.line.strip().startswith("#")
                result[first + token.start[0] - 1] = token.string.lstrip("# ").replace("*/", "* /"), alone
    except (UnreadableSourceError, tokenize.TokenError, IndentationError):
        return {}
    return result
