"""Train MNIST with a custom operator and compare it with the built-in one: `python train.py --help`."""

import sys
from importlib.util import find_spec

if __name__ == "__main__":
    for name in ("numpy", "msgspec", "numba"):
        if find_spec(name) is None:  # as of a Python that is not the one of .venv
            sys.exit(
                f"error: {sys.executable} has no package {name}: run `make train`, or .venv/bin/python after `make`"
            )
    from app.experiment.train_command import main

    sys.exit(main())
