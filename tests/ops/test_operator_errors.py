"""What an operator says when it cannot: its name, what it found and what it expected, in both modes."""

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


@pytest.mark.parametrize(
    ("operate", "told"),
    [
        (lambda x: x + x[0, :2], "add of (float64[2, 3], float64[2]): shapes [2, 3] and [2] cannot be broadcast"),
        (lambda x: app.matmul(x, x), "matmul of (float64[2, 3], float64[2, 3]): the inner sizes differ: 3 and 2"),
        (
            lambda x: app.matmul(x, x[0, 0]),
            "matmul of (float64[2, 3], float64[]): matmul needs values with at least one axis",
        ),
        (lambda x: x.reshape([4, -1]), "reshape of (float64[2, 3]): 6 elements do not fill shape [4, -1]"),
        (lambda x: x.reshape([5]), "reshape of (float64[2, 3]): 6 elements do not fill shape [5]"),
        (lambda x: x.reshape([-1, -1]), "reshape of (float64[2, 3]): shape [-1, -1] leaves more than one size open"),
        (lambda x: x.reshape([2, 3, 0]), "reshape of (float64[2, 3]): shape [2, 3, 0] copies an axis (0) that the"),
        (lambda x: x.flatten(1, 0), "flatten of (float64[2, 3]): start_axis 1 comes after stop_axis 0"),
        (lambda x: x.transpose([0, 0]), "transpose of (float64[2, 3]): perm [0, 0] is not a permutation of 2 axes"),
        (lambda x: x.sum(axis=2), "sum of (float64[2, 3]): axis 2 does not exist in a value with 2 axes"),
        (lambda x: x.max(axis=-3), "max of (float64[2, 3]): axis -3 does not exist in a value with 2 axes"),
        (lambda x: x.softmax(axis=5), "softmax of (float64[2, 3]): axis 5 does not exist in a value with 2 axes"),
        (lambda x: x.unsqueeze(4), "unsqueeze of (float64[2, 3]): axis 4 does not exist in a value with 3 axes"),
        (lambda x: x.expand([4, 3]), "expand of (float64[2, 3]): a value of shape [2, 3] cannot be expanded to [4, 3]"),
        (lambda x: x.expand([3]), "expand of (float64[2, 3]): shape [3] has fewer axes than the value"),
        (lambda x: x.expand([-1, 2, 3]), "expand of (float64[2, 3]): shape [-1, 2, 3] keeps an axis (-1) that the"),
        (
            lambda x: app.gather(x[0, 0], np.array([0])),
            "gather of (float64[], int64[1]): a scalar has no axis to gather along",
        ),
        (lambda x: app.concat([x, x[0]]), "concat of (float64[2, 3], float64[3]): the shapes differ outside axis 0"),
        (lambda x: app.concat([x, x.T]), "concat of (float64[2, 3], float64[3, 2]): the shapes differ outside axis 0"),
        (lambda x: app.split(x, 2, axis=1), "split of (float64[2, 3]): axis 1 of size 3 cannot be split into 2 equal"),
        (
            lambda x: app.split(x, [1, 2]),
            "split of (float64[2, 3]): axis 0 of size 2 cannot be split into parts of [1, 2]",
        ),
        (lambda x: app.concat([x[0, 0], x[0, 0]]), "concat of (float64[], float64[]): a scalar cannot be"),
    ],
)
def test_shapes(value: Callable[[Any], Any], operate: Callable[[Any], Any], told: str):
    assert message(ShapeError, lambda: operate(value(X))).startswith(f"operator {told}")


