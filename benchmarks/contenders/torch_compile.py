"""PyTorch, the whole step through torch.compile"""

import torch

from benchmarks.contenders import torch_eager


def train(data, work):
    return torch_eager.train(data, work, prepare=torch.compile(dynamic=False))
