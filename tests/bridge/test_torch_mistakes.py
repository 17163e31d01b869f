"""Typical mistakes, in PyTorch's words: what `opsmith check` says names the mistake, its place, and how to mend it."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.__main__ import main

pytest.importorskip("torch", reason="PyTorch is not installed (the extra `bridge`)")

pytestmark = pytest.mark.slow

BEGIN = "import torch\n\n\nclass Theirs(torch.autograd.Function):\n"
STATIC = "    @staticmethod\n"
OP = "import torch\n\n\n@torch.library.custom_op('{}::theirs', mutates_args=())\ndef theirs(x{}):\n    return {}\n"
TYPED = ": torch.Tensor) -> (torch.Tensor"
SAVE, SAVED = "ctx.save_for_backward(x)", "(x,) = ctx.saved_tensors"
TWO, BOTH = "ctx.save_for_backward(x, w)", "x, w = ctx.saved_tensors"


def method(name: str, parameters: str, *lines: str) -> str:
    return f"{STATIC}    def {name}({parameters}):\n" + "".join(f"        {line}\n" for line in lines)


def function(forward: list[str], backward: list[str], inputs: str = "x", arriving: str = "dy") -> str:
    """A file with a Function: forward begins in line 5 of it, by its decorator."""
    head = BEGIN + method("forward", f"ctx, {inputs}", *forward)
    return f"{head}\n{method('backward', f'ctx, {arriving}', *backward)}"


DOUBLE = function(["return x * 2"], ["return dy * 2"])

MISTAKES: dict[str, tuple[str, str, list[str]]] = {
    "a forgotten factor": (
        function([SAVE, "return x * x"], [SAVED, "return dy * x"]), "",
        ["FAILED  gradient", "backward (theirs.py:10)", "it is half of what it should be"],
    ),
    "a wrong sign": (
        function([SAVE, "return torch.cos(x)"], [SAVED, "return dy * torch.sin(x)"]), "",
        ["backward (theirs.py:10)", "it has the opposite sign"],
    ),
    "the arriving gradient is ignored": (
        function([SAVE, "return x * x"], [SAVED, "return 2 * x"]), "",
        ["backward (theirs.py:10)", "it is not multiplied by dy"],
    ),
    "the arriving gradient of a loss is ignored": (
        function([SAVE, "return (x * x).sum()"], [SAVED, "return 2 * x"]), "",
        ["backward (theirs.py:10)", "it is not multiplied by dy"],
    ),
    "a change in place that is declared": (
        function(["ctx.mark_dirty(x)", "return x.mul_(2)"], ["return dy * 2"]), "",
        ["theirs.py:5", "it changes an input in place", "x.clone()"],
    ),
    "a second derivative of a root at zero": (
        function([SAVE, "y = x.clamp(min=0) ** 2", "ctx.save_for_backward(y)", "return y"],
                 ["(y,) = ctx.saved_tensors", "return dy * 2 * y.sqrt()"]), "",
        ["FAILED  second", "backward gives nan", "a root or a quotient", "@once_differentiable"],
    ),
    "a sum's gradient for a mean": (
        function(["ctx.shape = x.shape", "return x.mean()"], ["return dy.expand(ctx.shape)"]), "",
        ["backward (theirs.py:10)", "it is 24 times what it should be"],
    ),
    "too few gradients": (
        function([TWO, "return x * w"], [BOTH, "return dy * w"], "x, w"), "",
        ["expected 2, got 1", "in backward (theirs.py:10)", "return one for each argument of forward"],
    ),
    "gradients in another order": (
        function([TWO, "return x * w * w"], [BOTH, "return dy * 2 * x * w, dy * w * w"], "x, w"), "",
        ["backward (theirs.py:10)", "it is that of w: are they returned in the order of the inputs?"],
    ),
    "the wrong tensor is saved": (
        function(["y = torch.exp(x) + x", "ctx.save_for_backward(y)", "return y"], [SAVED, "return dy * x"]), "",
        ["backward (theirs.py:11)", "finite differences give"],
    ),
    "nothing is saved": (
        function(["return x * x"], [SAVED, "return dy * 2 * x"]), "",
        ["theirs.py:11", "ctx.saved_tensors has what forward gives to ctx.save_for_backward, here nothing"],
    ),
    "the saved tensors are not unpacked": (
        function([SAVE, "return x * x"], ["x = ctx.saved_tensors", "return dy * 2 * x"]), "",
        ["theirs.py:13", "if it is ctx.saved_tensors: that is a tuple, (x,) = ctx.saved_tensors"],
    ),
    "an input is saved as an attribute": (
        function(["ctx.x = x", "return x * x"], ["return dy * 2 * ctx.x"]), "",
        ["FAILED  saved", "theirs.py:5", "keep tensors with ctx.save_for_backward, not as attributes"],
    ),
    "forward writes into its input": (
        function(["return x.mul_(2)"], ["return dy * 2"]), "",
        ["forward writes into its input x", "theirs.py:5", "compute in a copy, as x.clone() makes one"],
    ),
    "backward writes into what arrives": (
        function([SAVE, "return x.clamp(min=0)"], [SAVED, "dy[x < 0] = 0", "return dy"]), "",
        ["backward (theirs.py:10) writes into the gradient that arrives", "dy.clone()"],
    ),
    "a gradient of the wrong shape": (
        function(["return x + b"], ["return dy, dy.sum()"], "x, b"), "",
        ["got [] but expected shape compatible with [4, 6]", "backward (theirs.py:9)", "the shape of its input"],
    ),
    "whole numbers": (
        function(["return (x > 0).long()"], ["return dy"]), "",
        ["theirs.py:5", "its results are int64: only floats have gradients"],
    ),
    "a list": (
        function(["return [x * 2, x * 3]"], ["return 2 * a + 3 * b"], arriving="a, b"), "",
        ["theirs.py:5", "returns a list, whose tensors have no gradient", "return a tuple"],
    ),
    "no return in forward": (
        function(["y = x * 2"], ["return dy * 2"]), "",
        ["theirs.py:5", "it returned no tensor of torch", "`return`"],
    ),
    "no return in backward": (
        function(["return x * 2"], ["dx = dy * 2"]), "",
        ["backward (theirs.py:9)", "it is zero; does backward return it?"],
    ),
    "no backward": (
        BEGIN + method("forward", "ctx, x", "return x * 2"), "",
        ["theirs.py:5", "it has no gradient", "either the backward or vjp method"],
    ),
    "no ctx": (
        BEGIN + method("forward", "x", "return x * 2") + method("backward", "ctx, dy", "return dy * 2"), "",
        ["takes no input", "theirs.py:5", "as in forward(ctx, x)"],
    ),
    "no ctx before two inputs": (
        BEGIN + method("forward", "x, w", "return x * w") + method("backward", "ctx, dy", "return dy, dy"), "",
        ["theirs.py:7", "the first parameter of forward is ctx"],
    ),
    "a setup_context, and ctx in forward": (
        DOUBLE + method("setup_context", "ctx, inputs, output", "pass"), "",
        ["has a setup_context", "theirs.py:5", "takes no ctx: write forward(x)"],
    ),
    "backward with another number of parameters": (
        function(["return x * 2"], ["return dy * 2"], arriving="y, dy"), "",
        ["missing 1 required positional argument: 'dy'", "backward (theirs.py:9)", "a gradient for each result"],
    ),
    "no base class": (
        DOUBLE.replace("(torch.autograd.Function)", ""), "",
        ["base class is missing", "theirs.py:5", "write class Theirs(torch.autograd.Function)"],
    ),
    "no base class, named": (
        DOUBLE.replace("(torch.autograd.Function)", ""), "theirs.py:Theirs",
        ["base class is missing", "theirs.py:5", "write class Theirs(torch.autograd.Function)"],
    ),
    "a wrong file name": (DOUBLE, "their.py", ["there is no file", "their.py", "did you mean 'theirs.py'?"]),
    "no .py": (DOUBLE, "theirs", ["'theirs' names no operator", "did you mean theirs.py?"]),
    "a wrong name": (DOUBLE, "theirs.py:Their", ["theirs.py has no 'Their'", "did you mean 'Theirs'?"]),
    "a syntax error": (
        DOUBLE.replace("dy):", "dy)"), "", ["theirs.py:10", "SyntaxError: expected ':'"],
    ),
    "a module that is not installed": (
        "import tritonn\n" + DOUBLE, "", ["theirs.py:1", "No module named 'tritonn'"],
    ),
    "a misspelt name in forward": (
        function(["return x * tow"], ["return dy * 2"]), "", ["theirs.py:7", "name 'tow' is not defined"],
    ),
    "a misspelt name in backward": (
        function(["return x * 2"], ["return dy * tow"]), "", ["theirs.py:11", "name 'tow' is not defined"],
    ),
    "a GPU that is not there": (
        function(["return x.cuda() * 2"], ["return dy * 2"]), "", ["theirs.py:7", "not compiled with CUDA"],
    ),
    "a setting without a number": (
        function(["return x * k"], ["return dy, None"], "x, k: float"), "", ["setting 'k'", "give --set k=VALUE"],
    ),
    "a misspelt setting": (
        function(["return x * k"], ["return dy * 2, None"], "x, k=2.0"), "theirs.py --set kk=3",
        ["no parameter 'kk' to set", "it takes x, k"],
    ),
    "a shape is missing": (
        function(["return x * w"], ["return dy, dy"], "x, w"), "theirs.py --shape 4,6",
        ["--shape was given 1 times", "takes 2: x, w"],
    ),
    "another mask in backward": (
        function(["return x * (torch.rand_like(x) > 0.5)"], ["return dy * (torch.rand_like(dy) > 0.5)"]), "",
        ["theirs.py:5", "the same inputs give another result", "save them for backward"],
    ),
    "a detached function": (
        "import torch\n\n\ndef theirs(x):\n    return (x.detach() ** 2).requires_grad_()\n", "theirs.py:theirs",
        ["theirs  torch function, theirs.py:4", "it is zero"],
    ),
    "an operator without a gradient": (
        OP.format("a", TYPED, "x * 2").replace("(torch.Tensor)", "torch.Tensor"), "",
        ["theirs.py:4", "it has no gradient", "register_autograd"],
    ),
    "an operator that returns its input": (
        OP.format("b", TYPED, "x"), "", ["theirs.py:4", "may not alias any inputs", "return a copy, such as x.clone()"],
    ),
    "an operator that changes its input": (
        OP.format("c", TYPED, "x.mul_(2).clone()"), "",
        ["theirs.py:4", "forward writes into its input x", "Argument x is not defined as mutable but was mutated"],
    ),
    "an operator without annotations": (
        OP.format("d", "", "x * 2"), "", ["theirs.py:4", "Parameter x must have a type annotation"],
    ),
    "a module with parameters": (
        "import torch\n\n\nclass Theirs(torch.nn.Linear):\n    def __init__(self):\n        super().__init__(3, 3)\n",
        "theirs.py:Theirs", ["Theirs has parameters (weight, bias)", "give a function of its inputs and these"],
    ),
    "another function than `like`": (
        DOUBLE, "theirs.py --like silu", ["FAILED  like", "theirs.py:5", "it gives -3.978092, silu gives -0.23939726"],
    ),
    "a misspelt `like`": (DOUBLE, "theirs.py --like sillu", ["no operator 'sillu'", "did you mean 'silu'?"]),
}  # fmt: skip
"""What the file says, the words after `opsmith check`, and the facts of the message."""
PASSES = {"whole numbers", "no backward", "an operator without a gradient"}
"""What may be meant, and is a note."""


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_named_with_its_place_and_how_to_mend_it(
    mistake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    source, words, facts = MISTAKES[mistake]
    (tmp_path / "theirs.py").write_text(source)
    monkeypatch.chdir(tmp_path)
    status = main(["check", *(words or "theirs.py").split()])
    shown = "".join(capsys.readouterr())
    assert (status == 0) == (mistake in PASSES)
    missing = [fact for fact in facts if fact not in shown]
    assert not missing, shown
    failures = [line for line in shown.splitlines() if line.startswith("  FAILED")]
    assert len(failures) < 4
    assert "Traceback" not in shown


def test_modules_beside_an_operator_are_neither_made_nor_in_its_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "theirs.py").write_text(
        f"from torch.nn import Linear, Module, PReLU\n{DOUBLE}\n\nslope = PReLU()\n\n\nclass Net(Module):\n"
        "    def __init__(self, width):\n        super().__init__()\n\n\n"
        "class Made(Module):\n    def __init__(self):\n        raise SystemExit('it was made')\n"
    )
    monkeypatch.chdir(tmp_path)
    assert main(["check", "theirs.py", "--only", "gradient"]) == 0
    assert capsys.readouterr().out.startswith("Theirs  torch.autograd.Function")
    assert main(["check", "theirs.py:nothing"]) == 2
    assert "theirs.py has no 'nothing'. It has Theirs, Net, Made" in capsys.readouterr().err
    assert main(["check", "theirs.py:Net"]) == 1
    shown = capsys.readouterr().out
    assert "Net cannot be made without arguments" in shown
    assert "check_operator(Net)" in shown