@pytest.mark.parametrize(
    ("operate", "told"),
    [
        (lambda x, b: -b, "negative of (bool[2]): expected numbers, found booleans"),
        (lambda x, b: b - b, "subtract of (bool[2], bool[2]): expected numbers, found booleans"),
        (lambda x, b: b**b, "pow of (bool[2], bool[2]): expected numbers, found booleans"),
        (lambda x, b: b // b, "floor_divide of (bool[2], bool[2]): expected numbers, found booleans"),
        (
            lambda x, b: x[x],
            "gather of (float64[2, 3], float64[2, 3]): an index array must contain integers, found float",
        ),
        (
            lambda x, b: app.gather(x, b),
            "gather of (float64[2, 3], bool[2]): an index array must contain integers, found",
        ),
        (
            lambda x, b: app.where(None, x, x),
            "where: None (NoneType) is not a number, an array, a Tensor or a Variable",
        ),
        (lambda x, b: app.where("no", x, x), "where: 'no' (str) is not a number, an array, a Tensor or a Variable"),
        (lambda x, b: x & x, "bitwise_and of (float64[2, 3], float64[2, 3]): expected integers or booleans"),
        (lambda x, b: x[:, x], "take_items of (float64[2, 3], float64[2, 3]): an index array must contain integers or"),
        (
            lambda x, b: app.gather(x, x),
            "gather of (float64[2, 3], float64[2, 3]): an index array must contain integers",
        ),
        (
            lambda x, b: app.accuracy(x, x[:, 0]),
            "accuracy of (float64[2, 3], float64[2]): labels must be integers",
        ),
        (
            lambda x, b: app.softmax_with_cross_entropy(x.astype("int32"), x[:, :1].astype("int64")),
            "softmax_with_cross_entropy of (int32[2, 3], int64[2, 1]): logits must be floats, found",
        ),
    ],
)
def test_types(value: Callable[[Any], Any], operate: Callable[..., Any], told: str):
    assert message(DtypeError, lambda: operate(value(X), value([True, False]))).startswith(f"operator {told}")


@pytest.mark.parametrize("operator", ["softmax_with_cross_entropy", "pick", "accuracy"])
@pytest.mark.parametrize(
    ("scores", "labels", "told"),
    [
        (X[0], LABELS, "of (float64[3], int64[2]): expected shape [examples, classes], found"),
        (X, np.array([1]), "of (float64[2, 3], int64[1]): 2 examples, but 1 labels"),
        (
            X,
            np.zeros((2, 2), int),
            "of (float64[2, 3], int64[2, 2]): labels must have shape [n] or [n, 1], found [2, 2]",
        ),
        (X, np.array(1), "of (float64[2, 3], int64[]): labels must have shape [n] or [n, 1], found []"),
    ],
)
def test_labels(value: Callable[[Any], Any], operator: str, scores: np.ndarray, labels: np.ndarray, told: str):
    call = REGISTRY[operator]
    assert message(ShapeError, lambda: call(value(scores), value(labels))).startswith(f"operator {operator} {told}")


@pytest.mark.parametrize("labels", [[0, 3], [-1, 2]])
@pytest.mark.parametrize("operator", ["softmax_with_cross_entropy", "pick", "accuracy"])
def test_labels_out_of_range(operator: str, labels: list[int]):
    told = message(OperatorError, lambda: REGISTRY[operator](to_tensor(X), to_tensor(labels)))
    assert told == (
        f"operator {operator} of (float64[2, 3], int64[2]): labels must be in 0..2, found {min(labels)}..{max(labels)}"
    )


@pytest.mark.parametrize("index", [5, -3])
def test_an_index_out_of_range(value: Callable[[Any], Any], index: int):
    told = message(OperatorError, lambda: value(X)[index])
    assert told.startswith(
        f"operator take_items of (float64[2, 3]): index {index} is out of bounds for axis 0 with size 2"
    )


def test_an_array_index_out_of_range():
    told = message(OperatorError, lambda: to_tensor(X)[to_tensor([0, 5])])
    assert "operator gather of (float64[2, 3], int64[2]) failed: IndexError: index 5 is out of bounds" in told


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda x: app.add(x), "add needs its input 'y'; it takes (x, y)"),
        (lambda x: app.add(x=x), "add needs its input 'y'; it takes (x, y)"),
        (lambda x: app.concat(), "concat needs its input 'x'; it takes ([x, …], axis)"),
        (lambda x: app.sum(x, axes=1), "sum has no parameter 'axes'; it takes (x, axis, dtype, keepdim)"),
        (lambda x: app.tanh(x, 1), "tanh got too many arguments; it takes (x)"),
        (lambda x: app.sum(x, 0, None, True, 3), "sum got too many arguments; it takes (x, axis, dtype, keepdim)"),
        (
            lambda x: app.sum(x, 0, axis=1),
            "sum got a parameter both by position and by name; it takes (x, axis, dtype, keepdim)",
        ),
        (lambda x: app.reshape(x), "reshape needs shape; it takes (x, shape)"),
        (lambda x: app.cast(x), "cast needs dtype; it takes (x, dtype)"),
    ],
)
def test_arguments(value: Callable[[Any], Any], call: Callable[[Any], Any], told: str):
    assert message(OperatorError, lambda: call(value(X))) == f"operator {told}"


