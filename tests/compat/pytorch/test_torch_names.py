"""The façade of PyTorch: what it refuses, and in which words; tables of functions, types, devices, state and files."""

from __future__ import annotations

import enum
import inspect
import pickle
from array import array
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import app
from app.compat import torch
from app.compat.table import renamed
from app.compat.torch import nn, optim
from app.errors import AppError

ROOT = Path(__file__).parents[3]
F, data = nn.functional, torch.utils.data


def leaf(*shape: int) -> Any:
    return torch.ones(*shape, requires_grad=True)


# What is refused


class Stream(data.IterableDataset):
    def __iter__(self):
        return iter(range(3))


W, WHOLE, IMAGE = leaf(2), torch.tensor([1, 2]), torch.ones(1, 1, 4, 4)
GROUP = [{"params": [W], "nesterov": True}]
ERRORS: list[tuple[Callable[[], Any], str]] = [
    (lambda: F.gelu(W, approximate="x"), "approximate is 'none' or 'tanh', found 'x'"),
    (lambda: F.cross_entropy(W, W, size_average=True), "use reduction='mean' or 'sum'"),
    (lambda: F.cross_entropy(torch.ones(2, 2), torch.ones(2)), "classes are whole numbers, found torch.float32"),
    (lambda: F.nll_loss(torch.ones(3), torch.tensor(-1)), "labels must be in 0..2, found -1..-1"),
    (lambda: F.softplus(W, 2.0, beta=3.0), "multiple values for argument 'beta'"),
    (lambda: WHOLE.requires_grad_(), "only Tensors of floating point dtype can require gradients"),
    (lambda: torch.tensor([1], requires_grad=True), "only Tensors of floating point dtype can require gradients"),
    (lambda: (W * 2).requires_grad_(False), r"of a result cannot be switched off; take its detach\(\)"),
    (lambda: torch.tensor(["a"]), "torch.tensor takes numbers, found list of <U1"),
    (lambda: torch.tensor([1, 300], dtype=torch.uint8), "torch.tensor: 300 cannot be stored in uint8; give a wider"),
    (lambda: torch.tensor(np.nan, dtype=torch.int32), "nan cannot be stored in int32"),
    (lambda: torch.tensor([2**63, 1]), "cannot be stored in int64"),
    (lambda: torch.tensor([torch.ones(2)]), r"a list has a Tensor of shape \[2\] in it; use torch.stack or cat"),
    (lambda: torch.from_numpy([1, 2]), "from_numpy takes a NumPy array, found list; use torch.tensor"),
    (lambda: torch.zeros(2, 2, 2).t(), r"t\(\) takes a matrix or a vector, found a Tensor with 3 axes"),
    (lambda: torch.ones(2)[torch.ones(2, dtype=torch.uint8)], r"use index.bool\(\) for a mask, or index.long\(\)"),
    (lambda: torch.trace(torch.ones(1, 2, 2)), r"trace needs a matrix, found shape \[1, 2, 2\]"),
    (lambda: torch.std(W, correction=5), "correction is 0 or 1, found 5"),
    (lambda: WHOLE.narrow(0, 1, 2), "narrow: 2 elements from 1 on are not in an axis of size 2"),
    (lambda: WHOLE.narrow(1, 0, 1), "axis 1 does not exist in a value with 1 axes"),
    (lambda: WHOLE.select(1, -1), "axis 1 does not exist in a value with 1 axes"),
    (lambda: torch.meshgrid(W, W, indexing="yx"), "indexing must be 'ij' or 'xy', found 'yx'"),
    (lambda: torch.autograd.grad(W.sum(), [W], allow_unused=False, materialize_grads=True), "makes zeros"),
    (lambda: torch.set_float32_matmul_precision("hihg"), "found 'hihg'"),
    (lambda: nn.Linear(2, 3).load_state_dict({"w": W}), r"Missing .*'weight', 'bias'; Unexpected .*'w'"),
    (lambda: nn.Linear(2, 3).load_state_dict({"weight": W}), r"found \(2,\), expected \(3, 2\)"),
    (lambda: nn.init.calculate_gain("nonsense"), "no gain is known for 'nonsense'; known are leaky_relu"),
    (lambda: nn.BatchNorm2d(3)(IMAGE[0]), r"BatchNorm2d: expected images of four axes, found shape \[1, 4, 4\]"),
    (lambda: nn.MaxPool2d(2, return_indices=True)(IMAGE), "max_pool2d: indices are not returned"),
    (lambda: nn.AdaptiveMaxPool2d(2, True)(IMAGE), "adaptive_max_pool2d: indices are not returned"),
    (lambda: nn.MaxPool2d(2, dilation=2)(IMAGE), "max_pool2d: dilation must be 1 in this façade, found 2"),
    (lambda: nn.Conv2d(1, 2, 3, padding_mode="reflect"), "padding_mode must be 'zeros', found 'reflect'"),
    (lambda: nn.Conv2d(3, 2, 3, groups=2), "found 2 groups of 3 and 2 channels"),
    (lambda: nn.Conv2d(1, 2, 3, stride=2, padding="same")(IMAGE), "padding='same' is not supported for strided"),
    (lambda: optim.SGD([3], lr=0.1), "SGD optimises Tensors, found int"),
    (lambda: optim.SGD([W * 2], lr=0.1), "SGD optimises leaf Tensors"),
    (lambda: optim.SGD([W], lr=0.1, nesterov=True), "Nesterov momentum requires a momentum"),
    (lambda: optim.SGD(GROUP, lr=0.1, momentum=0.9, dampening=0.5), "Nesterov momentum requires .* zero dampening"),
    (lambda: optim.SGD([W], lr=0.1).load_state_dict(optim.SGD([W, leaf(1)], lr=0.1).state_dict()), "other groups of"),
    (
        lambda: optim.SGD([W]).load_state_dict({**optim.SGD([W]).state_dict(), "state": {1: {}}}),
        "of parameter 1, but",
    ),
    (lambda: optim.SGD([W], lr=-0.1), "SGD: lr must be 0 or more, found -0.1"),
    (lambda: optim.SGD([{"params": [W], "weight_decay": -1}], lr=0.1), "weight_decay must be 0 or more, found -1"),
    (lambda: optim.Adam([W], betas=(0.9, 1.0)), r"Adam: betas must be from 0 to below 1, found \(0.9, 1.0\)"),
    (lambda: optim.Adadelta([W], rho=1.5), "Adadelta: rho must be from 0 to 1, found 1.5"),
    (lambda: optim.SGD([{"params": [W]}, {"params": [W]}]), "appears in more than one place, .*; give it once"),
    (lambda: optim.SGD([W, W]), "appears in more than one place, .*; give it once"),
    (lambda: optim.Adagrad([W], lr_decay=0.1), "lr_decay is 0 in this façade, found 0.1"),
    (lambda: optim.Adam([W], rate=0.1), r"Adam\(\): .* keyword argument 'rate'; it takes \(params, lr, "),
    (lambda: data.DataLoader([0, 1], shuffle=True, sampler=[0, 1]), "decides in which order .* leave shuffle out"),
    (lambda: data.DataLoader(Stream(), shuffle=True), "leave shuffle out"),
    (lambda: data.DataLoader([0], batch_sampler=[[0]], batch_size=2), "a batch_sampler says itself what batch_size"),
    (lambda: data.DataLoader([0], batch_sampler=[[0]], drop_last=True), "a batch_sampler says itself what batch_size"),
]


