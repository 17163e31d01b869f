"""Layers whose parameters have other names, shapes or first values in Paddle than in the framework."""

from __future__ import annotations

import math
from collections.abc import Sequence

from app import nn


class Embedding(nn.Embedding):
    """A table of `num_embeddings` trained vectors, looked up by index. It begins with XavierUniform."""

    first_values = None


class LayerNorm(nn.LayerNorm):
    """Layer normalisation over the last axes. Weight and bias have one axis."""

    def parameter_shape(self, sizes: Sequence[int]) -> Sequence[int]:
        return [math.prod(sizes)]


class PReLU(nn.PReLU):
    """PReLU: x if x > 0, else weight * x, with a trained weight for all channels or one for each."""

    weight_name = "_weight"
