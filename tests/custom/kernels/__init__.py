"""Functions on arrays as people publish them: loops, rows and whole arrays, some with a backward written by hand."""

from custom.kernels import (
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
from custom.kernels.registry import KERNELS, Kernel, compiled

__all__ = [
    "KERNELS",
    "Kernel",
    "compiled",
    "convolution",
    "dynamic_programming",
    "indices",
    "iterations",
    "normalisation",
    "pointwise",
    "pooling",
    "products",
    "scans",
    "softmax",
]
