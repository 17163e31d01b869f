"""torch.nn.utils"""

from app.compat.missing import missing
from app.nn.utils import clip_grad_norm_, clip_grad_value_, parameters_to_vector, vector_to_parameters

__all__ = ["clip_grad_norm_", "clip_grad_value_", "parameters_to_vector", "vector_to_parameters"]

__getattr__ = missing(__name__)
