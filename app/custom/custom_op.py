"""`custom_op`: a decorator that makes an operator from a Python or Numba function."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NoReturn

import numpy as np

from app.custom.calling import (
    arrays_of,
    call_function,
    infer_by_running,
    require_callable,
    returned_arrays,
)
from app.custom.cases import by_cases
from app.custom.foreign import operator_of_framework
from app.custom.forms import NUMBERS
from app.custom.numba_functions import Current
from app.custom.on_numbers import written_on_numbers
from app.custom.operator import CustomOperator, Origin, makes
from app.errors import GradientError, OperatorError
from app.functions import function_name, is_compiled, python_function
from app.ops.definition import OpDef, as_immutable
from app.ops.dtype import canonical, common, get_default_dtype, is_float
from app.ops.elementwise import to_common_type
from app.ops.rules import Source
from app.ops.spec import Spec, broadcast, spec_of
from app.reading import parameters_of, place_of, user_place

_NAME_THEM = '; name them, as in custom_op(outputs=["low", "high"]), or make one array of a list, np.array(values)'


class FunctionOperator(CustomOperator):
    """The operator that `@custom_op` makes; `@op.backward` declares the function that computes its gradient.

    Without one, the gradient is derived from the function's source (see `opsmith.derivative`).
    """

    def __init__(
        self,
        function: Callable[..., Any],
        name: str | None,
        outputs: Sequence[str],
        elementwise: bool,
        infer: Callable[..., Any] | None,
        row_by_row: bool = False,
        onnx: str | Callable[..., Any] | None = None,
        like: str = "",
        where: str = "",
    ):
        self.name, self.where = name or function_name(function), where or user_place()
        require_callable(function, "what custom_op decorates", self.label)
        if infer is not None:
            require_callable(infer, "infer", self.label)
        inputs, settings = _split_parameters(function, self.label)
        self._declared_infer = infer
        super().__init__(
            self.name,
            function,
            self._run,
            self._infer,
            elementwise=elementwise,
            row_by_row=row_by_row,
            like=like,
            inputs=inputs,
            outputs=outputs,
            prepare=_to_common_float if elementwise else _with_their_float,
            broadcasts=elementwise,
            onnx=onnx,
            where=self.where,
        )
        self._call = self._on_arrays(function, len(outputs))
        self.on_variables = by_cases(function) if elementwise else python_function(function)
        self.declare_attributes(settings)
        self.origin = Origin("custom_op", {"operator": self})
        self.derive_when_needed(self._derive_gradient)

    @property
    def made_of(self) -> tuple[Any, ...]:
        """Everything that the operator's behaviour depends on: functions and settings."""
        facts = (self.outputs, self.attributes, self.elementwise, self.row_by_row)
        return self.function, self.backward_function, self._declared_infer, facts

    def _run(self, /, *arrays: np.ndarray, **settings: Any) -> Any:
        results = self._results(*arrays, **settings)
        return results[0] if len(results) == 1 else tuple(results)

    def _results(self, /, *arrays: np.ndarray, **settings: Any) -> list[np.ndarray]:
        inputs = arrays_of(arrays)
        results = returned_arrays(
            call_function(self._call, self.label, inputs, settings),
            len(self.outputs),
            self.label,
            self.function,
            hint=_NAME_THEM,
        )
        if self.specs is None and not self.elementwise:
            self.specs = [spec_of(x) for x in inputs]
        kinds = "biuf" if self.elementwise else "f"
        for place, returned in enumerate(results):
            array = _in_input_type(returned, inputs, kinds)
            if array is not returned:
                self.casts[self.outputs[place]] = returned.dtype.name
                results[place] = array
        return results

    def _infer(self, /, *specs: Spec, **settings: Any) -> tuple[Spec, ...]:
        if self._declared_infer is not None:
            return self._checked_specs(self._declared_infer(*specs, **settings))
        if self.elementwise:
            return (Spec(broadcast(*(s.shape for s in specs)), specs[0].dtype),) * len(self.outputs)
        advice = "; if it cannot run on them, custom_op(infer=...) can say what it returns"
        return infer_by_running(lambda *arrays: self._results(*arrays, **settings), specs, advice)

    def _checked_specs(self, returned: Any) -> tuple[Spec, ...]:
        specs = list(returned) if isinstance(returned, (list, tuple)) and not hasattr(returned, "dtype") else [returned]
        if len(specs) != len(self.outputs) or not all(hasattr(s, "dtype") for s in specs):
            raise OperatorError(f"infer returned {returned!r}, expected a Spec for each of {', '.join(self.outputs)}")
        return tuple(spec_of(s) for s in specs)

    def backward(self, function: Any = None, *, surrogate: bool = False) -> Any:
        """Declare the gradient. The function gets what its parameters name.

        A parameter names an input or a setting; else an output, or `d` + output for the gradient of that output.
        Settings come last. A single output is called `out` until the parameters of backward name it: `dy` makes it `y`.
        `surrogate=True` says that the gradient differs from the derivative on purpose, as in a straight-through
        estimator; no check compares it with finite differences then.
        """
        if function is None:
            return lambda decorated: self.backward(decorated, surrogate=surrogate)
        require_callable(function, "backward", self.label)
        self.surrogate = surrogate
        parameters = _parameters(function, self.label)
        if self.outputs == ("out",):
            self.outputs = (self._output_name([*parameters]),)
        sources = {p: self._source_of(p, function) for p in parameters}
        takes = [p for p, (kind, _) in sources.items() if kind != "attribute"]
        settings = [p for p, (kind, _) in sources.items() if kind == "attribute"]
        for value, first in zip(takes, parameters, strict=False):
            if value != first or parameters[value].kind is inspect.Parameter.KEYWORD_ONLY:
                raise OperatorError(
                    f"{self.label}: its backward ({place_of(function)}) takes {value!r} after a setting or a `*`; "
                    "inputs, outputs and gradients come first, and settings last"
                )
        self.differentiate_by(function, [sources[p] for p in takes], settings)
        return function

    def _derive_gradient(self, specs: Sequence[Spec]) -> CustomOperator:
        return derived_gradient_of(self, specs)

    def _source_of(self, parameter: str, backward: Any) -> Source:
        """What a parameter of backward gets. The names that the user gave to inputs and settings come first."""
        of_outputs, label = ["d" + name for name in self.outputs], f"{self.label}: its backward ({place_of(backward)})"
        if parameter in self.inputs or parameter in self.attributes:
            if parameter in of_outputs:
                raise OperatorError(
                    f"{label} takes {parameter!r}, which is an input or a setting and also the gradient of the output "
                    f"{parameter[1:]!r}; give the output another name: custom_op(outputs=...), or dresult in place of "
                    "dout"
                )
            return ("attribute", parameter) if parameter in self.attributes else ("input", self.inputs.index(parameter))
        if parameter in self.outputs:
            return "output", self.outputs.index(parameter)
        if parameter in of_outputs:
            return "dout", of_outputs.index(parameter)
        choices = dict.fromkeys([*self.inputs, *self.outputs, *of_outputs, *self.attributes])
        other = ""
        if self.outputs == ("out",):
            free = next(name for name in ("y", "z", "result") if name not in choices)
            other = f" ({free} and d{free} are accepted for out and dout)"
        raise OperatorError(f"{label} has a parameter {parameter!r}; expected one of {', '.join(choices)}{other}")

    def _output_name(self, parameters: Sequence[str]) -> str:
        parameters_of_forward = (*self.inputs, *self.attributes)
        named = [
            p[1:]
            for p in parameters
            if p[:1] == "d" and p not in parameters_of_forward and p[1:] not in ("", *self.inputs)
        ]
        return named[0] if len(named) == 1 else "out"


