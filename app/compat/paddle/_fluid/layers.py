"""paddle.fluid.layers: Paddle 1's operators and layers. A reduction to one number has the shape [1]."""

from collections.abc import Callable, Sequence
from typing import Any

import app as _package
from app import static
from app.compat.paddle._fluid import nn
from app.compat.table import table
from app.errors import OperatorError
from app.graph import static_unless_chosen
from app.nn import functional

app: Any = _package  # operators are created on import, invisible to a type checker

TAKEN = {
    **table(
        app,
        """
        abs ceil clip cos elementwise_add=add elementwise_div=divide elementwise_max=maximum elementwise_min=minimum
        elementwise_mul=multiply elementwise_pow=pow elementwise_sub=subtract equal exp expand_as floor gather
        greater_equal greater_than isfinite less_equal less_than log logical_and logical_not logical_or
        logical_xor not_equal ones_like pow reciprocal round rsqrt scale shape sigmoid sign sin sqrt square stack tanh
        unstack where zeros_like
        argmax = argmax(x, axis=0)
        argmin = argmin(x, axis=0)
        cast = cast(x, dtype)
        concat = concat(input, axis, name)
        expand = tile(x, expand_times:repeat_times, name)
        slice = slice(input, axes, starts, ends)
        split = split(input, num_or_sections, dim:axis=-1, name)
        topk = topk(input, k, name)
        transpose = transpose(x, perm, name)
        unsqueeze = unsqueeze(input, axes:axis, name)
        """,
    ),
    **table(
        functional,
        """
        elu leaky_relu log_softmax relu softplus square_error_cost
        cross_entropy = cross_entropy(input, label, soft_label, ignore_index, :reduction="none", :use_softmax=False)
        softmax = softmax(input:x, use_cudnn?=False, name, axis)
        """,
    ),
    **table(static, "create_global_var create_parameter py_func"),
    **table(
        static.nn,
        """
        batch_norm case cond conv2d switch_case while_loop
        fc = fc(input:x, size, num_flatten_dims, param_attr:weight_attr, bias_attr, act:activation, name)
        """,
    ),
    **table(nn, "pool2d"),
}
"""Functions that differ only in names of functions and parameters."""


# Inputs and constants


def data(
    name: str,
    shape: Sequence[int | None],
    append_batch_size: bool = True,
    dtype: Any = "float32",
    lod_level: int = 0,
    type: Any = None,
    stop_gradient: bool = True,
) -> Any:
    known = all(size is not None and size >= 0 for size in shape)
    variable = static.data(name, [-1, *shape] if append_batch_size and known else shape, dtype)
    variable.stop_gradient, variable.any_rank = stop_gradient, True
    return variable


@static_unless_chosen()
def fill_constant(shape: Any, dtype: Any, value: float, force_cpu: bool = False, out: Any = None) -> Any:
    made = app.full(shape, value, dtype)
    return made if out is None else app.assign(made, out)


def ones(shape: Any, dtype: Any, force_cpu: bool = False) -> Any:
    return fill_constant(shape, dtype, 1.0)


def zeros(shape: Any, dtype: Any, force_cpu: bool = False, name: str | None = None) -> Any:
    return fill_constant(shape, dtype, 0.0)


@static_unless_chosen()
def uniform_random(shape: Any, dtype: Any = "float32", min: float = -1.0, max: float = 1.0, seed: int = 0) -> Any:
    return app.uniform(shape, dtype, min, max, seed)


@static_unless_chosen()
def gaussian_random(
    shape: Any, mean: float = 0.0, std: float = 1.0, seed: int = 0, dtype: Any = "float32", name: str | None = None
) -> Any:
    return app.normal(mean, std, shape, dtype=dtype, seed=seed)


@static_unless_chosen()
def range(start: Any, end: Any, step: Any, dtype: Any) -> Any:
    return app.arange(start, end, step, dtype)


@static_unless_chosen()
def linspace(start: float, stop: float, num: int, dtype: Any = "float32") -> Any:
    return app.linspace(start, stop, num, dtype)


@static_unless_chosen()
def assign(input: Any, output: Any = None) -> Any:
    return app.assign(input, output)


def increment(x: Any, value: float = 1.0, in_place: bool = True) -> Any:
    """x + value, in `x` itself unless `in_place` is False."""
    if in_place and hasattr(x, "become"):  # not a Variable
        return x.become(x + app.full([], value, x.dtype))
    more = app.increment(x, value=value)
    return app.assign(more, x) if in_place else more