@pytest.mark.parametrize(("call", "message"), ERRORS, ids=[message for _, message in ERRORS])
def test_wrong_arguments_are_errors(call: Callable[[], Any], message: str):
    with pytest.raises((AppError, TypeError, ValueError), match=message):
        call()


WISHES: list[Callable[[str], Any]] = [
    lambda where: nn.Linear(1, 1, device=where),
    lambda where: nn.Embedding(1, 1, device=where),
    lambda where: nn.LayerNorm(1, device=where),
    lambda where: nn.BatchNorm1d(1, device=where),
    lambda where: nn.PReLU(device=where),
    lambda where: nn.Linear(1, 1).to(device=where),
    lambda where: nn.Linear(1, 1).to(where),
    lambda where: app.nn.Linear(1, 1).to(device=where),
    lambda where: app.nn.Linear(1, 1).to(where),
    lambda where: torch.device(where),
    lambda where: torch.ones(1).to(where),
    lambda where: torch.ones(1, device=where),
    lambda where: torch.set_default_device(where),
    lambda where: torch.load(ROOT / "tests" / "io" / "pytorch_2_13.pth", map_location=where),
]


@pytest.mark.parametrize("wish", WISHES, ids=map(str, range(len(WISHES))))
def test_a_device_that_is_not_there_is_refused(wish: Callable[[str], Any]):
    wish("cpu")
    for device in ("cuda:0", "mps"):
        with pytest.raises(RuntimeError, match="is not there: values are computed on the CPU"):
            wish(device)