class DerivedGradient(FunctionOperator):
    """A gradient that is derived again when a function that the operator calls is replaced.

    The object stays the same, so that Programs that contain it compute the new gradient, too.
    """

    def __init__(self, operator: CustomOperator, targets: Sequence[int], elementwise: bool):
        self._operator = operator
        outputs = ["d" + operator.inputs[place] for place in targets]
        self._current = Current(operator.function, self._derive_function)
        function, rows = self._current.get(), operator.row_by_row and not elementwise
        super().__init__(function, operator.name + "_grad", outputs, elementwise, None, rows, where=operator.where)

    def _function(self) -> Any:
        """The derived function; a GradientError says why there is none."""
        raise NotImplementedError

    def _derive_function(self) -> Any:
        operator = self._operator
        try:
            return self._function()
        except GradientError as error:
            message = f"{operator.label} has no backward, and none can be derived: {error}; {_advice(operator)}"
            raise type(error)(message) from None

    def refresh(self) -> None:
        self._operator.refresh()
        function = self._current.get()
        if function is not self.function:
            self.function = function
            self._call = self._on_arrays(function, len(self.outputs))
            self.on_variables = python_function(function)

    def _results(self, /, *arrays: np.ndarray, **settings: Any) -> list[np.ndarray]:
        self.refresh()
        return super()._results(*arrays, **settings)


