"""Train MNIST with a custom operator and compare it with the built-in one: `python train.py --help`."""

import sys

from app.training.command import main

if __name__ == "__main__":
    sys.exit(main())
