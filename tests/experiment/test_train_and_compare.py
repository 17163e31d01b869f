"""`train`, `compare`, `check` and `inspect` from Python: operators as objects, and their results."""

import doctest
import json
import os
import pickle
import re
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from runs_of_train import images as tiny_images

import app
from app.custom.lookup import on_the_shelf
from app.data import load
from app.data.sample import load_sample
from app.errors import AppError, ConfigError, FileError, GradcheckError, MissingFileError, OperatorError, ShapeError
from app.experiment.calls import activation_of

__all__ = ["tiny_images"]

pytestmark = pytest.mark.slow

TINY = {"source": "tiny", "engine": "reference", "hidden": [4], "epochs": 1, "batch_size": 20}
QUICK = {**TINY, "costs": False, "report": False, "quiet": True, "check": False}
LAYERED = {key: value for key, value in QUICK.items() if key != "hidden"}
CHECKED = {**LAYERED, "check": True}


@app.custom_op
def relu(x):
    return np.maximum(x, 0)


relu.backward(lambda x, dy: dy * (x > 0))


class Rectified(app.autograd.PyLayer):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return app.maximum(x, 0.0 * x)

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensor()
        return dy * (x > 0.0).astype(dy.dtype)


def scaled(x):
    return app.tanh(x) * 1.5


def of_a_cell(name, body):
    """A function as a cell of a notebook defines it."""
    cell = {"app": app, "__name__": "__main__"}
    exec(f"def {name}(x):\n    return {body}\n", cell)
    return cell[name]


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch, tiny_images):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(tiny_images, "tiny")


@pytest.fixture
def images(_folder):
    return load("tiny").test_images


@pytest.fixture(scope="module")
def digits():
    return load_sample().test_images[:20]


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """A run and a comparison."""
    better = {**QUICK, "source": "sample", "hidden": [16], "batch_size": 200, "learning_rate": 0.03}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("results"))
        run = app.train(activation=scaled, baseline="tanh", **better)
        return run, app.compare(["relu", "tanh"], seeds=2, **better)


@pytest.fixture
def run(results):
    return results[0]


@pytest.fixture
def comparison(results):
    return results[1]


# --- Operators ---


def test_an_operator_of_a_cell_trains_beside_the_built_in_one():
    result = app.train(of_a_cell("swish", "x * app.sigmoid(x)"), "silu", **QUICK)
    assert list(result.epochs) == ["swish", "silu"]
    one, other = (epochs[0][-1].test_accuracy for epochs in result.epochs.values())
    assert one == pytest.approx(other, abs=0.002)
    assert result.config.train.epochs == 1


def test_every_kind_of_operator_is_compared():
    result = app.compare([app.relu, relu, Rectified, "custom.relu"], seeds=1, **QUICK)
    names = list(result.epochs)
    assert (names[0], names[3]) == ("relu", "custom.relu")
    assert [name.rpartition(":")[2] for name in names[1:3]] == ["relu", "Rectified"]
    assert [difference.identical for difference in result.differences] == [True, True, True]


def layers(*own):
    return [*({"type": "dense", "units": 4, "activation": operator} for operator in own), {"type": "dense", "units": 4}]


def named(run):
    """The operators of the run's layers."""
    return [getattr(layer, "activation", "") for layer in run.config.model.all_layers]


@pytest.mark.parametrize("own", [relu, Rectified, scaled], ids=["custom_op", "PyLayer", "function"])
def test_a_layer_takes_an_operator_as_an_object(own, images):
    run = app.train("tanh", None, **LAYERED, layers=layers(own, "tanh"))
    again = app.train(own, "tanh", **LAYERED, layers=layers(own, app.tanh))
    assert named(run) == [again.operators[0], "tanh", True]
    np.testing.assert_array_equal(again["tanh"].predict(images), run.predict(images))


def test_operators_of_layers_are_checked_and_compared():
    compared = app.compare(["tanh", "relu"], 1, **CHECKED, layers=layers(Rectified, on_the_shelf("custom.relu")))
    assert len(compared["tanh"].accuracies) == 1
    assert named(compared)[1] == "custom.relu"


