"""Run a tutorial block by block in one namespace: a block that cannot run is reported in a line, and the rest goes on.

    python -m app run in_blocks.py FILE FOLDER [FIRST LAST]

The blocks of a Python file are separated by rows of `#`, as in sphinx-gallery; those of a text or notebook are its code
blocks, which are written to FOLDER, so that functions in them have a source. FIRST and LAST choose some of the blocks.
"""

import json
import re
import sys
import textwrap
import traceback
from collections.abc import Iterator
from pathlib import Path

PATTERNS = {
    ".py": r"(?s)(.*?)(?:^#{20,}.*?$|\Z)",
    ".rst": r"\.\. code(?:-block)?:: python\n\n((?: +.*\n|\n)+)",
    ".md": r"(?s)```\s*[pP]ython\n(.*?)```",
}


def blocks(path: Path) -> Iterator[tuple[int, str]]:
    """Each block, with the number of lines before it."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        for cell in json.loads(text)["cells"]:
            if cell["cell_type"] == "code":
                yield 0, re.sub(r"(?m)^[!%].*$", "", "".join(cell["source"]))
    else:
        for match in re.finditer(PATTERNS[path.suffix], text, re.MULTILINE):
            yield text.count("\n", 0, match.start(1)), textwrap.dedent(match[1])


def main(path: Path, folder: Path, first: int = 0, last: int = 1000) -> None:
    """Run the blocks."""
    names: dict[str, object] = {"__name__": "__main__"}
    for number, (before, block) in enumerate(blocks(path)):
        if not first <= number <= last:
            continue
        file = path if path.suffix == ".py" else folder / f"{path.stem}_{number}.py"
        source = "\n" * before + block
        if file is not path:
            file.write_text(source, encoding="utf-8")
        try:
            exec(compile(source, str(file), "exec"), names)
        except Exception as error:
            frames = [
                frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(file)
            ]
            line = (frames or [getattr(error, "lineno", 0)])[-1]
            print(f"refused in {number} at {line}: {type(error).__name__}: {error}".partition("\n")[0])


main(Path(sys.argv[1]), Path(sys.argv[2]), *map(int, sys.argv[3:]))
