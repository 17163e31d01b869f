"""Which values have gradients, and how the gradient of a result is added to those of what it was computed from."""

from __future__ import annotations

import ast
import builtins
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from app.derivative.arrays.core import (
    Alloc,
    Assign,
    Copied,
    Expr,
    For,
    Function,
    If,
    Stmt,
    Store,
    Variable,
    While,
    allocated_in,
    assigned_in,
    binary,
    blocks_of,
    compare,
    element_of,
    is_product,
    load,
    loads_of,
    mapped,
    names_of,
    parts_of,
    same,
    shape_of,
    stored_in,
    transposed,
    walk,
)
from app.derivative.arrays.dependence import Dependence, Place
from app.derivative.slopes import (
    BY_EXPONENT,
    ROWS,
    by_base,
    is_flat,
    row_of,
    share_of_exponential,
    slopes_along,
    slopes_of,
)
from app.derivative.terms import (
    filled,
    is_atom,
    name,
    names_in_template,
    negative,
    number,
    number_in,
    product,
    quotient,
    total,
    with_parts,
)
from app.functions import unused


class Pushing:
    """Prepares a function, and pushes gradients through its statements."""

    def __init__(self, function: Function, all_names: set[str]):
        self.all_names = all_names
        self.function = function
        self.variables = function.variables
        self.active: set[str] = set()
        self._choose_active(function)
        self._loaded = {a for s in walk(function.body) for part in parts_of(s) for a, _ in loads_of(part)}
        self._loops: list[str] = []
        """The variables of the loops that add outer products."""
        self._slopes_from_results: set[str] = set()
        """Arrays whose elements the slopes of what was stored there are computed from."""
        self._temporaries: set[str] = set()
        self._place: Place | None = None
        """Where the statement stands that is gone through."""
        body = self._hoisted(self._flat_block(function.body))
        self.function = function.with_body(body)
        self._choose_active(self.function)
        self.dependence = Dependence(self.function)
        self._stored = stored_in(self.function.body) | allocated_in(self.function.body)
        self.gradients: dict[str, str] = {}
        for key in [*function.inputs, *function.outputs, *sorted(self.active)]:
            if key not in self.gradients and (key in self.active or key in function.outputs or key in function.inputs):
                self._name_gradient(key)

    def fresh(self, wish: str) -> str:
        text = unused(wish, self.all_names)
        self.all_names.add(text)
        return text

    def _name_gradient(self, key: str) -> None:
        text = self.gradients[key] = self.fresh(f"d{key}")
        variable = self.variables[key]
        self.variables[text] = Variable(variable.rank, "float", variable.dtype)

    # Activity

    def _choose_active(self, function: Function) -> None:
        """The names that depend on an input and that a result depends on."""
        edges: list[tuple[str, set[str]]] = []
        for statement in _uncounted(function.body):
            if isinstance(statement, (Assign, Store)):
                target = statement.name if isinstance(statement, Assign) else statement.array
                edges.append((target, self.operands(statement.value)))
            elif isinstance(statement, Copied) and statement.function == "copy":
                edges.append((statement.name, {statement.source}))
        floats = {key for key, variable in self.variables.items() if variable.kind == "float"}
        varied = set(function.inputs) & floats
        useful = set(function.outputs) & floats
        changed = True
        while changed:
            before = len(varied), len(useful)
            for target, operands in edges:
                if operands & varied and target in floats:
                    varied.add(target)
                if target in useful:
                    useful |= operands & floats
            changed = before != (len(varied), len(useful))
        self.active = varied & useful

    def operands(self, node: Expr) -> set[str]:
        """The numbers and arrays along which an expression may have a slope."""
        if isinstance(node, ast.Attribute) and node.attr == "T":
            return self.operands(node.value)
        if isinstance(node, (ast.Compare, ast.BoolOp, ast.Constant, ast.Attribute)):
            return set()
        if isinstance(node, ast.Name):
            return {node.id}
        element = element_of(node)
        if element is not None:
            return {element[0]}
        if isinstance(node, ast.IfExp):
            return self.operands(node.body) | self.operands(node.orelse)
        if isinstance(node, ast.BinOp):
            return set() if isinstance(node.op, ast.FloorDiv) else self.operands(node.left) | self.operands(node.right)
        if isinstance(node, ast.UnaryOp):
            return set() if isinstance(node.op, ast.Not) else self.operands(node.operand)
        if isinstance(node, ast.Call):
            function = function_of(node.func)
            if is_flat(function) or not row_of(function):
                return set()
            return {key for part in node.args for key in self.operands(part)}
        return set()

    def is_varying(self, node: Expr) -> bool:
        return bool(self.operands(node) & self.active)

    def is_active(self, statement: Assign | Store) -> bool:
        target = statement.name if isinstance(statement, Assign) else statement.array
        return target in self.active

    # Preparation: operands that the reverse uses get names

    def _flat_block(self, block: Sequence[Stmt]) -> list[Stmt]:
        result: list[Stmt] = []
        for statement in block:
            if (
                isinstance(statement, (Assign, Store))
                and self.is_active(statement)
                and self.is_varying(statement.value)
            ):
                result += self._flat_statement(statement)
            elif isinstance(statement, While):
                result.append(statement)
            elif blocks_of(statement):
                result.append(mapped(statement, [self._flat_block(inner) for inner in blocks_of(statement)]))
            else:
                result.append(statement)
        return result

    def _flat_statement(self, statement: Assign | Store) -> list[Stmt]:
        before: list[Stmt] = []
        line = statement.line
        value = statement.value
        if is_product(value):
            return [statement]
        if isinstance(value, ast.IfExp) and not self._is_simple_choice(value):
            return self._as_branch(statement, value)
        if isinstance(statement, Assign):
            value = self._flat(value, before, line, top=statement.name not in names_of(value))
            return [*before, Assign(statement.name, value, line)]
        if not statement.add and statement.array in self._loaded - self._slopes_from_results:
            flat = self._flat(value, before, line, top=True)
            by_result, by_operands = self._needs_of_array(flat, statement)
            if not by_operands:
                if by_result:
                    self._slopes_from_results.add(statement.array)
                return [*before, Store(statement.array, statement.index, flat, False, line)]
            before.clear()
        value = self._flat(value, before, line)
        if self._needs_of_array(value, statement)[1]:
            value = self._atom(value, before, line)
        return [*before, Store(statement.array, statement.index, value, statement.add, line)]

    def _target(self, statement: Assign | Store) -> Expr:
        return name(statement.name) if isinstance(statement, Assign) else load(statement.array, statement.index)

    def _needs_of_array(self, value: Expr, statement: Store) -> tuple[bool, bool]:
        """Whether the slopes of a value need the element that it is stored into, and other elements of that array."""
        pushed = [part for s in walk(self._statements(value, name("_g"), name("_y"))) for part in parts_of(s)]
        loads = {array for part in pushed for array, _ in loads_of(part)}
        return any("_y" in names_of(part) for part in pushed), statement.array in loads

    def _is_simple_choice(self, value: Expr) -> bool:
        if isinstance(value, ast.IfExp):
            return self._is_simple_choice(value.body) and self._is_simple_choice(value.orelse)
        probe: list[Stmt] = []
        all_names, variables = set(self.all_names), dict(self.variables)
        self._flat(value, probe, 0, top=True)
        self.all_names = all_names
        for key in self.variables.keys() - variables.keys():
            del self.variables[key]
        return not probe

    def _as_branch(self, statement: Assign | Store, value: ast.IfExp) -> list[Stmt]:
        """A conditional expression as a statement."""

        def branch(part: Expr) -> list[Stmt]:
            if isinstance(statement, Assign):
                inner: Assign | Store = Assign(statement.name, part, statement.line)
            else:
                inner = Store(statement.array, statement.index, part, statement.add, statement.line)
            return self._flat_statement(inner) if self.is_varying(part) else [inner]

        return [If(value.test, branch(value.body), branch(value.orelse), statement.line)]

    def _atom(self, node: Expr, before: list[Stmt], line: int) -> Expr:
        """A value that can be repeated."""
        if is_atom(node) or element_of(node) is not None or isinstance(node, ast.Attribute):
            return node
        if isinstance(node, ast.UnaryOp) and element_of(node.operand) is not None:
            return node
        if not names_of(node) - set(self.function.settings) and not loads_of(node) and not self.is_varying(node):
            return node
        text = self.fresh("t")
        self.variables[text] = Variable(0, "float" if self.is_varying(node) else self._kind(node))
        if self.is_varying(node):
            self.active.add(text)
        self._temporaries.add(text)
        before.append(Assign(text, node, line))
        return name(text)

    def _hoisted(self, block: Sequence[Stmt]) -> list[Stmt]:
        """The block with temporaries computed before the loops that do not change them, if these have iterations."""
        result: list[Stmt] = []
        for statement in block:
            parts = [self._hoisted(inner) for inner in blocks_of(statement)]
            statement = mapped(statement, parts) if parts and not isinstance(statement, While) else statement
            if not isinstance(statement, For):
                result.append(statement)
                continue
            changed = assigned_in([statement]) | stored_in([statement]) | allocated_in([statement])
            changed |= {s.var for s in walk([statement]) if isinstance(s, For)}
            before: list[Stmt] = []
            rest: list[Stmt] = []
            for each in statement.body:
                temporary = isinstance(each, Assign) and each.name in self._temporaries
                if temporary and isinstance(each, Assign) and not names_of(each.value) & changed:
                    before.append(each)
                    changed.discard(each.name)
                else:
                    rest.append(each)
            if before:
                low, high = (statement.start, statement.stop)[:: 1 if statement.step > 0 else -1]
                loop = mapped(statement, [rest])
                result.append(If(compare(high, ast.Gt(), low), [*before, loop], [], statement.line))
            else:
                result.append(statement)
        return result

    def _kind(self, node: Expr) -> str:
        if isinstance(node, ast.BinOp):
            if isinstance(node.op, ast.Div):
                return "float"
            kinds = {self._kind(node.left), self._kind(node.right)}
            return "float" if "float" in kinds or isinstance(node.op, ast.Pow) else "int"
        if isinstance(node, ast.Constant):
            return type(node.value).__name__
        if isinstance(node, ast.UnaryOp):
            return self._kind(node.operand)
        key = node.id if isinstance(node, ast.Name) else (element_of(node) or ("", ()))[0]
        if isinstance(node, ast.Subscript) and not key:
            return "int"
        return self.variables[key].kind if key in self.variables else "float"

    def _flat(self, node: Expr, before: list[Stmt], line: int, top: bool = False) -> Expr:
        """An expression of which all operands that its slopes need are numbers, elements or constants."""
        if not self.is_varying(node):
            return node
        if isinstance(node, ast.UnaryOp):
            return ast.UnaryOp(node.op, self._flat(node.operand, before, line))
        if isinstance(node, ast.IfExp):
            return self._flat_choice(node, before, line)
        if isinstance(node, ast.BinOp):
            return self._flat_operation(node, before, line, top)
        if isinstance(node, ast.Call):
            return self._flat_call(node, before, line, top)
        return node

    def _flat_choice(self, node: ast.IfExp, before: list[Stmt], line: int) -> Expr:
        if self._is_simple_choice(node):
            return node
        text = self.fresh("t")
        self.variables[text] = Variable(0, "float")
        self.active.add(text)
        before += self._as_branch(Assign(text, node, line), node)
        return name(text)

    def _flat_operation(self, node: ast.BinOp, before: list[Stmt], line: int, top: bool) -> Expr:
        left, right = self._flat(node.left, before, line), self._flat(node.right, before, line)
        along_left, along_right = self.is_varying(node.left), self.is_varying(node.right)
        power = isinstance(node.op, ast.Pow)
        if isinstance(node.op, ast.Mult) or power or isinstance(node.op, ast.Mod):
            if along_left or power:
                right = self._atom(right, before, line)
            if along_right or power:
                left = self._atom(left, before, line)
        elif isinstance(node.op, ast.Div):
            right = self._atom(right, before, line)
        result: Expr = ast.BinOp(left, node.op, right)
        needs_result = (along_right and isinstance(node.op, (ast.Div, ast.Pow))) or isinstance(node.op, ast.Mod)
        return self._atom(result, before, line) if needs_result and not top else result

    def _flat_call(self, node: ast.Call, before: list[Stmt], line: int, top: bool) -> Expr:
        row = row_of(function_of(node.func))
        parts = [self._flat(part, before, line) for part in node.args]
        varying = [self.is_varying(part) for part in parts]
        if row == "power":
            names = {"a", "b", "y"} if varying[1] else {"a", "b"}
        else:
            templates = slopes_of(row)
            names = {n for t, v in zip(templates, varying, strict=True) if v for n in names_in_template(t)}
        parts = [self._atom(p, before, line) if key in names else p for key, p in zip("abc", parts, strict=False)]
        result = ast.Call(node.func, parts, [])
        return self._atom(result, before, line) if "y" in names and not top else result

    # Pushing

    def needs(self, statement: Assign | Store) -> list[Expr]:
        """What the reverse of a statement reads, other than gradients."""
        if not self.is_varying(statement.value):
            return [] if isinstance(statement, Assign) else list(statement.index)
        if isinstance(statement, Store) and isinstance(statement.value, ast.BinOp) and is_product(statement.value):
            left, right = statement.value.left, statement.value.right
            return [other for one, other in ((left, right), (right, left)) if self.is_varying(one)]
        all_names, variables = set(self.all_names), set(self.variables)
        self._place = self.dependence.place(statement)
        pushed = self._statements(statement.value, name("_g"), self._target(statement))
        extra = set(self.variables) - variables
        self.all_names = all_names
        hidden = {"_g", *extra, *self.gradients.values()}
        result: list[Expr] = [] if isinstance(statement, Assign) else list(statement.index)
        for each in walk(pushed):
            result += [_without(part, hidden) for part in parts_of(each)]
        for key in extra:
            del self.variables[key]
        return result

    def of_assign(self, statement: Assign, restored: list[Stmt]) -> list[Stmt]:
        """The reverse of an assignment to a number; `restored` puts its former value back."""
        key, value, line = statement.name, statement.value, statement.line
        if key not in self.active:
            return restored
        self._place = self.dependence.place(statement)
        gradient = name(self.gradients[key])
        zero = Assign(gradient.id, number(0.0), line)
        if not self.is_varying(value):
            return [zero, *restored]
        if key not in names_of(value):
            return [*self._statements(value, gradient, name(key), line), zero, *restored]
        if isinstance(value, ast.BinOp) and isinstance(value.op, (ast.Add, ast.Sub)):
            own, other = value.left, value.right
            if isinstance(value.op, ast.Add) and not isinstance(own, ast.Name):
                own, other = other, own
            if isinstance(own, ast.Name) and own.id == key and key not in names_of(other):
                arriving = gradient if isinstance(value.op, ast.Add) else negative(gradient)
                return [*restored, *self._statements(other, arriving, None, line)]
        assignment = self._assigned(gradient, line)
        return [assignment, zero, *restored, *self._statements(value, name(assignment.name), None, line)]

    def of_store(self, statement: Store, final: bool) -> list[Stmt]:
        """The reverse of an assignment to an element; `final` says that its gradient is not read again."""
        array, value, line = statement.array, statement.value, statement.line
        if array not in self.active:
            return []
        self._place = self.dependence.place(statement)
        gradient = load(self.gradients[array], statement.index)
        zero = [] if final else [Store(self.gradients[array], statement.index, number(0.0), False, line)]
        if not self.is_varying(value):
            return [] if statement.add else list(zero)
        if isinstance(value, ast.BinOp) and is_product(value):
            return [*self._of_product(value, gradient, line), *zero]
        assignment = self._assigned(gradient, line)
        pushed = self._statements(value, name(assignment.name), load(array, statement.index), line)
        return [assignment, *pushed] if statement.add else [assignment, *zero, *pushed]

    def _of_product(self, value: ast.BinOp, gradient: Expr, line: int) -> list[Stmt]:
        """The reverse of a product: again products, and for a matrix times a vector a sum of outer ones."""
        left, right = value.left, value.right
        result: list[Stmt] = []
        for operand in (left, right):
            if not self.is_varying(operand):
                continue
            flipped = isinstance(operand, ast.Attribute)
            array, index = _section(operand)
            target = self.gradients[array]
            if _rank(operand) == 1 or _rank(left) == _rank(right) == 2:
                if operand is left:
                    factors = [gradient, transposed(right)] if _rank(left) == 2 else [right, gradient]
                else:
                    factors = [transposed(left), gradient]
                if flipped:
                    factors = [transposed(each) for each in reversed(factors)]
                result.append(Store(target, index, ast.BinOp(factors[0], ast.MatMult(), factors[1]), True, line))
                continue
            column, row = (gradient, right) if operand is left else (left, gradient)
            column, row = (row, column) if flipped else (column, row)
            sizes = [shape_of(array, axis) for axis, part in enumerate(index) if isinstance(part, ast.Slice)]
            self._loops = self._loops or [self.fresh(each) for each in ("i", "j")]
            i, j = self._loops
            self.variables |= {i: Variable(0, "int"), j: Variable(0, "int")}
            product = ast.BinOp(_element(column, i), ast.Mult(), _element(row, j))
            at = (*index[: len(index) - 2], name(i), name(j))
            inner = For(j, number(0), sizes[1], 1, [Store(target, at, product, True, line)], line)
            result.append(For(i, number(0), sizes[0], 1, [inner], line))
        return result

    def _assigned(self, gradient: Expr, line: int) -> Assign:
        text = self.fresh("g")
        self.variables[text] = Variable(0, "float")
        return Assign(text, gradient, line)

    def gradient_of(self, statement: Alloc | Copied) -> list[Stmt]:
        """Make the gradient of an array of the function."""
        key = self.gradients[statement.name]
        if statement.name in self.function.outputs:
            return []
        if isinstance(statement, Alloc):
            return [Alloc(key, "zeros", statement.shape, statement.dtype, None, statement.line)]
        return [Copied(key, "zeros_like", statement.source, statement.line)]

    def of_copy(self, statement: Copied) -> list[Stmt]:
        if statement.name not in self.active or statement.function != "copy" or statement.source not in self.active:
            return []
        whole = tuple(ast.Slice() for _ in range(self.variables[statement.source].rank))
        gradient = name(self.gradients[statement.name])
        return [Store(self.gradients[statement.source], whole, gradient, True, statement.line)]

    def _statements(self, node: Expr, gradient: Expr, result: Expr | None, line: int = 0) -> list[Stmt]:
        pushed: list[Stmt] = []
        self._push(node, gradient, result, pushed, line)
        return pushed

    def _push(self, node: Expr, gradient: Expr, result: Expr | None, out: list[Stmt], line: int) -> None:
        """Add statements that add `gradient` times the slopes of an expression to the gradients of its operands."""
        if not self.is_varying(node) or number_in(gradient) == 0:
            return
        element = element_of(node)
        if element is not None:
            out.append(Store(self._gradient_name(element[0]), element[1], gradient, True, line))
        elif isinstance(node, ast.Name):
            key = self._gradient_name(node.id)
            out.append(Assign(key, total(name(key), gradient) or number(0.0), line))
        elif isinstance(node, ast.UnaryOp):
            self._push(node.operand, negative(gradient) if isinstance(node.op, ast.USub) else gradient, None, out, line)
        elif isinstance(node, ast.IfExp):
            if not is_atom(gradient):
                gradient = self._named(gradient, out, line)
            self._choice(node.test, [(node.body, gradient)], [(node.orelse, gradient)], out, line)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and self.is_varying(node.right):
            self._push_quotient(node, gradient, result, out, line)
        elif (growth := self._growth_of_logarithm(node)) is not None:
            self._push(growth[0], _scaled(gradient, growth[1]), None, out, line)
        else:
            factors = self._factors(node, result)
            varying = [(part, factor) for part, factor in factors if self.is_varying(part)]
            if len(varying) > 1 and not is_atom(gradient):
                gradient = self._named(gradient, out, line)
            self._products(varying, gradient, out, line)

    def _push_quotient(self, node: ast.BinOp, gradient: Expr, result: Expr | None, out: list[Stmt], line: int) -> None:
        y = result if result is not None else node
        growth = self._growth(node.right, self._place)
        if growth is not None and not is_atom(gradient):
            gradient = self._named(gradient, out, line)
        share: Expr = gradient if growth is not None else quotient(gradient, node.right) or gradient
        also = self._growth(node.left, self._place) if growth is not None else None
        if also is not None:
            self._push(also[0], _scaled(product(gradient, y) or gradient, also[1]), None, out, line)
        elif self.is_varying(node.left):
            share = self._named(quotient(gradient, node.right) or gradient, out, line)
            self._push(node.left, share, None, out, line)
        if growth is not None:
            exponent, factor = growth
            share = _scaled(product(gradient, y) or gradient, factor)
            self._push(exponent, negative(share), None, out, line)
        elif self.is_varying(node.left):
            self._push(node.right, negative(product(share, y) or share), None, out, line)
        else:
            slope = ast.BinOp(y, ast.Div(), node.right)
            self._push(node.right, negative(product(gradient, slope) or gradient), None, out, line)

    # Exponentials that overflow

    def _growth(self, node: Expr, place: Place | None, depth: int = 6) -> tuple[Expr, Expr] | None:
        """The exponent of a number made of an exponential, and the factor of its slope in that of the logarithm.

        The slope of `1 / (1 + e)` is zero where `e` is infinite; computed step by step, it would be zero times
        infinity.
        """
        if not isinstance(node, ast.Name) or place is None or not depth:
            return None
        definition = self.dependence.definition(node.id, place)
        if definition is None:
            return None
        at, value = self.dependence.place(definition), definition.value
        if isinstance(value, ast.Call) and function_of(value.func) in _EXPONENTIALS:
            exponent = value.args[0]
            steady = all(self._is_steady(key, at) for key in names_of(exponent))
            return (exponent, number(1.0)) if steady else None
        if not isinstance(value, ast.BinOp):
            return None
        if isinstance(value.op, ast.Pow) and number_in(value.right) is not None:
            inner = self._growth(value.left, at, depth - 1)
            return None if inner is None else (inner[0], product(value.right, inner[1]) or inner[1])
        for part, other in ((value.left, value.right), (value.right, value.left)):
            inner = None if self.is_varying(other) else self._growth(part, at, depth - 1)
            if inner is None:
                continue
            if isinstance(value.op, ast.Mult):
                return inner
            if isinstance(value.op, (ast.Add, ast.Sub)):
                subtracted = isinstance(value.op, ast.Sub) and part is value.right
                return inner[0], product(inner[1], share_of_exponential(part, node, subtracted)) or inner[1]
        return None

    def _growth_of_logarithm(self, node: Expr) -> tuple[Expr, Expr] | None:
        row = row_of(function_of(node.func)) if isinstance(node, ast.Call) else ""
        if not isinstance(node, ast.Call) or row not in ("log", "log1p"):
            return None
        growth = self._growth(node.args[0], self._place)
        if growth is None or row == "log":
            return growth
        whole = ast.BinOp(number(1.0), ast.Add(), node.args[0])
        return growth[0], product(growth[1], share_of_exponential(node.args[0], whole, False)) or growth[1]

    def _is_steady(self, key: str, place: Place) -> bool:
        """Whether a name still has the value that it had at a place, wherever that place was passed."""
        if self.variables[key].rank:
            return key not in self._stored
        is_loop = any(loop.var == key for loop in place.loops)
        return is_loop or key in self.function.settings or self.dependence.definition(key, place) is not None

    def _gradient_name(self, key: str) -> str:
        return self.gradients[key] if key in getattr(self, "gradients", {}) else f"_d{key}"

    def _named(self, gradient: Expr, out: list[Stmt], line: int) -> Expr:
        assignment = self._assigned(gradient, line)
        out.append(assignment)
        return name(assignment.name)

    def _products(self, varying: list[tuple[Expr, Expr]], gradient: Expr, out: list[Stmt], line: int) -> None:
        """Push a gradient times a factor to each part. Factors that are choices become branches."""
        tests: list[Expr] = []
        for part, factor in varying:
            if not isinstance(factor, ast.IfExp):
                if isinstance(factor, ast.BinOp) and isinstance(factor.op, ast.Div) and number_in(factor.left) == 1:
                    arriving = quotient(gradient, factor.right)
                else:
                    arriving = product(gradient, factor)
                if arriving is not None:
                    self._push(part, arriving, None, out, line)
                continue
            if any(same(factor.test, each) for each in tests):
                continue
            tests.append(factor.test)
            alike = [(p, f) for p, f in varying if isinstance(f, ast.IfExp) and same(f.test, factor.test)]
            if len(alike) > 1 or not is_atom(gradient):
                gradient = gradient if is_atom(gradient) else self._named(gradient, out, line)
            yes = [(p, product(gradient, f.body) or number(0.0)) for p, f in alike if isinstance(f, ast.IfExp)]
            no = [(p, product(gradient, f.orelse) or number(0.0)) for p, f in alike if isinstance(f, ast.IfExp)]
            self._choice(factor.test, yes, no, out, line)

    def _choice(
        self, test: Expr, yes: list[tuple[Expr, Expr]], no: list[tuple[Expr, Expr]], out: list[Stmt], line: int
    ) -> None:
        first: list[Stmt] = []
        second: list[Stmt] = []
        for parts, block in ((yes, first), (no, second)):
            for part, gradient in parts:
                self._push(part, gradient, None, block, line)
        if first:
            out.append(If(test, first, second, line))
        elif second:
            out.append(If(ast.UnaryOp(ast.Not(), test), second, [], line))

    def _factors(self, node: Expr, result: Expr | None) -> list[tuple[Expr, Expr]]:
        """The operands of an expression with its slopes along them."""
        y = result if result is not None else node  # inside of a conditional expression: computed again
        if isinstance(node, ast.BinOp):
            left, right = node.left, node.right
            if isinstance(node.op, ast.Add):
                return [(left, number(1.0)), (right, number(1.0))]
            if isinstance(node.op, ast.Sub):
                return [(left, number(1.0)), (right, number(-1.0))]
            if isinstance(node.op, ast.Mult):
                return [(left, right), (right, left)]
            if isinstance(node.op, ast.Div):
                slope = negative(ast.BinOp(y, ast.Div(), right))
                return [(left, ast.BinOp(number(1.0), ast.Div(), right)), (right, slope)]
            if isinstance(node.op, ast.Pow):
                return self._power(left, right, y)
            return self._table("remainder", [left, right], y)
        assert isinstance(node, ast.Call)
        row = row_of(function_of(node.func))
        if row == "power":
            return self._power(node.args[0], node.args[1], y)
        return self._table(row, node.args, y)

    def _power(self, base: Expr, exponent: Expr, y: Expr) -> list[tuple[Expr, Expr]]:
        parts = {"a": base, "n": exponent, "y": y}
        return [(base, by_base(base, exponent)), (exponent, filled(BY_EXPONENT, parts))]

    def _table(self, row: str, arguments: Sequence[Expr], y: Expr) -> list[tuple[Expr, Expr]]:
        parts, templates = slopes_along(row, arguments, [self.is_varying(part) for part in arguments])
        names: Mapping[str, Expr] = {**dict(zip("abc", parts, strict=False)), "y": y}
        return [(part, filled(t, names)) for part, t in zip(parts, templates, strict=True)]


