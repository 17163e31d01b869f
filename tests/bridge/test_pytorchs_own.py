"""No false alarms: PyTorch's own operators pass, are notes, or are those that are truly wrong."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed (the extra `bridge`)")
pytest.importorskip("expecttest", reason="PyTorch's own operators need expecttest (the extra `bridge`)")

from pytorchs_own import BEGIN, END, MEANT, OUTCOMES, PAGE, SETS, WRONG, examined, table

OF_NUMPY = {"NumpyCubeCustomOp", "NumpyMulScalarCustomOp", "NumpyNonzeroCustomOp", "NumpyExpMarkDirtyAutogradFunction"}
OTHERS = {"SelectAutogradFunction", "ForwardHasDefaultArgsAutogradFunction", "softmax", "pow"}
FEW = (WRONG.keys() | MEANT | OF_NUMPY | OTHERS) - {"native_group_norm", "roll", "nn.functional.pdist"}


def cases() -> list[Any]:
    return [
        pytest.param(
            one, id=f"{one.name} {one.variant_test_name}".strip(), marks=() if one.name in FEW else pytest.mark.soak
        )
        for infos in SETS.values()
        for one in infos
    ]


@pytest.mark.slow
@pytest.mark.parametrize("info", cases())
def test_there_is_no_false_alarm(info: Any):
    verdicts = examined(info)
    failures = {v.check: v.words for v in verdicts if v.failed}
    if info.name in WRONG:
        assert WRONG[info.name] in failures
    elif info.name in FEW or "runs" not in failures:  # others return numbers or complex tensors, or need a GPU
        assert failures == {}
        assert len(verdicts) > 8 or (info.name not in FEW and verdicts[0].check == "runs")


def test_the_page_has_the_table_of_what_was_recorded():
    text = PAGE.read_text(encoding="utf-8")
    assert text.partition(BEGIN)[2].partition(END)[0] == table(json.loads(OUTCOMES.read_text(encoding="utf-8")))
