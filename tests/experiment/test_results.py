"""What `app.train` and `app.compare` give, and `app.check`: objects that print, pickle and are shown in notebooks."""

import doctest
import json
import pickle
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import app
from app.data.sample import load_sample
from app.errors import ConfigError, MissingFileError, OperatorError, ShapeError
from app.experiment import calls

pytestmark = pytest.mark.slow

QUICK = {
    "source": "sample",
    "engine": "reference",
    "hidden": [16],
    "costs": False,
    "report": False,
    "epochs": 1,
    "batch_size": 200,
    "learning_rate": 0.03,
    "quiet": True,
}


@pytest.fixture(scope="module", autouse=True)
def _folder(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("results"))
        yield


def scaled(x):
    return app.tanh(x) * 1.5


@pytest.fixture(scope="module")
def run(_folder):
    return app.train(activation=scaled, baseline="tanh", **QUICK)


@pytest.fixture(scope="module")
def comparison(_folder):
    return app.compare(["relu", "tanh"], seeds=2, **QUICK)


def test_a_run_has_the_metrics_the_weights_and_the_network_of_its_operator(run):
    name = run.operators[0]
    assert run.operators == [name, "tanh"]
    assert run.metrics == run[name].metrics == run["scaled"].metrics
    assert run.metrics["test_accuracy"] == run.epochs[name][0][-1].test_accuracy > 0.3
    assert [epoch["epoch"] for epoch in run.metrics["epochs"]] == [0]
    assert {path: w.shape for path, w in run.weights.items()}["layers.0.weight"] == (784, 16)
    assert run.network(app.to_tensor(load_sample().test_images[:3])).shape == [3, 10]
    with pytest.raises(ConfigError, match=r"there is no 'gelu' in this run; there are .*tanh"):
        run["gelu"]


def test_predict_gives_the_digits_that_the_accuracy_counted(run):
    data = load_sample()
    digits = run.predict(data.test_images)
    assert (digits == data.test_labels).mean() == pytest.approx(run.metrics["test_accuracy"])
    pictures = data.test_images.reshape(-1, 28, 28)
    np.testing.assert_array_equal(run.predict(pictures[:5]), digits[:5])
    assert run.predict(pictures[0]) == digits[0]
    assert isinstance(run.predict(data.test_images[0]), int)
    with pytest.raises(ShapeError, match=r"images of 784 bytes each \(uint8, 0 to 255.*found float64\[2, 784\]"):
        run.predict(data.test_images[:2] / 255)


def test_figures_are_rows_and_plain_data(run, comparison):
    for result in (run, comparison):
        assert json.loads(json.dumps(result.to_dict()))["metrics"].keys() == set(result.operators)
        accuracies = [row["test_accuracy"] for row in result.table]
        assert accuracies == sorted(accuracies, reverse=True)
    (best, _) = comparison.table
    assert best["low"] < best["test_accuracy"] < best["high"]
    assert best["test_accuracy"] == np.mean(comparison[best["operator"]].accuracies)
    assert comparison.to_dict()["seeds"] == [0, 1]
    assert "validation_accuracy" in comparison["relu"].metrics


def test_a_terminal_prints_the_table(run, comparison):
    assert str(run) == repr(run)
    assert f"test accuracy  {run.metrics['test_accuracy']:.4f}" in str(run)
    assert "Tested over seeds" in str(comparison)


def test_the_report_goes_to_a_file_of_ones_choice(run, tmp_path):
    page = run.report(tmp_path / "swish.html")
    assert page == tmp_path / "swish.html"
    assert "scaled" in page.read_text(encoding="utf-8")
    lost = pickle.loads(pickle.dumps(run))
    lost.folder = tmp_path / "gone"
    with pytest.raises(MissingFileError, match=r"made from the run's folder, but .*gone no longer exists"):
        lost.report()


def test_results_pickle_and_go_on_predicting(run, comparison):
    images = load_sample().test_images[:20]
    again = pickle.loads(pickle.dumps(comparison))
    np.testing.assert_array_equal(again["relu"].predict(images), comparison["relu"].predict(images))
    assert str(again) == str(comparison)
    kept = pickle.loads(pickle.dumps(run))
    np.testing.assert_array_equal(kept["tanh"].predict(images), run["tanh"].predict(images))


