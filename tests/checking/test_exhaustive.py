"""An operator at every number of a type: what is exact, what is wrong, and what cannot be tried."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opsmith
from app.checking import exhaustive, ulp
from app.checking.exhaustive import TYPES, certify
from app.errors import ConfigError

HALVES = ["float16", "bfloat16"]


def elementwise(function: Any) -> Any:
    return opsmith.custom_op(function, name="it", elementwise=True)


@elementwise
def swish(x: float) -> float:
    return x / (1 + math.exp(-x))


@elementwise
def relu(x: float) -> float:
    return x if x > 0.0 else 0.0 * x


def verdicts(operator: Any, kind: str, **settings: Any) -> dict[str, str]:
    result = certify(operator, types=[kind], **settings)
    return {v.check: f"{v.state} {v.words}" for v in result.verdicts}


def compared(x: np.ndarray, actual: np.ndarray, exact: np.ndarray, kind: str = "float32") -> dict[str, int]:
    record, numbers = ulp.empty_record(), TYPES[kind]
    limits = (0, len(x), numbers.digits, numbers.smallest, numbers.end)
    ulp.compare(x.astype(float), actual.astype(np.float32), exact.astype(float), *limits, record)
    return {name: int(row[ulp.COUNT]) for name, row in zip(ulp.KINDS, record, strict=True) if row[ulp.COUNT]}


def test_an_exact_operator_is_within_half_a_unit_at_every_number():
    for kind in HALVES:
        assert all(
            words.startswith(f"ok {kind}: at most 0 ULP from exact at all 65,536 inputs")
            for words in verdicts(relu, kind).values()
        )


def test_the_formula_of_swish_is_wrong_where_single_precision_overflows():
    assert verdicts(swish, "float16")["result"].startswith("ok float16: at most 0.5 ULP")
    words = verdicts(swish, "bfloat16")
    assert words["result"].startswith("FAILED bfloat16: it is wrong at 6 of 65,536 inputs, between -91.5 and -89;")
    assert "it is -0, expected -4.4" in words["result"]
    assert words["gradient"].startswith("FAILED")


def test_another_operator_can_be_the_exact_one():
    @elementwise
    def logarithm(x: float) -> float:
        return math.log(1.0 + x)

    words = verdicts(logarithm, "bfloat16", like="log1p")["result"]
    assert words.startswith("FAILED bfloat16: it is wrong at ")
    assert re.search(r"at -?[\d.e-]+ it is -?0, expected -?\d", words)


def test_numbers_are_those_of_the_type_in_order():
    half = TYPES["float16"].at(0, 1 << 16)
    assert np.array_equal(half, np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32), equal_nan=True)
    brain = TYPES["bfloat16"].at(0x3F80, 0x3F83)
    assert brain.tolist() == [1.0, 1.0078125, 1.015625]
    assert TYPES["bfloat16"].rounded(np.float32([1.005, 1.00390625, np.inf])).tolist() == [1.0078125, 1.0, math.inf]


def test_errors_are_sorted_by_kind():
    x = np.full(4, 1.0)
    assert compared(x, x, x) == {"all": 4}
    assert compared(x, np.float32([1, np.nan, 1, 1]), x)["nan"] == 1
    assert compared(x, x, np.array([1, np.nan, 1, 1]))["nan lost"] == 1
    assert compared(x, x * 0, x)["wrong"] == 4
    assert compared(x, x * 0, x * 1e-40) == {"flushed": 4, "all": 4}
    assert compared(x, x + 1e-4, x) == {"far": 4, "all": 4}
    up = np.float32([1, 2, 3, 4])
    assert compared(up, up[[0, 2, 1, 3]], up)["steps back"] == 1


def test_infinity_is_the_number_after_the_largest():
    largest = np.full(2, np.finfo(np.float32).max)
    assert compared(largest, np.full(2, np.inf), largest) == {"all": 2}
    assert compared(largest, np.full(2, np.inf), largest / 8)["wrong"] == 2
    assert compared(largest, np.full(2, np.inf), np.full(2, 1e200)) == {"all": 2}


def test_next_to_a_zero_a_result_may_be_that_of_a_neighbouring_input():
    x = np.float32(math.pi) + np.arange(-20, 20, dtype=np.float32) * np.float32(2.4e-7)
    exact = np.sin(x.astype(float))
    assert "wrong" not in compared(x, exact + 3e-7, exact)
    assert "wrong" in compared(x, exact + 1e-5, exact)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda x: x - x.mean(), "a result of it depends on other numbers, too"),
        (lambda x, y: x * y, "it takes x float64"),
    ],
)
def test_an_operator_that_is_not_elementwise_is_refused(function: Any, words: str):
    with pytest.raises(ConfigError, match=words):
        certify(opsmith.custom_op(function, name="it"), types=["float16"])


def test_a_type_that_there_is_not_is_refused():
    with pytest.raises(ConfigError, match="no numbers of 'float64' to try; types are float16, bfloat16, float32"):
        certify(relu, types=["float64"])


def test_the_command_writes_a_certificate_that_says_what_was_run_where(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    from app.__main__ import main

    monkeypatch.delitem(exhaustive.TYPES, "float32")  # a minute
    file = tmp_path / "certificate.json"
    monkeypatch.setattr(exhaustive.certificate, "__defaults__", (tuple(exhaustive.TYPES),))
    assert main(["check", "custom.relu", "--exhaustive", "--certificate", str(file)]) == 0
    assert "ok      result" in capsys.readouterr().out
    certificate = json.loads(file.read_text())
    assert certificate["operator"] == "custom.relu"
    assert certificate["message"].startswith("within 0 ULP in bfloat16")
    assert certificate["source"]
    assert certificate["machine"]["numba"]
    assert [a["inputs"] for a in certificate["accuracies"]] == [65536] * 4


@pytest.mark.soak
def test_all_numbers_of_float32():
    words = verdicts(swish, "float32")["result"]
    assert words.startswith("FAILED float32: it is wrong at ")
    assert "between -91." in words
    assert " and -88.7" in words
