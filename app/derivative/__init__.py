"""Gradient for free: from the source of a function of single numbers to the source of its gradient.

This is forward-mode differentiation: statement by statement, each value is followed by its partial derivatives (slopes)
along the inputs, so branches, loops and early returns stay as they are. The result is readable Python, which an engine
inlines as it does a handwritten gradient, and which can be derived again.
"""
