"""Converts control flow: `if`, `while` and `for` in a function's source become calls that also work on Tensors.

`rewrite` rewrites the source, with a file for each construct. The new source calls functions as `_jit.…`, which are
listed in `meaning`. If a condition is a plain Python value, they do what Python does. If it is a Tensor, they append an
operator of control flow.
"""
