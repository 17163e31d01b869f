"""`opsmith derive my_ops.py:softmax`: prints the gradient that is derived from an operator's source."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from app import static
from app.checking.command import shape_of
from app.checking.examples import inputs_for
from app.checking.operators import UserOperator, find
from app.checking.processes import End
from app.checking.subject import Input, Subject
from app.custom.operator import CustomOperator
from app.derivative.scope import UnderivableError
from app.errors import OperatorError
from app.functions import function_name
from app.ops.spec import Spec
from app.printing import say

Shapes = Sequence[tuple[tuple[int, ...], str]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command line."""
    parser.add_argument(
        "operators",
        nargs="+",
        metavar="WHAT",
        help="my_ops.py (all its operators), my_ops.py:name, package.module:name, or a shipped one: custom.swish",
    )
    parser.add_argument(
        "--shape",
        action="append",
        default=[],
        metavar="N,N[:TYPE]",
        help="the shape of an input, once for each input (by default found by trying): the number of axes counts",
    )


def run(options: argparse.Namespace) -> int:
    """Print the source of the gradients of the named operators."""
    shapes = [shape_of(text) for text in options.shape]
    for one in [one for word in options.operators for one in find(word)]:
        sources = _sources(one, shapes)
        if not sources:
            raise OperatorError(
                f"{one.name} ({one.kind}) has no gradient that is derived from its source: that is one of custom_op, "
                'or of py_func with backward_func="derive"'
            )
        say("\n\n".join(source.rstrip() for source in dict.fromkeys(sources)))
    return 0


def _sources(one: UserOperator, shapes: Shapes) -> list[str]:
    """The gradients that are derived for the operators that a function applies, also for those with a backward."""
    if isinstance(one.call, CustomOperator) and one.call.elementwise:
        if shapes:  # they make no difference, unless they are wrong
            _inputs(one, shapes)
        return [_source(one.call, [])]
    inputs = _inputs(one, shapes)
    if isinstance(one.call, CustomOperator):
        try:
            return [_source(one.call, [Spec(i.shape, "float32" if i.is_float else i.dtype) for i in inputs])]
        except UnderivableError as error:
            others = "" if shapes else "; --shape sets others"
            raise UnderivableError(f"{error} (for {', '.join(map(str, inputs))}{others})") from None
    with Subject(one, inputs).in_program([i.shape for i in inputs]) as (program, data, outputs):
        block = program.global_block()
        applied = [(op, op.definition) for op in block.ops if isinstance(op.definition, CustomOperator)]
        written = [
            _source(operator, [block.var(name).spec for name in op.inputs if name is not None])
            for op, operator in applied
            if operator.backward_function is not None
        ]
        differentiated, results = [x for x in data if not x.stop_gradient], [y for y in outputs if not y.stop_gradient]
        if not written and differentiated and results:
            static.gradients(results, differentiated)  # if none can be derived, this raises the reason
        definitions = [op.definition for op in block.ops if isinstance(op.definition, CustomOperator)]
    return written or [operator.source for operator in definitions if operator.source]


def _source(operator: CustomOperator, specs: Sequence[Spec]) -> str:
    if not operator.can_derive:
        declared = function_name(operator.backward_function)
        raise OperatorError(
            f"{operator.label} has a backward, {declared}; a gradient is derived for an operator of "
            'custom_op, and of py_func with backward_func="derive"'
        )
    return operator.derived_for([] if operator.elementwise else specs).source


def _inputs(one: UserOperator, shapes: Shapes) -> tuple[Input, ...]:
    """The inputs on which an operator runs, as Python: Numba would compile its functions for a single call."""
    inputs: tuple[Input, ...] | End = one.python_process.ask(_inputs_of, one, shapes)
    one.python_process.close()
    return _inputs_of(one, shapes) if isinstance(inputs, End) else inputs


def _inputs_of(one: UserOperator, shapes: Shapes) -> tuple[Input, ...]:
    return inputs_for(one, shapes).inputs
