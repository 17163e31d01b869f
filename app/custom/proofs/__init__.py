"""What the source of a function on arrays proves: that it works number by number, or row by row.

An engine may then call it on single numbers inside a loop, or on a part of the batch. The proofs are of a small part
of Python only; a function that goes beyond it is taken as it is, and may be declared `row_by_row`.
"""

from app.custom.proofs.numbers import on_numbers, stops_on_numbers
from app.custom.proofs.rows import works_row_by_row

__all__ = ["on_numbers", "stops_on_numbers", "works_row_by_row"]
