"""What tests of every room may ask for."""

from browser import chromium, visitor

__all__ = ["chromium", "visitor"]
