"""Run the code blocks of a page of Paddle's guides, each as a file of its own: what cannot run is said in a line.

    python -m app run paddle_blocks.py PAGE FOLDER [FIRST LAST]

FOLDER takes the blocks, so that functions in them have a source; FIRST and LAST choose some of the blocks.
"""

import json
import re
import sys
import textwrap
from pathlib import Path


def blocks(page: Path) -> list[str]:
    """The Python code of a notebook or of a text."""
    text = page.read_text(encoding="utf-8")
    if page.suffix == ".ipynb":
        found = ["".join(cell["source"]) for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
    else:
        found = re.findall(r"```\s*[pP]ython\n(.*?)```", text, re.S)
    return [re.sub(r"(?m)^[!%].*$", "", textwrap.dedent(block)) for block in found]


def main(page: Path, folder: Path, first: int = 0, last: int = 1000) -> None:
    """Run the blocks in one namespace."""
    names: dict[str, object] = {"__name__": "__main__"}
    for number, block in enumerate(blocks(page)):
        if first <= number <= last:
            file = folder / f"{page.stem}_{number}.py"
            file.write_text(block, encoding="utf-8")
            try:
                exec(compile(block, str(file), "exec"), names)
            except Exception as error:
                print(f"refused in {number}: {type(error).__name__}: {error}".partition("\n")[0])


main(Path(sys.argv[1]), Path(sys.argv[2]), *map(int, sys.argv[3:]))
