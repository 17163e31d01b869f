"""Functions of one number that LLVM vectorises in the loops that call them.

Those of the C library take one number at a time. These use arithmetic and selection only, no branches, and are accurate
to two units in the last place. Single precision uses the function of double precision if it has none of its own. The
constants are those of Cephes and fdlibm, and of `erf_32` a fit of erf(x) / x to 2e-9.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

_ROUND = 6755399441055744.0
"""Added to a number, it leaves the nearest whole number in the lowest bits."""
_ROUND32 = np.float32(12582912.0)
_BIAS, _BIAS32 = 1023.0, np.float32(127.0)
_LOG2_E, _LN2_HIGH, _LN2_LOW = 1.4426950408889634, 6.93147180369123816490e-01, 1.90821492927058770002e-10

_quick = njit(nogil=True, error_model="numpy", forceinline=True)


@_quick
def _power_of_2(n: float) -> float:
    return np.int64(np.float64(n + (_ROUND + _BIAS)).view(np.int64) << np.int64(52)).view(np.float64)


@_quick
def _parts_of_exp(x: float) -> tuple[float, float]:
    """For e ** x = 2 ** n * (1 + y): n, and y with all its digits."""
    n = (x * _LOG2_E + _ROUND) - _ROUND
    r = (x - n * _LN2_HIGH) - n * _LN2_LOW
    p = ((r * (1 / 6227020800) + 1 / 479001600) * r + 1 / 39916800) * r + 1 / 3628800
    p = (((p * r + 1 / 362880) * r + 1 / 40320) * r + 1 / 5040) * r + 1 / 720
    p = (((p * r + 1 / 120) * r + 1 / 24) * r + 1 / 6) * r + 1 / 2
    return n, p * (r * r) + r


@_quick
def _scaled(x: float, n: float) -> float:
    """x * 2 ** n in two steps, as that power may be too large, or too small, for a number."""
    half = (n * 0.5 + _ROUND) - _ROUND
    return x * _power_of_2(half) * _power_of_2(n - half)


@_quick
def exp_64(x: float) -> float:
    """e to the power of a number."""
    n, y = _parts_of_exp(min(max(x, -800.0), 800.0))
    return _scaled(1.0 + y, n)


@_quick
def expm1_64(x: float) -> float:
    """e to the power of a number, less 1."""
    n, y = _parts_of_exp(min(max(x, -50.0), 800.0))
    return math.copysign(_scaled((1.0 - _power_of_2(-min(n, 64.0))) + y, n), x)


@_quick
def tanh_64(x: float) -> float:
    """The hyperbolic tangent."""
    a, z = abs(x), x * x
    p = (-9.64399179425052238628e-1 * z - 9.92877231001918586564e1) * z - 1.61468768441708447952e3
    q = ((z + 1.12811678491632931402e2) * z + 2.23548839060100448583e3) * z + 4.84406305325125486048e3
    e = exp_64(a + a)
    small = a < 0.625
    above = (a * z * p if small else -2.0) / (q if small else e + 1.0)
    return math.copysign((a if small else 1.0) + above, x)


@_quick
def _power_of_2_32(n: np.float32) -> np.float32:
    return np.int32(np.float32(n + (_ROUND32 + _BIAS32)).view(np.int32) << np.int32(23)).view(np.float32)


@_quick
def exp_32(x: np.float32) -> np.float32:
    """e to the power of a number in single precision."""
    f = np.float32
    is_zero = x < f(-104.0)  # computing 0 by underflow takes the processor a hundred times as long
    clipped = f(0.0) if is_zero else min(x, f(110.0))
    n = (clipped * f(_LOG2_E) + _ROUND32) - _ROUND32
    r = (clipped - n * f(0.693359375)) - n * f(-2.12194440e-4)
    p = (f(1.9875691500e-4) * r + f(1.3981999507e-3)) * r + f(8.3334519073e-3)
    p = ((p * r + f(4.1665795894e-2)) * r + f(1.6666665459e-1)) * r + f(5.0000001201e-1)
    half = (n * f(0.5) + _ROUND32) - _ROUND32
    y = (p * (r * r) + r + f(1.0)) * _power_of_2_32(half) * _power_of_2_32(n - half)
    return f(0.0) if is_zero else y


@_quick
def tanh_32(x: np.float32) -> np.float32:
    """The hyperbolic tangent in single precision."""
    f = np.float32
    a, z = abs(x), x * x
    p = (f(-5.70498872745e-3) * z + f(2.06390887954e-2)) * z - f(5.37397155531e-2)
    p = (p * z + f(1.33314422036e-1)) * z - f(3.33332819422e-1)
    large = f(1.0) - f(2.0) / (exp_32(a + a) + f(1.0))
    return np.float32(math.copysign(p * z * a + a if a < f(0.625) else large, x))


_ROOT = np.uint64(0x3FE6A09E667F3BCD)
"""The bits of sqrt(1/2): the mantissa is reduced to the range from there to sqrt(2)."""


@_quick
def _log(x: float, more: float) -> float:
    """The logarithm of a number, plus a little."""
    tiny = x < 2.2250738585072014e-308
    bits = np.float64(x * 18014398509481984.0 if tiny else x).view(np.uint64)
    bits = bits + (np.uint64(0x3FF0000000000000) - _ROOT)
    k = np.uint64((bits >> np.uint64(52)) | np.uint64(0x4330000000000000)).view(np.float64)
    k = k - (4503599627370496.0 + 1023.0) - (54.0 if tiny else 0.0)
    f = np.uint64((bits & np.uint64(0x000FFFFFFFFFFFFF)) + _ROOT).view(np.float64) - 1.0
    s = f / (2.0 + f)
    z = s * s
    p = ((1.479819860511658591e-01 * z + 1.531383769920937332e-01) * z + 1.818357216161805012e-01) * z
    p = (((p + 2.222219843214978396e-01) * z + 2.857142874366239149e-01) * z + 3.999999999940941908e-01) * z
    p = (p + 6.666666666666735130e-01) * z
    square = 0.5 * f * f
    y = k * _LN2_HIGH - ((square - (s * (square + p) + (k * _LN2_LOW + more))) - f)
    below = -np.inf if x == 0.0 else np.nan
    return y if (x > 0.0) & (x < np.inf) else (x if x > 0.0 else below)


@_quick
def log_64(x: float) -> float:
    """The natural logarithm."""
    return _log(x, 0.0)


@_quick
def log1p_64(x: float) -> float:
    """The natural logarithm of 1 + a number."""
    above = 1.0 + x
    large, small = 1.0 - (above - x), x - (above - 1.0)
    lost = (large if x > 1.0 else small) / above
    y = _log(above, lost)
    return x if x == 0.0 else y


@_quick
def erf_32(x: np.float32) -> np.float32:
    """The error function in single precision."""
    clipped = min(max(np.float64(x), -3.95), 3.95)
    z = clipped * clipped
    p = (-1.296735499848e-08 * z + 4.640495814003e-06) * z + 3.779389467967252e-04
    p = ((p * z + 3.8433671857924516e-03) * z + 0.0542747881129062) * z + 0.18516880689181836
    q = ((6.269308766819602e-05 * z + 1.3040647131165237e-03) * z + 0.01544371877330106) * z
    q = ((q + 0.11391094467790598) * z + 0.4974349916945507) * z + 1.0
    return np.float32(clipped * (p * z + 1.1283791692369356) / q)


def _through_double(function: Any) -> Any:
    """A function for single precision that computes in double."""

    @_quick
    def single(x: np.float32) -> np.float32:
        return np.float32(function(np.float64(x)))

    return single


expm1_32, log_32, log1p_32 = _through_double(expm1_64), _through_double(log_64), _through_double(log1p_64)