def derived_gradient_of(operator: CustomOperator, specs: Sequence[Spec]) -> DerivedGradient:
    """The gradient that is derived for inputs like these.

    That of a function on one array whose source shows that it is elementwise is one of single numbers, which is the
    shorter one, and is inlined.
    """
    if operator.elementwise:
        return NumberGradient(operator)
    if len(specs) == 1 and is_float(specs[0].dtype) and all(type(v) in NUMBERS for v in operator.attributes.values()):
        of_numbers, axes = written_on_numbers(operator.function)
        if of_numbers is not None and axes in (None, len(specs[0].shape)):
            with suppress(GradientError):
                return NumberGradient(operator)
    return ArrayGradient(operator, specs)


class NumberGradient(DerivedGradient):
    """The gradient of an operator of single numbers, or of one whose function can be written so."""

    def __init__(self, operator: CustomOperator):
        super().__init__(operator, range(len(operator.inputs)), True)

    def _function(self) -> Any:
        from app.derivative.making import derived_gradient

        operator = self._operator
        function = operator.function if operator.elementwise else written_on_numbers(operator.function)[0]
        if function is None:
            raise GradientError("with a variable that has changed it is not elementwise any more (define it again)")
        return derived_gradient(function, operator.inputs, ["d" + name for name in operator.outputs])

    @property
    def source(self) -> str:
        from app.derivative.making import source_of  # imported late, as few need it

        return source_of(python_function(self.function))


class ArrayGradient(DerivedGradient):
    """The gradient of an operator on arrays, for inputs of some types and ranks, stretched along some axes.

    It is an operator on arrays itself, whose gradient can be derived, too.
    """

    def __init__(self, operator: CustomOperator, specs: Sequence[Spec]):
        self._for = specs
        self._targets = [place for place, spec in enumerate(specs) if is_float(spec.dtype)]
        """The inputs that get a gradient."""
        super().__init__(operator, self._targets, False)

    def _function(self) -> Any:
        from app.derivative.arrays import derive

        function: Any = self._operator.function
        derived = derive(function, *self._for)
        given = [key for key, p in inspect.signature(derived.function).parameters.items() if p.default is p.empty]
        returned, outputs = len(given) - len(self._for), len(self._operator.outputs)
        if returned != outputs:
            raise GradientError(
                f"its function {function_name(function)} returns {returned} results, expected "
                f"{outputs}, one for each output{_NAME_THEM}"
            )
        self._source = derived.source
        from numba import njit  # imported late: it takes half a second

        options = function.targetoptions if is_compiled(function) else {}
        return njit(error_model="numpy", fastmath=options.get("fastmath", False))(derived.function)

    @property
    def source(self) -> str:
        return self._source

    def _infer(self, /, *specs: Spec, **settings: Any) -> tuple[Spec, ...]:
        self.specs = self.specs or specs
        return tuple(specs[place] for place in self._targets)

    def _results(self, /, *arrays: np.ndarray, **settings: Any) -> list[np.ndarray]:
        results = super()._results(*arrays, **settings)
        types = [arrays[place].dtype for place in self._targets]
        return [gradient.astype(dtype, copy=False) for gradient, dtype in zip(results, types, strict=True)]


def _advice(operator: CustomOperator) -> str:
    if isinstance(operator, DerivedGradient):
        return "a PyLayer whose backward works on Tensors has second derivatives"
    if operator.origin.hook == "py_func":
        return "write one, and give it as backward_func"
    return f"write one with @{operator.name if operator.name.isidentifier() else 'operator'}.backward"


def _split_parameters(function: Any, label: str) -> tuple[list[str], dict[str, Any]]:
    """A function's parameters as inputs and settings. Those with a default and keyword-only ones are settings."""
    inputs, settings = [], {}
    for name, parameter in _parameters(function, label).items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise OperatorError(f"{label}: its function must name its parameters; {name!r} takes any number")
        if parameter.kind is parameter.KEYWORD_ONLY or parameter.default is not parameter.empty:
            try:
                settings[name] = (
                    parameter.default if parameter.default is parameter.empty else as_immutable(parameter.default)
                )
            except OperatorError as error:
                raise OperatorError(f"{label}: its setting {name} {error}") from None
        else:
            inputs.append(name)
    if not inputs:
        raise OperatorError(f"{label}: its function takes no input; parameters with a default are settings")
    return inputs, settings


