"""Functions on arrays as people publish them: loops, rows and whole arrays, some with a backward written by hand."""

from derivative.kernels import (
    convolution,
    dynamic_programming,
    indices,
    iterations,
    normalisation,
    pointwise,
    pooling,
    products,
    scans,
    softmax,
)
from derivative.kernels.registry import KERNELS, Kernel, compiled, interpreted

__all__ = [
    "KERNELS",
    "Kernel",
    "compiled",
    "convolution",
    "dynamic_programming",
    "indices",
    "interpreted",
    "iterations",
    "normalisation",
    "pointwise",
    "pooling",
    "products",
    "scans",
    "softmax",
]
