"""Typical mistakes, in JAX's words: what `opsmith check` says names the mistake, its place, and how to mend it."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.__main__ import main

pytest.importorskip("jax", reason="JAX is not installed (the extra `bridge`)")

pytestmark = pytest.mark.slow

DEFINED = "theirs.defvjp(forward, backward)\n"


def function(
    result: str = "jnp.sin(x)",
    forward: str = "theirs(x), x",
    backward: str = "(dy * jnp.cos(x),)",
    parameters: str = "x, dy",
) -> str:
    """A file with a custom_vjp, which begins in line 7; its backward is line 15."""
    return (
        "import jax\nimport jax.numpy as jnp\nimport numpy as np\n\n\n"
        f"@jax.custom_vjp\ndef theirs(x):\n    return {result}\n\n"
        f"def forward(x):\n    return {forward}\n\n\n"
        f"def backward({parameters}):\n    return {backward}\n\n\n{DEFINED}"
    )


MISTAKES: dict[str, tuple[str, str, list[str]]] = {
    "a forgotten factor": (
        function("x * x", backward="(dy * x,)"),
        "gradient",
        ["FAILED", "backward (backward, theirs.py:14)", "it is half of what it should be"],
    ),
    "the arriving gradient is ignored": (
        function(backward="(jnp.cos(x),)"),
        "gradient",
        ["theirs.py:14", "it is not multiplied by dy"],
    ),
    "no tuple of gradients": (
        function(backward="dy * jnp.cos(x)"),
        "gradient",
        [
            "in backward (backward, theirs.py:14)",
            "return a tuple with a gradient for each argument, as in `return (dx,)`",
        ],
    ),
    "a gradient of another shape": (
        function("jnp.sum(x, axis=1)", backward="(dy,)"),
        "gradient",
        ["float64[4] corresponding to", "theirs.py:14", "a gradient has the shape and the type of its argument"],
    ),
    "no gradient": (function(backward="(None,)"), "gradient", ["theirs.py:14", "it is zero; does backward return it?"]),
    "nothing for backward": (
        function(forward="theirs(x)"),
        "gradient",
        ["fwd rule forward for function theirs", "return the result and what backward needs, as in `return y, (x,)`"],
    ),
    "another result in forward": (
        function(forward="jnp.cos(x), x"),
        "primal",
        ["output 0 is wrong", "its forward rule must return what theirs returns, as in `return theirs(x), x`"],
    ),
    "rules that are not declared": (
        function().replace(DEFINED, ""),
        "gradient",
        ["theirs.py:6", "No VJP defined", "call its defvjp(forward, backward) below it"],
    ),
    "a change in place": (
        function("x.__setitem__(0, 0)"),
        "gradient",
        ["JAX arrays are immutable", "x.at[idx].set(y)"],
    ),
    "no result": (function("None", "None, x"), "gradient", ["theirs.py:6", "does it end with `return`?"]),
    "NumPy": (function("np.sin(x)"), "jit", ["(theirs.py:8)", "compute with jax.numpy, not with NumPy"]),
    "a branch of Python": (
        function("x if x.sum() > 0 else -x", backward="(dy,)"),
        "jit",
        ["(theirs.py:8)", "choose with jax.numpy.where or jax.lax.cond"],
    ),
    "a number of Python": (
        function("x * float(x.max())", backward="(dy,)"),
        "jit",
        ["(theirs.py:8)", "keep it an array, without float(), int() or .item()"],
    ),
}
"""What the file says, the check that shows it, and the facts of the message."""


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_named_with_its_place_and_how_to_mend_it(
    mistake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    source, only, facts = MISTAKES[mistake]
    (tmp_path / "theirs.py").write_text(source)
    monkeypatch.chdir(tmp_path)
    status = main(["check", "theirs.py", "--only", only])
    shown = "".join(capsys.readouterr())
    assert (status == 0) == (only == "jit")  # a loud refusal is a note
    missing = [fact for fact in facts if fact not in shown]
    assert not missing, shown
    assert "Traceback" not in shown
