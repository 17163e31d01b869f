"""Operators that leave: one of `custom_op` or `py_func` as source for another framework, which needs no opsmith.

`describe` says what an operator is made of, `translation` turns functions of single numbers into tensor expressions,
`kernels` collects the source of functions that Numba compiles, and `writing` fills the templates.
"""