# The table of functions


def test_a_row_orders_and_renames_parameters():
    total = renamed("total", "sum(input, dim:axis, keepdim)", app)
    x = app.to_tensor([[1.0, 2.0], [3.0, 4.0]])
    assert total(x).item() == 10.0
    assert total(x, 0).tolist() == total(x, dim=0).tolist() == [4.0, 6.0]
    assert total(x, 1, True).tolist() == total(input=x, keepdim=True, dim=1).tolist() == [[3.0], [7.0]]
    for arguments, named, message in (
        ([x], {"axis": 0}, "got an unexpected keyword argument 'axis'"),
        ([x, 0], {"dim": 0}, "multiple values for argument 'dim'"),
        ([x, 0, True, None], {}, "too many positional arguments"),
        ([], {}, "missing a required argument: 'input'"),
    ):
        with pytest.raises(TypeError, match=rf"total\(\): {message}; it takes \(input, dim, keepdim\)"):
            total(*arguments, **named)


def test_functions_of_a_table_and_optimisers_have_signatures():
    class Halved(optim.SGD):
        def __init__(self, weights: Any, rate: float):
            super().__init__(weights, lr=rate / 2)

    assert str(inspect.signature(torch.argmax)) == "(input, dim=None, keepdim=False, *, out=None)"
    assert str(inspect.signature(torch.index_select)) == "(input, dim, index, *, out=None)"
    assert str(inspect.signature(F.softplus)) == "(input, beta=1.0, threshold=20.0)"
    assert list(inspect.signature(torch.eye).parameters)[:4] == ["n", "m", "dtype", "generator"]
    assert list(inspect.signature(optim.Adam).parameters)[:4] == ["params", "lr", "betas", "eps"]
    assert str(inspect.signature(nn.HuberLoss)) == "(reduction='mean', delta=1.0)"
    assert list(inspect.signature(Halved).parameters) == ["weights", "rate"]
    assert Halved([W], 0.5).param_groups[0]["lr"] == 0.25


def test_deep_paths_lead_to_the_same_classes():
    assert nn.modules.Linear is nn.modules.linear.Linear is nn.Linear
    assert nn.modules.module.Module is nn.Module
    assert nn.modules.loss.MSELoss is nn.MSELoss
    assert data.sampler.RandomSampler is data.RandomSampler
    assert data.dataset.TensorDataset is data.TensorDataset
    assert issubclass(optim.lr_scheduler.StepLR, optim.lr_scheduler._LRScheduler)
    assert optim.optimizer.Optimizer is optim.Optimizer


# Tensors


def test_a_tensor_of_the_facade_is_one_of_the_framework():
    x = leaf(2)
    assert isinstance(x, app.Tensor)
    assert not x.stop_gradient
    assert type(app.exp(x)) is type(x) is torch.Tensor
    app.exp(x).sum().backward()
    assert type(x.grad) is torch.Tensor
    assert type(torch.autograd.grad((x * x).sum(), x, create_graph=True)[0]) is torch.Tensor
    out = app.nn.Linear(3, 2)(torch.ones(4, 3))
    assert out.shape == (4, 2)
    assert app.nn.functional.cross_entropy(out, torch.tensor([0, 1, 1, 0])).ndim == 0
    assert app.nn.LayerNorm(3)(torch.ones(4, 3)).dtype == "float32"


def test_element_types_are_names_of_the_framework():
    assert torch.float32 == "float32"
    assert repr(torch.float64) == str(torch.float64) == f"{torch.float64}" == "torch.float64"
    assert np.zeros(1, torch.int8).dtype == np.int8
    assert pickle.loads(pickle.dumps(torch.float32)) is torch.float32
    assert torch.zeros(1, dtype=float).dtype is torch.float64
    assert torch.int64.itemsize == 8
    assert not torch.uint8.is_signed


def test_a_tensor_is_made_of_numbers_and_sequences_of_any_class():
    places = enum.IntEnum("places", "FIRST SECOND")
    for whole in ([places.FIRST, 2], deque([1, 2]), array("i", [1, 2])):
        assert torch.tensor(whole).tolist() == [1, 2]
        assert torch.tensor(whole).dtype is torch.int64
    assert torch.tensor(places.SECOND).item() == 2
    assert torch.tensor(array("d", [1, 2])).dtype is torch.float32


