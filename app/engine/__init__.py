"""Running Programs."""

from app.engine.executor import Executor
from app.graph.program import Program
from app.graph.scope import Scope, global_scope, scope_guard
from app.graph.state import Kept


def _explain(program: Program, fetch: list[str], source: bool) -> str:
    from app.engine.compiled.explain import explain  # imported late, as Numba is

    return explain(program, fetch, source)


Program.explainer = staticmethod(_explain)
Kept.scope_of = staticmethod(lambda scope: global_scope() if scope is None else scope)

__all__ = ["Executor", "Scope", "global_scope", "scope_guard"]
