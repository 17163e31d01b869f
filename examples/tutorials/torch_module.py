"""PyTorch: networks as modules, what they hold and how they print."""

from collections import OrderedDict

import torch
import torch.nn.functional as F
from torch import nn


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.flatten = nn.Flatten()
        self.stack = nn.Sequential(
            nn.Linear(28 * 28, 64),
            nn.ReLU(),
            nn.Dropout(0.25),
            nn.Linear(64, 10),
        )
        self.register_buffer("seen", torch.tensor(0))

    def forward(self, x):
        self.seen += len(x)
        return self.stack(self.flatten(x))


device = "cpu"
model = Network().to(device)
print(model)
for name, parameter in model.named_parameters():
    print(f"{name:16} {parameter.size()} {parameter.requires_grad}")
print(sum(parameter.numel() for parameter in model.parameters()), list(model.state_dict()))

logits = model(torch.rand(3, 28, 28))
probabilities = nn.Softmax(dim=1)(logits)
print(logits.shape, probabilities.sum(dim=1).round(), probabilities.argmax(1).dtype, model.seen)

# In use, dropout leaves everything; in training, the kept values are larger.
ones = torch.ones(1000)
model.eval()
print(model.stack[2](ones).sum().item(), model.training, model.stack[2].training)
kept = model.train().stack[2](ones)
print(sorted({round(value, 4) for value in kept.tolist()}))

# Layers by themselves, with weights that are known
layer = nn.Linear(2, 3)
nn.init.ones_(layer.weight)
nn.init.zeros_(layer.bias)
print(layer(torch.tensor([[1.0, 2.0]])), layer.weight, sep="\n")
print(F.relu(torch.tensor([-1.0, 2.0])), nn.LeakyReLU(0.1)(torch.tensor([-1.0, 2.0])), nn.GELU()(torch.tensor(1.0)))
print(nn.BatchNorm1d(2)(torch.tensor([[1.0, 2.0], [3.0, 6.0]])))
print(nn.LayerNorm(2)(torch.tensor([[1.0, 3.0]])))

# Losses
scores, classes = torch.tensor([[2.0, 0.5], [0.2, 1.0]]), torch.tensor([0, 1])
print(nn.CrossEntropyLoss()(scores, classes), nn.NLLLoss()(F.log_softmax(scores, dim=1), classes))
print(nn.BCEWithLogitsLoss()(scores, torch.eye(2)), nn.MSELoss()(scores, torch.eye(2)), nn.L1Loss()(scores, scores))

# Modules in a row by name, in a list, in a dictionary
named = nn.Sequential(OrderedDict([("inside", nn.Linear(2, 4)), ("act", nn.Tanh()), ("out", nn.Linear(4, 1))]))
print(named, named.act, named[-1], len(named))
print(nn.ModuleList(nn.Linear(2, 2) for _ in range(3)))
print(nn.ModuleDict({"relu": nn.ReLU(), "flat": nn.Flatten(0)}))

# Hooks, apply, and freezing
handle = named.act.register_forward_hook(lambda module, inputs, output: print("saw", tuple(output.shape)))
named(torch.zeros(5, 2))
handle.remove()
named.apply(lambda module: nn.init.constant_(module.weight, 0.5) if isinstance(module, nn.Linear) else None)
named.inside.requires_grad_(False)
print([name for name, parameter in named.named_parameters() if parameter.requires_grad], named.out.weight.tolist())

# Prints:
# Network(
#   (flatten): Flatten(start_dim=1, end_dim=-1)
#   (stack): Sequential(
#     (0): Linear(in_features=784, out_features=64, bias=True)
#     (1): ReLU()
#     (2): Dropout(p=0.25, inplace=False)
#     (3): Linear(in_features=64, out_features=10, bias=True)
#   )
# )
# stack.0.weight   torch.Size([64, 784]) True
# stack.0.bias     torch.Size([64]) True
# stack.3.weight   torch.Size([10, 64]) True
# stack.3.bias     torch.Size([10]) True
# 50890 ['seen', 'stack.0.weight', 'stack.0.bias', 'stack.3.weight', 'stack.3.bias']
# torch.Size([3, 10]) tensor([1., 1., 1.], grad_fn=<RoundBackward0>) torch.int64 tensor(3)
# 1000.0 False False
# [0.0, 1.3333]
# tensor([[3., 3., 3.]], grad_fn=<AddmmBackward0>)
# Parameter containing:
# tensor([[1., 1.],
#         [1., 1.],
#         [1., 1.]], requires_grad=True)
# tensor([0., 2.]) tensor([-0.1000,  2.0000]) tensor(0.8413)
# tensor([[-1.0000, -1.0000],
#         [ 1.0000,  1.0000]], grad_fn=<NativeBatchNormBackward0>)
# tensor([[-1.0000,  1.0000]], grad_fn=<NativeLayerNormBackward0>)
# tensor(0.2863) tensor(0.2863)
# tensor(0.5531) tensor(0.3225) tensor(0.)
# Sequential(
#   (inside): Linear(in_features=2, out_features=4, bias=True)
#   (act): Tanh()
#   (out): Linear(in_features=4, out_features=1, bias=True)
# ) Tanh() Linear(in_features=4, out_features=1, bias=True) 3
# ModuleList(
#   (0-2): 3 x Linear(in_features=2, out_features=2, bias=True)
# )
# ModuleDict(
#   (relu): ReLU()
#   (flat): Flatten(start_dim=0, end_dim=-1)
# )
# saw (5, 4)
# ['out.weight', 'out.bias'] [[0.5, 0.5, 0.5, 0.5]]