def test_a_number_of_uint8_is_a_place_and_no_mask():
    x = torch.arange(6).reshape(2, 3)
    assert x[np.uint8(1)].tolist() == [3, 4, 5]
    assert x[:, np.uint8(1)].tolist() == [1, 4]
    x[np.uint8(0)] = 7
    assert x.tolist() == [[7, 7, 7], [3, 4, 5]]
    with pytest.raises(AppError, match=r"use index.bool\(\) for a mask"):
        x[np.array([0, 1], np.uint8)]


def test_programs_may_begin_with_settings_and_questions_about_devices():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    assert torch.get_num_threads() == 1
    torch.set_num_threads(threads)
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.deterministic = True
    torch.use_deterministic_algorithms(True)
    assert (torch.are_deterministic_algorithms_enabled(), torch.backends.cudnn.version()) == (True, None)
    assert torch.device("cpu") == torch.device("cpu")
    assert repr(torch.device("cpu")) == "device(type='cpu')"
    assert not torch.cuda.is_available()
    assert not torch.accelerator.is_available()
    assert not torch.backends.mps.is_available()
    assert torch.accelerator.current_accelerator() is None
    assert tuple(int(part) for part in torch.__version__.split(".")[:2]) >= (2, 6)


def test_sizes_may_be_zero():
    assert torch.zeros(0, 3).reshape(3, 0).shape == (3, 0)
    assert torch.ones(2, 0).sum().item() == 0.0


@pytest.mark.parametrize("recorded", [True, False])
def test_results_that_are_no_views_are_in_row_major_order(recorded: bool):
    x, places = leaf(4, 6) * 1, torch.tensor([5, 3, 1, 0])
    with torch.set_grad_enabled(recorded):
        for made in (x[:, places], x[:, x[0] > 0], torch.cat([x.t(), x.t()]), torch.stack([x.t(), x.t()], 1),
                     x.t().softmax(0), x.t().reshape(2, 3, 4).transpose(1, 2).mean(0), x.nonzero()):  # fmt: skip
            seen = made.view(-1)
            seen.detach().fill_(7)
            assert (made == 7).all()


@pytest.mark.parametrize("indexing", ["ij", "xy"])
def test_meshgrid_takes_the_order_of_axes(indexing: Any):
    x, y = torch.arange(2), torch.arange(3)
    wanted = np.meshgrid(x.numpy(), y.numpy(), indexing=indexing)
    assert [found.tolist() for found in torch.meshgrid(x, y, indexing=indexing)] == [each.tolist() for each in wanted]


def test_a_random_seed_is_returned_and_repeats_what_was_drawn():
    seed = torch.seed()
    drawn = torch.rand(3)
    torch.manual_seed(seed)
    assert torch.rand(3).tolist() == drawn.tolist()


@pytest.mark.parametrize("of", ["uniform", "normal", "xavier_uniform", "xavier_normal", "kaiming_uniform",
                                "kaiming_normal", "trunc_normal"])  # fmt: skip
def test_initialisers_draw_from_the_generator_given(of: str):
    fill = getattr(nn.init, f"{of}_")
    first, second = (fill(torch.empty(3, 2), generator=torch.Generator().manual_seed(7)) for _ in range(2))
    assert first.tolist() == second.tolist()
    assert fill(torch.empty(3, 2)).tolist() != first.tolist()


def test_normal_takes_a_mean_and_a_deviation_for_each_element():
    assert torch.normal(torch.tensor([1.0, 5.0]), 0.0).tolist() == [1, 5]
    assert torch.normal(2.0, torch.zeros(2)).tolist() == [2, 2]


# Gradients


def test_without_gradients_their_norm_is_zero():
    assert nn.utils.clip_grad_norm_([leaf(1)], 1.0).item() == 0.0


@pytest.mark.filterwarnings("ignore:invalid value")
def test_an_anomaly_names_the_operator():
    x = torch.zeros(2, requires_grad=True)
    (x.sqrt() * 0).sum().backward()
    assert x.grad.isnan().all()
    with (
        torch.autograd.detect_anomaly(),
        pytest.raises(RuntimeError, match="operator sqrt returned NaN as the gradient of its input 0"),
    ):
        (x.sqrt() * 0).sum().backward()
    with torch.autograd.set_detect_anomaly(True), pytest.raises(RuntimeError, match="NaN"):
        torch.autograd.grad((x.sqrt() * 0).sum(), x, create_graph=True)
    (x.sqrt() * 0).sum().backward()


