"""paddle.version: the release whose names these are."""

from app.compat.missing import missing

full_version = "2.6.0"

__all__ = ["full_version"]

__getattr__ = missing(__name__)
