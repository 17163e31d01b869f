"""Pictures of Programs."""

from app.inspection.picture.drawing import draw

__all__ = ["draw"]
