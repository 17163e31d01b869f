"""Train MNIST with a custom operator and compare it with the built-in one: `python train.py --help`."""

import sys

try:
    from app.training.command import main
except KeyboardInterrupt:  # importing takes long enough to be interrupted
    sys.exit(130)

if __name__ == "__main__":
    sys.exit(main())
