"""The façade of PyTorch: what it refuses, and in which words; devices, types, operators by library."""

from __future__ import annotations

import inspect
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import app
from app.compat import torch
from app.compat.missing import MissingNameError
from app.compat.table import renamed
from app.compat.torch import nn
from app.errors import AppError

ROOT = Path(__file__).parents[3]

# Names


def test_a_name_that_is_not_there_says_so_and_what_is_closest():
    with pytest.raises(MissingNameError, match=r"torch has no 'fft' in this façade"):
        torch.fft  # noqa: B018
    with pytest.raises(AttributeError, match=r"closest: torch\.nn\.Linear"):
        nn.Liner  # noqa: B018
    with pytest.raises(AttributeError, match=r"torch.Tensor has no 'squeese' in this façade; closest: squeeze"):
        torch.ones(1).squeese()


@pytest.mark.parametrize("module", [torch, nn, nn.functional, nn.init, torch.optim, torch.utils.data, torch.autograd])
def test_every_name_that_is_listed_is_there(module: Any):
    assert all(hasattr(module, name) for name in module.__all__)
    assert len(set(module.__all__)) == len(module.__all__)


# The table of functions


def test_a_row_orders_and_renames_parameters():
    total = renamed("total", "sum(input, dim:axis, keepdim)", app)
    x = app.to_tensor([[1.0, 2.0], [3.0, 4.0]])
    assert total(x).item() == 10.0
    assert total(x, 0).tolist() == total(x, dim=0).tolist() == [4.0, 6.0]
    assert total(x, 1, True).tolist() == total(input=x, keepdim=True, dim=1).tolist() == [[3.0], [7.0]]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda total: total(app.ones([2]), axis=0), "got an unexpected keyword argument 'axis'"),
        (lambda total: total(app.ones([2]), 0, dim=0), "multiple values for argument 'dim'"),
        (lambda total: total(app.ones([2]), 0, True, None), "too many positional arguments"),
        (lambda total: total(), "missing a required argument: 'input'"),
    ],
)
def test_a_row_refuses_what_pytorch_does_not_have(call: Any, words: str):
    with pytest.raises(TypeError, match=rf"total\(\): {words}; it takes \(input, dim, keepdim\)"):
        call(renamed("total", "sum(input, dim:axis, keepdim)", app))


def test_a_default_of_a_row_is_no_argument_given():
    with pytest.raises(TypeError, match="multiple values for argument 'beta'"):
        nn.functional.softplus(torch.ones(1), 2.0, beta=3.0)


def test_functions_of_a_table_have_signatures():
    assert str(inspect.signature(torch.argmax)) == "(input, dim=None, keepdim=False, *, out=None)"
    assert str(inspect.signature(torch.index_select)) == "(input, dim, index, *, out=None)"
    assert str(inspect.signature(nn.functional.softplus)) == "(input, beta=1.0, threshold=20.0)"
    assert list(inspect.signature(torch.eye).parameters)[:4] == ["n", "m", "dtype", "generator"]
    assert list(inspect.signature(torch.optim.Adam).parameters)[:4] == ["params", "lr", "betas", "eps"]
    assert str(inspect.signature(nn.HuberLoss)) == "(reduction='mean', delta=1.0)"


def test_a_subclass_of_an_optimiser_has_its_own_signature():
    class Halved(torch.optim.SGD):
        def __init__(self, weights: Any, rate: float):
            super().__init__(weights, lr=rate / 2)

    assert list(inspect.signature(Halved).parameters) == ["weights", "rate"]
    made = Halved([torch.ones(1, requires_grad=True)], 0.5)
    assert made.param_groups[0]["lr"] == 0.25
    with pytest.raises(
        TypeError, match=r"Adam\(\): got an unexpected keyword argument 'rate'; it takes \(params, lr, "
    ):
        torch.optim.Adam([torch.ones(1, requires_grad=True)], rate=0.1)


# Tensors


def test_a_tensor_of_the_facade_is_one_of_the_framework():
    x = torch.ones(2, requires_grad=True)
    assert isinstance(x, app.Tensor)
    assert not x.stop_gradient
    assert type(app.exp(x)) is type(x) is torch.Tensor
    app.exp(x).sum().backward()
    assert type(x.grad) is torch.Tensor
    assert type(torch.autograd.grad((x * x).sum(), x, create_graph=True)[0]) is torch.Tensor


