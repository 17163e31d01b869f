"""`custom_op`: a decorator that makes an operator of a plain or Numba function."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from app.custom.functions import (
    as_arrays,
    attach_backward,
    call_function,
    function_name,
    is_compiled,
    python_function,
    registered_at,
    require_callable,
)
from app.custom.probe import infer_by_running
from app.custom.scalar import over_arrays
from app.errors import OperatorError
from app.ops.definition import OpDef
from app.ops.elementwise import to_common_type
from app.ops.spec import Spec, broadcast


class CustomOp(OpDef):
    """An operator made of a user's function; `@op.backward` declares the function that computes its gradient."""

    def __init__(
        self,
        function: Callable[..., Any],
        name: str | None,
        outputs: Sequence[str],
        elementwise: bool,
        infer: Callable[..., Any] | None,
    ):
        where = registered_at()
        require_callable(function, "what custom_op decorates", name or "custom_op", where)
        inputs, settings = _split_parameters(function)
        self.function = function
        self.elementwise = elementwise
        self._call = over_arrays(function, len(outputs)) if elementwise else function
        super().__init__(
            name or function_name(function),
            self._run,
            infer or (self._infer_elementwise if elementwise else self._infer_by_running),
            inputs=inputs,
            outputs=outputs,
            prepare=to_common_type if elementwise else None,
            broadcasts=elementwise,
            native=function if is_compiled(function) else None,
            where=where,
        )
        self.declare_attributes(settings)
        self.__doc__ = function.__doc__

    def _run(self, *arrays: np.ndarray, **settings: Any) -> Any:
        results = self._results(*arrays, **settings)
        return results[0] if len(results) == 1 else tuple(results)

    def _results(self, *arrays: np.ndarray, **settings: Any) -> list[np.ndarray]:
        result = call_function(self._call, self.label, arrays, settings)
        results = as_arrays(result, len(self.outputs), self.label, self.function)
        for i, array in enumerate(results):
            if array is None:
                raise OperatorError(
                    f"{self.label}: its function {function_name(self.function)} returned None as output {i}"
                )
        return [_in_input_type(array, arrays) for array in results]

    def _infer_by_running(self, *specs: Spec, **settings: Any) -> tuple[Spec, ...]:
        return infer_by_running(lambda *arrays: self._results(*arrays, **settings), specs, self.label)

    def _infer_elementwise(self, *specs: Spec, **settings: Any) -> Spec:
        return Spec(broadcast(*(s.shape for s in specs)), specs[0].dtype)

    def backward(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Declare the gradient. The names of the function's parameters decide what it is given.

        A parameter may be any input, any output, `d` + output for the gradient that arrives there, or a setting.
        Of an operator with one output, which is `out` at first, the name is read off the parameters: `dy` makes
        the output `y`.
        """
        require_callable(function, "backward", self.name, self.where)
        parameters = list(inspect.signature(python_function(function)).parameters)
        if self.outputs == ("out",):
            self.outputs = (self._output_name(parameters),)
        takes = [p for p in parameters if p not in self.attributes]
        settings = [p for p in parameters if p in self.attributes]
        kernel = over_arrays(function, len(self.inputs)) if self.elementwise else function
        attach_backward(self, function, takes, keep_type=True, attributes=settings, kernel=kernel)
        return function

    def _output_name(self, parameters: Sequence[str]) -> str:
        gradients = [
            p[1:] for p in parameters if p[:1] == "d" and len(p) > 1 and p not in (*self.inputs, *self.attributes)
        ]
        others = [name for name in gradients if name not in self.inputs]
        return others[0] if len(others) == 1 else "out"


def _split_parameters(function: Any) -> tuple[list[str], dict[str, Any]]:
    """A function's parameters as inputs and settings: those with a default, or by keyword only, are settings."""
    inputs, settings = [], {}
    for name, parameter in inspect.signature(python_function(function)).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise OperatorError(f"a custom operator's function must name its parameters, {name!r} takes any number")
        if parameter.kind is parameter.KEYWORD_ONLY or parameter.default is not parameter.empty:
            settings[name] = parameter.default
        else:
            inputs.append(name)
    if not inputs:
        raise OperatorError(
            f"a custom operator's function takes at least one input; {function_name(function)} takes none"
        )
    return inputs, settings


def _in_input_type(array: np.ndarray, inputs: Sequence[np.ndarray]) -> np.ndarray:
    """A floating result in the floating type of the inputs: Numba's float32 times 0.5 is a float64."""
    floats = [x.dtype for x in inputs if x.dtype.kind == "f"]
    if array.dtype.kind == "f" and floats:
        return array.astype(np.result_type(*floats), copy=False)
    return array


def custom_op(
    function: Any = None,
    *,
    name: str | None = None,
    outputs: str | Sequence[str] = ("out",),
    elementwise: bool = False,
    infer: Callable[..., Any] | None = None,
) -> Any:
    """Make an operator of a function on arrays, or with `elementwise` of a function on single numbers.

    Parameters with a default are settings of the operator, the others its inputs. Shapes and types of the
    outputs are learned by running the function on small arrays, or told by `infer`, which gets the Specs of the
    inputs and returns those of the outputs.
    """
    if isinstance(function, str):
        name, function = function, None

    def make(decorated: Callable[..., Any]) -> CustomOp:
        names = (outputs,) if isinstance(outputs, str) else tuple(outputs)
        return CustomOp(decorated, name, names, elementwise, infer)

    return make if function is None else make(function)
