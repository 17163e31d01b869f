"""Schedules: the rate of every epoch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from app.errors import AppError
from app.optimizer import SGD, lr

CASES: list[tuple[Any, list[float]]] = [
    (lr.LRScheduler(0.5), [0.5] * 5),
    (lr.StepDecay(0.8, step_size=2), [0.8, 0.8, 0.08, 0.08, 0.008, 0.008]),
    (lr.StepDecay(0.8, step_size=1, gamma=0.5), [0.8, 0.4, 0.2, 0.1, 0.05]),
    (lr.LambdaDecay(0.5, lambda epoch: 1 / (1 + epoch)), [0.5, 0.25, 0.5 / 3, 0.125, 0.1]),
    (
        lr.CosineAnnealingDecay(1.0, T_max=4),
        [1.0, 0.5 + np.sqrt(0.125), 0.5, 0.5 - np.sqrt(0.125), 0.0, 0.5 - np.sqrt(0.125)],
    ),
    (lr.CosineAnnealingDecay(1.0, T_max=2, eta_min=0.2), [1.0, 0.6, 0.2, 0.6, 1.0]),
    (lr.PolynomialDecay(1.0, decay_steps=4, end_lr=0.2), [1.0, 0.8, 0.6, 0.4, 0.2, 0.2, 0.2]),
    (lr.PolynomialDecay(1.0, decay_steps=2, end_lr=0.0, power=2.0), [1.0, 0.25, 0.0, 0.0]),
    (lr.StepDecay(0.8, step_size=2, gamma=0.5, last_epoch=1), [0.4, 0.4, 0.2]),
    (lr.PolynomialDecay(0.5, 2, 0.1, cycle=True), [0.5, 0.3, 0.1, 0.2, 0.1, 0.1 + 0.4 / 6]),
]


@pytest.mark.parametrize(("schedule", "rates"), CASES)
def test_rates(schedule: lr.LRScheduler, rates: list[float]):
    chosen, actual = SGD(schedule), []
    for _ in rates:
        assert schedule() == chosen.get_lr()
        actual.append(chosen.get_lr())
        schedule.step()
    np.testing.assert_allclose(actual, rates, rtol=1e-12, atol=1e-15)


def test_a_schedule_can_go_to_an_epoch():
    schedule = lr.StepDecay(0.8, step_size=2, gamma=0.5)
    rates = []
    for epoch in (5, 0, 2):
        schedule.step(epoch)
        rates.append(schedule.get_lr())
    assert rates == [0.2, 0.8, 0.4]


def test_a_schedule_resumes_from_its_state():
    schedule, resumed = lr.StepDecay(0.5, 2), lr.StepDecay(0.5, 2)
    for _ in range(5):
        schedule.step()
    resumed.set_state_dict(schedule.state_dict())
    assert resumed.state_dict() == schedule.state_dict()
    for each in (schedule, resumed):
        each.step()
    assert resumed() == schedule()
    with pytest.raises(AppError, match="last_lr missing"):
        schedule.set_state_dict({k: v for k, v in schedule.state_dict().items() if k != "last_lr"})


def test_verbose_prints_every_rate(capsys: pytest.CaptureFixture[str]):
    lr.StepDecay(0.5, 1, 0.5, verbose=True).step()
    assert capsys.readouterr().out == (
        "Epoch 0: StepDecay set learning rate to 0.5.\nEpoch 1: StepDecay set learning rate to 0.25.\n"
    )
