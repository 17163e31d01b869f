"""paddle.tensor: the functions on tensors, which the package has too."""

import app
from app.compat.missing import missing
from app.compat.table import table

_TAKEN = table(
    app,
    """
    arange assign bernoulli clone diag diagflat empty empty_like eye full full_like linspace logspace meshgrid
    multinomial normal ones ones_like rand randint randint_like randn randperm poisson standard_normal tril triu
    uniform zeros zeros_like
    abs acos acosh add add_n asin asinh atan atan2 atanh ceil clip cos cosh deg2rad divide erf exp expm1 floor
    floor_divide floor_mod fmax fmin frac increment lerp log log10 log1p log2 logit maximum minimum mod multiply
    hypot logaddexp nan_to_num neg pow rad2deg reciprocal remainder round rsqrt scale sigmoid sign sin
    sinh sqrt square stanh subtract tan tanh trunc
    allclose bitwise_and bitwise_not bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift equal
    equal_all greater_equal greater_than is_empty isclose isfinite isinf isnan less_equal less_than logical_and
    logical_not logical_or logical_xor not_equal where
    all amax amin any argmax argmin count_nonzero cumprod cumsum kthvalue logcumsumexp logsumexp max mean
    min norm prod std sum var diff
    argsort sort topk unique nonzero
    addmm bmm cross dist dot einsum inner kron matmul mm mv outer t tensordot trace
    atleast_1d atleast_2d atleast_3d broadcast_shape broadcast_tensors broadcast_to cast chunk column_stack
    concat dsplit dstack diag_embed diagonal expand expand_as flatten flip gather gather_nd hsplit hstack
    index_add index_fill index_sample index_select masked_fill masked_select moveaxis numel put_along_axis rank
    repeat_interleave reshape reverse=flip roll row_stack=vstack scatter scatter_nd scatter_nd_add shape
    slice split squeeze stack strided_slice swapaxes take take_along_axis tensor_split tile tolist transpose
    tril_indices triu_indices unbind unflatten unsqueeze unstack view_as vsplit vstack
    get_rng_state set_rng_state
    """,
)
globals().update(_TAKEN)

__all__ = [*_TAKEN]

__getattr__ = missing(__name__)
