"""paddle.distributed: processes that mpiexec starts"""

from app import distributed as _below
from app.compat.missing import missing
from app.compat.table import table

_TAKEN = table(
    _below,
    """
    ParallelEnv ReduceOp all_gather all_gather_object all_reduce barrier broadcast get_rank get_world_size
    init_parallel_env is_initialized reduce spawn
    """,
)
globals().update(_TAKEN)

__all__ = [*_TAKEN]

__getattr__ = missing(__name__)