def _parameters(function: Any, label: str) -> Mapping[str, inspect.Parameter]:
    try:
        if isinstance(function, np.ufunc):
            raise TypeError("a ufunc does not name its inputs")
        parameters = parameters_of(python_function(function))
    except (TypeError, ValueError) as error:
        raise OperatorError(
            f"{label}: the parameters of {function!r} cannot be read; call it in a function of your own"
        ) from error
    for name, parameter in parameters.items():
        if parameter.kind is parameter.KEYWORD_ONLY and is_compiled(function):
            raise OperatorError(f"{label}: Numba has no keyword-only parameters; give {name!r} a default instead")
    return parameters


def _to_common_float(values: list[Any]) -> list[Any]:
    return to_common_type(values, floating=True)


def _with_their_float(values: list[Any]) -> list[Any]:
    """Inputs in which Python's floats have the type of the other floats, as in arithmetic on Tensors."""
    places = [place for place, value in enumerate(values) if isinstance(value, float)]
    if places:
        dtypes = [value.dtype for place, value in enumerate(values) if place not in places and hasattr(value, "dtype")]
        floats = [canonical(dtype) for dtype in dtypes if is_float(dtype)]
        for place in places:
            values[place] = np.asarray(values[place], common(*floats) if floats else get_default_dtype())
    return values


def _in_input_type(array: np.ndarray, inputs: Sequence[np.ndarray], kinds: str) -> np.ndarray:
    """A result of these kinds in the float type of the inputs: in Numba, float32 times 0.5 is a float64."""
    floats = [x.dtype for x in inputs if x.dtype.kind == "f"]
    if array.dtype.kind in kinds and floats:
        return array.astype(np.result_type(*floats), copy=False)
    return array


@makes("custom_op")
def _again(functions: Mapping[str, Any], settings: Mapping[str, Any], where: str) -> OpDef:
    operator = functions["operator"]
    if not isinstance(operator, FunctionOperator):
        raise OperatorError(f"{where}: a {type(operator).__name__} was found, expected what @custom_op makes")
    return operator


def custom_op(
    function: Any = None,
    *,
    name: str | None = None,
    outputs: str | Sequence[str] = ("out",),
    elementwise: bool = False,
    infer: Callable[..., Any] | None = None,
    row_by_row: bool = False,
    onnx: str | Callable[..., Any] | None = None,
    like: str = "",
    **misspelt: NoReturn,
) -> Any:
    """Make an operator from a function on arrays or, with `elementwise`, from a function on single numbers.

    Parameters of the function with a default are settings of the operator; the others are its inputs. Define the
    gradient with `@name.backward`; otherwise it is derived from the source of the function.

    Args:
        function: The function. It takes NumPy arrays and returns an array or, for several outputs, a tuple. An operator
            of PyTorch, JAX or Paddle becomes an operator as it is.
        name: The name of the operator; by default that of the function.
        outputs: The name of the output, or the names of several.
        elementwise: The function takes single numbers instead of arrays. Integers are converted to floats, and
            outputs have the common type of the inputs.
        infer: Takes the Specs of the inputs, and the settings by name; returns the Specs of the outputs. By default
            shapes and types are found by running the function on small arrays.
        row_by_row: Declares that each row of the outputs depends only on the same row of the inputs. An engine may
            then call the function on part of a batch.
        onnx: The equivalent ONNX operator ("Relu"), or a rule that makes several nodes.
        like: An operator that computes the same ("relu"); `opsmith check` compares with it.
    """
    for word in misspelt:
        keywords = list(custom_op.__kwdefaults__ or ())
        closest = difflib.get_close_matches(word, keywords, n=1)
        hint = f"; did you mean {closest[0]!r}?" if closest else f"; it takes {', '.join(keywords)}"
        raise TypeError(f"custom_op() got an unexpected keyword argument {word!r}{hint}")
    other = operator_of_framework(function)
    if other is not None:
        return other.apply
    if isinstance(function, str):
        name, function = function, None

    def make(decorated: Callable[..., Any]) -> FunctionOperator:
        names = (outputs,) if isinstance(outputs, str) else tuple(outputs)
        if elementwise:  # a Numba ufunc takes no numbers by name; its Python function does
            decorated = getattr(getattr(decorated, "_dispatcher", None), "py_func", decorated)
        operator = FunctionOperator(decorated, name, names, elementwise, infer, row_by_row, onnx, like)
        every = [*operator.inputs, *operator.attributes, *(names if names != ("out",) else ())]
        twice = next((each for each in every if every.count(each) > 1), None)
        if twice is not None:
            raise OperatorError(
                f"{operator.label}: its output {twice!r} has the name of another output, an input or a setting; give "
                "each a name of its own"
            )
        return operator

    return make if function is None else make(function)
