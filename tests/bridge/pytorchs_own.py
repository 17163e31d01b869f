"""What `check` says of PyTorch's own operators: `python tests/bridge/pytorchs_own.py`.

It needs PyTorch (the extra `bridge`), and writes `pytorchs_own.json` beside this file and the table of
`docs/checking.md`. Those are `custom_op_db` and `autograd_function_db`, and all entries of `op_db` with a NumPy
reference.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch.testing._internal.autograd_function_db import autograd_function_db
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.custom_op_db import custom_op_db

from app.bridge.function import Foreign, class_of
from app.bridge.torch import TORCH
from app.checking.examination import Question, examination
from app.checking.operators import user_operator
from app.checking.verdict import NOTE, Verdict
from app.custom.foreign import operator_of_framework

HERE = Path(__file__).parent
OUTCOMES = HERE / "pytorchs_own.json"
PAGE = HERE.parents[1] / "docs" / "checking.md"
BEGIN, END = "<!-- the table of tests/bridge/pytorchs_own.py -->\n", "<!-- the end of that table -->\n"

WRONG = {
    "NumpyMulCustomOp": "fake",
    "NumpySortCustomOp": "fake",
    "NumpyCatCustomOp": "fake",
    "NumpyCubeNotComposableAutogradFunction": "gradient",
    "CubeGenVmapAutogradFunction": "gradient",
    "NumpySortAutogradFunction": "gradient",
    "native_group_norm": "one output",
    "roll": "vmap",
    "nn.functional.pdist": "empty batch",
}
"""The operators that are truly wrong, with the check that finds it: strides of fake tensors that differ from the real
ones, outputs that are returned beside the result and get no gradient, a sort that returns its input unsorted, a mean
and a deviation that get no gradient if only they are used, and `roll` of single numbers, which `vmap` mixes; and
a division by zero that ends the process for zero rows."""
MEANT = {"ScaleGradGenVmapAutogradFunction", "ZeroGradientsGenVmapAutogradFunction"}
"""The operators whose gradient differs from the derivative on purpose."""
REFERENCED = [info for info in op_db if getattr(info, "ref", None) is not None and torch.float64 in info.dtypes]
SETS = {"custom_op_db": custom_op_db, "autograd_function_db": autograd_function_db, "OpInfo": REFERENCED}
FEW = 12
"""About how many elements the inputs have."""


def _tensors(sample: Any) -> list[Any]:
    arguments = [sample.input, *sample.args]
    return [t for one in arguments for t in (one if isinstance(one, (list, tuple)) else [one]) if torch.is_tensor(t)]


def examined(info: Any) -> list[Verdict]:
    """The verdicts on an operator, on the smallest of PyTorch's own example calls that is not tiny."""
    samples = [s for s in info.sample_inputs("cpu", torch.float64, requires_grad=False) if _tensors(s)]
    if not samples:
        return [Verdict(NOTE, "it takes no tensor", "runs")]
    sample = min(samples, key=lambda s: abs(sum(t.numel() for t in _tensors(s)) - FEW))
    if info in custom_op_db:
        operator = operator_of_framework(info.op)
    else:
        values = (inspect.Parameter("values", inspect.Parameter.VAR_POSITIONAL),)

        def call(*args: Any, **settings: Any) -> Any:
            return info.op(*args, **settings)

        operator = class_of(Foreign(info.name, "torch function", TORCH, call, values, info.op, (info.op,)))
    one = replace(user_operator(operator, info.name), surrogate=info.name in MEANT)
    question = Question(settings=sample.kwargs, example=(sample.input, *sample.args))
    return [part for part in examination(one, question) if isinstance(part, Verdict)]


def outcome_of(info: Any) -> dict[str, Any]:
    """What is recorded of an operator."""
    verdicts = examined(info)
    failures = {v.check: v.words for v in verdicts if v.failed}
    notes = [[v.check, _kind(v.words)] for v in verdicts if v.state == NOTE]
    return {"name": f"{info.name} {info.variant_test_name}".strip(), "failures": failures, "notes": notes}


def _kind(note: str) -> str:
    """What a note says, without what belongs to one operator: names, numbers, messages of PyTorch."""
    note = re.sub(r"(raises|refuses this:|raise) (\w+).*", r"\1 \2", note)
    note = re.sub(r"^(no [\w. ()]+|there is none|inputs are not broadcast).*", r"\1", note)
    note = re.sub(r"^inside torch.autocast.*", "inputs of one type are refused inside torch.autocast", note)
    note = re.sub(r"(as its results are|in|of) [\w, ]*?(\d|x\d\w*|int64|bool)\b.*", r"\1 …", note)
    return re.sub(r"-?\b\d+\b", "…", note.partition(";")[0]).replace("of …", "of …")


def table(outcomes: dict[str, Sequence[dict[str, Any]]]) -> str:
    """The tables of the page, from what was recorded."""
    lines = ["| operators of | number | no failure | truly wrong | refused | false alarms |", "| --- " * 6 + "|"]
    for name, rows in outcomes.items():
        refused = [row for row in rows if "runs" in row["failures"] or ["runs", "it takes no tensor"] in row["notes"]]
        wrong = [row for row in rows if row["failures"] and row not in refused]
        true = [row for row in wrong if row["name"].split()[0] in WRONG]
        right = len(rows) - len(refused) - len(wrong)
        lines.append(f"| {name} | {len(rows)} | {right} | {len(true)} | {len(refused)} | {len(wrong) - len(true)} |")
    counted = Counter(tuple(note) for rows in outcomes.values() for row in rows for note in row["notes"])
    lines += ["", "| check | what its notes say | operators |", "| --- | --- | ---: |"]
    lines += [f"| {check} | {text} | {count} |" for (check, text), count in sorted(_by_check(counted))]
    return "\n" + "\n".join(lines) + "\n"


def _by_check(counted: Counter[tuple[str, ...]]) -> Iterable[tuple[tuple[str, str], int]]:
    """The notes, rare ones of a check together."""
    rare: Counter[tuple[str, str]] = Counter()
    for (check, text), count in counted.items():
        rare[check, text if count > 1 else "other"] += count
    return rare.items()


def main() -> None:
    warnings.simplefilter("ignore")
    outcomes: dict[str, list[dict[str, Any]]] = {}
    for name, infos in SETS.items():
        outcomes[name] = []
        for info in infos:
            outcomes[name].append(outcome_of(info))
            print(outcomes[name][-1], file=sys.stderr, flush=True)
    OUTCOMES.write_text(json.dumps(outcomes, indent=1) + "\n", encoding="utf-8")
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    PAGE.write_text(before + BEGIN + table(outcomes) + END + rest.partition(END)[2], encoding="utf-8")


if __name__ == "__main__":
    main()
