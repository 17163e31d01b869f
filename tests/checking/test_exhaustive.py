"""An operator at every number of a type: what is exact, what is wrong, and what cannot be tried."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import msgspec
import numpy as np
import pytest
from as_python import uncompiled

import opsmith
from app.checking import exhaustive, ulp
from app.checking.before_training import check_gradient
from app.checking.certificate import badge, keep, stored
from app.checking.exhaustive import TYPES, certify
from app.errors import ConfigError, OperatorError

__all__ = ["uncompiled"]

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("uncompiled")]


def elementwise(function: Any) -> Any:
    return opsmith.custom_op(function, name="it", elementwise=True)


@elementwise
def swish(x: float) -> float:
    return x / (1 + math.exp(-x))


@elementwise
def relu(x: float) -> float:
    return x if x > 0.0 else 0.0 * x


def verdicts(operator: Any, *kinds: str, **settings: Any) -> list[str]:
    return [f"{v.state} {v.words}" for v in certify(operator, types=kinds, **settings).verdicts]


def compared(x: np.ndarray, actual: np.ndarray, exact: np.ndarray, kind: str = "float32") -> dict[str, int]:
    record, numbers = ulp.empty_record(), TYPES[kind]
    limits = (0, len(x), numbers.digits, numbers.smallest, numbers.end)
    ulp.compare(x.astype(float), actual.astype(np.float32), exact.astype(float), *limits, record)
    return {name: int(row[ulp.COUNT]) for name, row in zip(ulp.KINDS, record, strict=True) if row[ulp.COUNT]}


def test_the_formula_of_swish_is_wrong_where_single_precision_overflows():
    exact, _, result, gradient = verdicts(swish, "float16", "bfloat16")
    assert exact.startswith("ok float16: at most 0.5 ULP")
    assert result.startswith("FAILED bfloat16: it is wrong at 6 of 65,536 inputs, between -91.5 and -89;")
    assert "it is -0, expected -4.4" in result
    assert gradient.startswith("FAILED")


def test_another_operator_can_be_the_exact_one():
    message = verdicts(relu, "bfloat16", like="leaky_relu")[0]
    assert message.startswith("FAILED bfloat16: it is wrong at ")
    assert re.search(r"at -[\d.e+-]+ it is -0, expected -\d", message)


def test_numbers_are_those_of_the_type_in_order():
    half = TYPES["float16"].at(0, 1 << 16)
    assert np.array_equal(half, np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32), equal_nan=True)
    brain = TYPES["bfloat16"].at(0x3F80, 3)
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


def test_an_operator_that_raises_at_some_number_is_an_error():
    @elementwise
    def it(x: float) -> float:
        if x == 4096.0:
            raise ValueError("4096 is too much")
        return x

    it.backward(lambda dy: dy)
    with pytest.raises(OperatorError, match="4096 is too much"):
        certify(it, types=["float16"])


def test_an_error_is_that_of_the_first_of_equal_ones_whichever_thread_has_it():
    records = [ulp.empty_record() for _ in range(3)]
    for record, x in zip(records, (-2.0, 8.0, 4.0), strict=True):
        record[-1, ulp.WORST], record[-1, ulp.WORST_AT] = 0.5, x
    assert ulp.merged(records)[-1, ulp.WORST_AT] == ulp.merged(records[::-1])[-1, ulp.WORST_AT] == 4


@pytest.mark.parametrize(
    "rounds",
    [
        lambda x: x.astype(np.float32),
        pytest.param(lambda x: x.astype(np.float32).astype(x.dtype), marks=pytest.mark.soak),
    ],
)
def test_an_operator_that_computes_in_float32_is_not_compared_with_itself(rounds: Any):
    @opsmith.custom_op(name="it")
    def it(x: Any) -> Any:
        return (1 / (1 + np.exp(-rounds(x)))).astype(x.dtype)

    @it.backward
    def backward(y: Any, dy: Any) -> Any:
        return dy * y * (1 - y)

    with pytest.raises(ConfigError, match=r"it computes in float32 whatever it is given.*--like silu"):
        certify(it, types=["float16"])
    assert verdicts(it, "float16", like="sigmoid")[0].startswith("ok float16: at most 0.5 ULP")


def test_a_badge_is_an_image_that_says_the_outcome_and_loads_nothing():
    certificate = msgspec.structs.replace(certify(relu, types=["float16"]), message="<script>")
    image = badge(certificate)
    assert b"<script>" not in image
    texts = [part.text for part in ElementTree.fromstring(image).iter("{http://www.w3.org/2000/svg}text")]
    assert texts == ["opsmith", "<script>"]
    assert image.count(b"http") == 1


def test_a_check_before_training_says_what_was_proven_of_the_same_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("OPSMITH_CACHE", str(tmp_path))
    certificate = certify(relu, types=["float16"])
    assert stored(relu, {}) is None
    of_float32 = msgspec.structs.replace(certificate.accuracies[0], type="float32", worst_ulp=0.25, worst_at=np.nan)
    keep(msgspec.structs.replace(certificate, accuracies=[of_float32]))
    message = check_gradient(relu, "relu").words
    assert "finite differences; proven at all 2^32 inputs: worst error 0.25 ULP (result), against its" in message
    assert stored(relu, {"slope": 1}) is None
    assert stored(swish, {}) is None


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
    ("function", "message"),
    [
        (lambda x: x * x[0, 0], "a result of it depends on other numbers, too"),
        (lambda x, y: x * y, "it takes x float64"),
    ],
)
def test_an_operator_that_is_not_elementwise_is_refused(function: Any, message: str):
    with pytest.raises(ConfigError, match=message):
        certify(opsmith.custom_op(function, name="it"), types=["float16"])


@pytest.mark.parametrize("types", [["float64"], [], "f"])
def test_types_that_there_are_not_are_refused(types: Any):
    with pytest.raises(ConfigError, match=r"types is \[.*\]: expected some of float16, bfloat16, float32"):
        certify(relu, types=types)


def test_the_command_writes_a_certificate_that_says_what_was_run_where(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    from app.__main__ import main

    monkeypatch.delitem(exhaustive.TYPES, "float32")  # a minute
    file = tmp_path / "certificate.json"
    monkeypatch.setattr(exhaustive.certificate, "__defaults__", (tuple(exhaustive.TYPES),))
    image = tmp_path / "badge.svg"
    assert main(["check", "custom.relu", "--exhaustive", "--certificate", str(file), "--badge", str(image)]) == 0
    assert b"within 0 ULP in bfloat16" in image.read_bytes()
    shown = capsys.readouterr().out
    assert "ok      result         float16: at most 0 ULP from exact at all 65,536 inputs" in shown
    assert shown.endswith(f"\nThe certificate is {file}\nThe badge is {image}\n")
    certificate = json.loads(file.read_text())
    assert certificate["operator"] == "custom.relu"
    assert certificate["message"].startswith("within 0 ULP in bfloat16")
    assert certificate["source"]
    assert certificate["machine"]["numba"]
    accuracies = [(a["inputs"], a["worst_ulp"], a["inaccurate"]) for a in certificate["accuracies"]]
    assert accuracies == [(65536, 0, {})] * 4
    before = file.read_bytes()
    words = ["check", "custom.relu", "custom.swish", "--exhaustive", "--certificate", str(file)]
    assert main(words) == 2
    assert (
        "--certificate is a file for one operator, and these are 2: custom.relu, custom.swish"
        in capsys.readouterr().err
    )
    assert file.read_bytes() == before


@pytest.mark.soak
def test_all_numbers_of_float32():
    message = verdicts(swish, "float32")[0]
    assert message.startswith("FAILED float32: it is wrong at ")
    assert "between -91." in message
    assert " and -88.7" in message
