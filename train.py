"""Train MNIST with a custom operator and compare it with the built-in one: `python train.py --help`."""

import signal
import sys

if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # importing takes long enough to be interrupted

try:
    from app.experiment.train_command import main
except ModuleNotFoundError as error:  # as of a Python that is not the one of .venv
    sys.exit(f"error: {sys.executable} has no package {error.name}: run `make train`, or .venv/bin/python after `make`")

if __name__ == "__main__":
    sys.exit(main())
