"""What a run keeps of its operators: the inputs that the network gave them, their curves and their sources."""

import importlib
from unittest.mock import Mock

import numpy as np
import pytest

import app
from app.errors import FileError
from app.run import descriptions
from app.run.activation import Activation, find_activation
from app.run.descriptions import PLACES, curve_of, dead_share, histogram_of, source_texts
from app.run.network import trained_network

pytestmark = pytest.mark.slow


def test_the_inputs_of_an_operator_are_those_of_the_network_and_draw_no_numbers_of_the_process(learner, tiny):
    (config, dataset), place = tiny, app.get_rng_state()
    operator, weights = Activation("drawn", lambda x: app.tanh(x) + app.randn([1, 5])), learner("eager").weights()
    network = trained_network(config, operator, dataset.image_shape, weights)
    ((inputs, _),) = network.operator_values(dataset.test_images)
    pixels = dataset.test_images.astype(np.float32) / 127.5 - 1
    np.testing.assert_allclose(inputs, pixels @ weights["layers.0.weight"] + weights["layers.0.bias"], atol=1e-5)
    assert network.scores(dataset.test_images).tolist() == network.scores(dataset.test_images).tolist()
    assert app.get_rng_state() == place


def test_units_that_are_zero_on_every_image_are_dead():
    first = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
    assert dead_share([(first, first), (first, np.ones((2, 1)))]) == 0.5
    assert dead_share([]) is None


def test_a_histogram_counts_all_finite_numbers():
    histogram = histogram_of([np.array([[0.0, 1.0], [2.0, np.nan]]), np.array([np.inf, 4.0])])
    assert (histogram.low, histogram.high, sum(histogram.counts), histogram.not_finite) == (0.0, 4.0, 4, 2)
    same = histogram_of([np.full(3, 5.0)])
    assert (same.low, same.high) == (4.0, 6.0)
    assert histogram_of([np.array([np.nan])]) is None


def test_a_curve_has_both_derivatives():
    @app.custom_op(elementwise=True)
    def cube(x):
        return x * x * x

    cube.backward(lambda x, dy: dy * x * x)  # which is a third of it
    curve = curve_of(Activation("cube", cube), -2.0, 2.0)
    x = np.array(curve.x)
    assert len(x) == PLACES[0] * PLACES[1]
    np.testing.assert_allclose(np.array(curve.y, float), x**3)
    np.testing.assert_allclose(np.array(curve.slope, float), x**2)
    np.testing.assert_allclose(np.array(curve.differences, float), 3 * x**2, atol=1e-5)
    for name in ("softmax", "custom.prelu"):  # not elementwise; with parameters
        assert curve_of(find_activation(name), -1.0, 1.0) is None


def test_a_step_function_without_a_gradient_has_a_curve():
    step = app.custom_op(lambda x: np.sign(x), name="step")
    curve = curve_of(Activation("step", step), -2.0, 2.0)
    assert set(curve.y) == {-1.0, 0.0, 1.0}
    assert set(curve.slope) == {0.0}


def test_sources_are_those_of_both_functions():
    texts = source_texts(find_activation("custom.relu"))
    assert list(texts) == ["definition", "forward", "backward"]
    assert "def relu_backward(y" in texts["backward"]
    assert list(source_texts(find_activation("custom.swish"))) == ["forward", "derived backward"]
    assert source_texts(find_activation("relu")) == {}


def test_the_text_of_a_file_that_was_edited_since_its_import_is_no_source(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "changing_ops.py").write_text("import app\n\n@app.custom_op\ndef twice(x):\n    return 2 * x\n")
    operator = importlib.import_module("changing_ops").twice
    (tmp_path / "changing_ops.py").write_text("import app\n\n@app.custom_op\ndef twice(x):\n    return x + x * x\n")
    assert source_texts(Activation("twice", operator)) == {}


def test_a_run_keeps_descriptions_and_the_report_shows_them(train):
    run = train("report=true", "check=true", "model.activation=custom.swish")
    results = descriptions.read_descriptions(run.folder)
    assert list(results) == ["custom.swish", "relu"]
    assert sum(results["custom.swish"].histogram.counts) == 20 * 5
    page = (run.folder / "report.html").read_text(encoding="utf-8")
    for text in ("chart-operator-slopes", "def swish(x: float)", "gradient agrees with finite differences"):
        assert text in page


def test_an_operator_that_raises_has_an_empty_description(tiny):
    broken = Mock(**{"operator_values.side_effect": ValueError})
    description = descriptions.describe(find_activation("relu"), broken, tiny[1].test_images)
    assert description == descriptions.Description("relu")


@pytest.mark.parametrize(
    "text", ["", "[1]", '[{"operator": "a", "curve": {"x": [1, 2], "y": [1], "slope": [1], "differences": [1]}}]']
)
def test_a_damaged_file_is_refused(tmp_path, text):
    (tmp_path / "operators.json").write_text(text)
    with pytest.raises(FileError, match=r"operators.json is damaged or was edited"):
        descriptions.read_descriptions(tmp_path)
