"""paddle.distributed: one process"""

from app import distributed as _below
from app.compat.missing import missing
from app.compat.table import taken

_TAKEN = taken(_below, "ParallelEnv get_rank get_world_size init_parallel_env is_initialized spawn")
globals().update(_TAKEN)

__all__ = [*_TAKEN]

__getattr__ = missing(__name__)
