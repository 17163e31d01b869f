"""Training without writing the loop: `Model`, what it calls meanwhile, and a table of a network's layers."""

from app.model import callbacks
from app.model.model import Model
from app.model.summary import summary

__all__ = ["Model", "callbacks", "summary"]
