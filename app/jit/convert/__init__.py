"""Converting control flow: `if`, `while` and `for` of a function's source become calls that know Tensors.

The source is rewritten (`rewrite`, with a file for each construct), and what it then calls, `_jit.…`, is in `meaning`:
where a condition is a plain Python value these do what Python does, and where it is a Tensor they append an operator
of control flow.
"""
