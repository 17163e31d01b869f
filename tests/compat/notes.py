"""What a script is told where PyTorch or Paddle is installed, too."""

from __future__ import annotations

import re

PASSED_OVER = re.compile(r"note: the installed (\w+) is passed over; \1 is opsmith\.compat\.\1 here\n")


def without_notes(text: str) -> str:
    return PASSED_OVER.sub("", text)
