"""`opsmith derive my_ops.py:softmax`: prints the gradient that is derived from an operator's source."""

from __future__ import annotations

import argparse

from app import static
from app.checking.command import shape_of
from app.checking.examples import inputs_for
from app.checking.finding import find
from app.checking.subject import Subject
from app.custom.numba_functions import function_name
from app.custom.operator import CustomOperator
from app.errors import OperatorError
from app.printing import say


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
        sources = _sources(inputs_for(one, shapes))
        if not sources:
            raise OperatorError(f'{one.name} has no gradient; with backward_func="derive", py_func derives one')
        say("\n\n".join(sources))
    return 0


def _sources(subject: Subject) -> list[str]:
    """The gradients that are derived for the operators that a subject applies, also for those with a backward."""
    with subject.in_program([i.shape for i in subject.inputs]) as (program, data, outputs):
        block, sources = program.global_block(), []
        for op in block.ops:
            operator = op.definition
            if isinstance(operator, CustomOperator) and operator.backward_function is not None:
                if not operator.can_derive:
                    declared = function_name(operator.backward_function)
                    raise OperatorError(
                        f"{operator.label} has a backward, {declared}; a gradient is derived for an operator of "
                        'custom_op, and of py_func with backward_func="derive"'
                    )
                specs = [block.var(name).spec for name in op.inputs if name is not None]
                sources.append(operator.derived_for([] if operator.elementwise else specs).source)
        if sources:
            return [source.rstrip() for source in dict.fromkeys(sources)]
        inputs, results = [x for x in data if not x.stop_gradient], [y for y in outputs if not y.stop_gradient]
        if inputs and results:
            static.gradients(results, inputs)  # if none can be derived, this raises the reason
        definitions = {id(op.definition): op.definition for op in program.global_block().ops}
        return [one.source.rstrip() for one in definitions.values() if isinstance(one, CustomOperator) and one.source]