_EXPONENTIALS = {f for f, row in ROWS.items() if row == "exp"}


def _scaled(gradient: Expr, factor: Expr) -> Expr:
    """A product that stays one where the factor is a choice."""
    return gradient if number_in(factor) == 1 else binary(gradient, ast.Mult(), factor)


def _section(node: Expr) -> tuple[str, tuple[Expr, ...]]:
    """The array and the index of a section, or of the transpose of one."""
    element = element_of(node.value if isinstance(node, ast.Attribute) else node)
    assert element is not None
    return element


def _rank(node: Expr) -> int:
    return sum(isinstance(part, ast.Slice) for part in _section(node)[1])


def _element(vector: Expr, at: str) -> Expr:
    array, index = _section(vector)
    return load(array, (*index[:-1], name(at)))


def function_of(node: ast.expr) -> Any:
    """The function that a name in the small language stands for."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return getattr({"np": np, "math": math}.get(node.value.id), node.attr, None)
    return getattr(builtins, node.id, None) if isinstance(node, ast.Name) else None


def _uncounted(block: Sequence[Stmt]) -> list[Stmt]:
    """The statements of a block, without those inside of a loop that only counts."""
    result: list[Stmt] = []
    for statement in block:
        result.append(statement)
        if not isinstance(statement, While):
            for inner in blocks_of(statement):
                result += _uncounted(inner)
    return result


def _without(node: Expr, hidden: set[str]) -> Expr:
    """An expression with gradients replaced by a constant, to see what else it reads."""
    element = element_of(node)
    if isinstance(node, ast.Name) and (node.id in hidden or node.id.startswith("_d")):
        return number(1.0)
    if element is not None and element[0] in hidden:
        return ast.Tuple([_without(each, hidden) for each in element[1]], ast.Load())
    return with_parts(node, lambda part: _without(part, hidden))
