"""Each test builds Programs of its own."""

from own_programs import own_programs

__all__ = ["own_programs"]