# Layers


def embedding(
    input: Any,
    size: Sequence[int],
    is_sparse: bool = False,
    is_distributed: bool = False,
    padding_idx: int | None = None,
    param_attr: Any = None,
    dtype: Any = "float32",
) -> Any:
    """The rows of a table at the indices `input`, of which a last axis of size 1 is replaced by the row."""
    ids = input.squeeze(-1) if len(input.shape) > 1 and input.shape[-1] == 1 else input
    return static.nn.embedding(ids, size, is_sparse, is_distributed, padding_idx, param_attr, dtype)


def dropout(
    x: Any,
    dropout_prob: float,
    is_test: bool = False,
    seed: int | None = None,
    name: str | None = None,
    dropout_implementation: str = "downgrade_in_infer",
) -> Any:
    mode = "downscale_in_infer" if dropout_implementation == "downgrade_in_infer" else dropout_implementation
    return functional.dropout(x, dropout_prob, training=not is_test, mode=mode, seed=seed or 0)


# Losses and metrics


def mean(x: Any, name: str | None = None) -> Any:
    return app.mean(x).reshape([1])


def softmax_with_cross_entropy(
    logits: Any,
    label: Any,
    soft_label: bool = False,
    ignore_index: int = -100,
    numeric_stable_mode: bool = True,
    return_softmax: bool = False,
    axis: int = -1,
) -> Any:
    loss = functional.cross_entropy(
        logits, label, ignore_index=ignore_index, reduction="none", soft_label=soft_label, axis=axis
    )
    return (loss, functional.softmax(logits, axis)) if return_softmax else loss


def mse_loss(input: Any, label: Any) -> Any:
    return mean(functional.square_error_cost(input, label))


def accuracy(input: Any, label: Any, k: int = 1, correct: Any = None, total: Any = None) -> Any:
    if correct is not None or total is not None:
        raise OperatorError("accuracy: correct= and total= are not stored here; fetch the accuracy and count the rows")
    return app.accuracy(input, label, k).reshape([1])


def one_hot(input: Any, depth: int, allow_out_of_range: bool = False) -> Any:
    """A row for each label; a last axis of size 1 is replaced by the row."""
    labels = input.squeeze(-1) if len(input.shape) > 1 and input.shape[-1] == 1 else input
    return functional.one_hot(labels, depth)


# Reductions


def _reduction(function: Callable[..., Any]) -> Callable[..., Any]:
    def reduce(input: Any, dim: Any = None, keep_dim: bool = False, name: str | None = None) -> Any:
        out = function(input, axis=dim, keepdim=keep_dim)
        return out if len(out.shape) else out.reshape([1])

    return reduce


reduce_sum, reduce_mean, reduce_prod = _reduction(app.sum), _reduction(app.mean), _reduction(app.prod)
reduce_max, reduce_min = _reduction(app.max), _reduction(app.min)
reduce_all, reduce_any = _reduction(app.all), _reduction(app.any)


def argsort(input: Any, axis: int = -1, descending: bool = False, name: str | None = None) -> Any:
    places = app.argsort(input, axis, descending)
    return app.take_along_axis(input, places, axis), places


def sums(input: Any, out: Any = None) -> Any:
    made = app.add_n(input)
    return made if out is None else app.assign(made, out)


# Products and shapes


def matmul(
    x: Any,
    y: Any,
    transpose_x: bool = False,
    transpose_y: bool = False,
    alpha: float = 1.0,
    name: str | None = None,
) -> Any:
    out = app.matmul(x, y, transpose_x, transpose_y)
    return out if alpha == 1.0 else out * alpha


def mul(x: Any, y: Any, x_num_col_dims: int = 1, y_num_col_dims: int = 1, name: str | None = None) -> Any:
    return app.matmul(x if x_num_col_dims == len(x.shape) - 1 else flatten(x, x_num_col_dims), y)


def flatten(x: Any, axis: int = 1, name: str | None = None) -> Any:
    return app.flatten(x, axis, -1) if axis == 1 else app.flatten(app.flatten(x, axis, -1), 0, axis - 1)


def reshape(
    x: Any,
    shape: Any,
    actual_shape: Any = None,
    act: str | None = None,
    inplace: bool = False,
    name: str | None = None,
) -> Any:
    out = app.reshape(x, shape if actual_shape is None else actual_shape)
    return out if act is None else getattr(functional, act)(out)


def squeeze(input: Any, axes: Any, name: str | None = None) -> Any:
    return app.squeeze(input, axes or None)