def test_operators_of_a_session_are_asked_for_again(images):
    def swish(x):
        return x * app.sigmoid(x)

    square = lambda x: app.tanh(x) * 2.0  # noqa: E731
    run = app.train(square, None, **LAYERED, layers=layers(swish))
    message = r"^a_lambda, swish cannot be imported, .*call opsmith.open_run\('.*', \[a_lambda, swish\]\)"
    for again in (pickle.loads(pickle.dumps(run)), app.open_run(run.folder)):
        assert again.metrics == run.metrics
        with pytest.raises(ConfigError, match=message):
            again.predict(images)
    again = app.open_run(run.folder, [square, swish])
    np.testing.assert_array_equal(again.predict(images), run.predict(images))
    (run.folder / "summary.txt").unlink()  # as if it had not come to its end
    with pytest.raises(
        ConfigError, match=r"^a_lambda, swish cannot be imported, because .* opsmith.resume\(.*swish\]\)"
    ):
        app.resume(run.folder, quiet=True)
    again = app.resume(run.folder, [square, swish], quiet=True)
    assert again.metrics["test_accuracy"] == run.metrics["test_accuracy"]


def test_an_operator_of_a_session_never_has_the_name_of_a_built_in_one(images):
    relu = of_a_cell("relu", "app.tanh(x)")
    run = app.train(relu, "relu", **QUICK)
    assert run.operators == ["own_relu", "relu"]
    with pytest.raises(ConfigError, match=r"^own_relu cannot be imported, .*open_run\('.*', \[relu\]\)"):
        app.open_run(run.folder).predict(images)
    with pytest.raises(ConfigError, match="own_relu cannot be imported"):
        app.open_run(run.folder, ["relu"]).predict(images)
    np.testing.assert_array_equal(app.open_run(run.folder, [relu]).predict(images), run.predict(images))
    with pytest.raises(ConfigError, match="two different operators are called own_relu"):
        app.compare([relu, of_a_cell("relu", "x * 0.5")], 1, **QUICK)


def test_a_ufunc_has_its_name_and_not_that_of_a_file_of_numpy():
    assert (activation_of(np.tanh).name, activation_of(np.square).home) == ("own_tanh", "")


@pytest.mark.parametrize(
    ("written", "name"), [("relu", "own_relu"), ("swish", "swish"), ("<lambda>", "a_lambda"), ("A.f", "A_f")]
)
def test_an_operator_of_another_framework_is_named_like_one_of_ours(written, name):
    class Foreign(Rectified):
        foreign = SimpleNamespace(name=written, thing=None, home="__main__", framework=None, functions=[])

    assert activation_of(Foreign).name == name


def test_an_operator_that_was_defined_in_another_way_resumes_no_run():
    stopping = stopping_at(130)
    with pytest.raises(KeyboardInterrupt):
        app.train(stopping, None, **{**QUICK, "engine": "eager", "output": "stopped", "epochs": 50})
    assert Path("stopped/checkpoint.safetensors").exists()
    with pytest.raises(OperatorError, match=r"the source of stopping, .* has changed since"):
        app.resume("stopped", [of_a_cell("stopping", "app.sigmoid(x)")], quiet=True)


def stopping_at(count):
    calls = []

    def stopping(x):
        calls.append(1)
        if len(calls) == count:
            raise KeyboardInterrupt
        return app.tanh(x)

    return stopping


def test_an_interrupted_run_of_such_an_operator_resumes_when_it_is_passed():
    stopping = stopping_at(5)
    with pytest.raises(KeyboardInterrupt, match=r"Resume with:\nopsmith.resume\('stopped', \[stopping\]\)"):
        app.train(stopping, None, **{**QUICK, "engine": "eager", "output": "stopped"})
    with pytest.raises(ConfigError, match=r"stopping cannot be imported.*opsmith.resume\('stopped', \[st"):
        app.resume("stopped", quiet=True)
    with pytest.raises(ConfigError, match=r"the run in stopped has no operator scaled; it has stopping"):
        app.resume("stopped", [of_a_cell("scaled", "app.tanh(x)")], quiet=True)
    assert len(app.resume("stopped", [stopping], quiet=True).metrics["epochs"]) == 1


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"hidden": {30, 20}}, r"hidden: \{\d+, \d+\} is a set, which has no order; write a list"),
        ({"seed": 2**63}, "seed: 9223372036854775808 is not a number of at most 64 bits"),
        ({"layers": [{"type": "dense", "units": -(2**70)}]}, r"layers: -\d+ is not a number of at most 64 bits"),
        ({"output": "a\0b"}, r"output: 'a\\x00b': text with a null character"),
        ({"data": {"folder": "\udcff"}}, r"data: '\\udcff': text with .* half a surrogate pair cannot name anything"),
    ],
)
def test_settings_that_no_file_of_a_run_can_hold_are_errors(setting, message):
    with pytest.raises(ConfigError, match=f"^opsmith.train: {message}"):
        app.train("tanh", None, **{**QUICK, **setting})
    assert os.listdir() == ["tiny"]


