"""The hooks for custom operators. Each turns a user's functions into the same kind of object as a built-in operator."""

from app.custom.custom_op import custom_op
from app.custom.gradcheck import gradcheck
from app.custom.py_func import py_func
from app.custom.pylayer import Function, PyLayer

__all__ = ["Function", "PyLayer", "custom_op", "gradcheck", "py_func"]
