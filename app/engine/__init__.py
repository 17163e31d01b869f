"""Running Programs."""

from collections.abc import Sequence

from app.engine.executor import Executor
from app.graph.program import EXPLANATIONS, Program
from app.graph.scope import Scope, global_scope, scope_guard


def _explain(program: Program, fetch: Sequence[str], source: bool) -> str:
    from app.engine.compiled.explain import explain  # imported here because importing Numba takes 0.3 s

    return explain(program, fetch, source)


EXPLANATIONS["compiled"] = _explain

__all__ = ["Executor", "Scope", "global_scope", "scope_guard"]
