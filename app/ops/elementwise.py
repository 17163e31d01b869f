"""Declaration of elementwise operators, and type promotion of their inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from app.errors import DtypeError
from app.ops.definition import REGISTRY, OpDef, operator
from app.ops.dtype import FLOATS, INTEGERS, canonical, common, get_default_dtype
from app.ops.lowering import Elementwise
from app.ops.spec import OpenSize, Spec, broadcast
from app.ops.values import Applied, Element, Kernel, Setting


def elementwise(
    *,
    result: str | None = None,
    floating: bool = False,
    numbers: bool = False,
    integral: bool = False,
    check: Callable[..., None] | None = None,
    scalar: Callable[..., Element] | None = None,
    integers: Callable[..., Element] | None = None,
    raises: bool = False,
    **options: Any,
) -> Callable[[Kernel], OpDef]:
    """Declare an elementwise operator.

    The inputs are cast to their promoted type, which is made floating with `floating`, and broadcast together. `result`
    is the type of the output, if it is not that of the inputs. `numbers` refuses booleans, `integral` refuses floats,
    and `check` gets the promoted type and the attributes, and refuses those that do not go together.

    Compiled Programs call the kernel with scalars. `scalar` replaces it there if it does not support scalars or is slow
    for them, and `integers` replaces both for integers. `raises` declares that these may raise an error.
    """

    def infer(*specs: Spec, **attributes: Setting) -> Spec:
        dtypes = {s.dtype for s in specs}
        if len(dtypes) > 1:
            raise DtypeError(f"expected inputs of one element type, found {' and '.join(sorted(dtypes))}")
        if numbers and "bool" in dtypes:
            raise DtypeError("expected numbers, found booleans; use .astype")
        if integral and not dtypes.isdisjoint(FLOATS):
            raise DtypeError(f"expected integers or booleans, found {specs[0].dtype}; use .astype")
        if check is not None:
            check(specs[0].dtype, **attributes)
        return Spec(broadcast(*(s.shape for s in specs)), result or specs[0].dtype)

    def prepare(values: list[Any]) -> list[Applied]:
        return to_common_type(values, floating)

    def define(kernel: Kernel) -> OpDef:
        lowering = Elementwise(scalar or kernel, integers=integers, raises=raises)
        settings = {"prepare": prepare, "broadcasts": True, "lowering": lowering, **options}
        return operator(infer, **settings)(kernel)

    return define


def to_common_type(values: list[Any], floating: bool = False) -> list[Applied]:
    """Cast values to their promoted type (see `result_type`)."""
    first = getattr(values[0], "dtype", None)
    if all(getattr(v, "dtype", None) == first for v in values) and first is not None:
        if not floating or first in FLOATS:
            return values
        canonical(first)  # refuses complex numbers and others that a cast would change
        return [REGISTRY["cast"](v, dtype=get_default_dtype()) for v in values]
    if any(hasattr(v, "apply_operator") for v in values):  # np.float64 is a subclass of float
        values = [float(v) if isinstance(v, np.float64) else v for v in values]
    target = result_type(values)
    if floating and target not in FLOATS:
        target = get_default_dtype()
    return [_as_type(v, target) for v in values]


def floats(values: list[Any]) -> list[Applied]:
    """Cast values to their promoted type, or to the default floating type if that is not floating."""
    return to_common_type(values, floating=True)


def result_type(values: Sequence[Any]) -> str:
    """The promoted type of values, as in Paddle and PyTorch.

    Scalars change the type of the arrays only if they are of a wider kind (boolean, integer, float), and Python numbers
    that of the scalars likewise.
    """
    with_axes: list[str] = []
    without: list[str] = []
    python: list[str] = []
    for value in values:
        if not hasattr(value, "dtype"):
            python.append(_type_of_number(value))
        else:
            (with_axes if value.shape else without).append(canonical(value.dtype))
    return _promoted(with_axes, _promoted(without, common(*python) if python else ""))


def _promoted(types: Sequence[str], weak: str) -> str:
    """The promoted type, in which `weak` counts only if its kind is wider: booleans, then integers, then floats."""
    if not types:
        return weak
    strong = common(*types)
    return common(strong, weak) if weak and _kind_rank(weak) > _kind_rank(strong) else strong


def _kind_rank(name: str) -> int:
    return 2 if name in FLOATS else int(name in INTEGERS)


def _type_of_number(value: Any) -> str:
    if isinstance(value, OpenSize):
        value = int(value)  # raises a ShapeError that explains open sizes
    kind = np.asarray(value).dtype.kind
    if kind not in "biuf":
        raise DtypeError(f"{value!r} ({type(value).__name__}) is not a number, an array, a Tensor or a Variable")
    return {"b": "bool", "f": get_default_dtype()}.get(kind, "int64")


def _as_type(value: Any, dtype: str) -> Applied:
    if not hasattr(value, "dtype"):
        return np.asarray(value, dtype=dtype)
    return value if value.dtype == dtype else REGISTRY["cast"](value, dtype=dtype)
