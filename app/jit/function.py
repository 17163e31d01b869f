"""`StaticFunction`: a Python function that is traced for each new kind of arguments and runs as a Program."""

from __future__ import annotations

import functools
import inspect
import linecache
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import MethodType
from typing import Any

from app.errors import AppError, ProgramError
from app.graph import names
from app.jit.concrete import ConcreteProgram
from app.jit.convert.meaning import converted, leave
from app.jit.convert.source import code_of
from app.jit.effects import Effects
from app.jit.reads import Reads
from app.jit.running import checked_backend
from app.jit.signature import Arguments, Input, check_specs, names_of
from app.jit.tracer import Tracer
from app.nn.layer import Layer
from app.ops.dtype import is_float
from app.reading import place, place_of, user_line
from app.static.structure import Structure
from app.tensor.modes import modes

MOST_TRACES = 32
"""The maximum number of traces per function; the oldest are dropped first."""
MANY = 8
"""The number of traces at which a warning says what they depend on."""

enabled = {"to_static": True}


class StaticFunction:
    """The result of `to_static`: called with Tensors, it runs the Program that the function was traced into."""

    def __init__(
        self,
        function: Callable[..., Any],
        input_spec: Sequence[Any] | None = None,
        backend: str | None = None,
        instance: Any = None,
    ):
        if not callable(function):
            raise ProgramError(f"to_static takes a function or a Layer, found {type(function).__name__}")
        functools.update_wrapper(self, function)
        self._function, self._instance = function, instance
        self._input_spec, self._backend = input_spec, checked_backend(backend)
        self._traces: OrderedDict[Any, list[ConcreteProgram]] = OrderedDict()
        self._latest: tuple[ConcreteProgram, Any] | None = None
        """The trace of the last call, and the function that fills the call's arguments."""

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """The function as a method. Each object has its own traces."""
        if instance is None:
            return self
        key = f"_static_{self._function.__qualname__}"  # a method may call that of a base class
        if not hasattr(instance, "__dict__"):
            raise ProgramError(
                f"{self.label}: an object of {type(instance).__name__} has no __dict__ for the traces of its method; "
                'add "__dict__" to its __slots__'
            )
        bound = instance.__dict__.get(key)
        if bound is None or bound._function is not self._function or bound._instance is not instance:
            bound = self.of(instance)
            if isinstance(instance, type):  # the function is a class method
                setattr(instance, key, bound)
            else:
                instance.__dict__[key] = bound
        return bound

    def of(self, instance: Any) -> StaticFunction:
        """The function as a method of another object."""
        return StaticFunction(self._function, self._input_spec, self._backend, instance)

    def __reduce__(self) -> Any:
        """Pickle the function without its traces: as the attribute of its object, or by its name."""
        if self._instance is None:
            return self.__qualname__  # type: ignore[attr-defined]
        name, kind = self._function.__name__, type(self._instance)
        if isinstance(inspect.getattr_static(kind, name, None), StaticFunction):
            return getattr, (self._instance, name)
        return StaticFunction, (self._function, self._input_spec, self._backend, self._instance)

    def __deepcopy__(self, memo: Any) -> StaticFunction:
        return self.of(memo.get(id(self._instance)))

    @functools.cached_property
    def _signature(self) -> inspect.Signature | None:
        """What Python binds arguments to, without the object of a method; None if it is unknown."""
        try:
            signature = inspect.signature(self._function, follow_wrapped=False)
        except (TypeError, ValueError):
            return None
        parameters = list(signature.parameters.values())
        return signature.replace(parameters=parameters[0 if self._instance is None else 1 :])

    @property
    def eager(self) -> Callable[..., Any]:
        """The original function."""
        return self._function if self._instance is None else MethodType(self._function, self._instance)

    @property
    def label(self) -> str:
        """The name of the function in messages."""
        return f"function {_name(self._function)} ({place_of(self._function) or 'no source'})"

    # Calling

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if modes().tracer is not None:  # called from a function that is being traced
            return converted(self.eager)(*args, **kwargs)
        if not enabled["to_static"]:
            return self.eager(*args, **kwargs)
        arguments = self._arguments(args, kwargs)
        shapes, on = self._shapes(arguments), modes().on
        listed = self._traces.get((arguments.key, on, *shapes), ())
        concrete = next((c for c in listed if c.holds()), None) or self._trace(arguments, shapes, on)
        self._latest = concrete, arguments.fill
        return concrete(arguments.tensors)

    def _arguments(self, args: Any, kwargs: Any) -> Arguments:
        if kwargs and self._signature is not None:
            bound = self._signature.bind(*args, **kwargs)
            args, kwargs = bound.args, bound.kwargs  # in the order of the parameters
        return Arguments(args, kwargs)

    def retrace(self) -> None:
        """Forget all traces, after a Python value that the function reads has changed."""
        self._traces.clear()

    def _shapes(self, arguments: Arguments) -> list[tuple[int, ...]]:
        """The shapes to trace for: those of the InputSpecs, or of the values."""
        if self._input_spec is not None:
            return check_specs(self._input_spec, arguments.tensors, self.label)
        return [tensor._array.shape for tensor in arguments.tensors]

    def _trace(self, arguments: Arguments, shapes: Sequence[tuple[int, ...]], on: bool) -> ConcreteProgram:
        if sum(map(len, self._traces.values())) == MANY - 1:
            warnings.warn(
                f"{self.label} is traced for the {MANY}th time: there is a trace for each combination of shapes and "
                "types, of Python values among the arguments and of modes. Leave sizes open with InputSpecs (None), "
                "and pass numbers that change as Tensors",
                stacklevel=3,
            )
        inputs = [
            Input(name, shape, tensor._array.dtype.name, tensor.stop_gradient)
            for name, shape, tensor in zip(self._names_of(arguments), shapes, arguments.tensors, strict=True)
        ]
        concrete = self._traced(inputs, arguments.fill, arguments.objects, on)
        key = (arguments.key, on, *shapes)
        self._traces.setdefault(key, []).insert(0, concrete)
        self._traces.move_to_end(key)
        self._bound_traces()
        return concrete

    def _names_of(self, arguments: Arguments) -> list[str]:
        return names_of([] if self._signature is None else list(self._signature.parameters.values()), arguments)

    def _traced(
        self, inputs: Sequence[Input], fill: Any, objects: Sequence[Any] = (), on: bool = True
    ) -> ConcreteProgram:
        """The function traced for inputs, with other arguments, which `fill` gives, and the objects among these."""
        tracer = Tracer(converted)
        block = tracer.program.global_block()
        variables = []
        for name, shape, dtype, stops in inputs:
            variable: Any = block.create_var(name, shape, dtype, is_data=True, stop_gradient=stops)
            variable.outside = True
            variables.append(variable)
        if isinstance(self._instance, Layer):
            tracer.layers.update((id(layer), layer) for layer in self._instance.sublayers(include_self=True))
        args, kwargs = fill(variables)
        with names.guard(), tracer.active(on), with_users_line(self.label):
            try:
                result = converted(self.eager)(*args, **kwargs)
            except Exception as error:
                tracer.check_refusals(error)
                raise
            tracer.check_refusals()
            input_names = [name for name, *_ in inputs]
            effects = Effects(tracer, variables, input_names)
            reads = Reads(tracer, [self._instance, *objects], Structure.of(result).leaves)
            about = _name(self._function), place_of(self._function), self._backend
            captured = list(tracer.captured.values())
            arguments = [block.var(name) for name in input_names]
            return ConcreteProgram(*about, tracer.program, arguments, captured, result, effects, reads)

    def _bound_traces(self) -> None:
        count = sum(map(len, self._traces.values()))
        while count > MOST_TRACES:
            oldest = next(iter(self._traces))
            self._traces[oldest].pop()
            if not self._traces[oldest]:
                del self._traces[oldest]
            count -= 1

    # Looking inside

    @property
    def code(self) -> str:
        """The function's source with converted control flow."""
        return code_of(self._function)

    @property
    def concrete_program(self) -> ConcreteProgram:
        """The trace of the last call or, before the first one, that for the function's InputSpecs."""
        return self.concrete_program_for() if self._latest is None else self._latest[0]

    def concrete_program_for(self, input_spec: Any = None, with_gradients: bool = False) -> ConcreteProgram:
        """The function traced now for arguments described by InputSpecs, by default for those of the last call.

        If `with_gradients`, all floats among them need gradients: what then needs none is what the function detaches.
        """
        specs = self._input_spec if input_spec is None else input_spec
        if specs is not None:
            arguments = Arguments(specs, {})
            named = zip(self._names_of(arguments), arguments.tensors, strict=True)
            inputs, fill = [Input(name, spec.shape, spec.dtype, True) for name, spec in named], arguments.fill
        elif self._latest is None:
            raise ProgramError(f"{self.label} was not called yet and has no input_spec; give one")
        else:
            latest, fill = self._latest
            inputs = [Input(v.name, v.spec.shape, v.dtype, v.stop_gradient) for v in latest.arguments]
        if with_gradients:
            inputs = [each._replace(stop_gradient=not is_float(each.dtype)) for each in inputs]
        return self._traced(inputs, fill)

    @property
    def main_program(self) -> Any:
        """The Program of the latest trace."""
        return self.concrete_program.program

    @property
    def traces(self) -> list[ConcreteProgram]:
        """All traces."""
        return [concrete for listed in self._traces.values() for concrete in listed]

    def __repr__(self) -> str:
        return f"<static {self.label}, {len(self.traces)} traces>"


def static_layer(layer: Layer) -> StaticFunction:
    """A call of a layer, with its hooks, as a StaticFunction."""
    forward = layer.forward
    static = (
        forward
        if isinstance(forward, StaticFunction)
        else StaticFunction(getattr(forward, "__func__", forward), instance=layer)
    )
    if not (layer._forward_pre_hooks or layer._forward_post_hooks):
        return static

    @functools.wraps(static._function)
    def call(layer: Layer, *inputs: Any, **kwargs: Any) -> Any:
        return layer(*inputs, **kwargs)

    around = StaticFunction(leave(call), static._input_spec, static._backend, layer)
    around._latest = static._latest
    return around


def _name(function: Any) -> str:
    return getattr(function, "__qualname__", type(function).__name__).rpartition(".<locals>.")[2]


# Errors with the user's line


@contextmanager
def with_users_line(label: str) -> Iterator[None]:
    """Add the innermost line of the user's source to an error."""
    try:
        yield
    except AppError as error:
        location = user_line(error.__traceback__)
        if location is None or place(*location) in str(error):
            raise
        source = linecache.getline(*location).strip()
        line = f"{place(*location)}: {source}" if source else place(*location)
        raise type(error)(f"{error}\n  at {line}, while {label} was traced") from error