def test_a_configuration_that_a_call_names_runs_its_operators(tmp_path):
    (tmp_path / "ops.py").write_text("def double(x):\n    return x * 2.0\n")
    for model in (
        "{activation: 'ops.py:double'}",
        "{layers: [{type: dense, units: 4, activation: 'ops.py:double'}, {type: dense, units: 4}]}",
    ):
        (tmp_path / "mine.yaml").write_text(f"model: {model}")
        run = app.train(baseline=None, config="mine.yaml", **LAYERED)
        assert "ops.py:double" in (run.config.model.activation, named(run)[0])
        app.inspect(config="mine.yaml")


def test_calls_honour_every_key_of_a_configuration_unless_an_argument_overrides_it(tmp_path):
    (tmp_path / "alone.yaml").write_text("baseline: null")
    assert list(app.train("relu", config="alone.yaml", **QUICK).epochs) == ["relu"]
    assert list(app.train("relu", "tanh", config="alone.yaml", **QUICK).epochs) == ["relu", "tanh"]
    (tmp_path / "mine.yaml").write_text("baseline: tanh\nmodel: {activation: sigmoid}")
    assert list(app.train(config="mine.yaml", **QUICK).epochs) == ["sigmoid", "tanh"]
    assert list(app.train("relu", None, config="mine.yaml", **QUICK).epochs) == ["relu"]
    (tmp_path / "both.yaml").write_text("seeds: 2\noperators: [elu, silu]")
    by_file = app.compare(config="both.yaml", **QUICK)
    assert [(one, len(epochs)) for one, epochs in by_file.epochs.items()] == [("elu", 2), ("silu", 2)]
    by_call = app.compare(["relu", "tanh"], 1, config="both.yaml", **QUICK)
    assert [(one, len(epochs)) for one, epochs in by_call.epochs.items()] == [("relu", 1), ("tanh", 1)]
    assert list(app.compare(seeds=1, config="mine.yaml", **QUICK).epochs) == ["tanh", "sigmoid"]


def test_workers_of_an_executor_find_operators_by_their_files(tmp_path, monkeypatch):
    (tmp_path / "my_own_ops.py").write_text("import app\ndef double(x):\n    return x * 2.0\n")
    monkeypatch.syspath_prepend(tmp_path)
    import my_own_ops

    with ThreadPoolExecutor(1) as executor:
        settings = {**LAYERED, "executor": executor, "seeds": 1}
        result = app.compare(["relu", my_own_ops.double], **settings)
        beside = app.compare(["relu", "tanh"], **settings, layers=layers(my_own_ops.double))
        for operators, more in ((["relu", lambda x: x], {}), (["relu", "tanh"], {"layers": layers(lambda x: x)})):
            with pytest.raises(ConfigError, match=r"^a_lambda cannot be found by the workers of an executor"):
                app.compare(operators, **settings, **more)
    assert list(result.epochs) == ["relu", "my_own_ops.py:double"]
    assert list(beside.epochs) == ["relu", "tanh"]
    del sys.modules["my_own_ops"]


ONE, OTHER = of_a_cell("one", "x * 1.0"), of_a_cell("one", "x * 2.0")


