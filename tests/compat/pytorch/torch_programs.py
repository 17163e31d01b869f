"""Random functions in PyTorch's words, and what PyTorch itself answers to some of them.

    python tests/compat/pytorch/torch_programs.py      # with a Python that has PyTorch: record its answers again

Each statement is run here while the function is made, so that only valid ones are kept. An answer is, for the loss, the
results and the gradients, the element type, the shape and a weighted sum of the elements.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[3]))

from app.compat import torch

ANSWERS = Path(__file__).with_name("torch_answers.json")
RECORDED = 40
"""The number of programs whose answers are kept."""


def _forms(text: str) -> list[str]:
    """The expressions in a text, in which {0} and {1} stand for values, or {1} for an axis."""
    return text.split()


UNARY = _forms("""
{0}.abs() {0}.sin() torch.cos({0}) {0}.tanh() torch.sigmoid({0}) {0}.exp().log1p() {0}.square().sqrt() -{0} {0}**2
2.5-{0} {0}/3 {0}.clamp(min=0.1) {0}.clamp(-0.4,0.6) torch.clamp({0},max=0.5) {0}.clip(-1,1) {0}.relu() {0}.neg()
{0}.pow(2) {0}.round() {0}.floor() {0}.ceil() {0}.trunc() {0}.sign()*{0} {0}.reciprocal().clamp(-9,9) torch.erf({0})
{0}.expm1() F.relu({0}) F.gelu({0}) F.silu({0}) F.softplus({0}) F.elu({0}) F.leaky_relu({0},0.2) F.hardtanh({0})
torch.rsqrt({0}*{0}+1) {0}.double() {0}.float() {0}.to(torch.float64) {0}.to(dtype=torch.float32)
{0}.type(torch.float64) {0}.long()*0.5 {0}.int().float() {0}.bool().float() (~({0}>0)).to({0}.dtype) {0}.detach()*{0}
{0}.data+{0} {0}.clone() {0}.contiguous() torch.zeros_like({0})+{0} torch.ones_like({0})-{0}
torch.full_like({0},0.3)*{0} torch.rand_like({0})*0+{0} {0}.new_zeros({0}.shape)+{0} {0}.new_ones(1)*{0}
{0}.addcmul({0},{0},value=0.5) {0}.lerp({0}*2,0.25) {0}.nan_to_num() {0}.masked_fill({0}>0.2,0.5)
torch.where({0}>0,{0},{0}*0.1) torch.where({0}>0,{0},0.0) {0}.fmod(0.7) {0}.remainder(0.7)
F.dropout({0},0.5,training=False) ({0}*1).requires_grad_()+{0} {0}.type_as({0}) {0}.cpu() {0}.logit(eps=0.1)
{0}.div(2,rounding_mode='floor') {0}.sub(1,alpha=2) torch.add({0},{0},alpha=0.5) {0}.mul(1.5) {0}.true_divide(4)
torch.nan_to_num({0}) {0}.isnan().float()+{0} ({0}==0).float() {0}.gt(0).float() {0}.ne(0).int()+{0} {0}.abs().log2()
{0}*torch.tensor(2.0) {0}+torch.tensor([0.5]) {0}+{0}.numel() {0}*{0}.dim() {0}+{0}.size(-1) {0}*{0}.shape[0]
{0}+{0}.ndim {0}+len({0}) {0}*int({0}.is_floating_point()) {0}+torch.arange({0}.size(-1)) {0}.sub_(0.5) {0}.as_strided
""")
BINARY = _forms("""
{0}+{1} {0}-{1} {0}*{1} {0}/({1}.abs()+1) torch.maximum({0},{1}) torch.minimum({0},{1}) torch.where({0}>{1},{0},{1})
{0}.add({1},alpha=2) torch.sub({0},{1}) torch.mul({0},{1}) torch.atan2({0},{1}+3) ({0}<{1}).float()*{0} {0}@{1}
{0}@{1}.t() torch.max({0},{1}) {0}.fmin({1}) {0}.lerp({1},0.3) torch.lt({0},{1}).float() {0}.eq({1}).float()+{0}
{0}.expand_as({1}) {0}.view_as({1}) {0}.to({1}) torch.outer({0}.flatten(),{1}.flatten()) torch.matmul({0},{1})
F.mse_loss({0},{1}) {0}.masked_fill({1}>0,0.25) torch.cat([{0},{1}]) torch.cat(({0},{1}),dim=-1)
torch.stack([{0},{1}],1) torch.hypot({0},{1}) torch.einsum('ij,kj->ik',{0},{1}) torch.bmm({0},{1}) {0}.mm({1})
torch.dist({0},{1}) torch.broadcast_tensors({0},{1})[0] {0}.copy_({1}) F.l1_loss({0},{1},reduction='none')
F.smooth_l1_loss({0},{1}) torch.vstack([{0},{1}]) torch.allclose
""")
ALONG = _forms("""
{0}.sum({1}) {0}.mean(dim={1}) torch.sum({0},dim={1},keepdim=True) {0}.max({1}).values {0}.max({1})[0]
{0}.min({1},keepdim=True)[0] {0}.max(dim={1}).indices.float() {0}.argmax({1}) {0}.argmin(dim={1},keepdim=True)
{0}.std({1},unbiased=False) {0}.var({1}) {0}.logsumexp({1}) {0}.softmax({1}) F.log_softmax({0},dim={1})
{0}.cumsum({1}) {0}.cumprod(dim={1}) {0}.sort({1})[0] torch.sort({0},dim={1},descending=True).values {0}.argsort({1})
{0}.topk(1,{1}).values torch.topk({0},1,dim={1})[1] {0}.flip({1}) {0}.roll(1,{1}) {0}.unsqueeze({1}) {0}.squeeze({1})
{0}.select({1},0) {0}.narrow({1},0,1) {0}.chunk(2,{1})[0] {0}.split(1,{1})[0] {0}.unbind({1})[0]
torch.stack([{0},{0}*2],dim={1}) torch.cat([{0},{0}],{1}) {0}.index_select({1},torch.tensor([0,0])) {0}.norm(dim={1})
{0}.amax({1}) {0}.amin({1},keepdim=True) {0}.prod({1}) {0}.any({1}).float() {0}.bool().all({1}) {0}.movedim({1},0)
{0}.diff(dim={1}) {0}.transpose({1},0) torch.swapaxes({0},{1},-1) {0}.gather({1},{0}.argsort({1}))
{0}.repeat_interleave(2,dim={1}) F.normalize({0},dim={1}) torch.tensor_split({0},2,{1})[0]
{0}.index_fill({1},torch.tensor([0]),0.5) {0}.take_along_dim({0}.argmin({1},keepdim=True),{1}) {0}.count_nonzero({1})
torch.index_select({0},{1},{0}.argmax({1}).flatten()[:1]) {0}.scatter({1},{0}.argmax({1},keepdim=True),0.7)
{0}.index_add({1},torch.tensor([0]),{0}.narrow({1},0,1)) {0}.nansum({1})
""")
SHAPE = _forms("""
{0}.permute(1,0) {0}.permute([1,0]) {0}.t() {0}.T {0}.mT {0}.reshape(-1) {0}.view(-1) {0}.reshape({0}.size(0),-1)
{0}.view({0}.shape[0],-1) {0}.flatten() {0}.flatten(0,1) {0}.reshape(-1,1) {0}.reshape((1,-1))
torch.reshape({0},(-1,)) {0}.ravel() {0}.unsqueeze(0) {0}.squeeze() {0}[0] {0}[-1] {0}[:,0] {0}[1:] {0}[...,0]
{0}[None] {0}[:,None] {0}[::2] {0}[torch.tensor([1,0])] {0}[[0,1]] {0}[{0}>0].sum() {0}.expand(2,-1,-1)
{0}.repeat(2,1) {0}.tile((2,)) torch.flip({0},[0]) {0}.fliplr() {0}.roll(1) {0}.triu() {0}.tril(-1) {0}.diagonal()
torch.diag({0}) {0}.sum() {0}.mean() {0}.max() {0}.min() {0}.std() {0}.var(unbiased=False) {0}.norm() {0}.prod()
{0}.argmax() {0}.trace() {0}.unflatten(0,(1,-1)) {0}.swapdims(0,1) {0}.take(torch.tensor([0,1])) {0}.numel()*{0}
torch.squeeze({0}) {0}.view({0}.size()) {0}.broadcast_to(2,*{0}.shape) {0}.masked_select({0}>0).sum()
{0}.nonzero().float().sum() {0}.unique().sum() {0}.sum(dim=(0,1)) {0}.mean((0,1),keepdim=True) {0}.median()
torch.linalg.norm({0}) torch.linalg.vector_norm({0}) F.linear({0},w) {0}@w.t() F.layer_norm({0},{0}.shape[-1:])
{0}*w[0] {0}+b torch.addmm(b,{0},w.t()) F.cross_entropy({0},torch.zeros({0}.size(0)).long())
F.one_hot({0}.argmax(1),9).float() F.nll_loss({0},{0}.argmax(1)) torch.tensor([1.0,2.0])*{0}.sum()
{0}*torch.eye({0}.shape[-1]) torch.ones(3,1)*{0} torch.linspace(0,1,{0}.size(-1))+{0} {0}.item
""")
IN_PLACE = _forms("""
{0}.mul_(2) {0}.add_(1) {0}.add_({0},alpha=0.5) {0}.clamp_(min=0) {0}.relu_() {0}.exp_() {0}.tanh_() {0}.zero_()
{0}.fill_(0.5) {0}.sub_(0.1) {0}.div_(2) {0}.abs_() {0}.neg_() {0}.sqrt_() {0}.masked_fill_({0}>1,0.5)
{0}.unsqueeze_(0) {0}.squeeze_() {0}.t_() {0}.pow_(2) {0}.copy_({0}*3) {0}.cumsum_(0) {0}.round_()
{0}.addcmul_({0},{0}) {0}.transpose_(0,1) {0}.index_fill_(0,torch.tensor([0]),0.5) {0}.clamp_(0,1) {0}[0]=0.5 {0}[0]=0
{0}[:,0]=1.5 {0}[1:]*=2 {0}+=1 {0}*=0.5 {0}-={0}.mean() {0}/=3 {0}[{0}>0]=0.25 {0}[...,-1]+={0}[...,0] {0}[0,1]=2
""")
PYTHON = [
    "if {0}.sum() > 0:\n        {1} = {0} * 2\n    else:\n        {1} = {0} - 1",
    "if {0}.mean() > 0.1 and {0}.max() < 9:\n        {0} = {0}.neg()",
    "{1} = {0} if {0}.dim() == 2 else {0}.unsqueeze(0)",
    "for row in {0}:\n        {1} = row.mul(2).sum() + {0}",
    "for i in range({0}.size(0)):\n        {1} = {0}[i].abs() + i",
    "{1} = sum(part.sum() for part in {0}.split(1)) * {0}",
    "{1} = torch.stack([v * 2 for v in {0}.unbind(0)])",
    "{1} = {0} * float({0}.sum())",
    "{1} = {0}.clone()\n    while {1}.abs().sum() < 4:\n        {1} = {1}.abs() * 2 + 1",
    "values, places = {0}.max(-1)\n    {1} = values * places",
    "a, *rest = {0}.split(1)\n    {1} = a - sum(rest).abs()",
    "{1} = {0} if isinstance({0}, torch.Tensor) and torch.is_tensor({0}) else None",
    "{1} = {0}\n    if {0}.dtype == torch.float32 and {0}.requires_grad:\n        {1} = {0} * 3",
    "with torch.no_grad():\n        {1} = {0} * 2\n    {1} = {1} + {0}",
    "{1} = {0}.clone()\n    for i in range(3):\n        if {1}.sum() > i:\n            {1} = {1}.sub(1).clamp(-2, 2)",
]


class Program:
    """A function of two matrices, `x` and `y`, that captures a matrix `w` and a vector `b`."""

    def __init__(self, seed: int):
        self.random = Random(seed)
        self.arrays = arrays_of(seed, self.random)
        self.lines: list[str] = []
        self.values = ["x", "y"]
        while len(self.lines) < 6:
            self._add()

    def _add(self) -> None:
        """Add a statement that a run accepts, and whose result is a small Tensor."""
        new = f"v{len(self.lines)}"
        old, other = self.random.choice(self.values[-4:]), self.random.choice(self.values)
        kind = self.random.choices([UNARY, BINARY, ALONG, SHAPE, IN_PLACE, PYTHON], [5, 3, 5, 5, 3, 2])[0]
        form = self.random.choice(kind)
        if kind is IN_PLACE:
            line = f"{new} = {old} * 1\n    {form.format(new)}"
        elif kind is PYTHON:
            line = form.format(old, new)
        else:
            line = f"{new} = {form.format(old, self.random.choice([0, 1, -1]) if kind is ALONG else other)}"
        name = new if f"{new} = " in line else old
        try:
            found = self._runs([*self.lines, line], name)
        except Exception:  # it is wrong for these shapes, or changes in place what a gradient needs
            return
        if isinstance(found, torch.Tensor) and 0 < found.numel() < 100 and found.dim():
            self.lines.append(line)
            self.values += [name] if name == new else []

    @property
    def source(self) -> str:
        """The whole function: its results are the values of the last statements, and a loss of them."""
        last = [name for name in self.values if name not in "xy"][-3:] or ["x * y"]
        return self._text(self.lines, f"{self._loss(last)}, {', '.join(last)}")

    def _loss(self, names: list[str]) -> str:
        return " + ".join(f"({name}.double() * 0.5).sum()" for name in names)

    def _text(self, lines: list[str], result: str) -> str:
        return "def function(x, y):\n    " + "\n    ".join([*lines, f"return {result}"]) + "\n"

    def _runs(self, lines: list[str], name: str) -> Any:
        function, leaves = made(self._text(lines, f"{name}, {self._loss([*self.values, name])}"), self.arrays)
        found, loss = function(leaves["x"], leaves["y"])
        if loss.requires_grad:
            loss.backward(retain_graph=True)
        return found


def arrays_of(seed: int, random: Random | None = None) -> dict[str, np.ndarray]:
    """The numbers of a function's leaves."""
    rows, columns = (random or Random(seed)).choice([(2, 3), (3, 3), (3, 2)])
    shapes = {"x": (rows, columns), "y": (rows, columns), "w": (columns, columns), "b": (columns,)}
    draw = np.random.default_rng(seed)
    return {name: draw.normal(size=shape).astype("float32") for name, shape in shapes.items()}


