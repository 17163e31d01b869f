"""Operators of PyTorch are checked and trained as they are."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import app
from app.__main__ import main
from app.checking import exhaustive
from app.checking.before_training import check_gradient
from app.testing import check_operator

torch = pytest.importorskip("torch", reason="PyTorch is not installed (the extra `bridge`)")

import torch_functions as operators  # noqa: E402

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A copy of the operators for the command, which runs it: PyTorch frees an operator whose name is defined again."""
    copy = tmp_path_factory.mktemp("copy") / "torch_functions.py"
    copy.write_text(Path(operators.__file__).read_text().replace("opsmith_tests::", "opsmith_tests_copy::"))
    return str(copy)


def says(operator: Any, check: str) -> str:
    """What one check says of an operator."""
    return "\n".join(f"{v.state} {v.words}" for v in app.check(operator, only=[check]))


RIGHT = [
    operators.MyReLU,
    operators.Swish,
    operators.NumpyExp,
    operators.plain,
    operators.Module,
    operators.FirstColumn,
]


@pytest.mark.parametrize("operator", RIGHT, ids=lambda one: one.__name__)
def test_a_right_operator_passes_every_check(operator: Any):
    assert check_operator(operator).ok


@pytest.mark.parametrize(
    ("operator", "check", "message"),
    [
        ("KeptInBuffer", "kept", "a second call changes the result of the first"),
        ("ReadsMemory", "layout", "give another gradient"),
        ("SumOnly", "layout", "gradients with strides of zero, as y.sum() sends them, raise RuntimeError"),
        ("Cycle", "leak", "keep tensors with ctx.save_for_backward"),
        ("OneOutput", "one output", "with only output 0 used, backward raises"),
        ("ForgetsNeeds", "alone", "when only b needs a gradient, the gradient of b is wrong"),
        ("WrongJvp", "forward", "is jvp right?"),
        ("AbsoluteTangent", "forward", "is jvp right?"),
        ("WrongVmap", "vmap", "under torch.vmap, output 0 is wrong"),
        ("turned", "fake", "register_fake says that output 0 has shape"),
    ],
)
def test_a_mistake_is_found(operator: str, check: str, message: str):
    report = says(getattr(operators, operator), check)
    assert report.startswith("FAILED")
    assert message in report


def test_what_is_refused_with_an_error_is_a_note_unless_it_was_asked_for():
    assert says(operators.MyReLU, "vmap").startswith("note no torch.vmap: ")
    assert says(operators.NumpyExp, "second").startswith("note there is none: ")
    with pytest.raises(AssertionError, match=r"vmap: no torch\.vmap"):
        check_operator(operators.MyReLU, also=["vmap"], only=["gradient"])
    assert check_operator(operators.Swish, also=["vmap", "forward"], only=["gradient"]).ok


class Scaler:
    def __call__(self, x: Any) -> Any:
        return torch.tanh(x) * 2


@pytest.mark.parametrize(
    ("operator", "kind"),
    [
        (partial(torch.nn.functional.leaky_relu, negative_slope=0.3), "partial: leaky_relu"),
        (Scaler(), "Scaler: __call__"),
        (Scaler().__call__, "method: __call__"),
    ],
    ids=["partial", "object", "method"],
)
def test_what_calls_a_function_of_pytorch_is_refused_with_what_to_write(operator: Any, kind: str):
    (verdict,) = app.check(operator)
    assert f"is a {kind}, which it calls, is written for torch" in verdict.words
    assert "give a function, def f(x: torch.Tensor): return ..." in verdict.words


def test_a_straight_through_estimator_declares_itself():
    assert says(operators.Round, "gradient").startswith("ok declared a surrogate")


PRODUCT = {"shapes": [(4, 6), (6, 3)]}


