"""Errors of operators: each names the operator, what it found and what it expected, in both modes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import app
from app import static, to_tensor
from app.errors import DtypeError, OperatorError, ShapeError
from app.ops import REGISTRY

X = np.arange(6.0).reshape(2, 3)
LABELS = np.array([0, 2])
OF_LABELS = ("softmax_with_cross_entropy", "index_sample", "accuracy")


@pytest.fixture(params=["eager", "static"])
def value(request: pytest.FixtureRequest) -> Iterator[Callable[[Any], Any]]:
    """Makes an array a Tensor, or a variable of a Program."""
    if request.param == "eager":
        yield to_tensor
        return
    with static.program_guard(static.Program(), static.Program()):
        yield lambda x: static.data(app.graph.names.generate("x"), np.shape(x), np.asarray(x).dtype.name)


def message(kind: type[Exception], call: Callable[[], Any]) -> str:
    with pytest.raises(OperatorError) as caught:
        call()
    assert type(caught.value) is kind, caught.value
    return str(caught.value)


ERRORS: dict[type[OperatorError], list[tuple[Callable[[Any], Any], str]]] = {
    ShapeError: [
        (lambda x: x + x[0, :2], "add of (float64[2, 3], float64[2]): shapes [2, 3] and [2] cannot be broadcast"),
        (lambda x: app.matmul(x, x), "matmul of (float64[2, 3], float64[2, 3]): the inner sizes differ: 3 and 2"),
        (lambda x: app.matmul(x, x[0, 0]), "matmul of (float64[2, 3], float64[]): matmul needs values with at"),
        (lambda x: x.reshape([4, -1]), "reshape of (float64[2, 3]): 6 elements do not fill shape [4, -1]"),
        (lambda x: x.reshape([5]), "reshape of (float64[2, 3]): 6 elements do not fill shape [5]"),
        (lambda x: x.reshape([-1, -1]), "reshape of (float64[2, 3]): shape [-1, -1] leaves more than one size open"),
        (lambda x: x.reshape([2, 3, 0]), "reshape of (float64[2, 3]): shape [2, 3, 0] copies an axis (0) that the"),
        (lambda x: x.flatten(1, 0), "flatten of (float64[2, 3]): start_axis 1 comes after stop_axis 0"),
        (lambda x: x.transpose([0, 0]), "transpose of (float64[2, 3]): perm [0, 0] is not a permutation of 2 axes"),
        (lambda x: x.sum(axis=2), "sum of (float64[2, 3]): axis 2 does not exist in a value with 2 axes"),
        (lambda x: x.softmax(axis=5), "softmax of (float64[2, 3]): axis 5 does not exist in a value with 2 axes"),
        (lambda x: x.max(axis=-3), "max of (float64[2, 3]): axis -3 does not exist in a value with 2 axes"),
        (lambda x: x.unsqueeze(4), "unsqueeze of (float64[2, 3]): axis 4 does not exist in a value with 3 axes"),
        *(
            (lambda x, f=f: f(x[0, 0], axis=1), "axis 1 does not exist in a value with 0 axes")
            for f in (app.mean, app.logsumexp, app.norm, app.argsort)
        ),
        (lambda x: x.expand([4, 3]), "expand of (float64[2, 3]): a value of shape [2, 3] cannot be expanded to [4, 3]"),
        (lambda x: x.expand([3]), "expand of (float64[2, 3]): shape [3] has fewer axes than the value"),
        (lambda x: x.expand([-1, 2, 3]), "expand of (float64[2, 3]): shape [-1, 2, 3] keeps an axis (-1) that the"),
        (lambda x: app.gather(x[0, 0], LABELS), "gather of (float64[], int64[2]): a scalar has no axis to gather"),
        (lambda x: app.concat([x, x[0]]), "concat of (float64[2, 3], float64[3]): the shapes differ outside axis 0"),
        (lambda x: app.concat([x, x.T]), "concat of (float64[2, 3], float64[3, 2]): the shapes differ outside axis 0"),
        (lambda x: app.concat([x[0, 0], x[0, 0]]), "concat of (float64[], float64[]): a scalar cannot be"),
        (lambda x: app.concat([]), "concat of (): expected at least one value to concatenate"),
        (lambda x: app.split(x, 2, axis=1), "split of (float64[2, 3]): axis 1 of size 3 cannot be split into 2 equal"),
        (lambda x: app.split(x, [1, 2]), "split of (float64[2, 3]): axis 0 of size 2 cannot be split into parts"),
        (lambda x: app.max(x[:, :0], axis=1), "[2, 0] has no elements along axis 1"),
        (lambda x: app.dot(x, x[0]), "dot needs values of one shape"),
        (lambda x: x[None].t(), "t() needs a matrix"),
    ],
    DtypeError: [
        (lambda x: -(x > 0), "negative of (bool[2, 3]): expected numbers, found booleans"),
        (lambda x: (x > 0) - (x > 0), "subtract of (bool[2, 3], bool[2, 3]): expected numbers, found booleans"),
        (lambda x: (x > 0) ** (x > 0), "pow of (bool[2, 3], bool[2, 3]): expected numbers, found booleans"),
        (lambda x: (x > 0) // (x > 0), "floor_divide of (bool[2, 3], bool[2, 3]): expected numbers, found booleans"),
        (lambda x: x[x], "gather of (float64[2, 3], float64[2, 3]): an index array must contain integers"),
        (lambda x: app.gather(x, x > 0), "gather of (float64[2, 3], bool[2, 3]): an index array must contain integers"),
        (lambda x: x[:, x], "take_items of (float64[2, 3], float64[2, 3]): an index array must contain integers or"),
        (lambda x: x & x, "bitwise_and of (float64[2, 3], float64[2, 3]): expected integers or booleans"),
        (lambda x: app.accuracy(x, x[:, 0]), "accuracy of (float64[2, 3], float64[2]): labels must be integers"),
        (
            lambda x: app.softmax_with_cross_entropy(x.astype("int32"), LABELS),
            "softmax_with_cross_entropy of (int32[2, 3], int64[2]): logits must be floats, found",
        ),
        (lambda x: x * object, "multiply: <class 'object'> (type) is not a number, an array, a Tensor or a Variable"),
        (lambda x: 2j * x, "multiply: 2j (complex) is not a number, an array, a Tensor or a Variable"),
        (lambda x: app.where(None, x, x), "where: None (NoneType) is not a number, an array, a Tensor or a Var"),
        (lambda x: x + np.array([1j, 2, 3]), "add: dtype('complex128') is not an element type; expected one of"),
    ],
    OperatorError: [
        (lambda x: app.add(x), "add needs its input 'y'; it takes (x, y)"),
        (lambda x: app.add(x=x), "add needs its input 'y'; it takes (x, y)"),
        (lambda x: app.concat(), "concat needs its input 'x'; it takes ([x, …], axis)"),
        (lambda x: app.sum(x, axes=1), "sum has no parameter 'axes'; it takes (x, axis, dtype, keepdim)"),
        (lambda x: app.tanh(x, 1), "tanh got too many arguments; it takes (x)"),
        (lambda x: app.sum(x, 0, None, True, 3), "sum got too many arguments; it takes (x, axis, dtype, keepdim)"),
        (lambda x: app.sum(x, 0, axis=1), "sum got a parameter both by position and by name; it takes (x,"),
        (lambda x: app.reshape(x), "reshape needs shape; it takes (x, shape)"),
        (lambda x: app.cast(x), "cast needs dtype; it takes (x, dtype)"),
        (lambda x: app.norm(x, 1, [0, 1]), "norm: of matrices, along two axes, p is 'fro', not 1; np.linalg.norm(x"),
        (lambda x: x[5], "take_items of (float64[2, 3]): index 5 is out of bounds for axis 0 with size 2"),
        (lambda x: x[-3], "take_items of (float64[2, 3]): index -3 is out of bounds for axis 0 with size 2"),
        (lambda x: x["all"], "a value cannot be indexed by 'all' (str); use integers, slices"),
        (lambda x: x[0, 2.0], "a value cannot be indexed by 2.0 (float); use integers, slices"),
        (lambda x: app.cast(x, "uint8") + 300, "add: Python integer 300 out of bounds for uint8"),
    ],
}
"""By the type of the error: calls on a matrix of 2 x 3 floats, and a part of the message of each."""


@pytest.mark.parametrize(("kind", "call", "expected"), [(kind, *row) for kind, rows in ERRORS.items() for row in rows])
def test_wrong_calls_are_errors(value: Callable[[Any], Any], kind: Any, call: Callable[..., Any], expected: str):
    assert expected in message(kind, lambda: call(value(X)))


@pytest.mark.parametrize("operator", OF_LABELS)
@pytest.mark.parametrize(
    ("scores", "labels", "expected"),
    [
        (X[0], LABELS, "of (float64[3], int64[2]): expected shape [examples, classes], found"),
        (X, LABELS[:1], "of (float64[2, 3], int64[1]): 2 examples, but 1 labels"),
        (X, np.eye(2, dtype=int), "of (float64[2, 3], int64[2, 2]): labels must have shape [n] or [n, 1], found"),
        (X, np.array(1), "of (float64[2, 3], int64[]): labels must have shape [n] or [n, 1], found []"),
    ],
)
def test_labels_of_a_wrong_shape_are_errors(value: Any, operator: str, scores: Any, labels: np.ndarray, expected: str):
    call = REGISTRY[operator]
    assert message(ShapeError, lambda: call(value(scores), value(labels))).startswith(f"operator {operator} {expected}")


@pytest.mark.parametrize("operator", [*OF_LABELS, "one_hot_like"])
@pytest.mark.parametrize("count", [1, 2])
def test_the_number_of_labels_is_checked_when_a_program_runs(operator: str, count: int):
    with static.program_guard(static.Program(), static.Program()):
        x, label = static.data("x", [-1, 3]), static.data("label", [-1], "int64")
        result = REGISTRY[operator](*((label, x) if operator == "one_hot_like" else (x, label)))
        result = result[0] if isinstance(result, tuple) else result
        feed = {"x": np.zeros((3, 3), "float32"), "label": np.zeros(count, "int64")}
        error = message(ShapeError, lambda: static.Executor().run(result.program, feed, [result]))
    assert error.endswith(f": 3 examples, but {count} labels")
    assert error.startswith(f"operator {operator} of (")


# Numbers that only a run tells

T = to_tensor(X)
OUT_OF_RANGE = "of (float64[2, 3], int64[2]): labels must be in 0..2, found"


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        *((lambda name=n: REGISTRY[name](T, to_tensor([0, 3])), f"{n} {OUT_OF_RANGE} 0..3") for n in OF_LABELS),
        *((lambda name=n: REGISTRY[name](T, to_tensor([-1, 2])), f"{n} {OUT_OF_RANGE} -1..2") for n in OF_LABELS),
        (lambda: T[to_tensor([0, 5])], "gather of (float64[2, 3], int64[2]) failed: IndexError: index 5 is out of"),
    ],
)
def test_numbers_out_of_range_are_errors(call: Callable[[], Any], expected: str):
    assert message(OperatorError, call).startswith(f"operator {expected}")


# Python's operators, and Programs


@pytest.mark.parametrize("other", ["a", None])
def test_text_and_none_are_left_to_python(value: Callable[[Any], Any], other: Any):
    with pytest.raises(TypeError, match="unsupported operand type"):
        value(X) + other
    assert (value(X) == other) is False


def test_a_tensor_and_a_variable_do_not_mix():
    with pytest.raises(OperatorError, match="add: a Tensor and a Variable were mixed"):
        T + static.data("x", [2, 3], "float64")


def test_a_size_that_decides_the_rank_or_the_length_must_be_known():
    x = static.data("x", [-1, 1])
    assert x.squeeze(axis=1).shape == (-1,)
    for call, expected in (
        (x.squeeze, "operator squeeze of (float32[-1, 1]): axis 0 has an unknown size"),
        (lambda: len(x), "the length is not known before the Program runs"),
        (lambda: list(x), "the length is not known before the Program runs"),
    ):
        assert message(ShapeError, call).startswith(expected)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("add", "expected inputs of one element type, found float32 and float64"),
        ("concat", "expected one element type, found float32, float64"),
    ],
)
def test_an_operator_that_is_appended_to_a_block_does_not_convert_its_inputs(name: str, expected: str):
    inputs = [static.data(kind, [2], kind) for kind in ("float32", "float64")]
    block = static.default_main_program().global_block()
    with pytest.raises(DtypeError, match=rf"operator {name} of \(float32\[2\], float64\[2\]\): {expected}"):
        block.append_op(REGISTRY[name], inputs, {})
