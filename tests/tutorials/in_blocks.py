"""Run a tutorial block by block: what cannot run is said in a line, and the rest goes on.

The blocks of a Python file are between rows of `#`, as sphinx-gallery has them; those of a text are its code blocks.
"""

import re
import sys
import textwrap
import traceback
from collections.abc import Iterator


def blocks(text: str, is_python: bool) -> Iterator[tuple[int, str]]:
    """Each block, with the number of lines before it."""
    if is_python:
        start = 0
        for row in [*re.finditer(r"(?m)^#{20,}.*$", text), None]:
            end = row.start() if row else len(text)
            yield text.count("\n", 0, start), text[start:end]
            start = end
    else:
        for found in re.finditer(r"\.\. code(?:-block)?:: python\n\n((?: +.*\n|\n)+)", text):
            yield text.count("\n", 0, found.start(1)), textwrap.dedent(found[1])


def main(path: str) -> None:
    """Run the blocks in one namespace."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    names: dict[str, object] = {"__name__": "__main__"}
    for before, block in blocks(text, path.endswith(".py")):
        try:
            exec(compile("\n" * before + block, path, "exec"), names)
        except Exception as error:
            lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
            print(f"refused at {lines[-1]}: {error}")


main(sys.argv[1])
