"""Code for processors other than this one, which LLVM makes here: AVX2, and NEON of ARM's."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest
from numba.core import config

import app
from app import static
from app.engine import Executor
from app.engine.compiled import byte_products, convolutions, vectors
from app.engine.compiled.convolutions import Weight, Windows
from app.engine.compiled.numba_api import CPUCodeLibrary
from app.engine.compiled.vectors import Code

pytestmark = pytest.mark.slow

AVX2 = "+sse,+sse2,+avx,+avx2,+fma,-avx512f"
NEON = "+neon,+fp-armv8"


@pytest.fixture
def of(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, str], None]]:
    """Make code for a processor of this name and features, as `NUMBA_CPU_NAME` and `NUMBA_CPU_FEATURES` do."""

    def choose(name: str, features: str) -> None:
        monkeypatch.setattr(config, "CPU_NAME", name)
        monkeypatch.setattr(config, "CPU_FEATURES", features)
        vectors.lanes_of_machine.cache_clear()

    yield choose
    monkeypatch.undo()
    vectors.lanes_of_machine.cache_clear()


@functools.cache
def arm() -> Any:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple("aarch64-unknown-linux-gnu")
    return target.create_target_machine(cpu="neoverse-n1", features=NEON, opt=3)


@functools.cache
def assembly(text: str, machine: Any) -> str:
    """LLVM's code as instructions of a machine."""
    module = llvm.parse_assembly(re.sub(r'target (triple|datalayout) = ".*"', "", text))
    module.triple = machine.triple
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    passes = llvm.create_pass_builder(machine, options)
    passes.getModulePassManager().run(module, passes)
    return str(machine.emit_assembly(module))


@functools.cache
def vector_codes(lanes: int) -> list[Code]:
    """Every kind of function that is written in vector instructions."""
    windows, weight = Windows(2, (8, 8), (6, 6), (3, 3), (1, 1), (0, 0)), Weight(6, 2, 1, (3, 3))
    codes = [
        byte_products.product_code("made", 784, 100, lanes),
        byte_products.transposed_code("made", 784),
        byte_products.transposed_product_code("made", 100, lanes, adds=True),
    ]
    return [*codes, *(make(kind, windows, weight, lanes, (False,) * 3) for kind, make in convolutions.CODE.items())]


@pytest.mark.parametrize(
    ("name", "features", "lanes"), [("znver1", AVX2, 8), ("neoverse-n1", NEON, 4), ("skylake-avx512", "+avx512f", 16)]
)
def test_vectors_are_as_wide_as_those_of_the_processor(of: Any, name: str, features: str, lanes: int):
    of(name, features)
    assert vectors.lanes_of_machine() == lanes
    widths = [int(n) for code in vector_codes(lanes) for n in re.findall(r"<(\d+) x float>", code.text())]
    assert max(widths) == lanes


def test_sums_of_byte_products_stay_in_the_registers_of_arm(of: Any):
    of("neoverse-n1", NEON)
    product, _, transposed, *_ = vector_codes(4)
    for code in (product, transposed):
        lines = assembly(code.text(), arm()).splitlines()
        first = next(i for i, line in enumerate(lines) if "fmla" in line)
        begin = max(i for i in range(first) if lines[i].startswith("."))
        loop = lines[begin : next(i for i in range(first, len(lines)) if "\tb." in lines[i])]
        assert sum("fmla" in line for line in loop) == 25  # a hundred columns
        assert not any("sp" in re.findall(r"\w+", line) for line in loop)


def test_vector_functions_are_instructions_of_arm(of: Any):
    of("neoverse-n1", NEON)
    for code in vector_codes(4):
        text = code.text()
        assert "x86" not in text
        assert "fmla" in assembly(text, arm()) or "fmul" not in text


def test_a_network_becomes_instructions_of_arm(monkeypatch: pytest.MonkeyPatch):
    """What Numba and the engine write before LLVM optimises it has no instruction of one family of processors."""
    texts: list[str] = []
    optimised = CPUCodeLibrary._optimize_final_module

    def read(library: Any) -> None:
        texts.append(str(library._final_module))
        optimised(library)

    monkeypatch.setattr(CPUCodeLibrary, "_optimize_final_module", read)
    scale = np.random.default_rng().normal()  # so that no cache has the code
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup):
        x = static.data("x", [None, 20], "float32")
        y = app.exp(static.nn.fc(x * float(scale), 6))
        loss = app.mean(y * y)
        app.optimizer.SGD(0.1).minimize(loss)
    executor = Executor(engine="compiled")
    executor.run(startup)
    executor.run(main, feed={"x": np.ones((3, 20), np.float32)}, fetch_list=[loss])
    text = max(texts, key=len)
    assert "x86" not in re.sub(r'target (triple|datalayout) = ".*"', "", text)
    code = assembly(text, arm())
    assert re.search(r"\tf(mla|mul|add)\tv\d+\.4s", code)