def test_the_framework_works_on_tensors_whose_shape_is_a_tuple_and_whose_type_is_an_object():
    layer = app.nn.Linear(3, 2)
    out = layer(torch.ones(4, 3))
    assert out.shape == (4, 2)
    assert app.nn.functional.cross_entropy(out, torch.tensor([0, 1, 1, 0])).ndim == 0
    assert app.nn.LayerNorm(3)(torch.ones(4, 3)).dtype == "float32"


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda w: torch.nn.functional.gelu(w, approximate="x"), "approximate is 'none' or 'tanh', found 'x'"),
        (lambda w: torch.nn.functional.cross_entropy(w, w, size_average=True), "use reduction='mean' or 'sum'"),
        (lambda w: torch.optim.SGD([3], lr=0.1), "SGD optimises Tensors, found int"),
        (lambda w: torch.optim.SGD([w * 2], lr=0.1), "SGD optimises leaf Tensors"),
        (lambda w: torch.autograd.grad(w.sum(), [w], allow_unused=False, materialize_grads=True), "makes zeros"),
        (lambda w: torch.nn.Linear(2, 3).load_state_dict({"w": w}), r"Missing .*'weight', 'bias'; Unexpected .*'w'"),
        (lambda w: torch.nn.Linear(2, 3).load_state_dict({"weight": w}), r"found \(2,\), expected \(3, 2\)"),
    ],
)
def test_what_cannot_be_says_why(call: Any, told: str):
    with pytest.raises((AppError, TypeError, ValueError), match=told):
        call(torch.ones(2, requires_grad=True))


@pytest.mark.parametrize(
    "change",
    [
        lambda x: x.requires_grad_(),
        lambda x: torch.tensor([1], requires_grad=True),
        lambda x: torch.tensor(["a"]),
        lambda x: torch.from_numpy([1, 2]),
        lambda x: (torch.ones(1, requires_grad=True) * 2).requires_grad_(False),
        lambda x: torch.zeros(2, 2, 2).t(),
        lambda x: torch.nn.functional.cross_entropy(torch.ones(2, 2), torch.ones(2)),
        lambda x: torch.std(torch.ones(3), correction=5),
        lambda x: x.narrow(0, 1, 2),
        lambda x: x.narrow(1, 0, 1),
        lambda x: x.select(1, -1),
        lambda x: torch.trace(torch.ones(1, 2, 2)),
        lambda x: torch.nn.functional.nll_loss(torch.ones(3), torch.tensor(-1)),
    ],
)
def test_what_cannot_be_is_refused(change: Any):
    with pytest.raises((AppError, ValueError)):
        change(torch.tensor([1, 2]))


def test_sizes_may_be_zero():
    assert torch.zeros(0, 3).reshape(3, 0).shape == (3, 0)
    assert torch.ones(2, 0).sum().item() == 0.0


def test_element_types_are_names_of_the_framework():
    assert torch.float32 == "float32"
    assert repr(torch.float64) == str(torch.float64) == f"{torch.float64}" == "torch.float64"
    assert np.zeros(1, torch.int8).dtype == np.int8
    assert pickle.loads(pickle.dumps(torch.float32)) is torch.float32
    assert torch.zeros(1, dtype=float).dtype is torch.float32
    assert torch.int64.itemsize == 8
    assert not torch.uint8.is_signed


# Devices


def test_there_is_the_cpu_alone():
    assert torch.device("cpu") == torch.device("cpu")
    assert repr(torch.device("cpu")) == "device(type='cpu')"
    for wish in (lambda: torch.device("cuda"), lambda: torch.ones(1).to("cuda:0"), lambda: torch.ones(1, device="mps")):
        with pytest.raises(RuntimeError, match="values are computed on the CPU"):
            wish()
    with pytest.raises(RuntimeError, match="values are computed on the CPU"):
        nn.Linear(1, 1).to("cuda")
    assert not torch.cuda.is_available()
    assert not torch.accelerator.is_available()
    assert not torch.backends.mps.is_available()
    assert torch.accelerator.current_accelerator() is None


# Optimisers


def test_settings_that_are_not_there_are_refused():
    w = torch.ones(1, requires_grad=True)
    with pytest.raises(ValueError, match=r"lr_decay is 0 in this façade, found 0.1"):
        torch.optim.Adagrad([w], lr_decay=0.1)
    with pytest.raises(ValueError, match="Nesterov momentum requires a momentum"):
        torch.optim.SGD([w], lr=0.1, nesterov=True)


def test_a_state_of_other_groups_is_refused():
    one = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=0.1)
    two = torch.optim.SGD([torch.ones(1, requires_grad=True) for _ in range(2)], lr=0.1)
    with pytest.raises(ValueError, match="other groups of parameters"):
        one.load_state_dict(two.state_dict())


def test_a_loaded_state_is_put_into_the_tensors_that_are_there():
    def stepped() -> Any:
        w = torch.ones(2, requires_grad=True)
        optimizer = torch.optim.SGD([w], lr=0.1, momentum=0.9)
        (w * 3).sum().backward()
        optimizer.step()
        return optimizer

    kept, other = stepped(), stepped()
    (mine,), (theirs,) = ([s["momentum_buffer"] for s in o.state.values()] for o in (kept, other))
    theirs.mul_(2)
    kept.load_state_dict(other.state_dict())
    assert next(iter(kept.state.values()))["momentum_buffer"] is mine
    assert mine.tolist() == theirs.tolist() == [6.0, 6.0]


def test_a_random_seed_is_returned_and_repeats_what_was_drawn():
    seed = torch.seed()
    drawn = torch.rand(3)
    torch.manual_seed(seed)
    assert torch.rand(3).tolist() == drawn.tolist()


