"""paddle.base.core"""

from app.compat.missing import missing
from app.device import CPUPlace, CUDAPlace, is_compiled_with_cuda
from app.device import device_count as get_cuda_device_count
from app.engine import Scope


class VarDesc:
    """Paddle's numbers of element types, as the types themselves."""

    class VarType:
        BOOL, UINT8, INT8, INT16, INT32, INT64 = "bool", "uint8", "int8", "int16", "int32", "int64"
        FP16, FP32, FP64 = "float16", "float32", "float64"


__all__ = ["CPUPlace", "CUDAPlace", "Scope", "VarDesc", "get_cuda_device_count", "is_compiled_with_cuda"]

__getattr__ = missing(__name__)
