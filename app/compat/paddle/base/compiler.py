"""paddle.base.compiler"""

from app.compat.missing import missing
from app.static import BuildStrategy, CompiledProgram, ExecutionStrategy

__all__ = ["BuildStrategy", "CompiledProgram", "ExecutionStrategy"]

__getattr__ = missing(__name__)
