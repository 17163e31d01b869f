"""Operators as functions of PyTorch: values, gradients, and what is refused."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from derivative.kernels import KERNELS
from numba import njit

import app
from app.bridge import to_torch
from app.bridge.out.description import spec_of_example
from app.bridge.out.torch import MODULES
from app.bridge.out.translation import TORCH
from app.bridge.out.writing import KERNEL, leaving
from app.custom.shelf.ema import ema
from app.custom.shelf.gated import gated
from app.custom.shelf.leaky_relu import leaky_relu
from app.custom.shelf.prelu import sloped
from app.custom.shelf.softmax import softmax
from app.custom.shelf.softplus import softplus
from app.custom.shelf.swish import swish
from app.errors import ExportError
from tests.bridge.out.operators import halvings, parts, picked, root, squashed
from tests.bridge.out.operators_that_leave import OPERATORS
from tests.bridge.out.test_description import total
from tests.bridge.out.written_files import assert_formatted, assert_passes_without

torch = pytest.importorskip("torch")


def matrix(seed: int = 0, shape: tuple[int, ...] = (4, 6), dtype: Any = None) -> Any:
    random = torch.Generator().manual_seed(seed)
    numbers = 4 * torch.rand(shape, generator=random, dtype=torch.float64) - 2
    return numbers.to(dtype or torch.float64).requires_grad_()


@cache
def exported(operator: Any, inputs: int = 1) -> Any:
    """Its function of matrices, which is compiled once for all tests."""
    return to_torch(operator, *[matrix(seed) for seed in range(inputs)])


def gradients_here(operator: Any, arrays: list[np.ndarray]) -> tuple[list[np.ndarray], list[np.ndarray]]:
    tensors = [app.to_tensor(a, stop_gradient=a.dtype.kind != "f") for a in arrays]
    results = operator(*tensors)
    results = list(results) if isinstance(results, (tuple, list)) else [results]
    inputs = [t for t in tensors if not t.stop_gradient]
    return [r.numpy() for r in results], [g.numpy() for g in app.grad(results, inputs)]


@pytest.mark.parametrize(
    ("operator", "inputs"),
    [
        (swish, 1), (leaky_relu, 1), (sloped, 2), (parts, 2), (squashed, 1), (softmax, 1), (total, 1),
        *(pytest.param(*case, marks=pytest.mark.soak) for case in [(softplus, 1), (gated, 2), (root, 1)]),
    ],
    ids=lambda value: getattr(value, "name", ""),
)  # fmt: skip
def test_values_and_gradients_are_those_here(operator: Any, inputs: int) -> None:
    x = [matrix(seed) for seed in range(inputs)]
    results = exported(operator, inputs)(*x)
    results = results if isinstance(results, tuple) else (results,)
    expected, expected_gradients = gradients_here(operator, [t.detach().numpy() for t in x])
    gradients = torch.autograd.grad(results, x, [torch.ones_like(r) for r in results])
    for actual, right in zip([*results, *gradients], [*expected, *expected_gradients], strict=True):
        np.testing.assert_allclose(actual.detach().numpy(), right, rtol=1e-12, atol=1e-14)


def test_the_gradient_of_a_branch_that_is_not_taken_is_zero_where_autograd_alone_gives_nan() -> None:
    x = torch.tensor([-4.0, 4.0], requires_grad=True)
    assert torch.autograd.grad(to_torch(root)(x).sum(), x)[0].tolist() == [0.0, 0.25]
    far = torch.tensor([-1000.0], requires_grad=True)
    assert torch.autograd.grad(to_torch(swish)(far).sum(), far)[0].tolist() == [0.0]


@pytest.mark.parametrize("operator", [swish, leaky_relu, root, squashed, parts], ids=lambda operator: operator.name)
def test_expressions_pass_gradcheck_in_all_modes(operator: Any) -> None:
    modes = {"check_forward_ad": True, "check_batched_grad": True, "check_batched_forward_grad": True}
    x = [matrix(seed, (2, 3)) for seed in range(len(operator.inputs))]
    assert torch.autograd.gradcheck(to_torch(operator), x, **modes)
    assert torch.autograd.gradgradcheck(to_torch(operator), x, check_fwd_over_rev=True)


def test_the_hessian_of_expressions_is_that_of_autograd() -> None:
    def by_hand(x: Any) -> Any:
        return (x / (1 + torch.exp(-x))).sum()

    x = matrix().detach()[0]
    function = to_torch(swish)
    hessian = torch.func.hessian(lambda x: function(x).sum())(x)
    torch.testing.assert_close(hessian, torch.func.hessian(by_hand)(x))


def test_inputs_are_broadcast_and_their_gradients_summed() -> None:
    x, slope = matrix(), matrix(1, (6,))
    assert torch.autograd.gradcheck(to_torch(sloped), [x, slope])
    assert torch.autograd.gradcheck(to_torch(gated), [x, matrix(2, (4, 1))])


def test_settings_are_arguments() -> None:
    x = torch.tensor([-2.0], requires_grad=True)
    for slope in (0.5, 0.0):
        y = to_torch(leaky_relu)(x, slope=slope)
        assert (y.item(), torch.autograd.grad(y, x)[0].item()) == (-2 * slope, slope)


def test_a_kernel_takes_whole_numbers_as_indices() -> None:
    x, index = matrix(), torch.tensor([3, 0, 3])
    function = to_torch(picked, x, index)
    torch.testing.assert_close(function(x, index), 2 * x[index])
    assert torch.autograd.gradcheck(lambda x: function(x, index), [x])
    torch.compiler.reset()
    compiled = torch.compile(lambda x: function(x, index), backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(torch.autograd.grad(compiled(x).sum(), x)[0][:, 0], 2.0 * torch.bincount(index).double())


def test_a_result_may_be_a_row_in_reverse_order() -> None:
    @app.custom_op
    def reversed_rows(x):
        return (2 * x)[::-1]

    x = matrix(shape=(1, 3))
    torch.testing.assert_close(to_torch(reversed_rows, x)(x), 2 * x)


def test_a_kernel_runs_on_the_memory_of_the_tensors() -> None:
    x = matrix(dtype=torch.float32)
    function = exported(softmax)
    assert function(x).dtype == torch.float32
    torch.testing.assert_close(function(x.mT).mT, torch.softmax(x, 0))
    assert function(x[:0]).shape == (0, 6)


def test_threads_compute_the_same_as_one() -> None:
    x = matrix(0, (512, 1024))
    function = exported(softmax)
    threads = torch.get_num_threads()
    try:
        runs = []
        for count in (1, 3):
            torch.set_num_threads(count)
            y = function(x)
            runs.append([y, torch.autograd.grad((y * y).sum(), x)[0]])
    finally:
        torch.set_num_threads(threads)
    assert all(torch.equal(one, other) for one, other in zip(*runs, strict=True))


@pytest.mark.parametrize("operator", [ema, halvings], ids=lambda operator: operator.name)
def test_kernels_without_functions_in_vectors_give_the_same_bits_as_here(operator: Any) -> None:
    for dtype in (torch.float32, torch.float64):
        x = matrix(dtype=dtype)
        y = exported(operator)(x)
        (expected,), (gradient,) = gradients_here(operator, [x.detach().numpy()])
        np.testing.assert_array_equal(y.detach().numpy(), expected)
        np.testing.assert_array_equal(torch.autograd.grad(y.sum(), x)[0].numpy(), gradient)


def test_a_kernel_with_exp_in_vectors_differs_from_here_in_the_last_digits() -> None:
    for dtype, digits in ((torch.float32, 1.2e-7), (torch.float64, 4e-15)):
        x = matrix(0, (64, 100), dtype)
        result = exported(softmax)(x).detach().numpy()
        (expected,), _ = gradients_here(softmax, [x.detach().numpy()])
        np.testing.assert_allclose(result, expected, digits, 0)


def test_gradients_in_batches_are_those_of_a_loop() -> None:
    x = matrix()
    y = exported(softmax)(x)
    many = torch.stack([matrix(seed).detach() for seed in (1, 2, 3)])
    (gradients,) = torch.autograd.grad(y, x, many, is_grads_batched=True, retain_graph=True)
    torch.testing.assert_close(
        gradients, torch.stack([torch.autograd.grad(y, x, one, retain_graph=True)[0] for one in many])
    )


def test_a_result_that_is_the_input_is_a_copy() -> None:
    @app.custom_op
    @njit
    def same(x):
        return x

    x = matrix()
    y = to_torch(same, x)(x)
    assert y.data_ptr() != x.data_ptr()


def test_a_second_derivative_that_cannot_be_derived_is_an_error_and_not_zero() -> None:
    x = matrix()
    (first,) = torch.autograd.grad((exported(total)(x) ** 2).sum(), x, create_graph=True)
    with pytest.raises(NotImplementedError, match="total has no second derivative"):
        first.sum().backward()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_types_that_numba_does_not_have_are_an_error(dtype: str) -> None:
    x = matrix(dtype=getattr(torch, dtype))
    with pytest.raises(TypeError, match="float32 or float64"):
        exported(softmax)(x)


def test_another_number_of_axes_than_exported_is_an_error() -> None:
    x = matrix()
    with pytest.raises(ValueError, match="with 2 axes"):
        exported(softmax)(x[None])


@pytest.mark.parametrize("operator", [root, halvings, softmax], ids=lambda operator: operator.name)
def test_whole_numbers_in_place_of_floats_are_an_error_as_fractions_would_be_lost(operator: Any) -> None:
    function = exported(operator)
    with pytest.raises((TypeError, ValueError), match=r"takes .*floats"):
        function(torch.ones(4, 6, dtype=torch.int64))


def test_inputs_of_two_types_get_the_common_one() -> None:
    x, gate = matrix(dtype=torch.float32), torch.ones(6, dtype=torch.int64)
    assert to_torch(gated)(x, gate).dtype == torch.float32
    y = matrix(1)
    assert [g.dtype for g in torch.autograd.grad(to_torch(gated)(x, y).sum(), [x, y])] == [x.dtype, y.dtype]


def test_without_a_gradient_nothing_leaves() -> None:
    @app.custom_op
    def sorted_rows(x):
        return np.sort(x)

    with pytest.raises(ExportError, match="has no gradient"):
        to_torch(sorted_rows, np.ones((2, 3)))


def test_an_operator_of_torch_is_used_as_it_is() -> None:
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x**3

    with pytest.raises(ExportError, match=r"a torch.autograd.Function already"):
        to_torch(Cube)


def test_weights_trained_with_an_exported_relu_are_those_of_torchs_own() -> None:
    relu = to_torch(app.custom_op(elementwise=True, name="relu")(lambda x: x if x > 0 else 0.0))
    weights = []
    for activation in (relu, torch.relu):
        torch.manual_seed(0)
        layers = torch.nn.Linear(6, 16), torch.nn.Linear(16, 3)
        parameters = [p for layer in layers for p in layer.parameters()]
        optimizer = torch.optim.SGD(parameters, lr=0.1)
        for step in range(20):
            x = matrix(step, (8, 6), torch.float32).detach()
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(layers[1](activation(layers[0](x))), torch.arange(8) % 3).backward()
            optimizer.step()
        weights.append([p.detach().clone() for p in parameters])
    assert all(torch.equal(one, other) for one, other in zip(*weights, strict=True))


VECTOR = matrix(0, (6,)).detach().numpy()  # without rows it stays as it is, and is broadcast along them
LOSS = app.custom_op(elementwise=True, name="loss")(lambda x: x * x)  # a name that the written test has, too
FEW = [(parts, [VECTOR, np.ones((4, 6))]), OPERATORS["ema"], (LOSS, [np.ones((4, 6))])]


@pytest.mark.slow
@pytest.mark.parametrize(
    "cases", [FEW, *(pytest.param([case], marks=pytest.mark.soak) for case in OPERATORS.values())],
    ids=["few", *OPERATORS],
)  # fmt: skip
def test_the_written_tests_pass_without_opsmith(cases: Any, tmp_path: Path) -> None:
    for operator, examples in cases:
        for file, text in MODULES.write(operator, examples, (-2, 2), "").files.items():
            (tmp_path / file).write_text(text, encoding="utf-8")
    assert_passes_without(tmp_path, "opsmith", "app")


def test_files_are_as_a_formatter_leaves_them(tmp_path: Path) -> None:
    for operator, inputs in [(swish, 1), (parts, 2), (halvings, 1), (softmax, 1), (total, 1)]:
        for name, text in MODULES.write(operator, [np.ones((4, 6))] * inputs, (-2, 2), "1 passed").files.items():
            (tmp_path / name).write_text(text, encoding="utf-8")
    assert_formatted(tmp_path)


def test_most_operators_become_expressions_and_the_others_kernels() -> None:
    few = {name: one for name, one in OPERATORS.items() if name not in KERNELS or name == "softmax"}
    forms = {name: leaving(operator, list(map(spec_of_example, examples)), TORCH, ()).form
             for name, (operator, examples) in few.items()}  # fmt: skip
    assert [name for name, form in forms.items() if form == KERNEL] == ["halvings", "softmax"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("torch", "something else as torch"),
        ("partial", "else as partial"),
        ("test_loss", "pytest would take it"),
    ],
)
def test_a_name_that_means_something_else_in_the_file_is_refused(name: str, message: str) -> None:
    operator = app.custom_op(elementwise=True, name=name)(lambda x: x * x)
    with pytest.raises(ExportError, match=rf"operator {name} .*{message}.*: give custom_op another name="):
        to_torch(operator)
