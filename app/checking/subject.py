"""An operator with inputs for it, as the checks run it: arrays in, arrays and gradients out."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from app import static
from app.checking.operators import UserOperator, equivalent
from app.checking.reasons import reason
from app.custom.operator import CustomOperator
from app.errors import OperatorError, silent_end
from app.functions import function_name, python_function
from app.graph import names
from app.graph.defaults import program_guard
from app.graph.program import Program
from app.graph.scope import Scope, scope_guard
from app.listed import as_list
from app.reading import place_of
from app.tensor import Tensor, grad

Arrays = list[np.ndarray]


class OtherSizeError(OperatorError):
    """There are no inputs of another size, because the caller chose some of the numbers."""


class Precision(NamedTuple):
    """The type that an operator computes in, and how close a correct gradient is to finite differences there."""

    dtype: str
    step: float
    """Of the differences."""
    atol: float
    rtol: float


FLOAT64, FLOAT32 = Precision("float64", 1e-6, 1e-6, 1e-5), Precision("float32", 2.0**-7, 2e-3, 2e-3)


def are_near(left: np.ndarray, right: np.ndarray, rtol: float, atol: float = 1e-9) -> np.ndarray:
    """Which numbers are equal but for rounding; tolerances of float32 are at least 1e-4, relative to the largest."""
    if np.float32 in (left.dtype, right.dtype):
        size = np.abs(right[np.isfinite(right)])
        rtol, atol = max(rtol, 1e-4), max(atol, 1e-5 * float(np.max(size, initial=1e-3)))
    return np.isclose(left, right, rtol=rtol, atol=atol, equal_nan=True)


class Input(NamedTuple):
    """One input: its name, and the shape and type of its array."""

    name: str
    shape: tuple[int, ...]
    dtype: str = "float64"
    values: np.ndarray | None = None
    """The array of an example call, if there was one: floats are drawn near it, whole numbers are its own."""
    is_constant: bool = False
    """Whether it has no gradient although its type is of floats; its numbers then are those of the example call."""

    @property
    def is_float(self) -> bool:
        return self.dtype.startswith("float") and not self.is_constant

    def in_type(self, dtype: str) -> str:
        """The type of its array where floats have this type."""
        return dtype if self.is_float or self.is_constant else self.dtype

    def __str__(self) -> str:
        text = f"{self.name} {self.dtype}[{', '.join(map(str, self.shape))}]"
        return f"{text} without gradient" if self.is_constant else text


class Result(NamedTuple):
    """The result of one run: the outputs, and the gradients of the float inputs, None for an input without one."""

    outputs: Arrays
    gradients: list[np.ndarray | None]

    @property
    def is_finite(self) -> bool:
        numbers = [n for n in (*self.outputs, *self.gradients) if n is not None]
        return all(np.isfinite(n).all() for n in numbers if n.dtype.kind == "f")

    def copy(self) -> Result:
        return Result([o.copy() for o in self.outputs], [None if g is None else g.copy() for g in self.gradients])

    def far_from(self, other: Result, rtol: float) -> str:
        """What differs by more than rounding: the "result" or the "gradient"; '' if nothing does."""
        return self._first_pair(other, lambda a, b: bool(are_near(a, b, rtol).all()))

    def differs_from(self, other: Result) -> str:
        """What differs in some bit: the "result" or the "gradient"; '' if nothing does."""
        return self._first_pair(other, same)

    def _first_pair(self, other: Result, alike: Callable[[np.ndarray, np.ndarray], bool]) -> str:
        """Whether the first arrays that are not alike are a "result" or a "gradient"."""
        for a, b in zip(self.outputs, other.outputs, strict=True):
            if a.shape != b.shape or not alike(a, b):
                return "result"
        for g, h in zip(self.gradients, other.gradients, strict=True):
            if g is None or h is None:
                if g is not h:
                    return "gradient"
            elif g.shape != h.shape or not alike(g, h):
                return "gradient"
        return ""


def _near(random: np.random.Generator, values: np.ndarray, one: Input, dtype: str, seed: int) -> np.ndarray:
    """The numbers of an example call for seed 0, others near them for other seeds and shapes."""
    if not one.is_float or (one.shape == values.shape and not seed):
        return np.array(values, dtype)
    if one.shape != values.shape:
        values = random.choice(values.reshape(-1), one.shape) if values.size else np.zeros(one.shape)
    return np.array(values * (1 + 0.1 * random.uniform(-1, 1, one.shape)), dtype)


def same(left: np.ndarray, right: np.ndarray) -> bool:
    """Whether arrays hold the same numbers; NaN equals NaN."""
    return left.shape == right.shape and np.array_equal(left, right, equal_nan=left.dtype.kind == "f")


@dataclass(frozen=True)
class Subject:
    """An operator and its inputs, which the checks run."""

    operator: UserOperator
    inputs: tuple[Input, ...]
    low: float = -2.0
    high: float = 2.0
    settings: dict[str, Any] = field(default_factory=dict)
    like: str = ""
    """The operator that should compute the same, as the user names it."""
    other: Callable[..., Any] | None = None
    """That operator itself, if it was given and not named."""
    is_fixed: bool = False
    """Whether the user gave the shapes; otherwise others may be tried, too."""
    is_bounded: bool = False
    """Whether the user gave the range; otherwise numbers outside of it may be tried, too."""
    narrowed: str = ""
    """Why inputs are not drawn from the usual range; '' if they are."""
    reshaped: str = ""
    """Why inputs that were tried before do not have the shapes of these; '' if there were none."""
    seed: int = 0
    """With another one, all random inputs are others."""
    precision: Precision = FLOAT64
    """Of an operator of another framework that computes in float32 only, that of float32."""

    @property
    def name(self) -> str:
        return self.operator.name

    def with_shapes(self, shapes: Sequence[tuple[int, ...]]) -> Subject:
        """The same subject with inputs of other shapes."""
        for one, shape in zip(self.inputs, shapes, strict=True):
            if one.values is not None and not one.is_float and one.shape != shape:
                kind = "constants" if one.is_constant else "whole numbers"
                raise OtherSizeError(f"only the caller can choose the {kind} {one.name} for another size")
        changed = tuple(i._replace(shape=s) for i, s in zip(self.inputs, shapes, strict=True))
        return replace(self, inputs=changed)

    def with_batch(self, rows: int) -> Subject:
        """The same subject with `rows` rows in every input that has as many rows as the first input."""
        first = self.inputs[0].shape
        if not first:
            raise OperatorError("its first input has no axes")
        shapes = [(rows, *i.shape[1:]) if i.shape[:1] == first[:1] else i.shape for i in self.inputs]
        return self.with_shapes(shapes)

    def in_float32(self) -> Subject:
        """The same subject, for which floats are float32."""
        inputs = tuple(i._replace(dtype=i.in_type("float32")) for i in self.inputs)
        return replace(self, inputs=inputs, precision=FLOAT32)

    @property
    def computes_in_float32(self) -> bool:
        """Whether an operator of another framework gives float32 for float64 inputs."""
        return self.operator.foreign is not None and any(o.dtype == np.float32 for o in self.outputs(self.arrays()))

    def arrays(self, seed: int = 0, dtype: str = "") -> Arrays:
        """Random inputs; floats have this type, by default that of the precision."""
        dtype = dtype or self.precision.dtype
        random = np.random.default_rng([seed, self.seed] if self.seed else seed)
        return [self._drawn(random, i, i.in_type(dtype), seed) for i in self.inputs]

    def far(self, reach: float) -> Arrays:
        """Random inputs. A third of the floats lie at 3 to `reach` times the ends of the range."""
        random, arrays = np.random.default_rng(2), self.arrays()
        for array, one in zip(arrays, self.inputs, strict=True):
            if one.is_float:
                places = random.permutation(array.size)[: -(-array.size // 3)]
                factors = np.geomspace(3, reach, len(places)) * random.uniform(0.9, 1, len(places))
                array.flat[places] = np.resize([self.high, self.low], len(places)) * factors
        return arrays

    def varied(self) -> Arrays:
        """Random inputs of all magnitudes: of four rows one is as usual, one is wider, one tiny, and one mixed."""
        random, arrays = np.random.default_rng(4), self.arrays(seed=4)
        for array, one in zip(arrays, self.inputs, strict=True):
            if one.is_float and array.ndim:
                row = (np.arange(len(array)) % 4).reshape(-1, *[1] * (array.ndim - 1))
                array *= np.where(
                    row < 3, np.take((1.0, 3.5, 1e-3, 1.0), row), 10 ** random.uniform(-3, 2, array.shape)
                )
        return arrays

    def filled(self, value: float) -> Arrays:
        """Inputs whose floats all have one value."""
        return self.spread([value])

    def spread(self, numbers: Sequence[float]) -> Arrays:
        """Inputs whose floats go through these numbers, each input from another one on."""
        arrays = []
        for place, (array, one) in enumerate(zip(self.arrays(), self.inputs, strict=True)):
            if one.is_float:
                array = np.resize(np.roll(numbers, place), array.size).reshape(array.shape).astype(array.dtype)
            arrays.append(array)
        return arrays

    def _drawn(self, random: np.random.Generator, one: Input, dtype: str, seed: int) -> np.ndarray:
        if one.values is not None:
            return _near(random, one.values, one, dtype, seed)
        if one.is_float:
            return np.asarray(random.uniform(self.low, self.high, one.shape)).astype(dtype)
        return np.asarray(random.integers(0, 2, one.shape)).astype(dtype)

    def tensors(self, arrays: Arrays) -> list[Tensor]:
        """Inputs as Tensors that share the arrays' memory. Floats need a gradient, unless they are constants."""
        pairs = zip(arrays, self.inputs, strict=True)
        return [Tensor(a, stop_gradient=a.dtype.kind != "f" or one.is_constant) for a, one in pairs]

    def reason(self, error: object) -> str:
        """An error in one line, and how to mend it if that is known."""
        return reason(self.operator, error)

    def call(self, *values: Any) -> list[Any]:
        """Apply the operator; gives its outputs."""
        try:
            return as_list(self.operator.call(*values, **self.settings))
        except (Exception, KeyboardInterrupt):
            raise
        except BaseException as error:
            raise silent_end(self.name, error) from error

    def outputs(self, arrays: Arrays) -> Arrays:
        """The outputs for these arrays."""
        return [t._array for t in self.applied(self.tensors(arrays))]

    def applied(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """The Tensors that the operator gives for these."""
        return self._tensors(self.call(*tensors))

    def _tensors(self, values: Sequence[Any]) -> list[Tensor]:
        tensors = [v for v in values if isinstance(v, Tensor)]
        if not tensors:
            raise OperatorError(f"{self.name} returned {type(values[0]).__name__}, expected a Tensor")
        return tensors

    def run(
        self, arrays: Arrays, arriving: Arrays | None = None, call: Callable[..., list[Any]] | None = None
    ) -> Result:
        """Outputs and gradients; `arriving` are the gradients of the outputs, random ones if None."""
        tensors = self.tensors(arrays)
        outputs = self._tensors((call or self.call)(*tensors))
        return Result([o._array for o in outputs], self.gradients(tensors, outputs, arriving))

    def is_finite(self, arrays: Arrays) -> bool:
        """Whether the operator takes these inputs, and its results and gradients are finite."""
        try:
            return self.run(arrays).is_finite
        except Exception:  # it refuses these numbers, or this shape
            return False

    def run_equivalent(self, arrays: Arrays) -> Result:
        """What the operator gives that should compute the same."""
        other = self.other or equivalent(self.like)
        if self.precision is FLOAT32:  # it is compared with exact results
            arrays = [a.astype("float64") if a.dtype.kind == "f" else a for a in arrays]
        return self.run(arrays, call=lambda *values: as_list(other(*values)))

    def gradients(
        self, tensors: list[Tensor], outputs: list[Tensor], arriving: Arrays | None = None
    ) -> list[np.ndarray | None]:
        """The gradients of the float inputs."""
        if self.operator.foreign is not None and self.refusal:
            return [None for t in tensors if not t.stop_gradient]
        return self._pulled(tensors, outputs, arriving)

    def _pulled(self, tensors: list[Tensor], outputs: list[Tensor], arriving: Arrays | None) -> list[np.ndarray | None]:
        output_gradients = self.arriving([o._array for o in outputs]) if arriving is None else arriving
        flowing = [(o, Tensor(g)) for o, g in zip(outputs, output_gradients, strict=True) if not o.stop_gradient]
        sources = [t for t in tensors if not t.stop_gradient]
        if not flowing or not sources:
            return [None] * len(sources)
        gradients = grad([o for o, _ in flowing], sources, [g for _, g in flowing], allow_unused=True)
        return [None if g is None else g._array for g in gradients]

    def arriving(self, outputs: Arrays) -> Arrays:
        """Random gradients of the outputs."""
        random = np.random.default_rng(1)
        return [np.asarray(random.uniform(0.5, 1.5, o.shape)).astype(o.dtype) for o in outputs]

    @cached_property
    def changes(self) -> str:
        """What differs between two runs on the same inputs: the "result" or the "gradient"; '' if nothing does."""
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return self.run(self.arrays()).copy().differs_from(self.run(self.arrays()))
        except Exception:  # a check reports it
            return ""

    @cached_property
    def is_surrogate(self) -> bool:
        """Whether the gradient is declared to differ from the derivative."""
        declared = self.operator.surrogate
        return declared or any(definition.surrogate for definition in self._definitions_or_none())

    @property
    def is_row_by_row(self) -> bool:
        """Whether it is declared that each row depends only on the same row of the inputs."""
        declared = self.operator.elementwise or self.operator.row_by_row
        return declared or any(definition.row_by_row for definition in self._definitions_or_none())

    @cached_property
    def has_gradient(self) -> bool:
        """Whether there is a gradient at all."""
        tensors = self.tensors(self.arrays())
        values = [v for v in self.call(*tensors) if isinstance(v, Tensor)]
        if not self.float_inputs or all(v.stop_gradient for v in values):
            return False
        return self.operator.foreign is None or not self.refusal

    @cached_property
    def refusal(self) -> str:
        """What a framework says if its operator has no formula for the gradient; '' if there is one."""
        tensors = self.tensors(self.arrays())
        try:
            self._pulled(tensors, self.applied(tensors), None)
        except (NotImplementedError, RuntimeError) as error:
            return self.reason(error) if "implement" in str(error) else ""
        except Exception:  # the checks report it
            return ""
        return ""

    @property
    def float_inputs(self) -> list[str]:
        """The names of the float inputs, which have gradients."""
        return [i.name for i in self.inputs if i.is_float]

    @contextmanager
    def in_program(
        self, shapes: Sequence[Sequence[int | None]], dtype: str = "float32"
    ) -> Iterator[tuple[Program, list[Any], list[Any]]]:
        """A Program that applies only the operator; gives it, its data Variables and its outputs."""
        program = Program()
        with names.guard(), program_guard(program, Program()), scope_guard(Scope()):
            data = []
            for one, shape in zip(self.inputs, shapes, strict=True):
                data.append(static.data(one.name, list(shape), dtype if one.is_float else one.dtype))
                data[-1].stop_gradient = not one.is_float
            yield program, data, self.call(*data)

    def named(self, arrays: Arrays) -> dict[str, np.ndarray]:
        """The floats among these arrays by the names of their inputs."""
        return {one.name: array for one, array in zip(self.inputs, arrays, strict=True) if one.is_float}

    @cached_property
    def backward(self) -> str:
        """`backward (swish_grad, my_ops.py:8)`: the function that computes the gradient, and its line if known."""
        if self.operator.foreign is not None:
            return self.operator.foreign.backward or "backward"
        definitions = self._definitions_or_none()
        function = definitions[0].backward_function if len(definitions) == 1 else None
        where = "" if function is None else place_of(python_function(function))
        return f"backward ({function_name(function)}, {where})" if where else "backward"

    def _definitions_or_none(self) -> list[CustomOperator]:
        try:
            return self.definitions()
        except Exception:  # the check `shapes` reports why it cannot be in a Program
            return []

    def definitions(self) -> list[CustomOperator]:
        """The custom operators that it applies; none for an operator of another framework."""
        if self.operator.foreign is not None:
            return []
        with self.in_program([i.shape for i in self.inputs], self.precision.dtype) as (program, _, _):
            definitions = [op.definition for op in program.global_block().ops]
        return [d for d in definitions if isinstance(d, CustomOperator)]
