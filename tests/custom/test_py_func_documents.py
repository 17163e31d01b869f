"""The programs that the documents show, with our names in the place of Paddle's."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

import app
from app import static


def create_tmp_var(name: str, dtype: str, shape: Any) -> static.Variable:
    return static.default_main_program().current_block().create_var(name=name, dtype=dtype, shape=shape)


def test_example_1_a_network_with_tanh_and_a_debugging_function():
    printed: list[np.ndarray] = []

    def tanh(x: Any) -> Any:
        return np.tanh(x)

    def tanh_grad(y: Any, dy: Any) -> Any:
        return np.array(dy) * (1 - np.square(np.array(y)))

    def debug_func(x: Any) -> None:
        printed.append(x)

    def simple_net(img: Any, label: Any) -> Any:
        hidden = img
        for idx in range(4):
            hidden = static.nn.fc(hidden, size=200)
            new_hidden = create_tmp_var(name=f"hidden_{idx}", dtype=hidden.dtype, shape=hidden.shape)
            hidden = static.py_func(
                func=tanh, x=hidden, out=new_hidden, backward_func=tanh_grad, skip_vars_in_backward_input=hidden
            )
            static.py_func(func=debug_func, x=hidden, out=None)
        prediction = static.nn.fc(hidden, size=10, activation="softmax")
        ce_loss = app.nn.CrossEntropyLoss()
        return ce_loss(prediction, label)

    x = static.data(name="x", shape=[1, 4], dtype="float32")
    y = static.data(name="y", shape=[1], dtype="int64")
    res = simple_net(x, y)
    exe = static.Executor()
    exe.run(static.default_startup_program())
    input1 = np.random.random(size=[1, 4]).astype("float32")
    input2 = np.random.randint(1, 10, size=[1], dtype="int64")
    out = exe.run(static.default_main_program(), feed={"x": input1, "y": input2}, fetch_list=[res.name])
    assert 1.4 < out[0] < 2.5
    assert [p.shape for p in printed] == [(1, 200)] * 4

    app.optimizer.SGD(0.5).minimize(res)
    exe.run(static.default_startup_program())
    losses = [exe.run(feed={"x": input1, "y": input2}, fetch_list=[res])[0] for _ in range(30)]
    assert losses[-1] < losses[0] - 0.3
    exe.run(static.default_main_program().clone(for_test=True), feed={"x": input1, "y": input2}, fetch_list=[res])
    assert len(printed) == 4 * 32


def test_example_2_an_addition_that_returns_another_shape_than_declared():
    def element_wise_add(x: Any, y: Any) -> Any:
        x = np.array(x)
        y = np.array(y)
        if x.shape != y.shape:
            raise AssertionError("the shape of inputs must be the same!")
        result = np.zeros(x.shape, dtype="int32")
        for i in range(len(x)):
            for j in range(len(x[0])):
                result[i][j] = x[i][j] + y[i][j]
        return result

    x = static.data(name="x", shape=[2, 3], dtype="int32")
    y = static.data(name="y", shape=[2, 3], dtype="int32")
    output = create_tmp_var("output", "int32", [3, 1])
    static.py_func(func=element_wise_add, x=[x, y], out=output)
    exe = static.Executor()
    input1 = np.array([[5, 9, 9], [7, 5, 2]], "int32")
    input2 = np.array([[7, 8, 4], [1, 3, 3]], "int32")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            out = exe.run(feed={"x": input1, "y": input2}, fetch_list=[output.name])
    (warning,) = caught
    assert "py_func.element_wise_add (test_py_func_documents.py:" in str(warning.message)
    assert "output 0 has shape [2, 3], but [3, 1] was declared; it is used as returned" in str(warning.message)
    np.testing.assert_array_equal(out[0], [[12, 17, 13], [8, 8, 5]])
    assert out[0].dtype == np.int32
