"""Running Programs."""

from app.engine.executor import Executor
from app.engine.scope import Scope, global_scope, scope_guard

__all__ = ["Executor", "Scope", "global_scope", "scope_guard"]
