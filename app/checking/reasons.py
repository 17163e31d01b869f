"""What an error says about an operator of another framework: one line, with its place and how to mend it."""

from __future__ import annotations

import re
from collections.abc import Mapping

from app.checking.operators import UserOperator
from app.custom.calling import described, place_raised, summary_of
from app.errors import AppError

_LONGEST = 240
"""Longer messages end with a sentence, or a word."""
_IMPLEMENTATION = re.compile(r" \(with implementation in <module [^>]*>\)")
_REMEDIES = {
    r"returned an incorrect number of gradients": (
        "return one for each argument of forward after ctx, None for one that needs none"
    ),
    r"returned an invalid gradient at index": "a gradient has the shape of its input",
    r"backward\(\) (missing|takes) ": "backward takes ctx, and a gradient for each result of forward",
    r"not enough values to unpack \(expected \d+, got 0\)": (
        "ctx.saved_tensors has what forward gives to ctx.save_for_backward, here nothing"
    ),
    r"'tuple' and |and 'tuple'|'tuple' object|not tuple|only integer tensors of a single element": (
        "if it is ctx.saved_tensors: that is a tuple, (x,) = ctx.saved_tensors"
    ),
    r"forward\(\) (missing|takes) ": "forward takes ctx and the inputs, without ctx if there is a setup_context",
    r"'\w+Backward'": "the first parameter of forward is ctx, which PyTorch passes",
    r"(does not|doesn't) have vmap support|must override the setup_context": (
        "write setup_context, and generate_vmap_rule = True"
    ),
    r"bwd rule must produce an output with the same container": (
        "return a tuple with a gradient for each argument, as in `return (dx,)`"
    ),
    r"bwd rule must produce an output with the same type": "a gradient has the shape and the type of its argument",
    r"fwd rule .* must produce a pair": "return the result and what backward needs, as in `return y, (x,)`",
    r"No VJP defined": "call its defvjp(forward, backward) below it",
    r"No JVP defined": "call its defjvp below it",
    r"__array__\(\) was called on traced array": "compute with jax.numpy, not with NumPy",
    r"boolean conversion of traced array": "choose with jax.numpy.where or jax.lax.cond",
    r"Abstract tracer value": "keep it an array, without float(), int() or .item()",
    r"may not alias any inputs": "return a copy, such as x.clone()",
}
"""How to mend what messages of the frameworks are about, by pattern."""


_OF_PYLAYERS = {
    r"not enough values to unpack \(expected \d+, got 0\)": (
        "ctx.saved_tensor() has what forward gives to ctx.save_for_backward, here nothing"
    ),
}
"""How to mend mistakes in a PyLayer, by pattern."""
_OF_NUMBERS = {
    r"`\w+\.(sum|mean|max|min|std|var|prod|argmax|argmin|dot|any|all|reshape|copy)\(.*without a known slope": (
        "elementwise=True gives it single numbers: leave it out for arrays"
    ),
    r"type numpy\.ndarray doesn't define __\w+__ method": (
        "in Python, np.where of numbers gives an array: write `a if condition else b`"
    ),
}
"""How to mend mistakes in a function of single numbers, by pattern."""


def reason(one: UserOperator, error: object) -> str:
    """An error in one line: its kind, its message, where it is from, and how to mend it if that is known."""
    if isinstance(error, AppError) or (one.foreign is None and isinstance(error, Exception)):
        remedies = _OF_NUMBERS if one.elementwise else _OF_PYLAYERS if one.kind == "PyLayer" else {}
        return summary_of(error) + _remedy(remedies, error)
    message = _shortened(described(error) if isinstance(error, Exception) else str(error)).removesuffix(".")
    where = place_raised(error) if isinstance(error, Exception) else ""
    if (
        not where
        and one.foreign is not None
        and one.foreign.backward
        and re.search("gradient|backward|bwd rule", message)
    ):
        where = f", in {one.foreign.backward}"
    return message + where + _remedy(_REMEDIES, error)


def _remedy(remedies: Mapping[str, str], error: object) -> str:
    remedy = next((remedy for pattern, remedy in remedies.items() if re.search(pattern, str(error))), "")
    return remedy and f": {remedy}"


def _shortened(message: str) -> str:
    """The first line of a message; of a long one, as many sentences or words as are short enough."""
    lines = _IMPLEMENTATION.sub("", message).strip().splitlines()
    line = " ".join(lines[0].split()) if lines else ""
    if len(line) <= _LONGEST:
        return line
    sentence = line.rfind(". ", 0, _LONGEST)
    return line[:sentence] if sentence > 0 else f"{line[: line.rfind(' ', 0, _LONGEST)]} …"
