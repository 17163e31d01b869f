"""The definition of an operator, which every engine, autodiff, shape inference and printing share.

A definition is built from a NumPy function, the kernel: its positional parameters are the inputs of the operator, and
its keyword-only parameters are the attributes. Attributes that several operators share are given as `attributes=`, and
their kernels take `**settings`. A gradient rule is given as `gradient=`, or declared with a decorator (see
`opsmith.ops.rules`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from app.display import Displayed
from app.errors import AppError, DtypeError, OperatorError, add_note
from app.ops.call_cache import CallCache, kinds_of
from app.ops.dtype import canonical
from app.ops.lowering import Accumulates, Alias
from app.ops.public import Public
from app.ops.rules import Call, Reads, Rule, Source
from app.ops.spec import UNKNOWN, OpenSize, Spec, may_broadcast, spec_of
from app.ops.values import (
    Applied,
    Attributes,
    Gradient,
    GradientRule,
    Infer,
    Kernel,
    OnnxRule,
    Operand,
    Prepare,
    Results,
    Setting,
    Value,
)


class OpDef(Displayed):
    """An operator: its name, shape inference, kernel and gradient rules. Calling it applies the operator to values."""

    public: Public | None = None
    """Its public names, and whether it is a method of Tensors; None for an internal operator."""
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    variadic: str | None = None
    """The name of the `*args` parameter, for an operator with any number of inputs."""
    attributes: dict[str, Setting]
    """The default values of the attributes, by name."""
    prepare: Prepare | None
    """Converts the inputs before the kernel runs. It may depend only on element types and on the classes of Python
    numbers, because its effect is cached by these."""
    broadcasts: bool
    """Whether the inputs broadcast; gradients are then summed to the shapes of the inputs."""
    many_outputs: bool
    """Whether the number of outputs depends on the attributes; a call then always returns a tuple."""
    optional_gradients: bool
    """Whether gradient rules get None, rather than zeros, for an output without a gradient."""
    checked: bool
    """Whether shape inference runs before the kernel in eager mode too, because the kernel accepts invalid inputs."""
    effects: bool
    """Whether the operator must run even if its outputs are unused."""
    random: bool
    """Whether it draws random numbers. Its attribute `seed` selects the stream; None selects the next one."""
    repeatable = True
    """False if it draws random numbers that no attribute selects, as an operator of another framework may."""
    has_training_mode: bool
    """Whether its attribute `training` switches between training and inference; clones for testing set it to False."""
    views: bool
    """Whether the outputs are views of the first input wherever NumPy can make them views."""
    lowering: Any
    """How the operator is compiled (see `opsmith.ops.lowering`); None if compiled Programs call the kernel."""
    onnx: str | OnnxRule | None
    """The equivalent ONNX operator, or a function that builds equivalent nodes (see `opsmith.onnx.nodes`)."""
    accumulates: Accumulates | None = None
    """For an update of the form `base - scale * term`, the names of these inputs."""
    step: OpDef | None = None
    """For a product, the operator that fuses the product with such an update."""
    rules: list[Rule]
    reads: Reads
    """The inputs and outputs that gradient rules read; others need not be saved."""

    custom: bool = False
    """Whether it runs a user's function (see `opsmith.custom.operator`)."""
    where: str
    """The file and line that registered it; '' for a built-in operator."""

    def __init__(
        self,
        name: str,
        kernel: Kernel,
        infer: Infer,
        *,
        inputs: Sequence[str] | None = None,
        attributes: Attributes | None = None,
        outputs: Sequence[str] = ("out",),
        prepare: Prepare | None = None,
        broadcasts: bool = False,
        many_outputs: bool = False,
        optional_gradients: bool = False,
        checked: bool = False,
        effects: bool = False,
        views: bool = False,
        lowering: Any = None,
        onnx: str | OnnxRule | None = None,
        random: bool = False,
        has_training_mode: bool = False,
        where: str = "",
    ):
        self.name, self.kernel, self.infer = name, kernel, infer
        self.__name__, self.__doc__ = name, kernel.__doc__
        self.outputs = tuple(outputs)
        self.prepare, self.broadcasts, self.many_outputs = prepare, broadcasts, many_outputs
        self.optional_gradients, self.checked, self.effects = optional_gradients, checked, effects
        self.views = views or isinstance(lowering, Alias)
        self.lowering, self.onnx = lowering, onnx
        self.random, self.has_training_mode, self.where = random, has_training_mode, where
        self.call_cache = CallCache()
        self.rules, self.reads = [], Reads(())
        self.attributes = dict(attributes or {})
        self.inputs = tuple(self._read_signature(kernel) if inputs is None else inputs)
        self.declare_attributes(self.attributes)

    def declare_attributes(self, attributes: Attributes) -> None:
        """Set the attributes and their defaults; `inspect.Parameter.empty` marks a required attribute."""
        self.attributes = dict(attributes)
        self._attribute_names = tuple(attributes)
        self._complete = all(value is not inspect.Parameter.empty for value in self.attributes.values())
        self._arity = len(self.inputs) if self.variadic is None else -1
        """The number of positional arguments of a call that gives exactly the inputs; -1 for a variadic operator."""

    def _read_signature(self, kernel: Kernel) -> list[str]:
        names = []
        for parameter in inspect.signature(kernel).parameters.values():
            if parameter.kind is parameter.KEYWORD_ONLY:
                self.attributes[parameter.name] = parameter.default
            elif parameter.kind is parameter.VAR_POSITIONAL:
                self.variadic = parameter.name
            elif parameter.kind is not parameter.VAR_KEYWORD:  # `**settings` stands for the option `attributes`
                names.append(parameter.name)
        return names

    def __repr__(self) -> str:
        return f"<operator {self.name}>"

    @property
    def label(self) -> str:
        """The operator in messages: its name and, for a custom operator, the file and line that registered it."""
        return f"operator {self.name} ({self.where})" if self.where else f"operator {self.name}"

    def lowerings_for(self, specs: Sequence[Spec], results: Sequence[Spec], attributes: Attributes) -> Iterable[Any]:
        """Other lowerings for inputs and results of these Specs, the best first: a compiler takes what compiles."""
        return ()

    # Gradient rules

    def gradient(self, function: GradientRule, sources: Sequence[Source] | None = None) -> GradientRule:
        """Declare the rule that returns the gradients of all inputs, in order."""
        self._set_rules([Rule(self, function, tuple(range(len(self.inputs))), sources)])
        return function

    def gradient_of(self, name: str) -> Callable[[GradientRule], GradientRule]:
        """Declare the rule for the gradient of one input; it runs only if that gradient is needed."""

        def declare(function: GradientRule) -> GradientRule:
            self._set_rules([*self.rules, Rule(self, function, (self.inputs.index(name),))])
            return function

        return declare

    def _set_rules(self, rules: list[Rule]) -> None:
        self.rules, self.reads = rules, Reads(rules, len(self.inputs))

    def in_onnx(self, rule: OnnxRule) -> OnnxRule:
        """Declare the function that builds ONNX nodes; its parameter names select what it is given."""
        self.onnx = rule
        return rule

    @property
    def differentiable(self) -> bool:
        return bool(self.rules)

    def differentiate(self, call: Call, douts: Sequence[Gradient]) -> list[Gradient]:
        """Gradients of the inputs of `call` from those of its outputs; None for an input without a gradient."""
        if not self.optional_gradients and len(douts) > 1:
            douts = [call.zeros(j) if d is None else d for j, d in enumerate(douts)]
        needs = call.needs
        gradients: list[Gradient] = [None] * len(needs)
        for rule in self.rules:
            targets = rule.targets if self.variadic is None else range(len(needs))
            for i in targets:
                if needs[i]:
                    break
            else:
                continue
            for i, gradient in zip(targets, rule(call, douts), strict=True):
                if gradient is not None and needs[i]:
                    gradients[i] = self._sum_to_input(call, i, gradient) if self.broadcasts else gradient
        return gradients

    def _sum_to_input(self, call: Call, index: int, gradient: Gradient) -> Gradient:
        shape, result = call.input_shape(index), call.output_shape(0)
        if shape == result:
            if UNKNOWN not in shape:
                return gradient
            others = [call.input_shape(i) for i in range(len(call.needs)) if i != index]
            if not may_broadcast(shape, result, others):
                return gradient
        if UNKNOWN in shape:
            return REGISTRY["sum_like"](gradient, call.like(index))
        return apply(REGISTRY["sum_to"], [gradient], {"shape": shape})

    # Shapes and types

    def infer_outputs(self, specs: Sequence[Spec | None], attributes: Attributes) -> tuple[Spec, ...]:
        """Specs of the outputs. A ShapeError or DtypeError includes the Specs of the inputs."""
        try:
            result = self.infer(*specs, **attributes)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # shape inference may be a user's function
            raise _with_context(f"{self.label} of ({', '.join(map(str, specs))})", error) from error
        return (result,) if isinstance(result, Spec) else tuple(result)

    # Application

    def __call__(self, /, *args: Operand | Setting, **kwargs: Operand | Setting) -> Applied:
        if len(args) != self._arity:
            return apply(self, *self.bind(args, kwargs))
        attributes = self._bind_attributes((), kwargs) if kwargs or not self._complete else self.attributes
        for value in args:
            applier = getattr(value, "apply_operator", None)
            if applier is not None:
                return applier(self, args, attributes)
        return _on_arrays(self, args, attributes)

    def prepared(self, inputs: Sequence[Operand]) -> Sequence[Operand]:
        """The inputs converted for the kernel; most operators cast them to a common element type."""
        if self.prepare is None:
            return inputs
        try:
            return self.prepare(list(inputs))
        except Exception as error:
            raise _with_context(self.label, error) from error

    def check_types(self, inputs: Sequence[Operand], attributes: Attributes) -> None:
        """Raise the DtypeError of shape inference, if any, so that eager calls refuse the element types that Programs
        refuse. Called the first time that inputs of these types are seen; custom operators check their own inputs.
        """
        if self.custom:
            return
        try:
            self.infer_outputs([spec_of(x) if hasattr(x, "dtype") else None for x in inputs], attributes)
        except DtypeError:
            raise
        except AppError:  # of shapes, which the kernel checks on every call
            pass

    def run(self, inputs: Sequence[Operand], attributes: Attributes) -> Results:
        """Run the kernel. An error includes the Specs of the inputs."""
        try:
            results: Results = self.kernel(*inputs, **attributes)
        except Exception as error:
            raise kernel_error(self, inputs, attributes, error) from error
        return results

    def bind(
        self, args: Sequence[Operand | Setting], kwargs: dict[str, Operand | Setting]
    ) -> tuple[list[Operand], dict[str, Setting]]:
        """Split the arguments of a call into inputs and attributes."""
        if self.variadic is not None:
            several: Any = args[0] if args else self._required_input(self.variadic, kwargs)
            inputs, extra = list(several), args[1:]
        else:
            inputs, extra = list(args[: len(self.inputs)]), args[len(self.inputs) :]
            inputs += [self._required_input(name, kwargs) for name in self.inputs[len(inputs) :]]
        if not kwargs and not extra and self._complete:
            return inputs, self.attributes
        return inputs, self._bind_attributes(extra, kwargs)

    def _required_input(self, name: str, kwargs: dict[str, Operand | Setting]) -> Operand | Setting:
        if name not in kwargs:
            raise OperatorError(f"{self.label} needs its input {name!r}; it takes {self._usage()}")
        return kwargs.pop(name)

    def _bind_attributes(self, extra: Sequence[Setting], kwargs: dict[str, Setting]) -> dict[str, Setting]:
        if self._complete and not extra and kwargs.keys() <= self.attributes.keys():
            for value in kwargs.values():
                if value.__class__ not in _IMMUTABLE:
                    break
            else:
                return {**self.attributes, **kwargs}
        if len(extra) > len(self._attribute_names):
            raise OperatorError(f"{self.label} got too many arguments; it takes {self._usage()}")
        settings = dict(zip(self._attribute_names, extra, strict=False))
        settings.update(kwargs)
        if len(settings) < len(extra) + len(kwargs):
            raise OperatorError(f"{self.label} got a parameter both by position and by name; it takes {self._usage()}")
        attributes = dict(self.attributes)
        for name, value in settings.items():
            if name not in attributes:
                raise OperatorError(f"{self.label} has no parameter {name!r}; it takes {self._usage()}")
            is_type = name == "dtype" and value is not None and not self.custom
            try:
                attributes[name] = canonical(value) if is_type else as_immutable(value)
            except OperatorError as error:
                if type(error) is not OperatorError:  # an open size, or an unknown type
                    raise
                raise OperatorError(f"{self.label}: its setting {name} {error}") from None
        if attributes.get("axis", 0) == () and "keepdim" in attributes and not self.custom:
            attributes["axis"] = None  # a reduction over no axes is one over all, as in Paddle and PyTorch
        missing = [name for name, value in attributes.items() if value is inspect.Parameter.empty]
        if missing:
            raise OperatorError(f"{self.label} needs {', '.join(missing)}; it takes {self._usage()}")
        return attributes

    def _usage(self) -> str:
        first = [f"[{self.variadic}, …]"] if self.variadic else list(self.inputs)
        return "(" + ", ".join([*first, *self._attribute_names]) + ")"


