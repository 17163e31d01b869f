"""torch: the names of PyTorch that programs with functions of their own use."""

from app import autograd, enable_grad, errors, is_grad_enabled, no_grad, set_grad_enabled
from app.compat.modules import add_names, missing
from app.compat.torch import _autograd, _creation, _nn, _tensor, _types
from app.compat.torch._functions import FUNCTIONS, METHODS, SAME

_NO_GPU = {"is_available": lambda: False}
_RECORDING = {
    "enable_grad": enable_grad,
    "is_grad_enabled": is_grad_enabled,
    "no_grad": no_grad,
    "set_grad_enabled": set_grad_enabled,
}
_GRADCHECK = {"gradcheck": autograd.gradcheck, "gradgradcheck": autograd.gradgradcheck}

_tensor.add_methods(METHODS | _creation.METHODS, SAME)
add_names(
    __name__,
    {
        **_types.NAMED,
        **FUNCTIONS,
        **_creation.FUNCTIONS,
        **_RECORDING,
        **{name: getattr(_types, name) for name in ("Size", "device", "dtype")},
        **{name: getattr(_types, name) for name in ("get_default_dtype", "set_default_device", "set_default_dtype")},
        "Tensor": _tensor.Tensor,
        "accelerator": _NO_GPU,
        "autograd": {
            **_RECORDING,
            "Function": _autograd.Function,
            "backward": _tensor.backward,
            "function": {"Function": _autograd.Function, "once_differentiable": autograd.once_differentiable},
            "grad": _autograd.grad,
            "gradcheck": {**_GRADCHECK, "GradcheckError": errors.GradcheckError},
        },
        "cuda": _NO_GPU,
        "nn": {
            "Module": _nn.Module,
            "Parameter": _nn.Parameter,
            "functional": _nn.FUNCTIONAL,
            "modules": {"module": {"Module": _nn.Module}},
            "parameter": {"Parameter": _nn.Parameter},
        },
    },
)
add_names(f"{__name__}.autograd", _GRADCHECK)  # a module and a function have one name
__getattr__ = missing(__name__)
