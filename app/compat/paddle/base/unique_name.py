"""paddle.base.unique_name"""

from app.compat.missing import missing
from app.graph.names import generate, guard

__all__ = ["generate", "guard"]

__getattr__ = missing(__name__)
