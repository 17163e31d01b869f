"""Operators of PyTorch, JAX and Paddle, which become ordinary operators here: a class of `Function` for each.

`framework` says what an adapter offers, `function` makes the class, and `torch`, `jax` and `paddle` are the adapters.
An adapter is imported only if the program has imported its framework.
"""