_IMMUTABLE = (bool, int, float, type(None))
"""Classes of attributes that need no conversion."""


def as_immutable(value: Setting) -> Setting:
    """A setting as immutable data: lists become tuples, NumPy scalars Python numbers, and arrays read-only copies.

    The error for anything else goes on after the name of the setting.
    """
    if isinstance(value, (list, tuple)):
        return tuple(as_immutable(v) for v in value)
    if isinstance(value, OpenSize):
        return int(value)  # raises a ShapeError that explains open sizes
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        if value.flags.writeable or value.base is not None:
            value = value.copy()
            value.flags.writeable = False
        return value
    if isinstance(value, np.generic):
        return value.item()
    if type(value) not in _PLAIN:
        raise OperatorError(
            f"is {value!r} ({type(value).__name__}), expected a number, text, None, an array, or a tuple of these; "
            "a function can read any other object from a variable outside of it"
        )
    return value


_PLAIN = (bool, int, float, complex, str, bytes, type(None))
"""The classes of settings that are neither tuples nor arrays."""


def apply(
    definition: OpDef, inputs: Sequence[Operand], attributes: Attributes, into: Sequence[Value] | None = None
) -> Applied:
    """Apply an operator to values.

    With a Tensor among the inputs the operator runs now, with a Variable it is appended to the Program, and with arrays
    alone the kernel runs. `into` are values that the results overwrite, such as the parameters of an update.
    """
    for value in inputs:
        applier = getattr(value, "apply_operator", None)
        if applier is not None:
            return applier(definition, inputs, attributes, into)
    if into:
        return into[0].apply_operator(definition, inputs, attributes, into)
    return _on_arrays(definition, inputs, attributes)


