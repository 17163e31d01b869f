"""torch.backends.cuda: there is none."""

from app.compat.missing import missing


def is_available() -> bool:
    """Whether GPUs can be used."""
    return False


def is_built() -> bool:
    """Whether GPUs could be used by this framework."""
    return False


__all__ = ["is_available", "is_built"]

__getattr__ = missing(__name__)
