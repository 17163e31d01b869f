"""Build the sdist and, from it, the wheel; install the wheel into an empty environment away from the checkout; run it
beside a user's own `app.py`.

`make package` runs this. The packages stay in dist/.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OPERATOR = """
import numpy as np
import opsmith

@opsmith.custom_op(elementwise=True, like="silu")
def swish(x):
    return x / (1 + np.exp(-x))
"""
COMMANDS = [
    "opsmith --version",
    "opsmith check my_ops.py --only gradient,like",
    "python -m opsmith check my_ops.py --only gradient,like",
    "python own.py",
    "opsmith train --config quick.yaml model.activation=my_ops.py:swish baseline=silu output=run",
    "opsmith predict --help",
]
OWN = {
    "app.py": "mine = 1",
    "own.py": "import opsmith.nn, app; assert app.mine == 1; assert opsmith.nn.Linear(2, 3)",
    "wrong.py": OPERATOR.replace("(1 + np.exp(-x))", "2") + "\n@swish.backward\ndef of_swish(x, dy):\n    return dy\n",
}
"""Files of a user: an `app.py`, a program that imports both, and an operator whose gradient is wrong."""
IN_THE_SDIST = ["README.md", "LICENSE", "Makefile", "app/__init__.py", "tests/test_readme.py", "data/mnist-sample.npz"]
CONFIGURATION = "data: {source: sample}\ntrain: {epochs: 1, batch_size: 64, learning_rate: 0.02}\n"


def main() -> None:
    dist = ROOT / "dist"
    shutil.rmtree(dist, ignore_errors=True)
    run([sys.executable, "-m", "build", "--outdir", str(dist), str(ROOT)], ROOT)
    (sdist,), (wheel,) = dist.glob("*.tar.gz"), dist.glob("*.whl")
    with tarfile.open(sdist) as packed:
        missing = {f"{sdist.name[:-7]}/{name}" for name in IN_THE_SDIST} - set(packed.getnames())
    if missing:
        sys.exit(f"{sdist.name} lacks {', '.join(sorted(missing))}")
    with zipfile.ZipFile(wheel) as packed_wheel:
        tops = {name.partition("/")[0] for name in packed_wheel.namelist()}
    if {top for top in tops if not top.endswith(".dist-info")} != {"opsmith"}:
        sys.exit(f"{wheel.name} has {', '.join(sorted(tops))}; expected the package opsmith alone")
    with tempfile.TemporaryDirectory(prefix="opsmith-package-") as name:
        folder = Path(name)
        venv.create(folder / "env", with_pip=True)
        programs = folder / "env" / "bin"
        run([str(programs / "python"), "-m", "pip", "install", "--disable-pip-version-check", "-q", str(wheel)], folder)
        for file, text in {"my_ops.py": OPERATOR, "quick.yaml": CONFIGURATION, **OWN}.items():
            (folder / file).write_text(text, encoding="utf-8")
        for command in COMMANDS:
            program, *words = command.split()
            run([str(programs / program), *words], folder)
        for program in ("opsmith", "python -m opsmith"):
            words = [
                str(programs / program.split()[0]),
                *program.split()[1:],
                "check",
                "wrong.py",
                "--only",
                "gradient",
            ]
            if subprocess.run(words, cwd=folder, check=False).returncode != 1:
                sys.exit(f"the installed `{program} check` passes a wrong gradient")
        if not (folder / "run" / "report.html").exists():
            sys.exit("the installed `opsmith train` wrote no report")
    print(f"\n{sdist.name} and {wheel.name} are in dist/, and the wheel works")


def run(words: list[str], folder: Path) -> None:
    print("+", *(Path(word).name if word.startswith("/") else word for word in words), flush=True)
    subprocess.run(words, cwd=folder, check=True)


if __name__ == "__main__":
    main()