def _on_arrays(definition: OpDef, inputs: Sequence[Operand], attributes: Attributes) -> Results:
    """Run the kernel. Arrays whose types are known to need no conversion skip `prepare`."""
    if definition.prepare is not None and not definition.call_cache.needs_no_conversion(inputs):
        unprepared, inputs = inputs, definition.prepared(inputs)
        definition.check_types(inputs, attributes)
        definition.call_cache.remember_conversions(kinds_of(unprepared), unprepared, inputs)
    return definition.run(inputs, attributes)


# Making definitions

REGISTRY: dict[str, OpDef] = {}
"""Every built-in operator by name."""


def operator(
    infer: Infer, *, kind: type[OpDef] = OpDef, gradient: GradientRule | None = None, **options: Any
) -> Callable[[Kernel], OpDef]:
    """Define a built-in operator from the decorated NumPy function, under the name of that function."""

    def define(kernel: Kernel) -> OpDef:
        definition = kind(kernel.__name__.rstrip("_"), kernel, infer, **options)
        if gradient is not None:
            definition.gradient(gradient)
        REGISTRY[definition.name] = definition
        return definition

    return define


def same_as_input(x: Spec, **attributes: Setting) -> Spec:
    """Shape inference for an operator whose output has the shape and type of its input."""
    return x


def _with_context(about: str, error: BaseException) -> AppError:
    """The error with a prefix that names the operator."""
    if not isinstance(error, Exception):  # such as SystemExit, whose message is a number
        return OperatorError(f"{about}: {type(error).__name__}: {error}")
    kind = type(error) if isinstance(error, AppError) else OperatorError
    described = kind(f"{about}: {error}")
    for note in getattr(error, "__notes__", ()):
        add_note(described, note)
    return described


def kernel_error(definition: OpDef, inputs: Sequence[Operand], attributes: Attributes, error: Exception) -> AppError:
    """The error to raise for a kernel that raised: that of shape inference if there is one, else the kernel's own."""
    if isinstance(error, AppError) and definition.custom:
        raise error  # a custom operator's error already names it; raising it here keeps its cause
    specs = [spec_of(x) if hasattr(x, "dtype") else None for x in inputs]
    try:
        definition.infer_outputs(specs, attributes)
    except AppError as explained:
        return explained
    about = f"{definition.label} of ({', '.join(map(str, specs))})"
    if isinstance(error, AppError):
        return _with_context(about, error)
    return OperatorError(f"{about} failed: {type(error).__name__}: {error}")
