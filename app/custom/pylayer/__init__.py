"""`PyLayer` and `Function`: a custom operator as a class, whose `forward` and `backward` work on Tensors.

`context` is the `ctx` of both, `operator` applies a class to Tensors, and `traced` puts it into a Program.
"""

from app.custom.pylayer.pylayer import Function, PyLayer, once_differentiable, sets_up_context

__all__ = ["Function", "PyLayer", "once_differentiable", "sets_up_context"]
