"""paddle.base.executor"""

from app.compat.missing import missing
from app.engine import Executor, global_scope, scope_guard

__all__ = ["Executor", "global_scope", "scope_guard"]

__getattr__ = missing(__name__)