@pytest.mark.parametrize(
    ("operator", "options"),
    [
        (operators.Kernel, {"like": "softmax"}),
        (operators.KernelOfProduct, PRODUCT),
        (operators.CastsToFloat32, {"like": torch.exp}),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_a_right_operator_that_computes_in_float32_only_passes(operator: Any, options: dict[str, Any]):
    verdicts = check_operator(operator, **options)
    assert next(v.words for v in verdicts if v.check == "types").startswith("it computes in float32 only")
    arrays = [torch.from_numpy(np.linspace(-1, 1, 24, dtype="float32").reshape(4, 6))]
    if operator is not operators.KernelOfProduct:
        assert check_operator(operator.apply, *arrays, only=["gradient"]).ok


@pytest.mark.parametrize(
    ("operator", "options", "message"),
    [
        (operators.KernelWithoutSum, {}, "finite differences give"),
        (operators.KernelWithoutSum, {"only": ["like"], "like": "softmax"}, "softmax gives"),
        (operators.KernelOfHalfProduct, PRODUCT, "it is half of what it should be"),
        (operators.CastsAndForgets, {}, "it is 1.02 times what it should be"),
    ],
    ids=["sum", "like", "half", "1.02"],
)
def test_a_mistake_is_found_in_float32(operator: Any, options: dict[str, Any], message: str):
    with pytest.raises(AssertionError) as raised:
        check_operator(operator, **options)
    assert message in str(raised.value)
    assert "float32[" in str(raised.value)


def test_the_gradient_of_an_operator_in_float32_is_checked_before_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("OPSMITH_CACHE", str(tmp_path))
    for operator, state in ((operators.Kernel, "agrees"), (operators.CastsAndForgets, "wrong")):
        result = check_gradient(app.custom_op(operator), operator.__name__)
        assert result is not None
        assert result.state == state


def test_settings_are_passed_on():
    assert check_operator(operators.leaky, slope=0.25, only=["gradient", "settings", "opcheck"]).ok
    assert "needs its setting 'slope'" in str(app.check(operators.leaky))


def test_an_example_call_gives_the_inputs_and_keeps_whole_numbers():
    x = torch.linspace(-1, 1, 6).reshape(2, 3)
    verdicts = check_operator(operators.take, x, torch.tensor([0, 2, 2]), 1)
    assert verdicts.ok
    assert len(verdicts) > 10


def test_floats_without_gradient_are_constants_of_an_example_call_if_others_need_one():
    x, mask, weight = torch.rand(4, 3), torch.tensor([1.0, 0.0, 1.0]), torch.rand(4, 3, requires_grad=True)
    verdicts = check_operator(operators.Masked.apply, x, mask, weight, 1.0)
    assert verdicts.ok
    assert len(verdicts) > 10
    with pytest.raises(AssertionError, match=r"that of x is wrong(?s:.*)mask float64\[3\] without gradient") as wrong:
        check_operator(operators.Masked.apply, x, mask, weight, 1.01)
    assert str(wrong.value).count("requires_grad=True") == 1
    with pytest.raises(AssertionError, match=r"that of mask is wrong.*an example call in which others have requires_"):
        check_operator(operators.Masked.apply, x, mask, weight.detach(), 1.0)


def test_a_backward_that_raises_on_an_example_call_is_named_by_its_line():
    class Half(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, dy):
            return torch.zeros(4).index_add(0, torch.arange(4), dy)

    x = torch.rand(4, dtype=torch.float64, requires_grad=True)
    with pytest.raises(AssertionError, match=r"FAILED  gradient: RuntimeError: .* \(test_from_torch.py:\d+\)"):
        check_operator(Half.apply, x, only=["gradient"])


def test_an_example_call_may_have_a_tensor_without_axes_beside_others():
    x, slope = torch.linspace(-1, 1, 6, requires_grad=True), torch.tensor(0.25, requires_grad=True)
    assert check_operator(torch.nn.functional.prelu, x, slope, only=["gradient", "proportional", "second"]).ok


def test_pytorchs_own_checks_take_an_example_call():
    example = torch.linspace(-1, 1, 6, dtype=torch.float64)
    assert [v.state for v in check_operator(operators.leaky, example, 0.5, only=["opcheck"])] == ["ok"]


def test_an_operator_of_matrices_is_not_blamed_for_three_axes():
    assert check_operator(operators.FirstColumn, torch.rand(4, 6, generator=torch.manual_seed(0))).ok


def test_it_is_compared_with_an_operator_of_ours_or_of_pytorch():
    assert check_operator(operators.MyReLU, like=torch.relu, only=["like"]).ok
    assert check_operator(operators.MyReLU, like="relu", only=["like"]).ok
    with pytest.raises(AssertionError, match="like: on drawn numbers the result is wrong"):
        check_operator(operators.MyReLU, like=torch.tanh, only=["like"])


def test_a_failure_can_be_pasted():
    with pytest.raises(AssertionError) as raised:
        check_operator(operators.Halved.apply, shapes=[(3, 2)], seed=5)
    message = str(raised.value)
    for fact in (
        "Halved  torch.autograd.Function, torch_functions.py:",
        "backward (torch_functions.py:",
        "finite differences give",
        "checked on x float64[3, 2] in [-2, 2], contiguous, seed 5",
        f"torch {torch.__version__}",
        "    from torch_functions import Halved",
        "    check_operator(Halved.apply, shapes=[(3, 2)], only=['gradient'], seed=5)",
    ):
        assert fact in message


def test_what_the_command_prints_can_be_pasted_too(file: str, capsys: pytest.CaptureFixture[str]):
    assert main(["check", f"{file}:Halved", "--only", "gradient", "--shape", "3,2"]) == 1
    shown = capsys.readouterr().out
    for fact in (
        "Halved  torch.autograd.Function, ",
        "torch_functions.py:",
        "finite differences give",
        "checked on x float64[3, 2] in [-2, 2], contiguous, seed 0",
        f"torch {torch.__version__}, NumPy {np.__version__}",
        "    import numpy, torch\n",
        "    from torch_functions import Halved\n",
        "    check_operator(Halved.apply, shapes=[(3, 2)], only=['gradient'])\n",
    ):
        assert fact in shown
    assert main(["check", f"{file}:MyReLU", "--only", "gradient"]) == 0
    assert "This shows it" not in capsys.readouterr().out


@pytest.mark.slow
def test_the_script_of_a_failure_shows_it(tmp_path: Path):
    x = torch.linspace(-1, 1, 6).reshape(2, 3)
    with pytest.raises(AssertionError) as raised:
        check_operator(operators.Halved.apply, x)
    _, _, script = str(raised.value).partition("This shows it:\n")
    (tmp_path / "shows.py").write_text("\n".join(line.strip() for line in script.splitlines()))
    done = subprocess.run(
        [sys.executable, tmp_path / "shows.py"], cwd=HERE, capture_output=True, text=True, check=False,
        env={"PYTHONPATH": f"{HERE}:{HERE.parents[1]}"},
    )  # fmt: skip
    assert "it is half of what it should be" in done.stderr


def test_the_command_checks_the_operators_that_a_file_defines(file: str, capsys: pytest.CaptureFixture[str]):
    assert main(["check", f"{file}:Halved", "--only", "gradient", "--json"]) == 1
    assert '"operator": "Halved", "check": "gradient", "state": "FAILED"' in capsys.readouterr().out
    assert main(["check", f"{file}:leaky", "--set", "slope=0.1", "--like", "leaky_relu(negative_slope=0.1)"]) == 0
    assert "ok      like           the results equal those of leaky_relu" in capsys.readouterr().out


def test_an_operator_that_ends_the_process_is_a_finding(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "crash.py").write_text(
        "import ctypes\nimport torch\n"
        "class Crash(torch.autograd.Function):\n"
        "    @staticmethod\n    def forward(ctx, x):\n        return x.clone()\n"
        "    @staticmethod\n    def backward(ctx, dy):\n        return dy if dy.numel() else ctypes.string_at(0)\n"
    )
    assert main(["check", str(tmp_path / "crash.py"), "--only", "empty batch,rows"]) == 1
    shown = capsys.readouterr().out
    assert (
        "FAILED  empty batch    it ends the process, with SIGSEGV: native code uses memory that is not its own; call it"
        in shown
    )
    assert "ok      rows" in shown


def test_one_that_ends_the_process_at_some_number_is_a_finding_and_one_in_float32_needs_an_exact_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "odd.py").write_text(
        "import ctypes\nimport torch\n"
        "class Crash(torch.autograd.Function):\n"
        "    @staticmethod\n    def forward(ctx, x):\n"
        "        return ctypes.string_at(0) if x.isnan().any() else x * 2\n"
        "    @staticmethod\n    def backward(ctx, dy):\n        return dy * 2\n"
        "class Single(torch.autograd.Function):\n"
        "    @staticmethod\n    def forward(ctx, x):\n        return x.float().sin().to(x.dtype)\n"
        "    @staticmethod\n    def backward(ctx, dy):\n        return dy * 0\n"
    )
    monkeypatch.setattr(exhaustive.certificate, "__defaults__", (("float16",),))
    assert main(["check", str(tmp_path / "odd.py:Crash"), "--exhaustive"]) == 1
    assert "FAILED  runs           it ends the process, with SIGSEGV" in capsys.readouterr().out
    assert main(["check", str(tmp_path / "odd.py:Single"), "--exhaustive"]) == 2
    assert "Single computes in float32 whatever it is given" in capsys.readouterr().err
    assert main(["check", str(tmp_path / "odd.py:Single"), "--exhaustive", "--like", "sin"]) == 1
    shown = capsys.readouterr().out
    assert "ok      result         float16: at most 0.5 ULP" in shown
    assert "FAILED  gradient       float16: it is wrong at" in shown


# As an ordinary operator


def test_it_runs_on_tensors_and_in_programs_of_both_engines():
    relu = app.custom_op(operators.MyReLU)
    array = np.linspace(-2, 2, 24, dtype="float32").reshape(4, 6)
    x = app.to_tensor(array, stop_gradient=False)
    y = relu(x)
    y.sum().backward()
    np.testing.assert_array_equal(y.numpy(), np.maximum(array, 0))
    np.testing.assert_array_equal(x.grad.numpy(), array > 0)
    for engine in ("reference", "compiled"):
        with app.static.program_guard(app.static.Program(), app.static.Program()):
            data = app.static.data("x", [None, 6], "float32")
            data.stop_gradient = False
            out = relu(data)
            (gradient,) = app.static.gradients([out], [data])
            results = app.static.Executor(engine=engine).run(feed={"x": array}, fetch_list=[out, gradient])
        np.testing.assert_array_equal(results[0], np.maximum(array, 0))
        np.testing.assert_array_equal(results[1], array > 0)


def test_a_saved_program_refers_to_it(tmp_path: Path):
    leaky = app.custom_op(operators.leaky)
    array = np.linspace(-1, 1, 12, dtype="float32").reshape(2, 6)
    x = app.static.data("x", [None, 6], "float32")
    y = app.custom_op(operators.MyReLU)(leaky(x, slope=0.5) + 0.25)
    app.static.save_inference_model(str(tmp_path / "saved"), [x], [y])
    with pytest.raises(app.errors.OperatorError, match=r"torch_functions\.py:leaky"):
        app.static.load_inference_model(str(tmp_path / "saved"))
    program, _, outputs = app.static.load_inference_model(str(tmp_path / "saved"), custom_ops=[operators])
    (result,) = app.static.Executor().run(program, feed={"x": array}, fetch_list=outputs)
    expected = np.maximum(np.where(array > 0, array, array / 2) + 0.25, 0)
    np.testing.assert_allclose(result, expected, rtol=1e-6)


def test_a_second_forward_pass_does_not_change_the_gradient_of_the_first():
    swish = app.custom_op(operators.Swish)
    first, second = (app.to_tensor(np.full(3, v), stop_gradient=False) for v in (0.5, -1.0))
    y = swish(first)
    swish(second)
    y.sum().backward()
    s = 1 / (1 + np.exp(-0.5))
    np.testing.assert_allclose(first.grad.numpy(), np.full(3, s * (1 + 0.5 * (1 - s))))


def test_an_input_that_changes_before_backward_is_an_error():
    relu = app.custom_op(operators.MyReLU)
    base = app.to_tensor(np.ones(3), stop_gradient=False)
    x = base * 1.0
    y = relu(x)
    with app.no_grad():
        x.add_(app.to_tensor(np.ones(3)))
    with pytest.raises(app.errors.InPlaceError):
        y.sum().backward()


def in_place(x):
    x.add_(1.0)
    return torch.mul(x, 2.0)


def test_a_change_of_an_input_is_an_error_of_a_gradient_that_needs_it_and_in_a_program():
    operator = app.custom_op(in_place)
    x = app.to_tensor(np.ones(3), stop_gradient=False)
    factor = app.to_tensor(np.ones(3))
    y = x * factor
    assert operator(factor).tolist() == [4.0] * 3
    with pytest.raises(app.errors.InPlaceError):
        y.sum().backward()
    with pytest.raises(app.errors.OperatorError, match="changes an input in place: give a function that calls it with"):
        operator(app.static.data("x", [3], "float64"))


def test_a_module_that_changes_its_buffers_is_refused_in_a_program_and_keeps_them():
    module = torch.nn.BatchNorm1d(4, affine=False)
    operator = app.custom_op(module)
    x = app.static.data("x", [None, 4], "float32")
    with pytest.raises(app.errors.OperatorError, match=r"BatchNorm1d changes its buffers .* call eval\(\) first"):
        operator(x)
    assert module.running_mean.tolist() == [0.0] * 4
    assert int(module.num_batches_tracked) == 0
    module.eval()
    array = np.arange(8, dtype="float32").reshape(2, 4)
    (result,) = app.static.Executor().run(feed={"x": array}, fetch_list=[operator(x)])
    np.testing.assert_allclose(result, array, rtol=1e-4)


def test_random_numbers_that_a_gradient_would_draw_again_are_refused():
    dropout = app.custom_op(torch.nn.Dropout(0.5))
    x = app.to_tensor(np.ones((20, 20)), stop_gradient=False)
    y = dropout(x)
    with pytest.raises(app.errors.AppError, match="draws random numbers, and would draw others where"):
        app.grad(y.sum(), x, create_graph=True)
    traced = app.jit.to_static(lambda x: dropout(x), backend="reference")
    first, second = traced(x), traced(x)
    with pytest.raises(app.errors.AppError, match="draws random numbers, and would draw others where"):
        first.sum().backward()
    second.sum().backward()
    assert np.array_equal(x.grad.numpy(), second.numpy())
    v = app.static.data("v", [20, 20], "float64")
    v.stop_gradient = False
    y = app.static.nn.cond(v.sum() > 0, lambda: dropout(v), lambda: v)
    with pytest.raises(app.errors.OperatorError, match="draws random numbers in a branch or a loop"):
        app.static.gradients([y], [v])


def test_a_loaded_layer_has_the_gradient_of_its_inputs(tmp_path: Path):
    class Net(app.nn.Layer):
        def forward(self, x: Any) -> Any:
            return app.custom_op(operators.MyReLU)(x) + 2 * x

    app.jit.save(Net(), str(tmp_path / "net"), input_spec=[app.static.InputSpec([None, 3], "float64")])
    net = app.jit.load(str(tmp_path / "net"), custom_ops=[operators])
    x = app.to_tensor(np.array([[-1.0, 1.0, 2.0]]), stop_gradient=False)
    net(x).sum().backward()
    assert x.grad.numpy().tolist() == [[2.0, 3.0, 3.0]]


def dropped(x: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.dropout(x, 0.5)


def test_random_numbers_of_a_loaded_layer_are_refused_where_they_would_be_drawn_again(tmp_path: Path):
    class Net(app.nn.Layer):
        def forward(self, x: Any) -> Any:
            if x.sum() > 0:
                x = app.custom_op(dropped)(x)
            return x

    app.jit.save(Net(), str(tmp_path / "net"), input_spec=[app.static.InputSpec([20], "float64")])
    for again in ("again", "once more"):
        net = app.jit.load(str(tmp_path / "net"), custom_ops=[f"{__file__}:dropped"])
        with pytest.raises(app.errors.OperatorError, match="draws random numbers in a branch or a loop"):
            net(app.to_tensor(np.ones(20), stop_gradient=False)).sum().backward()
        app.jit.save(net, str(tmp_path / again), input_spec=[app.static.InputSpec([20], "float64")])


def test_a_module_that_raises_keeps_its_buffers():
    class Raising(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros(()))

        def forward(self, x):
            self.count += 1
            raise ValueError("no")

    module = Raising()
    with pytest.raises(app.errors.AppError, match="no"):
        app.custom_op(module)(app.static.data("x", [None, 4], "float32"))
    assert float(module.count) == 0


@pytest.mark.slow
def test_threads_that_share_a_program_get_their_own_results():
    x = app.static.data("x", [3], "float64")
    x.stop_gradient = False
    y = app.custom_op(operators.MyReLU)(x)
    fetched, program = [y, *app.static.gradients([y], [x])], app.static.default_main_program()

    def all_right(number: int) -> bool:
        executor = app.static.Executor(engine="reference")
        runs = [executor.run(program, {"x": np.full(3, number + i)}, fetched) for i in range(200)]
        return all(run[0][0] == number + i and run[1][0] == 1.0 for i, run in enumerate(runs))

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as threads:
            assert all(threads.map(all_right, (1.0, 1000.0, 2000.0, 3000.0)))
    finally:
        sys.setswitchinterval(interval)


nn = app.nn  # as `from opsmith import nn` in a user's file


def of_an_attribute(x):
    return torch.nn.functional.silu(x)


def test_the_name_of_an_attribute_names_no_variable_of_the_file():
    x = app.to_tensor(np.ones(2))
    assert app.custom_op(of_an_attribute)(x).numpy() == pytest.approx(1 / (1 + np.exp(-np.ones(2))))


@pytest.fixture
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
def test_it_trains_beside_the_built_in_operator(file: str, in_folder: Path):
    config = HERE.parents[1] / "configs" / "quick.yaml"
    result = app.compare(["relu", f"{file}:MyReLU"], 1, config=config, epochs=1, engine="reference", quiet=True)
    (expected,) = result["relu"].accuracies
    assert result[f"{file}:MyReLU"].accuracies == [pytest.approx(expected, abs=0.02)]
    trained = app.train(operators.MyReLU, config=config, epochs=1, engine="reference", quiet=True)
    assert [trained[name].accuracies for name in trained.operators] == [[pytest.approx(expected, abs=0.02)]] * 2


def test_nothing_of_pytorch_is_imported_with_opsmith():
    code = (
        "import opsmith, opsmith.testing, sys; opsmith.check('custom.relu', only=['gradient']);"
        "print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=HERE.parents[1])
    assert done.stdout.strip() == "False"
