"""An argument that a façade accepts has its effect; one that cannot have it is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import app
from app.compat import fluid, paddle, torch
from app.compat.torch import nn
from app.compat.torchvision import transforms
from app.errors import AppError

layers = fluid.layers


def generator() -> Any:
    return torch.Generator().manual_seed(7)


@pytest.mark.parametrize("indexing", ["ij", "xy"])
def test_meshgrid_takes_the_order_of_axes(indexing: str):
    x, y = torch.arange(2), torch.arange(3)
    wanted = np.meshgrid(x.numpy(), y.numpy(), indexing=indexing)  # type: ignore[call-overload]
    for found, expected in zip(torch.meshgrid(x, y, indexing=indexing), wanted, strict=True):
        assert found.tolist() == expected.tolist()


def test_meshgrid_refuses_another_order_of_axes():
    with pytest.raises(AppError, match="indexing must be 'ij' or 'xy', found 'yx'"):
        torch.meshgrid(torch.arange(2), torch.arange(3), indexing="yx")


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda y: layers.assign(np.array([7.0], "float32"), output=y), 7.0),
        (lambda y: layers.fill_constant([1], "float32", 5.0, out=y), 5.0),
        (lambda y: layers.sums([y, y, y], out=y), 6.0),
    ],
)
def test_functions_of_fluid_write_into_their_output(call: Callable[[Any], Any], expected: float):
    with fluid.dygraph.guard():
        eager = fluid.dygraph.to_variable(np.array([2.0], "float32"))
        assert call(eager) is eager
        assert eager.tolist() == [expected]
    app.enable_static()
    try:
        with fluid.program_guard(fluid.Program(), fluid.Program()):
            y = layers.fill_constant([1], "float32", 2.0)
            assert call(y) is y
            assert fluid.Executor().run(fetch_list=[y])[0].tolist() == [expected]
    finally:
        app.disable_static()


@pytest.mark.parametrize(
    "make",
    [
        lambda where: nn.Linear(1, 1, device=where),
        lambda where: nn.Embedding(1, 1, device=where),
        lambda where: nn.LayerNorm(1, device=where),
        lambda where: nn.BatchNorm1d(1, device=where),
        lambda where: nn.PReLU(device=where),
        lambda where: nn.Linear(1, 1).to(device=where),
        lambda where: nn.Linear(1, 1).to(where),
        lambda where: app.nn.Linear(1, 1).to(device=where),
        lambda where: app.nn.Linear(1, 1).to(where),
    ],
)
def test_a_device_that_is_not_there_is_refused(make: Callable[[str], Any]):
    make("cpu")
    with pytest.raises(RuntimeError, match="is not there"):
        make("cuda:0")


@pytest.mark.parametrize(
    "call",
    [
        lambda x, p: torch.sum(x, mispelt=0),
        lambda x, p: x.mean(mispelt=0),
        lambda x, p: torch.cat([x], mispelt=0),
        lambda x, p: torch.zeros(2, mispelt=1),
        lambda x, p: torch.tensor([1.0], mispelt=True),
        lambda x, p: x.to(mispelt=1),
        lambda x, p: nn.Linear(1, 1, mispelt=1),
        lambda x, p: nn.Linear(1, 1).to(mispelt=1),
        lambda x, p: nn.Module(mispelt=1),
        lambda x, p: nn.CrossEntropyLoss(mispelt=1),
        lambda x, p: nn.functional.relu(x, mispelt=1),
        lambda x, p: nn.functional.mse_loss(x, x, mispelt=1),
        lambda x, p: nn.functional.embedding(torch.tensor([0]), x, max_norm=1.0),
        lambda x, p: torch.optim.Adam([x], mispelt=0.1),
        lambda x, p: torch.optim.lr_scheduler.StepLR(sgd(), 1, mispelt=1),
        lambda x, p: torch.utils.data.DataLoader([1], mispelt=1),
        lambda x, p: torch.compile(len, mispelt=1),
        lambda x, p: transforms.Normalize((0.5,), (0.5,), mispelt=True),
        lambda x, p: paddle.sum(p, mispelt=0),
        lambda x, p: paddle.to_tensor([1.0], mispelt=False),
        lambda x, p: paddle.nn.Linear(3, 2, mispelt=False),
        lambda x, p: paddle.nn.functional.dropout(p, mispelt=0.5),
        lambda x, p: paddle.nn.functional.embedding(paddle.to_tensor([0]), p, max_norm=1.0),
        lambda x, p: paddle.optimizer.Adam(mispelt=0.1),
        lambda x, p: paddle.io.DataLoader([1], mispelt=1),
        lambda x, p: fluid.optimizer.SGD(0.1, mispelt=1),
        lambda x, p: layers.softmax(p, mispelt=1),
        lambda x, p: layers.reduce_sum(p, mispelt=0),
        lambda x, p: layers.cross_entropy(input=p, labels=p),
        lambda x, p: fluid.Executor(mispelt=1),
        lambda x, p: paddle.load("file", mispelt=1),
        lambda x, p: paddle.static.save(paddle.static.Program(), "file", mispelt=1),
        lambda x, p: paddle.static.save_inference_model("file", p, p, mispelt=1),
        lambda x, p: paddle.static.load_inference_model("file", mispelt=1),
        lambda x, p: paddle.static.CompiledProgram(paddle.static.Program()).with_data_parallel(mispelt=1),
        lambda x, p: paddle.jit.save(paddle.nn.ReLU(), "file", mispelt=1),
        lambda x, p: paddle.jit.load("file", mispelt=1),
        lambda x, p: paddle.metric.Accuracy(mispelt=1),
        lambda x, p: paddle.metric.Precision(mispelt=1),
        lambda x, p: torch.nn.parallel.DistributedDataParallel(nn.Linear(1, 1), mispelt=1),
        lambda x, p: torch.onnx.export(nn.Linear(1, 1), x, "file", mispelt=1),
    ],
)
def test_a_misspelt_keyword_is_an_error(call: Callable[..., Any]):
    with pytest.raises((TypeError, ValueError, AppError), match=r"mispelt|max_norm|'label'"):
        call(torch.ones(1, 2), paddle.ones([1, 2]))


def sgd(rate: float = 1.0) -> Any:
    return torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=rate)


def test_the_gain_of_an_unknown_activation_is_refused():
    with pytest.raises((ValueError, AppError), match="nonsense"):
        nn.init.calculate_gain("nonsense")


def test_without_gradients_their_norm_is_zero():
    assert nn.utils.clip_grad_norm_([torch.ones(1, requires_grad=True)], 1.0).item() == 0.0


@pytest.mark.parametrize(
    "name",
    [
        "uniform_",
        "normal_",
        "xavier_uniform_",
        "xavier_normal_",
        "kaiming_uniform_",
        "kaiming_normal_",
        "trunc_normal_",
    ],
)
def test_initialisers_draw_from_the_generator_given(name: str):
    fill = getattr(nn.init, name)
    first, second = (fill(torch.empty(3, 2), generator=generator()) for _ in range(2))
    assert first.tolist() == second.tolist()
    assert fill(torch.empty(3, 2)).tolist() != first.tolist()


@pytest.mark.parametrize("static", [False, True])
@pytest.mark.parametrize(
    "draw",
    [
        lambda seed: layers.uniform_random([4], seed=seed),
        lambda seed: layers.gaussian_random([4], seed=seed),
        lambda seed: layers.dropout(layers.ones([64], "float32"), 0.5, seed=seed),
    ],
)
def test_functions_of_fluid_draw_from_the_seed_given(draw: Callable[[int], Any], static: bool):
    def numbers(seed: int) -> Any:
        if not static:
            with fluid.dygraph.guard():
                return draw(seed).tolist()
        app.enable_static()
        try:
            with fluid.program_guard(fluid.Program(), fluid.Program()):
                drawn = draw(seed)
                return fluid.Executor().run(fetch_list=[drawn])[0].tolist()
        finally:
            app.disable_static()

    assert numbers(3) == numbers(3)
    assert numbers(3) != numbers(4)
    assert numbers(0) != numbers(0)


@pytest.mark.parametrize("name", ["Uniform", "Normal", "Xavier", "MSRA", "TruncatedNormal"])
def test_initialisers_of_fluid_draw_from_the_seed_given(name: str):
    def numbers(seed: int) -> Any:
        attribute = fluid.ParamAttr(initializer=getattr(fluid.initializer, name)(seed=seed))
        return app.create_parameter([3, 2], "float32", attr=attribute).tolist()

    assert numbers(3) == numbers(3)
    assert numbers(3) != numbers(4)
    assert numbers(0) != numbers(0)


def test_a_padded_row_is_masked_once():
    app.enable_static()
    try:
        with fluid.program_guard(fluid.Program(), fluid.Program()):
            ids = app.static.data("ids", [None, 2], "int64")
            app.static.nn.embedding(ids, [4, 3], padding_idx=0)
            kinds = [op.type for op in app.static.default_main_program().global_block().ops]
        assert kinds.count("not_equal") == 1
    finally:
        app.disable_static()


def test_the_version_is_one_that_has_the_names():
    assert tuple(int(part) for part in torch.__version__.split(".")[:2]) >= (2, 6)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda x: nn.BatchNorm2d(3)(x[0]), "BatchNorm2d: expected images of four axes, found shape [1, 4, 4]"),
        (lambda x: nn.MaxPool2d(2, return_indices=True)(x), "max_pool2d: indices are not returned"),
        (lambda x: nn.AdaptiveMaxPool2d(2, True)(x), "adaptive_max_pool2d: indices are not returned"),
        (lambda x: nn.MaxPool2d(2, dilation=2)(x), "max_pool2d: dilation must be 1 in this façade, found 2"),
        (lambda x: nn.Conv2d(1, 2, 3, padding_mode="reflect"), "padding_mode must be 'zeros', found 'reflect'"),
        (lambda x: nn.Conv2d(3, 2, 3, groups=2), "found 2 groups of 3 and 2 channels"),
        (lambda x: nn.Conv2d(1, 2, 3, stride=2, padding="same")(x), "padding='same' is not supported for strided"),
    ],
)
def test_what_layers_of_images_cannot_do_is_said(call: Callable[[Any], Any], told: str):
    with pytest.raises(AppError) as caught:
        call(torch.ones(1, 1, 4, 4))
    assert told in str(caught.value)


def test_nesterov_momentum_of_a_group_needs_zero_dampening():
    groups = [{"params": [torch.ones(1, requires_grad=True)], "nesterov": True}]
    with pytest.raises(ValueError, match="Nesterov momentum requires a momentum and zero dampening"):
        torch.optim.SGD(groups, lr=0.1, momentum=0.9, dampening=0.5)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"shuffle": True, "sampler": [0, 1]}, "decides in which order examples come; leave shuffle out"),
        ({"batch_sampler": [[0]], "batch_size": 2}, "a batch_sampler says itself what batch_size"),
        ({"batch_sampler": [[0]], "drop_last": True}, "a batch_sampler says itself what batch_size"),
    ],
)
def test_settings_of_a_loader_that_exclude_each_other_are_refused(settings: dict[str, Any], told: str):
    with pytest.raises(ValueError, match=told):
        torch.utils.data.DataLoader([0, 1, 2], **settings)


def test_the_order_of_a_stream_cannot_be_shuffled():
    class Stream(torch.utils.data.IterableDataset):
        def __iter__(self):
            return iter(range(3))

    with pytest.raises(ValueError, match="leave shuffle out"):
        torch.utils.data.DataLoader(Stream(), shuffle=True)
