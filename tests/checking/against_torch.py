"""What PyTorch's `gradcheck` and `opcheck` find of the broken operators: `python tests/checking/against_torch.py`.

It needs PyTorch (`.[bench]`), and writes `torch_outcomes.json` beside this file and the table of `docs/checking.md`.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from broken_operators import BROKEN, Broken

HERE = Path(__file__).parent
OUTCOMES = HERE / "torch_outcomes.json"
PAGE = HERE.parents[1] / "docs" / "checking.md"
BEGIN, END = "<!-- the table of tests/checking/against_torch.py -->\n", "<!-- its end -->\n"


def table(outcomes: dict[str, Any]) -> str:
    """The table of the page, from what was recorded: how many broken operators each of our checks and tools finds."""
    rows = outcomes["operators"]
    lines = ["| our check | broken operators | gradcheck finds | opcheck finds |", "| --- | ---: | ---: | ---: |"]
    groups = {
        check: [rows[one.name] for one in BROKEN if one.check == check] for check in (one.check for one in BROKEN)
    }
    for check, group in [*groups.items(), ("**all**", list(rows.values()))]:
        counts = [sum(bool(row[tool]) for row in group) for tool in ("gradcheck", "opcheck")]
        lines.append(f"| {check} | {len(group)} | {counts[0]} | {counts[1]} |")
    either = sum(bool(row["gradcheck"]) or bool(row["opcheck"]) for row in rows.values())
    words = f"\nPyTorch {outcomes['torch']} finds {either} of them with one or the other.\n"
    return "\n".join(lines) + "\n" + words


def main() -> None:
    import torch

    warnings.simplefilter("ignore")
    right = Broken("right", lambda: (np.tanh, lambda x, y, dy: dy * (1 - y * y)), "", "")
    if any(found := _outcome(torch, right).values()):
        raise SystemExit(f"an operator that is right is complained of: {found}")
    operators = {one.name: _outcome(torch, one) for one in BROKEN}
    outcomes = {"torch": torch.__version__.partition("+")[0], "operators": operators}
    OUTCOMES.write_text(json.dumps(outcomes, indent=1) + "\n", encoding="utf-8")
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    PAGE.write_text(before + BEGIN + table(outcomes) + END + rest.partition(END)[2], encoding="utf-8")
    print(table(outcomes))


def _outcome(torch: Any, one: Any) -> dict[str, Any]:
    if one.layer:
        kind = one.make(torch.autograd.Function)
        inputs = _inputs(torch, one, torch.float64)
        found = _raised(lambda: torch.autograd.gradcheck(kind.apply, inputs))
        found = found or _raised(lambda: torch.autograd.gradgradcheck(kind.apply, inputs))
        return {"gradcheck": bool(found), "opcheck": None, "words": found}
    operator = _custom_op(torch, one)
    words = _raised(lambda: torch.autograd.gradcheck(operator, _inputs(torch, one, torch.float64)))
    checks = [
        _raised(lambda dtype=dtype: torch.library.opcheck(operator, _inputs(torch, one, dtype)))
        for dtype in (torch.float64, torch.float32)
    ]
    by_opcheck = checks[0] or checks[1]
    return {"gradcheck": bool(words), "opcheck": bool(by_opcheck), "words": words or by_opcheck}


def _inputs(torch: Any, one: Any, dtype: Any) -> tuple[Any, ...]:
    torch.manual_seed(0)
    return tuple((4 * torch.rand(shape, dtype=dtype) - 2).requires_grad_() for shape in one.shapes)


def _raised(call: Callable[[], Any]) -> str:
    """The first words of what a check raises; '' if it finds nothing."""
    try:
        call()
    except Exception as error:  # any is a finding
        words = re.sub(r"'/[^']*/site-packages/", "'", " ".join(str(error).split()))  # wherever PyTorch is installed
        return words[:160] or type(error).__name__
    return ""


def _custom_op(torch: Any, one: Any) -> Any:
    """The operator as `torch.library` makes one, of the same two functions; its backward is one, too."""
    forward, backward = one.make()
    inputs, outputs = len(one.shapes), one.outputs
    operator = _registered(torch, one.name, inputs, outputs, forward, one.told)
    if backward is None:
        return operator
    given = inputs + 2 * outputs
    alike = lambda *xs: xs[:inputs]  # noqa: E731
    gradient = _registered(torch, one.name + "_backward", given, inputs, backward, alike, absent=outputs)

    def setup(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs, *(output if outputs > 1 else (output,)))
        ctx.set_materialize_grads(outputs == 1)

    def differentiate(ctx: Any, *arriving: Any) -> Any:
        none = all(g is None for g in arriving)
        return (None,) * inputs if none else gradient(*ctx.saved_tensors, *arriving)

    operator.register_autograd(differentiate, setup_context=setup)
    return operator


def _registered(
    torch: Any, name: str, inputs: int, outputs: int, function: Callable[..., Any], told: Any, absent: int = 0
) -> Any:
    """A custom operator of PyTorch's from a function on arrays; the last `absent` inputs may be None."""
    kinds = ["Tensor"] * (inputs - absent) + ["Tensor?"] * absent
    schema = f"({', '.join(f'{kind} x{i}' for i, kind in enumerate(kinds))}) -> "
    schema += "Tensor" if outputs == 1 else f"({', '.join(['Tensor'] * outputs)})"

    def run(*tensors: Any) -> Any:
        arrays = [None if t is None else t.detach().numpy() for t in tensors]
        result = function(*arrays)
        results = result if isinstance(result, tuple) else (result,)
        made = tuple(_as_tensor(torch, r, arrays, tensors) for r in results)
        return made[0] if outputs == 1 else made

    def fake(*tensors: Any) -> Any:
        made = tuple(torch.empty_like(t) for t in told(*tensors))
        return made[0] if outputs == 1 else made

    operator = torch.library.custom_op(f"broken::{name}", run, mutates_args=(), schema=schema)
    operator.register_fake(fake)
    return operator


def _as_tensor(torch: Any, result: Any, arrays: list[Any], tensors: tuple[Any, ...]) -> Any:
    for array, tensor in zip(arrays, tensors, strict=True):
        if result is array:
            return tensor
    return torch.as_tensor(result)


if __name__ == "__main__":
    main()