def made(
    source: str, arrays: Mapping[str, np.ndarray], file: str = "<program>", torch: Any = torch
) -> tuple[Any, dict[str, Any]]:
    """The function, and its leaves, new Tensors that require gradients; with PyTorch itself if `torch` is that."""
    leaves = {name: torch.tensor(array, requires_grad=True) for name, array in arrays.items()}
    names: dict[str, Any] = {"torch": torch, "F": torch.nn.functional, "w": leaves["w"], "b": leaves["b"]}
    exec(compile(source, file, "exec"), names)
    return names["function"], leaves


class Digest(NamedTuple):
    """What is kept of an array."""

    dtype: str
    shape: list[int]
    weighted: float


def digest(tensor: Any) -> Digest:
    """Digest a Tensor, here or of PyTorch."""
    array = tensor.detach().numpy()
    flat = array.reshape(-1).astype("float64")
    return Digest(array.dtype.name, list(array.shape), float(flat @ np.cos(np.arange(1.0, flat.size + 1))))


def answer(source: str, seed: int, torch: Any = torch) -> list[Digest]:
    """The loss, the results and the gradients of a function, here or with PyTorch; those that are missing are 0."""
    function, leaves = made(source, arrays_of(seed), torch=torch)
    loss, *results = function(leaves["x"], leaves["y"])
    if loss.requires_grad:
        loss.backward()
    gradients = [torch.zeros(leaf.shape) if leaf.grad is None else leaf.grad for leaf in leaves.values()]
    return [digest(tensor) for tensor in (loss, *results, *gradients)]


def same(found: list[Digest], wanted: list[Digest]) -> bool:
    """Whether two answers are equal but for rounding."""
    exact = [(one.dtype, list(one.shape)) for one in found] == [(one.dtype, list(one.shape)) for one in wanted]
    numbers = [[one.weighted for one in answer] for answer in (found, wanted)]
    return exact and np.allclose(*numbers, rtol=1e-4, atol=1e-4, equal_nan=True)


def read_answers() -> list[tuple[int, str, list[Digest]]]:
    """The seed and the source of each function, and what PyTorch answered."""
    kept = json.loads(ANSWERS.read_text(encoding="utf-8"))
    return [(seed, source, [Digest(*one) for one in answers]) for seed, source, answers in kept]


def record() -> None:
    """Ask PyTorch."""
    import torch as real

    rows = []
    for seed in range(RECORDED):
        source = Program(seed).source
        answers = [one._replace(weighted=float(f"{one.weighted:.7g}")) for one in answer(source, seed, real)]
        rows.append(json.dumps([seed, source, answers]))
    ANSWERS.write_text("[" + ",\n".join(rows) + "]\n", encoding="utf-8")


if __name__ == "__main__":
    record()
