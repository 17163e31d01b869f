"""Who finds the bugs of public repositories: `python tests/bridge/against_others.py`.

It needs PyTorch and JAX (the extra `bridge`), and writes `outcomes.json` beside this file and the table of
`docs/checking.md`.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bugs import JAX, TORCH, Bug

HERE = Path(__file__).parent
OUTCOMES = HERE / "outcomes.json"
PAGE = HERE.parents[1] / "docs" / "checking.md"
BEGIN, END = "<!-- the table of tests/bridge/against_others.py -->\n", "<!-- its end -->\n"


def bugs() -> list[Bug]:
    """All bugs; importing them needs both frameworks."""
    import bugs.factors
    import bugs.in_place
    import bugs.layouts
    import bugs.of_jax
    import bugs.second
    import bugs.shapes  # noqa: F401

    return [*TORCH, *JAX]


def found_by_check(bug: Bug, mended: bool) -> str:
    """The check that fails, '' if none does."""
    from opsmith.testing import check_operator

    try:
        check_operator(bug.make(mended), *bug.example())
    except AssertionError as error:
        return str(error).partition("FAILED")[2].partition(":")[0].strip()
    return ""


def found_by_others(bug: Bug, strict: bool) -> bool:
    """Whether a check of the framework fails for the wrong operator, and passes for the mended one: as it is called
    without flags, or with any flag, inputs in any order in memory."""
    checks = [*_of_jax(strict)] if bug in JAX else [*_of_torch(strict)]
    return any(_fails(check, bug, False) and not _fails(check, bug, True) for check in checks)


def _of_torch(strict: bool) -> Iterator[Callable[..., Any]]:
    import torch
    from torch.autograd import gradcheck, gradgradcheck

    yield gradcheck
    yield gradgradcheck
    yield torch.library.opcheck
    if not strict:
        return

    def grad(call: Any, args: Any) -> None:
        gradcheck(call, args, check_undefined_grad=True)

    def batched(call: Any, args: Any) -> None:
        gradcheck(call, args, check_batched_grad=True)

    def forward(call: Any, args: Any) -> None:
        gradcheck(call, args, check_forward_ad=True)

    def strided(call: Any, args: Any) -> None:
        rows = [a.mT.contiguous().mT if isinstance(a, torch.Tensor) and a.ndim > 1 else a for a in args]
        gradcheck(call, rows)

    def second(call: Any, args: Any) -> None:
        gradgradcheck(call, args, gen_non_contig_grad_outputs=True)

    yield from (grad, batched, forward, strided, second)


def _of_jax(strict: bool) -> Iterator[Callable[..., Any]]:
    from jax.test_util import check_grads

    yield lambda call, args: check_grads(call, args, order=1, modes=["rev"], rtol=1e-2, atol=1e-2)
    if strict:
        yield lambda call, args: check_grads(call, args, order=2, modes=["rev"], rtol=1e-2, atol=1e-2)
        yield lambda call, args: check_grads(call, args, order=1, modes=["fwd", "rev"], rtol=1e-2, atol=1e-2)


def _fails(check: Callable[..., Any], bug: Bug, mended: bool) -> bool:
    args = bug.example()
    if bug not in JAX:
        args = tuple(a.requires_grad_() if getattr(a, "is_floating_point", bool)() else a for a in args)
    try:
        check(bug.make(mended), args)
    except Exception:
        return True
    return False


def table(outcomes: list[dict[str, Any]]) -> str:
    """The table of the page, from what was recorded."""
    lines = ["| bug | mistake | `check` | its framework's checks |", "| --- | --- | --- | --- |"]
    for row in outcomes:
        others = "found" if row["default"] else "with flags" if row["strict"] else ""
        lines.append(f"| {row['where']} | {row['mistake']} | {row['check'] or '**missed**'} | {others} |")
    ours, default, strict = (sum(bool(row[by]) for row in outcomes) for by in ("check", "default", "strict"))
    alarms = sum(bool(row["alarm"]) for row in outcomes)
    repositories = len({row["where"].partition("#")[0] for row in outcomes})
    summary = (
        f"\nOf {len(outcomes)} bugs in {repositories} repositories, `check` finds {ours}, and raises {alarms or 'no'} "
        f"false alarm{'' if alarms == 1 else 's'} on the mended operators. The frameworks' own checks find {default}, "
        f"and {strict} if they are called once with each flag, and with inputs in another order in memory.\n"
    )
    return summary + "\n" + "\n".join(lines) + "\n"


def main() -> None:
    warnings.simplefilter("ignore")
    outcomes = []
    for bug in bugs():
        row = {
            "where": bug.where,
            "mistake": bug.mistake,
            "check": found_by_check(bug, False),
            "alarm": found_by_check(bug, True),
            "default": found_by_others(bug, strict=False),
            "strict": found_by_others(bug, strict=True),
        }
        print(row, file=sys.stderr, flush=True)
        outcomes.append(row)
    OUTCOMES.write_text(json.dumps(outcomes, indent=1) + "\n", encoding="utf-8")
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    PAGE.write_text(before + BEGIN + table(outcomes) + END + rest.partition(END)[2], encoding="utf-8")


if __name__ == "__main__":
    main()
