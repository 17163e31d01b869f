"""Model: fitting and its output, evaluation, prediction, callbacks, and files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import app
from app import io, metric, nn, optimizer, to_tensor
from app.errors import AppError
from app.model import Model, callbacks
from app.static import InputSpec


class Sides(io.Dataset):
    """Points, and whether their sum is above 0."""

    def __init__(self, count: int, seed: int = 0):
        self.points = np.random.default_rng(seed).normal(size=(count, 3)).astype("float32")

    def __getitem__(self, index: int) -> tuple[np.ndarray, np.int64]:
        return self.points[index], np.int64(self.points[index].sum() > 0)

    def __len__(self) -> int:
        return len(self.points)


def model(rate: Any = 0.1, metrics: Any = None, kind: Any = optimizer.SGD) -> Model:
    app.seed(0)
    made = Model(nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2)))
    made.prepare(kind(rate, parameters=made.parameters()), nn.CrossEntropyLoss(), metrics)
    return made


def test_fitting_learns_and_prints_its_progress(capsys: pytest.CaptureFixture[str]):
    made = model(0.5, metric.Accuracy())
    made.fit(Sides(100), Sides(30, 1), batch_size=10, epochs=2, log_freq=4)
    out = capsys.readouterr().out
    line = r"step +\d+/\d+ - loss: \d\.\d{4}(e-\d+)? - acc: \d\.\d{4}(e\+00)? - \d+(us|ms|s)/step\n"
    passes = rf"Epoch \d/2\n({line}){{3}}Eval begin\.\.\.\n({line}){{1}}Eval samples: 30\n"
    assert re.fullmatch(rf"The loss is that of .*\n({passes}){{2}}", out), out
    assert made.evaluate(Sides(200, 2), batch_size=50, verbose=0)["acc"] > 0.9
    assert capsys.readouterr().out == ""
    made.fit(Sides(40), batch_size=10, verbose=1, log_freq=2, shuffle=False)
    bars = capsys.readouterr().out.split("\n")[-2].split("\r")  # one line
    assert len(bars) == 3
    assert "step 2/4 [==============>...............] - loss: " in bars[1]
    assert "step 4/4 [==============================] - loss: " in bars[2]


def test_one_batch_is_evaluated_trained_and_predicted():
    made, x, y = model(metrics=metric.Accuracy(topk=(1, 2))), np.zeros((4, 3), "float32"), np.array([0, 1, 0, 1])
    (loss,), (shares,) = made.eval_batch([x], [y])
    assert (loss.shape, shares) == ((), [0.5, 1.0])
    before = made.network[0].bias.tolist()
    made.train_batch([x], [y], update=False)
    assert made.network[0].bias.tolist() == before
    assert made.network[2].bias.grad is not None
    made.train_batch([x], [y])
    assert made.network[2].bias.grad is None
    (found,) = made.predict_batch(x)
    assert (type(found), found.shape) == (np.ndarray, (4, 2))
    two = model()
    two.prepare(app.optimizer.SGD(0.1, two.network.parameters()), lambda y, labels: [y.sum(), (y * 2.0).sum()])
    one, double = two.train_batch([x], [y], update=False)
    assert double == 2 * one
    assert two.network[2].bias.grad.tolist() == [12.0, 12.0]
    assert [type(v) for v in model().train_batch([x], [y])] == [np.ndarray]


def test_gradients_of_several_batches_can_make_one_step():
    whole, parts = model(), model()
    data = Sides(40)
    whole.fit(data, batch_size=40, verbose=0, shuffle=False)
    parts._loss = lambda *given: nn.functional.cross_entropy(*given) / 4.0
    parts.fit(data, batch_size=10, verbose=0, shuffle=False, accumulate_grad_batches=4)
    for one, other in zip(whole.parameters(), parts.parameters(), strict=True):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-4, atol=1e-6)


def test_predictions_come_in_batches_or_as_one_array(capsys: pytest.CaptureFixture[str]):
    made, data = model(), Sides(5)
    (batches,) = made.predict(data, batch_size=2)
    assert [b.shape for b in batches] == [(2, 2), (2, 2), (1, 2)]
    assert "Predict samples: 5" in capsys.readouterr().out
    (whole,) = made.predict(data, batch_size=2, stack_outputs=True, verbose=0)
    np.testing.assert_allclose(whole, made.network(to_tensor(data.points)).numpy(), rtol=1e-6)


def test_a_loader_and_a_stream_can_be_fitted(capsys: pytest.CaptureFixture[str]):
    class Stream(io.IterableDataset):
        def __iter__(self) -> Any:
            return iter(Sides(7))

    made = model()
    made.fit(io.DataLoader(Sides(9), batch_size=3), verbose=0)
    made.fit(Stream(), batch_size=2, log_freq=3)
    assert [line.split(" - ")[0] for line in capsys.readouterr().out.splitlines()[2:]] == ["step 3", "step 4"]
    made.fit(Sides(100), batch_size=1, num_iters=2)
    assert "step 2/2" in capsys.readouterr().out


def test_num_iters_is_the_number_of_batches_of_all_epochs_as_in_paddle():
    for size, batches, expected in (
        (9, 5, [0, 1, 2, 0, 1]),
        (9, 6, [0, 1, 2, 0, 1, 2]),
        (9, 2, [0, 1]),
        (3, 2, [0, 0]),
    ):
        steps: list[int] = []

        class Counting(callbacks.Callback):
            def on_train_batch_end(self, step: int, logs: Any = None, steps: list[int] = steps) -> None:
                steps.append(step)

        model().fit(Sides(size), batch_size=3, num_iters=batches, verbose=0, callbacks=Counting())
        assert steps == expected
    with pytest.raises(AppError, match=r"num_iters does not go with eval_data; call evaluate\(\) after fit"):
        model().fit(Sides(9), Sides(9), num_iters=2)


def test_callbacks_are_called_at_every_moment():
    calls: list[str] = []

    class Recording(callbacks.Callback):
        def __getattribute__(self, name: str) -> Any:
            if name.startswith("on_"):
                return lambda *given: calls.append(name[3:])
            return super().__getattribute__(name)

    made = model()
    made.fit(Sides(4), Sides(2), batch_size=2, verbose=0, callbacks=Recording())
    batch = ["train_batch_begin", "train_batch_end"]
    evaluation = ["eval_begin", "eval_batch_begin", "eval_batch_end", "eval_end"]
    assert calls == ["train_begin", "epoch_begin", *batch * 2, "epoch_end", *evaluation, "train_end"]
    calls.clear()
    made.predict(Sides(1), verbose=0, callbacks=[Recording()])
    assert calls == ["predict_begin", "predict_batch_begin", "predict_batch_end", "predict_end"]


@pytest.mark.parametrize(
    ("given", "steps"), [(None, 6), (callbacks.LRScheduler(False, True), 2)], ids=["batch", "epoch"]
)
def test_the_rate_follows_its_schedule_by_batch_or_by_epoch(given: Any, steps: int):
    schedule = optimizer.lr.StepDecay(0.1, 100)
    model(schedule).fit(Sides(6), batch_size=2, epochs=2, verbose=0, callbacks=given)
    assert schedule.last_epoch == steps


def test_checkpoints_are_saved_at_epochs_and_at_the_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    model(kind=optimizer.Adam).fit(
        Sides(4), batch_size=2, epochs=3, verbose=0, save_dir=str(tmp_path / "kept"), save_freq=2
    )
    names = [f"{name}.{end}" for name in ("0", "2", "final") for end in ("pdopt", "pdparams")]
    assert sorted(p.name for p in (tmp_path / "kept").iterdir()) == names
    assert capsys.readouterr().out.splitlines()[-1] == f"save checkpoint at {tmp_path / 'kept' / 'final'}"


@pytest.mark.filterwarnings("ignore:.*missing, and stay as they are:UserWarning")
def test_saved_parameters_are_loaded(tmp_path: Path):
    made = model(kind=optimizer.Adam)
    made.fit(Sides(8), batch_size=2, verbose=0)
    made.save(str(tmp_path / "m"))
    for parameter in made.parameters():
        parameter.set_value(np.zeros(parameter.shape, "float32"))
    made.load(str(tmp_path / "m"))
    assert any(np.any(p.numpy()) for p in made.parameters())
    other = Model(nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 5)))
    with pytest.raises(AppError, match=r"2\.weight has shape \[8, 5\], the state dict has \[8, 2\]"):
        other.load(str(tmp_path / "m"))
    with pytest.warns(UserWarning, match=r"skipped, because shapes differ: 2\.weight, 2\.bias"):
        other.load(str(tmp_path / "m"), skip_mismatch=True)
    np.testing.assert_array_equal(other.network[0].weight.numpy(), made.network[0].weight.numpy())


def test_a_network_for_inference_is_saved_without_its_code(tmp_path: Path):
    net = nn.Sequential(nn.Linear(3, 2), nn.Dropout(0.5))
    Model(net, inputs=InputSpec([None, 3])).save(str(tmp_path / "net"), training=False)
    program, feed, _ = app.static.load_inference_model(str(tmp_path / "net"))
    assert [op.type for op in program.global_block().ops][:2] == ["matmul", "add"]
    assert len(feed) == 1


def test_the_number_of_inputs_is_that_of_the_network_or_of_the_specs():
    class Two(nn.Layer):
        def forward(self, x: Any, y: Any, scale: float = 1.0) -> Any:
            return x + y

    made = Model(Two())
    made.prepare(loss=nn.MSELoss())
    (loss,) = made.eval_batch([np.ones(2), np.ones(2)], [np.zeros(2)])
    assert loss.item() == 4.0
    data = io.TensorDataset([np.ones(4), np.ones(4), np.zeros(4)])
    assert made.evaluate(data, batch_size=2, verbose=0) == {"loss": [4.0]}
    assert Model(nn.ReLU(), inputs=[InputSpec([None, 3]), InputSpec([None])])._input_count == 2


def test_the_summary_counts_parameters(capsys: pytest.CaptureFixture[str]):
    with app.graph.names.guard():
        net = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2, weight_attr=nn.ParamAttr(trainable=False)))
    assert Model(net, inputs=InputSpec([None, 3])).summary() == {"total_params": 50, "trainable_params": 34}
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "-" * 75
    assert lines[3].split() == ["Linear-1", "[[1,", "3]]", "[1,", "8]", "32"]
    assert lines[4].split()[0] == "ReLU-1"
    assert lines[7:10] == ["Total params: 50", "Trainable params: 34", "Non-trainable params: 16"]
    assert app.summary(nn.Linear(3, 1), input=app.ones([2, 3]))["total_params"] == 4
    assert app.summary(nn.Embedding(5, 2), (4,), dtypes="int64")["total_params"] == 10
    assert net.training
    assert not net[0]._forward_post_hooks


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Model(lambda x: x), "Model takes a Layer, not function"),
        (lambda: model(metrics=["acc"]), "metrics are app.metric.Metric objects, not 'acc'"),
        (lambda: Model(nn.ReLU()).prepare(loss="mse"), "the loss is a Layer or a function"),
        (lambda: Model(nn.ReLU()).train_batch([np.zeros(1)]), r"call prepare\(optimizer, loss\) before training"),
        (lambda: model().fit(), "a data set, or a DataLoader, is needed"),
        (lambda: model().summary(), "Model.summary takes input_size="),
        (lambda: app.summary(nn.ReLU()), "summary takes input_size="),
        (lambda: model().save("x", training=False), r"needs to know the inputs: Model\(network, inputs="),
        (lambda: callbacks.LRScheduler(True, True), "by_step or by_epoch, not both"),
    ],
)
def test_wrong_arguments_are_errors(call: Any, message: str):
    with pytest.raises(AppError, match=message):
        call()
