"""What an operator is: one definition that every engine, autodiff, shape inference and printing read.

A definition is made from a NumPy function whose positional parameters are the operator's inputs and whose
keyword-only parameters are its attributes. Its rules make gradients (see `app.ops.rules`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from app.errors import AppError, OperatorError
from app.ops.dtype import canonical
from app.ops.form import Accumulates, Alias
from app.ops.plans import Plans, kinds_of
from app.ops.public import Public
from app.ops.rules import Call, Reads, Rule
from app.ops.spec import UNKNOWN, OpenSize, Spec, may_stretch, spec_of
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


class OpDef:
    """One operator: name, shape inference, kernel and gradient. Calling it applies it to values."""

    public: Public | None = None
    """Under which names users may call it, and whether as a method; None for one that is internal."""
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    variadic: str | None = None
    """The name of the one input that stands for any number of them."""
    attributes: dict[str, Setting]
    """The defaults of the attributes, by name."""
    prepare: Prepare | None
    """What is done to the inputs first. It may look at element types and at what Python numbers they are, alone."""
    broadcasts: bool
    """Elementwise with broadcasting: gradients of stretched inputs are summed back to their shape."""
    many_outputs: bool
    """The number of outputs depends on the attributes; a call always gives a tuple."""
    optional_gradients: bool
    """Rules take None, rather than zeros, for an output that got no gradient."""
    checked: bool
    """Inference runs before the kernel even in eager mode, as NumPy would accept what the operator refuses."""
    effects: bool
    """The operator has to run although nothing may depend on its outputs."""
    random: bool
    """It draws random numbers, from the stream that its attribute `seed` names; None stands for the next stream."""
    has_training_mode: bool
    """Its attribute `training` says whether it does what it does in training; clones for testing set it to False."""
    views: bool
    """The outputs are, wherever NumPy can do so, the numbers of the first input under another shape."""
    form: Any
    """How the operator can be compiled (see `app.ops.form`); None where there is only the kernel to call."""
    onnx: str | OnnxRule | None
    """The ONNX operator that does the same, or a rule that makes nodes of several (see `app.onnx.nodes`)."""
    accumulates: Accumulates | None = None
    """For an update of the form `base - scale * term`: which inputs these are."""
    step: OpDef | None = None
    """For a product: the operator that takes such an update's step with it at once."""
    rules: list[Rule]
    reads: Reads
    """Which values the rules read: others need no keeping."""

    custom: bool = False
    """It runs a function of the user's (see `app.custom.operator`)."""
    where: str
    """The file and line that registered it; '' for a built-in one."""

    def __init__(
        self,
        name: str,
        kernel: Kernel,
        infer: Infer,
        *,
        inputs: Sequence[str] | None = None,
        outputs: Sequence[str] = ("out",),
        prepare: Prepare | None = None,
        broadcasts: bool = False,
        many_outputs: bool = False,
        optional_gradients: bool = False,
        checked: bool = False,
        effects: bool = False,
        views: bool = False,
        form: Any = None,
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
        self.views = views or isinstance(form, Alias)
        self.form, self.onnx = form, onnx
        self.random, self.has_training_mode, self.where = random, has_training_mode, where
        self.plans = Plans()
        self.rules, self.reads = [], Reads(())
        self.attributes = {}
        self.inputs = tuple(self._read_signature(kernel) if inputs is None else inputs)
        self.declare_attributes(self.attributes)

    def declare_attributes(self, attributes: Attributes) -> None:
        """Set the operator's attributes and their defaults; `inspect.Parameter.empty` marks one that is required."""
        self.attributes = dict(attributes)
        self._attribute_names = tuple(attributes)
        self._complete = inspect.Parameter.empty not in self.attributes.values()
        self._arity = len(self.inputs) if self.variadic is None else -1
        """How many arguments by place make a call whose inputs need no sorting; -1 where every call's do."""

    def _read_signature(self, kernel: Kernel) -> list[str]:
        names = []
        for parameter in inspect.signature(kernel).parameters.values():
            if parameter.kind is parameter.KEYWORD_ONLY:
                self.attributes[parameter.name] = parameter.default
            elif parameter.kind is parameter.VAR_POSITIONAL:
                self.variadic = parameter.name
            else:
                names.append(parameter.name)
        return names

    def __repr__(self) -> str:
        return f"<operator {self.name}>"

    @property
    def label(self) -> str:
        """How messages name the operator: by name and, for a custom one, by the place that registered it."""
        return f"operator {self.name} ({self.where})" if self.where else f"operator {self.name}"

    # Gradient rules

    def gradient(self, function: GradientRule, parameters: Sequence[str] | None = None) -> GradientRule:
        """Declare the rule that gives the gradients of all inputs, in order."""
        self._set_rules([Rule(self, function, tuple(range(len(self.inputs))), parameters)])
        return function

    def gradient_of(self, name: str) -> Callable[[GradientRule], GradientRule]:
        """Declare the rule for one input, run only where that gradient is wanted."""

        def declare(function: GradientRule) -> GradientRule:
            self._set_rules([*self.rules, Rule(self, function, (self.inputs.index(name),))])
            return function

        return declare

    def _set_rules(self, rules: list[Rule]) -> None:
        self.rules, self.reads = rules, Reads(rules, len(self.inputs))

    def in_onnx(self, rule: OnnxRule) -> OnnxRule:
        """Declare the rule that makes ONNX nodes of a call: its parameters are named after what it needs."""
        self.onnx = rule
        return rule

    @property
    def differentiable(self) -> bool:
        return bool(self.rules)

    def differentiate(self, call: Call, douts: Sequence[Gradient]) -> list[Gradient]:
        """The gradients of the inputs of `call`, None where there is none, from those of its outputs."""
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
                    gradients[i] = self._unstretched(call, i, gradient) if self.broadcasts else gradient
        return gradients

    def _unstretched(self, call: Call, index: int, gradient: Gradient) -> Gradient:
        shape, result = call.input_shape(index), call.output_shape(0)
        if shape == result:
            if UNKNOWN not in shape:
                return gradient
            others = [call.input_shape(i) for i in range(len(call.needs)) if i != index]
            if not may_stretch(shape, result, others):
                return gradient
        if UNKNOWN in shape:
            return REGISTRY["sum_like"](gradient, call.like(index))
        return apply(REGISTRY["sum_to"], [gradient], {"shape": shape})

    # Shapes and types

    def infer_outputs(self, specs: Sequence[Spec | None], attributes: Attributes) -> tuple[Spec, ...]:
        """Shapes and types of the outputs; a ShapeError or DtypeError says what the operator was given."""
        try:
            result = self.infer(*specs, **attributes)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # a user's function may infer
            raise _explained(f"{self.label} of ({', '.join(map(str, specs))})", error) from error
        return (result,) if isinstance(result, Spec) else tuple(result)

    # Application

    def __call__(self, *args: Operand | Setting, **kwargs: Operand | Setting) -> Applied:
        if len(args) != self._arity:
            return apply(self, *self.bind(args, kwargs))
        attributes = self._bind_attributes((), kwargs) if kwargs or not self._complete else self.attributes
        for value in args:
            applier = getattr(value, "apply_operator", None)
            if applier is not None:
                return applier(self, args, attributes)
        return _on_arrays(self, args, attributes)

    def prepared(self, inputs: Sequence[Operand]) -> Sequence[Any]:
        """The inputs as the kernel takes them: brought to a common element type, for most operators."""
        if self.prepare is None:
            return inputs
        try:
            return self.prepare(list(inputs))
        except Exception as error:
            raise _explained(self.label, error) from error

    def run(self, inputs: Sequence[Operand], attributes: Attributes) -> Results:
        """Run the kernel; an error says what the operator was given."""
        try:
            results: Results = self.kernel(*inputs, **attributes)
        except Exception as error:
            raise kernel_error(self, inputs, attributes, error) from error
        return results

    def bind(
        self, args: Sequence[Operand | Setting], kwargs: dict[str, Operand | Setting]
    ) -> tuple[list[Operand], dict[str, Setting]]:
        """Sort the arguments of a call into input values and attributes."""
        if self.variadic is not None:
            several: Any = args[0] if args else self._named(self.variadic, kwargs)
            inputs, extra = list(several), args[1:]
        else:
            inputs, extra = list(args[: len(self.inputs)]), args[len(self.inputs) :]
            inputs += [self._named(name, kwargs) for name in self.inputs[len(inputs) :]]
        if not kwargs and not extra and self._complete:
            return inputs, self.attributes
        return inputs, self._bind_attributes(extra, kwargs)

    def _named(self, name: str, kwargs: dict[str, Operand | Setting]) -> Operand | Setting:
        if name not in kwargs:
            raise OperatorError(f"{self.label} needs its input {name!r}; it takes {self._usage()}")
        return kwargs.pop(name)

    def _bind_attributes(self, extra: Sequence[Setting], kwargs: dict[str, Setting]) -> dict[str, Setting]:
        if self._complete and not extra and kwargs.keys() <= self.attributes.keys():
            for value in kwargs.values():
                if value.__class__ not in _PLAIN:
                    break
            else:
                return {**self.attributes, **kwargs}
        kwargs.pop("name", None)  # accepted everywhere, as in Paddle
        if len(extra) > len(self._attribute_names):
            raise OperatorError(f"{self.label} got too many arguments; it takes {self._usage()}")
        given = dict(zip(self._attribute_names, extra, strict=False))
        given.update(kwargs)
        if len(given) < len(extra) + len(kwargs):
            raise OperatorError(f"{self.label} got one parameter by place and by name; it takes {self._usage()}")
        attributes = dict(self.attributes)
        for name, value in given.items():
            if name not in attributes:
                raise OperatorError(f"{self.label} has no parameter {name!r}; it takes {self._usage()}")
            attributes[name] = canonical(value) if name == "dtype" and value is not None else plain(value)
        missing = [name for name, value in attributes.items() if value is inspect.Parameter.empty]
        if missing:
            raise OperatorError(f"{self.label} needs {', '.join(missing)}; it takes {self._usage()}")
        return attributes

    def _usage(self) -> str:
        first = [f"[{self.variadic}, …]"] if self.variadic else list(self.inputs)
        return "(" + ", ".join([*first, *self._attribute_names]) + ")"


_PLAIN = (bool, int, float, type(None))
"""Classes of attributes that are plain data as they come."""


def plain(value: Setting) -> Setting:
    """An attribute as data that stays as it is: lists become tuples, NumPy scalars numbers, arrays read-only copies."""
    if isinstance(value, (list, tuple)):
        return tuple(plain(v) for v in value)
    if isinstance(value, OpenSize):
        return int(value)  # which is refused, in its own words
    if isinstance(value, np.ndarray) and (value.flags.writeable or value.base is not None):
        value = value.copy()
        value.flags.writeable = False
    return value.item() if isinstance(value, np.generic) else value


def apply(
    definition: OpDef, inputs: Sequence[Operand], attributes: Attributes, into: Sequence[Value] | None = None
) -> Applied:
    """Apply an operator to values: the first value that knows how decides.

    A Tensor runs the operator now, a Variable appends it to its Program, and plain arrays run the kernel.
    `into` names values whose place the results take, as an optimiser's update does with its parameter.
    """
    for value in inputs:
        applier = getattr(value, "apply_operator", None)
        if applier is not None:
            return applier(definition, inputs, attributes, into)
    return _on_arrays(definition, inputs, attributes)


def _on_arrays(definition: OpDef, inputs: Sequence[Operand], attributes: Attributes) -> Results:
    """Run the kernel; arrays of types that preparing was seen to leave as they are are not prepared again."""
    if definition.prepare is not None and not definition.plans.leaves(inputs):
        given, inputs = inputs, definition.prepared(inputs)
        definition.plans.learn(kinds_of(given), given, inputs)
    return definition.run(inputs, attributes)


# Making definitions

REGISTRY: dict[str, OpDef] = {}
"""Every built-in operator by name."""


def operator(infer: Infer, *, kind: type[OpDef] = OpDef, **options: Any) -> Callable[[Kernel], OpDef]:
    """Make a built-in operator of the NumPy function that is decorated, under that function's name."""

    def define(kernel: Kernel) -> OpDef:
        name = options.pop("name", None) or kernel.__name__.rstrip("_")
        definition = kind(name, kernel, infer, **options)
        REGISTRY[definition.name] = definition
        return definition

    return define


def same_as_input(x: Spec, **attributes: Setting) -> Spec:
    """Inference for an operator whose one output is like its input."""
    return x


def _explained(about: str, error: BaseException) -> AppError:
    """An error with what it is about put before it."""
    if not isinstance(error, Exception):  # such as SystemExit, whose words are a number
        return OperatorError(f"{about}: {type(error).__name__}: {error}")
    kind = type(error) if isinstance(error, AppError) else OperatorError
    return kind(f"{about}: {error}")


def kernel_error(definition: OpDef, inputs: Sequence[Operand], attributes: Attributes, error: Exception) -> AppError:
    """The error to show for a kernel that raised: inference explains it best; else the kernel's own words."""
    if isinstance(error, AppError) and definition.custom:
        raise error  # a custom operator's errors name it; raised here, it keeps its own cause
    specs = [spec_of(x) if hasattr(x, "dtype") else None for x in inputs]
    try:
        definition.infer_outputs(specs, attributes)
    except AppError as explained:
        return explained
    about = f"{definition.label} of ({', '.join(map(str, specs))})"
    if isinstance(error, AppError):
        return _explained(about, error)
    return OperatorError(f"{about} failed: {type(error).__name__}: {error}")