@pytest.mark.parametrize(
    ("call", "arguments", "settings", "message"),
    [
        (app.train, ["relu"], {"epochs": -1}, r"opsmith.train: train.epochs: found -1, expected a whole number"),
        (app.train, ["relu"], {"epoch": 1}, r"opsmith\.train has no setting 'epoch'; did you mean 'epochs'\?"),
        (app.train, [5], {}, "an operator, a function of one value or a name is expected, found 5"),
        (app.train, [ONE], {"layers": layers(OTHER)}, "two different operators are called one; give each a name of"),
        (app.compare, [[ONE, OTHER]], {}, "two different operators are called one; give each a name of its own"),
        (app.compare, ["relu"], {}, r"takes a list of operators, found 'relu'; write \['relu', swish\]"),
        (app.inspect, ["relu", "sauce"], {}, "there is no stage 'sauce'"),
    ],
    ids=["value", "key", "no operator", "two of one name", "two compared", "no list", "no stage"],
)
def test_wrong_arguments_are_errors(call, arguments, settings, message):
    with pytest.raises(ConfigError, match=message):
        call(*arguments, **settings)


def wrong_gradient():
    operator = app.custom_op(lambda x: 3.0 * x, name="wrong", elementwise=True)
    operator.backward(lambda x, dy: dy)
    return operator


def test_a_wrong_gradient_of_a_layers_operator_ends_a_run_before_it_begins():
    with pytest.raises(GradcheckError, match=r"^wrong: gradient is wrong"):
        app.train("tanh", None, **CHECKED, layers=layers(wrong_gradient()))


# --- Results ---


def test_a_run_has_the_metrics_the_weights_and_the_network_of_its_operator(run, digits):
    name = run.operators[0]
    assert run.operators == [name, "tanh"]
    assert run.metrics == run[name].metrics == run["scaled"].metrics
    assert run.metrics["test_accuracy"] == run.epochs[name][0][-1].test_accuracy > 0.3
    assert [epoch["epoch"] for epoch in run.metrics["epochs"]] == [0]
    assert run.weights["layers.0.weight"].shape == (784, 16)
    assert run.network(app.to_tensor(digits[:3])).shape == [3, 10]
    with pytest.raises(ConfigError, match=r"there is no 'gelu' in this run; there are .*tanh"):
        run["gelu"]


def test_predict_returns_the_digits_of_the_reported_accuracy(run):
    data = load_sample()
    digits = run.predict(data.test_images)
    assert (digits == data.test_labels).mean() == pytest.approx(run.metrics["test_accuracy"])
    pictures = data.test_images.reshape(-1, 28, 28)
    np.testing.assert_array_equal(run.predict(pictures[:5]), digits[:5])
    assert run.predict(pictures[0]) == digits[0]
    assert isinstance(run.predict(data.test_images[0]), int)
    with pytest.raises(ShapeError, match=r"images of 784 bytes each \(uint8, 0 to 255.*found float64\[2, 784\]"):
        run.predict(data.test_images[:2] / 255)
    for shape in ((784, 3), (28, 28, 3), (14, 56), (28, 56)):
        with pytest.raises(ShapeError, match=re.escape(f"rows of 784 pixels or 28 x 28, found uint8{list(shape)}")):
            run.predict(np.zeros(shape, np.uint8))


def test_a_network_whose_scores_are_nan_predicts_nothing(images):
    run = app.train("relu", None, **QUICK)
    for weight in run.weights.values():
        weight.fill(np.nan)
    with pytest.raises(OperatorError, match=r"the scores of relu's network are NaN for \d+ of \d+ images, .* diverged"):
        run.predict(images)


def test_figures_are_rows_and_plain_data(results, comparison):
    for result in results:
        assert json.loads(json.dumps(result.to_dict()))["metrics"].keys() == set(result.operators)
        accuracies = [row["test_accuracy"] for row in result.table]
        assert accuracies == sorted(accuracies, reverse=True)
    (best, _) = comparison.table
    assert best["low"] < best["test_accuracy"] < best["high"]
    assert best["test_accuracy"] == np.mean(comparison[best["operator"]].accuracies)
    assert comparison.to_dict()["seeds"] == [0, 1]
    assert "validation_accuracy" in comparison["relu"].metrics


def test_a_result_prints_as_its_table(run, comparison):
    assert str(run) == repr(run)
    assert f"test accuracy  {run.metrics['test_accuracy']:.4f}" in str(run)
    assert "Tested over seeds" in str(comparison)


