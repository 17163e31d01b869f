"""The buffer plan halves, at least, the memory of one buffer for each variable; and what is said of it is so."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

import app
from app import static
from app.__main__ import main
from app.inspection.memory import needs, operators_of
from app.inspection.subject import of_configuration, of_function

ROOT = Path(app.__file__).parents[1]
SEED = ("--config", str(ROOT / "configs" / "seed.yaml"))
DEEP = (str(ROOT / "examples" / "networks.py") + ":deep",)


@pytest.fixture
def memory(capsys: pytest.CaptureFixture[str]) -> Callable[..., list[int]]:
    """What `inspect --stage memory` says: bytes as built, after the passes, and planned; then those of each buffer."""

    def run(*words: str) -> list[int]:
        assert main(["inspect", *words, "--stage", "memory"]) == 0
        return [int(n.replace(",", "")) for n in re.findall(r"([\d,]+) bytes", capsys.readouterr().out)]

    return run


@pytest.mark.parametrize(
    "words",
    [SEED, pytest.param(DEEP, marks=pytest.mark.soak)],  # docs/the-program.md has the figures of the second
    ids=["reference", "64 layers"],
)
def test_the_plan_needs_at_most_half_of_one_buffer_for_each_variable(words: tuple[str, ...], memory: Callable):
    built, after, planned, *buffers = memory(*words)
    assert planned <= built / 2
    assert planned < after < built
    assert sum(buffers) == planned


def test_memory_grows_with_the_batch(memory: Callable):
    small, some, large = (memory(*SEED, "--batch", batch) for batch in ("1", "20", "1000"))
    assert small[0] < some[0]
    assert (large[0] - small[0]) / 999 == pytest.approx((some[0] - small[0]) / 19)
    assert large[2] > 20 * small[2]


def test_the_memory_of_a_variable_is_its_size_times_that_of_its_type():
    subject = of_configuration(SEED[1], [])
    built = needs(subject.main, subject.fetch, 256)
    assert built.apart["cast.out_0"] == 256 * 784 * 4
    assert built.apart["linear_0.w_0@GRAD"] == 784 * 100 * 4
    assert not {"image", "label", "linear_0.w_0", "learning_rate_0"} & set(built.apart)
    assert built.bytes_apart == sum(built.apart.values())


def test_the_deep_network_has_64_hidden_layers():
    block = of_function(*DEEP).main.global_block()
    assert len([op for op in block.ops if op.definition.where and op.role == "forward"]) == 64


def test_operators_inside_control_flow_count():
    x = static.data("x", [None, 4])
    static.nn.cond(app.sum(x) > 0.0, lambda: app.tanh(x), lambda: app.exp(x) + x)
    block = static.default_main_program().global_block()
    assert len(list(operators_of(block))) == len(block.ops) + 3