def test_gather_and_scatter_take_an_index_smaller_than_the_value():
    x = torch.arange(6.0).reshape(3, 2).requires_grad_()
    picked = x.gather(1, torch.tensor([[1], [0]]))
    picked.sum().backward()
    assert picked.tolist() == [[1.0], [2.0]]
    assert x.grad.tolist() == [[0.0, 1.0], [1.0, 0.0], [0.0, 0.0]]
    assert x.detach().scatter(1, torch.tensor([[1]]), 9.0).tolist() == [[0.0, 9.0], [2.0, 3.0], [4.0, 5.0]]
    assert x.grad_fn is None
    assert type(picked.grad_fn).__name__ == "GatherBackward0"


def transposed_after_its_view(v: Any) -> Any:
    view = v.view(-1)
    v.t_()
    view.mul_(2)
    return v.t()


@pytest.mark.parametrize(
    "change",
    [
        lambda v: (v.t_().mul_(2), v.t())[1],
        lambda v: (v.t_(), v.t_(), v.mul_(2), v)[3],
        lambda v: (v.view(-1), v.t_())[0].mul_(2).view(2, 3),
        lambda v: (v.view(-1).mul_(2), v.t())[1].t(),
        transposed_after_its_view,
    ],
)
def test_gradients_follow_changes_in_place_of_transposed_values(change: Any):
    x, weights = leaf(2, 3), torch.arange(6.0).reshape(2, 3)
    (change(x * 1) * weights).sum().backward()
    assert torch.equal(x.grad, 2 * weights)


# State and files


def test_a_schedule_goes_on_from_its_state():
    optimizers = [optim.SGD([leaf(1)], lr=1.0) for _ in range(2)]
    first, second = (optim.lr_scheduler.StepLR(optimizer, 2) for optimizer in optimizers)
    for _ in range(3):
        first.step()
    second.load_state_dict(first.state_dict())
    assert optimizers[1].param_groups[0]["lr"] == pytest.approx(0.1)
    second.step()
    assert optimizers[1].param_groups[0]["lr"] == pytest.approx(0.01)


def test_a_state_of_another_shape_is_refused_before_anything_changes():
    weight = leaf(2)
    optimizer = optim.Adam([weight], lr=0.1)
    weight.sum().backward()
    optimizer.step()
    kept = optimizer.state_dict()
    wrong = {"state": {0: {**kept["state"][0], "exp_avg": torch.ones(2, 1)}}}
    with pytest.raises(ValueError, match=r"exp_avg of a parameter of shape \[2\] has shape \[2, 1\] .* nothing was"):
        optimizer.load_state_dict({**wrong, "param_groups": [{**kept["param_groups"][0], "lr": 9.0}]})
    assert optimizer.param_groups[0]["lr"] == 0.1
    optimizer.step()  # with the state that it had
    optimizer.load_state_dict(kept)


def test_no_pickled_code_is_written_or_read(tmp_path: Path):
    path = tmp_path / "model.pt"
    with pytest.raises(AppError, match=r"a whole Sequential is code .* save model.state_dict\(\)"):
        torch.save(nn.Sequential(nn.Linear(2, 3)), path)
    assert not path.exists()
    path.write_bytes(pickle.dumps({"a": 1}))
    with pytest.raises(AppError, match="pickle"):
        torch.load(path)


def test_a_file_of_pytorch_gives_tensors_of_this_facade():
    loaded = torch.load(ROOT / "tests" / "io" / "pytorch_2_13.pth", map_location="cpu", weights_only=False)
    network = nn.Sequential(nn.Linear(3, 2))
    network.load_state_dict(loaded["model"])
    optimizer = optim.Adam(network.parameters())
    optimizer.load_state_dict(loaded["optimizer"])
    assert optimizer.state_dict()["state"][0]["step"].item() == 1.0
    assert repr(loaded["view"]) == "tensor([2., 3.])"
    assert type(loaded["p"]) is nn.Parameter


def test_figures_are_written_into_a_table(tmp_path: Path):
    with torch.utils.tensorboard.SummaryWriter(tmp_path / "run") as writer:
        writer.add_scalar("loss", torch.tensor(0.5), 1, walltime=0.0)
        writer.add_scalars("accuracy", {"train": 0.75}, 2)
        with pytest.raises(AppError, match=r"SummaryWriter.add_image is not part of this façade"):
            writer.add_image("digit", torch.zeros(1, 2, 2))
        with pytest.raises(AttributeError, match="SummaryWriter has no 'nothing'"):
            _ = writer.nothing
    lines = (tmp_path / "run" / "scalars.csv").read_text().splitlines()
    assert lines[:2] == ["tag,step,value,time", "loss,1,0.5,0.0"]
    assert lines[2].startswith("accuracy/train,2,0.75,")
