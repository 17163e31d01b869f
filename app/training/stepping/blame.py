"""Why numbers ceased to be finite, in words: the operator, what it was given, and what to look at next."""

from __future__ import annotations

import numpy as np

from app.custom.gradcheck import gradcheck
from app.engine.watch import OperatorRun
from app.errors import GradcheckError
from app.tensor import Tensor
from app.training.activation import Activation

CAME_ONCE = "Taken again, from the same weights, they were finite: an operator remembers something."
"""What there is to say where the same steps, taken again, went well."""
_LARGE = 1e12
"""Numbers beyond this are on their way out of float32."""


def blame(look: OperatorRun | None, operator: str, activation: Activation | None = None) -> str:
    """What the first operator to make bad numbers was given and made; `operator` is that of the network."""
    if look is None:
        return CAME_ONCE
    lines = [f"Taken again operator by operator, {look.operator} was the first to make such numbers, of finite ones:"]
    named = [("got", pair) for pair in look.inputs] + [("made", pair) for pair in look.outputs]
    named = [(did, (name, array)) for did, (name, array) in named if array.dtype.kind in "biuf"]
    width = max(len(name) for _, (name, _) in named)
    lines += [f"  {did:4}  {name:{width}}  {statistics(array)}" for did, (name, array) in named]
    if any(_largest(array) > _LARGE for _, array in look.inputs):
        wrong = _wrong_gradient(activation) if activation is not None else ""
        learning = "Numbers had grown that large before: is train.learning_rate too large?"
        lines.append(f"The gradient of {operator} is wrong, too: {wrong}" if wrong else learning)
    return "\n".join(lines)


def statistics(array: np.ndarray) -> str:
    """Type, shape, and what the numbers of an array are like."""
    about = f"{array.dtype.name}{list(array.shape)}"
    if not array.size:
        return about
    finite = array[np.isfinite(array)].astype(np.float64)
    about += f"  min {finite.min():.4g}, max {finite.max():.4g}, mean {finite.mean():.4g}" if finite.size else ""
    if finite.size == array.size:
        return f"{about}, all finite"
    kinds = {"nan": int(np.isnan(array).sum()), "infinite": int(np.isinf(array).sum())}
    found = ", ".join(f"{number:,} {kind}" for kind, number in kinds.items() if number)
    return f"{about}; not finite: {array.size - finite.size:,} of {array.size:,} ({found})"


def _largest(array: np.ndarray) -> float:
    return float(np.max(np.abs(array.astype(np.float64)), initial=0.0)) if array.dtype.kind == "f" else 0.0


def _wrong_gradient(activation: Activation) -> str:
    """What finite differences have against the operator's gradient, in a line; '' where nothing."""
    x = np.random.default_rng(0).normal(0.0, 2.0, (3, 4))
    try:
        gradcheck(activation.for_one_layer(), Tensor(x, stop_gradient=False))
    except GradcheckError as error:
        return str(error).partition("\n")[0]
    except Exception:  # one that does not work on such numbers is none to examine here
        return ""
    return ""