def test_no_parts_to_split_into():
    with pytest.raises(ShapeError, match="the number of parts must be at least 1, found 0"):
        app.chunk(app.ones([4]), 0)


def test_nothing_to_join():
    assert (
        message(ShapeError, lambda: app.concat([]))
        == "operator concat of (): expected at least one value to concatenate"
    )


@pytest.mark.parametrize("other", [object(), 2j, {"a": 1}])
def test_what_is_no_number(value: Callable[[Any], Any], other: Any):
    told = message(DtypeError, lambda: value(X) * other)
    assert told.startswith(f"operator multiply: {other!r} ({type(other).__name__}) is not a number, an array, a Tensor")


@pytest.mark.parametrize("other", ["a", None])
def test_text_and_none_are_left_to_python(value: Callable[[Any], Any], other: Any):
    with pytest.raises(TypeError, match="unsupported operand type"):
        value(X) + other
    assert (value(X) == other) is False


def test_a_number_that_the_other_values_type_cannot_hold():
    told = message(OperatorError, lambda: to_tensor(np.array([1], "uint8")) + 300)
    assert told == "operator add: Python integer 300 out of bounds for uint8"


def test_an_array_of_a_foreign_type():
    told = message(DtypeError, lambda: to_tensor(X) + np.array([1j, 2, 3]))
    assert told.startswith("operator add: dtype('complex128') is not an element type; expected one of bool, uint8,")


def test_a_tensor_and_a_variable_do_not_mix():
    with static.program_guard(static.Program(), static.Program()):
        variable = static.data("x", [2, 3], "float64")
        told = message(OperatorError, lambda: to_tensor(X) + variable)
    assert told.startswith("operator add: a Tensor and a Variable were mixed")


def test_whole_numbers_have_no_negative_powers():
    told = message(OperatorError, lambda: to_tensor([2]) ** to_tensor([-1]))
    assert told.startswith("operator pow of (int64[1], int64[1]) failed: ValueError: Integers to negative integer")


def test_a_size_on_which_the_rank_of_the_result_would_hang_must_be_known():
    with static.program_guard(static.Program(), static.Program()):
        x = static.data("x", [-1, 1])
        told = message(ShapeError, lambda: x.squeeze())
        assert x.squeeze(axis=1).shape == (-1,)
    assert told.startswith("operator squeeze of (float32[-1, 1]): axis 0 has an unknown size")


def test_the_length_of_an_unknown_axis_is_not_known():
    with static.program_guard(static.Program(), static.Program()):
        x = static.data("x", [-1, 1])
        assert message(ShapeError, lambda: len(x)) == "the length is not known before the Program runs"
        assert message(ShapeError, lambda: list(x)) == "the length is not known before the Program runs"


@pytest.mark.parametrize("operator", ["softmax_with_cross_entropy", "one_hot_like", "pick", "accuracy"])
@pytest.mark.parametrize("count", [1, 2])
def test_another_number_of_labels_than_examples_in_a_program(operator: str, count: int):
    with static.program_guard(static.Program(), static.Program()):
        x, label = static.data("x", [-1, 3]), static.data("label", [-1], "int64")
        result = REGISTRY[operator](*((label, x) if operator == "one_hot_like" else (x, label)))
        result = result[0] if isinstance(result, tuple) else result
        feed = {"x": np.zeros((3, 3), "float32"), "label": np.zeros(count, "int64")}
        told = message(ShapeError, lambda: static.Executor().run(result.program, feed, [result]))
    assert told.endswith(f": 3 examples, but {count} labels")
    assert told.startswith(f"operator {operator} of (")


@pytest.mark.parametrize("index", ["all", 1.5, (0, 2.0), {}])
def test_what_is_no_index(value: Callable[[Any], Any], index: Any):
    told = message(OperatorError, lambda: value(X)[index])
    assert told.startswith("a value cannot be indexed by ")
    assert "use integers, slices" in told


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("add", "expected inputs of one element type, found float32 and float64"),
        ("concat", "expected one element type, found float32, float64"),
    ],
)
def test_an_operator_that_is_appended_to_a_block_does_not_convert_its_inputs(name: str, told: str):
    with static.program_guard(static.Program(), static.Program()):
        inputs = [static.data(kind, [2], kind) for kind in ("float32", "float64")]
        block = static.default_main_program().global_block()
        with pytest.raises(DtypeError, match=rf"operator {name} of \(float32\[2\], float64\[2\]\): {told}"):
            block.append_op(REGISTRY[name], inputs, {})