def test_normal_takes_a_mean_and_a_deviation_for_each_element():
    means = torch.tensor([1.0, 5.0])
    assert torch.normal(means, 0.0).tolist() == [1, 5]
    assert torch.normal(2.0, torch.zeros(2)).tolist() == [2, 2]


def test_a_schedule_goes_on_from_its_state():
    def make() -> Any:
        optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
        return optimizer, torch.optim.lr_scheduler.StepLR(optimizer, 2)

    _, first = make()
    for _ in range(3):
        first.step()
    optimizer, second = make()
    second.load_state_dict(first.state_dict())
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.1)
    second.step()
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.01)


# Files


def test_a_whole_module_is_not_written(tmp_path: Any):
    path = tmp_path / "model.pt"
    with pytest.raises(AppError, match=r"a whole Sequential is code .* save model.state_dict\(\)"):
        torch.save(nn.Sequential(nn.Linear(2, 3)), path)
    assert not path.exists()


def test_a_file_of_pytorch_gives_tensors_of_this_facade():
    loaded = torch.load(ROOT / "tests" / "io" / "pytorch_2_13.pth", map_location="cpu", weights_only=False)
    network = nn.Sequential(nn.Linear(3, 2))
    network.load_state_dict(loaded["model"])
    optimizer = torch.optim.Adam(network.parameters())
    optimizer.load_state_dict(loaded["optimizer"])
    assert optimizer.state_dict()["state"][0]["step"].item() == 1.0
    assert repr(loaded["view"]) == "tensor([2., 3.])"
    assert type(loaded["p"]) is nn.Parameter


def test_a_pickle_is_not_opened(tmp_path: Any):
    path = tmp_path / "pickled.pt"
    path.write_bytes(pickle.dumps({"a": 1}))
    with pytest.raises(AppError, match="pickle"):
        torch.load(path)
    with pytest.raises(RuntimeError, match="CPU"):
        torch.load(path, map_location="cuda:0")


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


# What programs begin with, and where they import from


def test_preambles_of_seeds():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    assert torch.get_num_threads() == 1
    torch.set_num_threads(threads)
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.deterministic = True
    torch.use_deterministic_algorithms(True)
    torch.set_default_device("cpu")
    assert (torch.are_deterministic_algorithms_enabled(), torch.backends.cudnn.version()) == (True, None)
    with pytest.raises(RuntimeError, match="CPU"):
        torch.set_default_device("cuda")
    with pytest.raises(ValueError, match="found 'hihg'"):
        torch.set_float32_matmul_precision("hihg")


def test_deep_paths_lead_to_the_same_classes():
    assert torch.nn.modules.Linear is torch.nn.modules.linear.Linear is nn.Linear
    assert torch.nn.modules.module.Module is nn.Module
    assert torch.nn.modules.loss.MSELoss is nn.MSELoss
    assert torch.utils.data.sampler.RandomSampler is torch.utils.data.RandomSampler
    assert torch.utils.data.dataset.TensorDataset is torch.utils.data.TensorDataset
    assert issubclass(torch.optim.lr_scheduler.StepLR, torch.optim.lr_scheduler._LRScheduler)
    assert torch.optim.optimizer.Optimizer is torch.optim.Optimizer


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


# Other functions


def test_gather_and_scatter_take_an_index_smaller_than_the_value():
    x = torch.arange(6.0).reshape(3, 2).requires_grad_()
    picked = x.gather(1, torch.tensor([[1], [0]]))
    picked.sum().backward()
    assert picked.tolist() == [[1.0], [2.0]]
    assert x.grad.tolist() == [[0.0, 1.0], [1.0, 0.0], [0.0, 0.0]]
    assert x.detach().scatter(1, torch.tensor([[1]]), 9.0).tolist() == [[0.0, 9.0], [2.0, 3.0], [4.0, 5.0]]
    assert x.grad_fn is None
    assert type(picked.grad_fn).__name__ == "GatherBackward0"


@pytest.mark.parametrize(
    "change",
    [
        lambda v: (v.t_().mul_(2), v.t())[1],
        lambda v: (v.t_(), v.t_(), v.mul_(2), v)[3],
        lambda v: (v.view(-1), v.t_())[0].mul_(2).view(2, 3),
        lambda v: (v.view(-1).mul_(2), v.t())[1].t(),
    ],
)
def test_gradients_follow_changes_in_place_of_transposed_values(change: Any):
    x = torch.ones(2, 3, requires_grad=True)
    weights = torch.arange(6.0).reshape(2, 3)
    (change(x * 1) * weights).sum().backward()
    assert torch.equal(x.grad, 2 * weights)


def test_a_value_follows_its_view_after_a_change_of_shape():
    x = torch.ones(2, 3, requires_grad=True)
    value = x * 1
    view = value.view(-1)
    value.t_()
    view.mul_(2)
    weights = torch.arange(6.0).reshape(3, 2)
    (value * weights).sum().backward()
    assert torch.equal(x.grad, 2 * weights.t())
