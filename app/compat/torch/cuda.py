"""torch.cuda: there are no GPUs here."""

from app.compat.missing import missing


def is_available() -> bool:
    """Whether GPUs can be used."""
    return False


def device_count() -> int:
    """How many GPUs can be used."""
    return 0


def manual_seed(seed: int) -> None:
    """Nothing: there are no GPUs whose random numbers could start anew."""


manual_seed_all = manual_seed

__all__ = ["device_count", "is_available", "manual_seed", "manual_seed_all"]

__getattr__ = missing(__name__)
