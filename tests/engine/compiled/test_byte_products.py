"""Products of fed bytes that skip zeros: as machine code alone, and in Programs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from both_engines import agree_with_any_threads
from machine_calls import function, with_some_lanes

import app
from app import static
from app.data import Batches
from app.engine import Executor, Scope
from app.engine.compiled import byte_products, vector_functions
from app.engine.compiled.engine import are_sparse, compile_program
from app.engine.compiled.vectors import lanes_of_machine
from app.graph import names

pytestmark = pytest.mark.slow

SCALE, SHIFT = np.float32(1 / 127.5), np.float32(-1)


def some_bytes(rows: int, size: int, density: float, seed: int = 0) -> np.ndarray:
    random = np.random.default_rng(seed)
    return np.where(random.random((rows, size)) < density, random.integers(1, 256, (rows, size)), 0).astype(np.uint8)


def in_parts(count: int, parts: int) -> list[tuple[int, int]]:
    edges = [count * part // parts for part in range(parts + 1)]
    return list(itertools.pairwise(edges))


FEW = [(65, 17, 63), (100, 129, 64), (127, 40, 65)]
MORE = [(784, 31, 5), (200, 300, 130), (784, 100, 300), (64, 16, 1)]
"""Of the data, columns of the weight, rows of a batch. Code for few columns is short, and has the narrowest vectors."""


@pytest.mark.parametrize(("size", "columns", "rows", "lanes"), with_some_lanes(FEW, MORE))
def test_machine_code_agrees_with_exact_products(size: int, columns: int, rows: int, lanes: int):
    random, target = np.random.default_rng(1), vector_functions.machine()
    data, order = some_bytes(400, size, 0.2), random.permutation(400)[:rows]
    w, y = (random.normal(size=shape).astype(np.float32) for shape in ((size, columns), (rows, columns)))
    x = data[order] * np.float64(SCALE) + np.float64(SHIFT)
    product = function(byte_products.product_code("made", size, columns, lanes), target)
    turn = function(byte_products.transposed_code("made", size), target)
    gradient, step = (
        function(byte_products.transposed_product_code("made", columns, lanes, adds), target) for adds in (False, True)
    )
    results = []
    for parts in (1, 2, 3):
        out, transposed = np.full((rows, columns), np.nan, np.float32), np.full((-(-rows // 64), size, 64), 7, np.uint8)
        dw, changed = np.full((size, columns), np.nan, np.float32), w.copy()
        for first, last in in_parts(rows, parts):
            product(data, order, first, last, SCALE, SHIFT, w, out)
        for first, last in in_parts(size, parts):
            turn(data, order, rows, first, last, transposed)
            gradient(transposed, size, rows, first, last, 1.0, SCALE, SHIFT, y, dw)
            step(transposed, size, rows, first, last, -0.5, SCALE, SHIFT, y, changed)
        results.append([out, transposed, dw, changed])
        whole = transposed.transpose(0, 2, 1).reshape(-1, size)
        np.testing.assert_array_equal(whole[:rows], data[order])
        np.testing.assert_allclose(out, x @ w, rtol=0, atol=3e-6 * size)
        np.testing.assert_allclose(dw, x.T @ y, rtol=0, atol=3e-6 * rows + 1e-5)
        np.testing.assert_allclose(changed, w - 0.5 * (x.T @ y), rtol=0, atol=3e-6 * rows + 1e-5)
    for others in results[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(results[0], others, strict=True))


@pytest.mark.skipif("x86" not in vector_functions.machine().triple, reason="these are processors of one family")
@pytest.mark.parametrize("lanes", [4, 16])
def test_vectors_wider_than_those_of_the_machine_are_right(lanes: int):
    """LLVM makes several instructions of one that the processor does not have."""
    target = vector_functions.machine(cpu="x86-64", features="")
    data, order = some_bytes(40, 90, 0.3), np.arange(40)
    w = np.random.default_rng(1).normal(size=(90, 50)).astype(np.float32)
    out = np.empty((40, 50), np.float32)
    function(byte_products.product_code("made", 90, 50, lanes), target)(data, order, 0, 40, SCALE, SHIFT, w, out)
    np.testing.assert_allclose(out, (data * SCALE + SHIFT) @ w, rtol=0, atol=1e-4)


def test_a_weight_that_is_not_finite_reaches_the_product():
    """Its pixel is 0 in every image; numbers that are not finite spread all the same, as they do in full products."""
    data, w = np.zeros((3, 64), np.uint8), np.ones((64, 16), np.float32)
    out = np.empty((3, 16), np.float32)
    product = function(byte_products.product_code("made", 64, 16, lanes_of_machine()), vector_functions.machine())
    for value, shift in itertools.product([np.inf, np.nan], [0.0, -1.0]):
        w[5, 3] = value
        product(data, np.arange(3), 0, 3, SCALE, shift, w, out)
        assert not np.isfinite(out[:, 3]).any()
        assert np.isfinite(np.delete(out, 3, axis=1)).all()


# In Programs

OPTIMIZERS: dict[str, Callable[[], Any]] = {
    "sgd": lambda: app.optimizer.SGD(0.1),
    "momentum": lambda: app.optimizer.Momentum(0.1, 0.9),
    "decay": lambda: app.optimizer.SGD(0.1, weight_decay=0.01),
    "clip": lambda: app.optimizer.SGD(0.1, grad_clip=app.nn.ClipGradByGlobalNorm(0.5)),
}


def network(optimizer: str, shape: Sequence[int] = (70,), columns: int = 24, layers: int = 1) -> tuple[Any, Any, Any]:
    """A startup and a main Program, and the loss."""
    main, startup = static.Program(), static.Program()
    startup.random_seed = 1
    with names.guard(), static.program_guard(main, startup):
        image, label = static.data("image", [None, *shape], "uint8"), static.data("label", [None, 1], "int64")
        x = app.flatten((image.astype("float32") / 255.0 - 0.1307) / 0.3081, 1)
        hidden = app.tanh(static.nn.fc(x, columns))
        for _ in range(layers - 1):
            hidden = app.tanh(static.nn.fc(hidden, 3))
        loss = app.mean(app.square(static.nn.fc(hidden, 10) - label.astype("float32")))
        OPTIMIZERS[optimizer]().minimize(loss)
    return startup, main, loss


def trained(model: tuple[Any, Any, Any], data: Batches, **settings: Any) -> dict[str, np.ndarray]:
    startup, main, loss = model
    scope, executor = Scope(), Executor(**{"engine": "compiled", **settings})
    executor.run(startup, scope=scope)
    losses = executor.train_from_dataset(main, data, ["image", "label"], [loss], scope)
    return {"losses": losses[0], **scope.values}


def batches(density: float, shape: Sequence[int] = (70,), count: int = 150, size: int = 40) -> Batches:
    images = some_bytes(count, int(np.prod(shape)), density).reshape(count, *shape)
    random = np.random.default_rng(2)
    return Batches(images, random.integers(0, 2, (count, 1)), random.permutation(count), size)


@pytest.mark.parametrize(
    ("optimizer", "densities"),
    [
        ("sgd", (0.0, 0.39, 1.0)),
        *(pytest.param(name, (0.0, 0.1, 0.39), marks=pytest.mark.soak) for name in ("momentum", "decay", "clip")),
    ],
)
def test_engines_agree_on_sparse_bytes_and_threads_change_no_bit(optimizer: str, densities: Sequence[float]):
    model = network(optimizer)
    for density in densities:
        data = batches(density)
        agree_with_any_threads(lambda engine, data=data: trained(model, data, engine=engine), atol=3e-5)
    native = compile_program(model[1], [model[2].name], sparse=True)
    assert native.is_sparse
    steps = sum("same call" in step.verdict and "bytes" in step.verdict for step in native.lowered.steps)
    assert steps == (optimizer == "sgd")


def test_images_with_rows_and_columns_in_a_network_of_many_functions_that_keeps_its_gradient():
    model, data = network("momentum", (9, 11), 33, layers=3), batches(0.2, (9, 11))
    native = compile_program(model[1], [model[2].name], sparse=True)
    assert native.is_sparse
    assert len(native.source.parts) > 1
    agree_with_any_threads(lambda engine: trained(model, data, engine=engine), atol=3e-5)


def test_dense_data_and_sparse_false_give_the_bits_of_full_products(monkeypatch: pytest.MonkeyPatch):
    model, data = network("sgd"), batches(0.2)
    sparse, full = trained(model, data), trained(model, data, sparse=False)
    assert any(sparse[name].tobytes() != full[name].tobytes() for name in full)
    monkeypatch.setattr("app.engine.compiled.engine.MOST_SET", 0.0)
    dense = trained(model, data)
    assert all(dense[name].tobytes() == full[name].tobytes() for name in full)


def test_bytes_are_sparse_where_few_of_them_are_set():
    assert are_sparse([some_bytes(100, 70, 0.3), np.arange(100)])
    assert not are_sparse([some_bytes(100, 70, 0.5), np.arange(100)])
    assert not are_sparse([some_bytes(100, 70, 0.3), some_bytes(100, 70, 0.5)])
    assert not are_sparse([some_bytes(100, 70, 0.3).astype(np.float32), np.zeros(100, np.uint8)])
    assert not are_sparse([np.zeros((0, 70), np.uint8)])


def build(prepare: Callable[[Any], Any], columns: int = 24) -> tuple[Any, list[str]]:
    main = static.Program()
    with names.guard(), static.program_guard(main, static.Program()):
        x = prepare(static.data("image", [None, 70], "uint8"))
        return main, [app.sum(static.nn.fc(x, columns)).name]


def divided(image: Any) -> Any:
    return image.astype("float32") / 255.0


@pytest.mark.parametrize(
    ("prepare", "is_sparse"),
    [
        (lambda image: image.astype("float32"), True),
        (lambda image: 1.0 - divided(image), True),
        (lambda image: app.reshape(app.reshape(image, [-1, 7, 10]).astype("float32"), [-1, 70]), True),
        (lambda image: app.square(image.astype("float32")), False),
        (lambda image: image.astype("float32") * 0.0 + app.nn.functional.relu(image.astype("float32") - 9.0), False),
        (lambda image: app.log(image.astype("float32")), False),
        (lambda image: image.astype("float32") - app.mean(image.astype("float32")), False),
    ],
)
def test_products_are_sparse_for_known_preparations(prepare: Callable[[Any], Any], is_sparse: bool):
    main, fetch = build(prepare)
    assert compile_program(main, fetch, sparse=True).is_sparse == is_sparse


def test_products_are_dense_if_the_numbers_are_read_elsewhere_or_the_weight_is_narrow():
    main, fetch = build(divided)
    prepared = next(op for op in main.global_block().ops if op.type == "divide").outputs[0]
    assert not compile_program(main, [*fetch, prepared], sparse=True).is_sparse
    assert not compile_program(*build(divided, columns=10), sparse=True).is_sparse


def test_explain_names_products_that_skip_zeros():
    main, fetch = build(divided)
    text = main.explain(fetch)
    assert "compiled: fed bytes, zeros skipped" in text
    assert "less than 40% of the bytes are not 0" in text
