"""Training without writing the loop: `Model`, its callbacks, and a summary of a network's layers."""

from app.model import callbacks
from app.model.model import Model
from app.model.summary import summary

__all__ = ["Model", "callbacks", "summary"]
