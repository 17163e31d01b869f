"""torch.backends.mps: there is none."""

from app.compat.missing import missing


def is_available() -> bool:
    """Whether Apple's GPUs can be used."""
    return False


def is_built() -> bool:
    """Whether Apple's GPUs could be used by this framework."""
    return False


__all__ = ["is_available", "is_built"]

__getattr__ = missing(__name__)
