"""No false alarms: PyTorch's own operators pass, are notes, or are those that are truly wrong."""

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import Any

import pytest

from app.bridge.function import Foreign, class_of
from app.checking.examination import Question, examination
from app.checking.finding import found
from app.checking.verdict import Verdict
from app.custom.foreign import operator_of_framework

torch = pytest.importorskip("torch", reason="PyTorch is not installed (the extra `bridge`)")
pytest.importorskip("expecttest", reason="PyTorch's own operators need expecttest (the extra `bridge`)")

from torch.testing._internal.autograd_function_db import autograd_function_db  # noqa: E402
from torch.testing._internal.common_methods_invocations import op_db  # noqa: E402
from torch.testing._internal.custom_op_db import custom_op_db  # noqa: E402

from app.bridge.torch import TORCH  # noqa: E402

pytestmark = pytest.mark.slow

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
FEW = 12
"""About how many elements the inputs have."""
SHORT = {"add", "softmax", "clamp", "cumsum", "nn.functional.relu", "diag", "sgn", "pow"}


def cases() -> list[Any]:
    quick = [pytest.param(one, id=one.name) for one in (*custom_op_db, *autograd_function_db)]
    quick += [pytest.param(one, id=f"{one.name} {one.variant_test_name}") for one in REFERENCED if one.name in SHORT]
    others = [one for one in REFERENCED if one.name not in SHORT]
    return quick + [
        pytest.param(one, id=f"{one.name} {one.variant_test_name}", marks=pytest.mark.soak) for one in others
    ]


def tensors(sample: Any) -> list[Any]:
    given = [sample.input, *sample.args]
    return [t for one in given for t in (one if isinstance(one, (list, tuple)) else [one]) if torch.is_tensor(t)]


def examined(info: Any) -> list[Verdict]:
    samples = [s for s in info.sample_inputs("cpu", torch.float64, requires_grad=False) if tensors(s)]
    sample = min(samples, key=lambda s: abs(sum(t.numel() for t in tensors(s)) - FEW))
    if info in custom_op_db:
        operator = operator_of_framework(info.op)
    else:
        values = (inspect.Parameter("values", inspect.Parameter.VAR_POSITIONAL),)

        def call(*args: Any, **settings: Any) -> Any:
            return info.op(*args, **settings)

        operator = class_of(Foreign(info.name, "torch function", TORCH, call, values, info.op, (info.op,)))
    one = replace(found(operator, info.name), surrogate=info.name in MEANT)
    question = Question(settings=sample.kwargs, example=(sample.input, *sample.args))
    return [part for part in examination(one, question) if isinstance(part, Verdict)]


@pytest.mark.parametrize("info", cases())
def test_there_is_no_false_alarm(info: Any):
    verdicts = examined(info)
    failures = {v.check: v.words for v in verdicts if v.failed}
    if info.name in WRONG:
        assert WRONG[info.name] in failures
    elif "runs" not in failures:  # else it returned numbers or complex tensors, or needs a GPU, and is refused loudly
        assert failures == {}
        assert len(verdicts) > 8
