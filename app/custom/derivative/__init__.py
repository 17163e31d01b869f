"""Gradient for free: from the source of a function of single numbers to the source of its gradient.

Every value of the function gets the slopes that it has along each input beside it, statement by statement, in the
order in which the function runs: so branches, loops and early returns stay as they are. What comes out is Python
that can be read, that an engine inlines as it does a gradient written by hand, and that can be derived again.
"""