def test_a_notebook_shows_the_ranking_curves_and_verdicts(run, comparison):
    page = run._repr_html_()
    assert page.count("<figure") == 2
    assert "scaled</code>" in page
    compared = comparison._repr_html_()
    assert compared.count('class="forest"') == 2
    ranked = sorted(comparison, key=lambda name: -comparison[name].metrics["validation_accuracy"])
    assert re.findall("<code>(.*?)</code></th>", compared) == ranked
    assert re.search(
        "With 2 seeds: tanh (does not differ significantly|differs) from relu in validation accur", compared
    )


def test_a_page_of_someone_else_is_replaced_only_if_it_is_named(run):
    Path("report.html").write_text("mine")
    with pytest.raises(FileError, match=r"report.html exists and was not written by this program; write report\("):
        run.report()
    assert Path("report.html").read_text() == "mine"
    assert run.report("report.html") == run.report() == Path("report.html")


def test_the_report_is_written_to_a_file(run, tmp_path):
    page = run.report(tmp_path / "swish.html")
    assert page == tmp_path / "swish.html"
    assert "scaled" in page.read_text(encoding="utf-8")
    lost = pickle.loads(pickle.dumps(run))
    lost.folder = tmp_path / "gone"
    with pytest.raises(MissingFileError, match=r"made from the run's folder, but .*gone no longer exists"):
        lost.report()


def test_pickled_results_predict(run, comparison, digits):
    for result, name in ((comparison, "relu"), (run, "tanh")):
        again = pickle.loads(pickle.dumps(result))
        np.testing.assert_array_equal(again[name].predict(digits), result[name].predict(digits))
        assert str(again) == str(result)


def test_a_pickled_result_refuses_an_operator_that_has_changed(images):
    Path("my_ops.py").write_text("import app\n\ndef own(x):\n    return 2.0 * app.tanh(x)\n")
    run = app.train("my_ops.py:own", None, **QUICK)
    pickled = pickle.dumps(run)
    np.testing.assert_array_equal(pickle.loads(pickled).predict(images), run.predict(images))
    Path("my_ops.py").write_text("import app\n\ndef own(x):\n    return 3.0 * app.tanh(x)\n")
    with pytest.raises(
        OperatorError, match=r"source of my_ops.py:own, .*, has changed since the run in .* trained with it. Restore"
    ):
        pickle.loads(pickled).predict(images)


# --- opsmith.check and opsmith.inspect, and the examples of all ---


def test_a_check_is_a_list_and_raises_nothing():
    findings = app.check(relu, only=["gradient", "untouched"])
    assert findings.ok
    assert [verdict.check for verdict in findings] == ["gradient", "untouched"]
    assert str(findings).startswith("relu  custom_op, ")
    failing = app.check(wrong_gradient(), only=["gradient"])
    assert not failing.ok
    assert [verdict.check for verdict in failing.failed] == ["gradient"]
    assert not app.check("nowhere.py:swish").ok
    assert not app.check(5).ok
    assert app.check(scaled, like=scaled, only=["like"]).ok


def test_inspect_shows_an_operator_a_program_and_a_network():
    (source,) = app.inspect("custom.relu", "source")
    assert "def train(" in source.text
    program = app.static.Program()
    with app.static.program_guard(program, app.static.Program()):
        app.tanh(app.static.data("x", [None, 3]))
    assert "tanh" in str(app.inspect(program, "main"))
    assert "object at 0x" not in f"{program!r} {program.global_block()!r}"
    assert "float32[-1, 7]" in str(app.inspect(stage="main", activation=scaled, hidden=[7]))
    for batch in (0, -5, 2.5):
        with pytest.raises(AppError, match=f"batch must be a whole number of at least 1, found {batch}"):
            app.inspect(program, "memory", batch=batch)


@pytest.mark.parametrize("name", ["train", "compare", "check", "inspect"])
def test_the_examples_of_help_run(name):
    Path("configs").mkdir()
    source, batch_size = ("sample", 64) if name == "train" else ("../tiny", 20)
    settings = f"data: {{source: {source}}}\nengine: reference\ncosts: false\nreport: false\n"
    Path("configs/quick.yaml").write_text(f"{settings}train: {{batch_size: {batch_size}, learning_rate: 0.02}}\n")
    function = getattr(app, name)
    assert ">>>" in function.__doc__
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    for test in doctest.DocTestFinder(recurse=False).find(function, name, globs={"opsmith": app}):
        runner.run(test)
    assert runner.summarize(verbose=False).failed == 0