def test_an_operator_of_a_session_is_saved_as_source_and_asked_for_again():
    run = app.train(lambda x: app.tanh(x) * 2.0, None, **QUICK)
    assert "lambda x: app.tanh(x) * 2.0" in (run.folder / "operator-a_lambda.py").read_text()
    images = load_sample().test_images[:20]
    digits = run.predict(images)
    kept = pickle.loads(pickle.dumps(run))
    assert "app.tanh(x) * 2.0" in kept["a_lambda"].source
    with pytest.raises(
        OperatorError, match=r"a_lambda cannot be imported, .*a pickle holds only its source.*result\['a_lambda'\].use"
    ):
        kept.predict(images)
    kept["a_lambda"].use(lambda x: app.tanh(x) * 2.0)
    np.testing.assert_array_equal(kept.predict(images), digits)


def test_a_run_of_such_an_operator_goes_on_when_it_is_handed_over(monkeypatch):
    calls = []

    def stopping(x):
        calls.append(1)
        if len(calls) == 5:
            raise KeyboardInterrupt
        return app.tanh(x)

    with pytest.raises(KeyboardInterrupt):
        app.train(stopping, None, **{**QUICK, "engine": "eager", "output": "stopped"})
    told = Path("stopped/summary.txt").read_text()
    assert "No epoch finished" in told
    with pytest.raises(ConfigError, match=r"stopping cannot be imported.*app.resume\('stopped', \[st"):
        app.resume("stopped", quiet=True)
    with pytest.raises(ConfigError, match=r"the run in stopped has no operator scaled; it has stopping"):
        app.resume("stopped", [scaled_elsewhere()], quiet=True)
    run = app.resume("stopped", [stopping], quiet=True)
    assert run.metrics["test_accuracy"] > 0.3


def scaled_elsewhere():
    cell = {"app": app, "__name__": "__main__"}
    exec("def scaled(x):\n    return app.tanh(x)\n", cell)
    return cell["scaled"]


def test_where_statements_are_typed_an_interruption_gives_what_there_is(monkeypatch):
    monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    calls = []

    def stopping(x):
        calls.append(1)
        if len(calls) == 60:
            raise KeyboardInterrupt
        return app.tanh(x)

    run = app.train(stopping, None, **{**QUICK, "engine": "eager", "epochs": 50})
    assert run.interrupted
    assert 1 <= len(run.epochs["stopping"][0]) < 50
    assert "The run was stopped early" in str(run)


def test_a_check_is_a_list_and_raises_nothing():
    findings = app.check("custom.relu", only=["gradient", "untouched"])
    assert findings.ok
    assert [verdict.check for verdict in findings] == ["gradient", "untouched"]
    assert str(findings).startswith("custom.relu  py_func")

    @app.custom_op
    def wrong(x):
        return x * x

    @wrong.backward
    def wrong_grad(x, dy):
        return dy * x

    found = app.check(wrong, only=["gradient"])
    assert not found.ok
    assert [verdict.check for verdict in found.failed] == ["gradient"]
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
    assert "scaled" not in repr(program)
    assert "object at 0x" not in f"{program!r} {program.global_block()!r}"
    network = app.inspect(stage="main", activation=scaled, hidden=[7])
    assert "float32[-1, 7]" in str(network)
    with pytest.raises(ConfigError, match="there is no stage 'sauce'"):
        app.inspect(program, "sauce")


@pytest.mark.parametrize("name", ["train", "compare", "check", "inspect"])
def test_the_examples_of_help_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("configs").mkdir()
    settings = "data: {source: sample}\nengine: reference\ncosts: false\nreport: false\n"
    Path("configs/quick.yaml").write_text(settings + "train: {batch_size: 64, learning_rate: 0.02}\n")
    function, flags = getattr(app, name), doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    assert ">>>" in function.__doc__
    runner = doctest.DocTestRunner(optionflags=flags)
    for test in doctest.DocTestFinder(recurse=False).find(function, name, globs={"app": app}):
        runner.run(test)
    assert runner.summarize(verbose=False).failed == 0


def test_a_notebook_shows_the_ranking_curves_and_verdicts(run, comparison):
    page = run._repr_html_()
    assert page.count("<figure") == 2
    assert "scaled</code>" in page
    compared = comparison._repr_html_()
    assert compared.count('class="forest"') == 2
    ranked = sorted(comparison, key=lambda name: -comparison[name].metrics["validation_accuracy"])
    assert re.findall("<code>(.*?)</code></th>", compared) == ranked
    assert "With 2 seeds: tanh does not differ significantly from relu" in compared


def test_a_name_alone_is_no_list_of_operators():
    with pytest.raises(ConfigError, match=r"takes a list of operators, found 'relu'; write"):
        app.compare("relu")


def test_lambdas_are_told_apart():
    lambdas = [calls.activation_of(lambda x: x), calls.activation_of(lambda x: 2.0 * x), calls.activation_of("relu")]
    assert [one.name for one in calls._told_apart(lambdas)] == ["a_lambda", "a_lambda_2", "relu"]
