"""A network as a class, trained step by step; its weights saved, loaded and found the same."""

import os
import tempfile

import paddle
import paddle.nn as nn
import paddle.nn.functional as F

paddle.seed(7)


class Net(nn.Layer):
    def __init__(self, hidden):
        super().__init__()
        self.first = nn.Linear(2, hidden)
        self.second = nn.Linear(hidden, 1)

    def forward(self, x):
        return self.second(F.tanh(self.first(x)))


# The product of two numbers, which no linear layer can give.
x = paddle.uniform([256, 2], min=-1.0, max=1.0)
y = (x[:, 0] * x[:, 1]).reshape([-1, 1])

net = Net(hidden=16)
print([name for name, _ in net.named_parameters()], sum(p.size for p in net.parameters()))
optimizer = paddle.optimizer.Adam(learning_rate=0.02, parameters=net.parameters())
for step in range(301):
    loss = F.mse_loss(net(x), y)
    loss.backward()
    optimizer.step()
    optimizer.clear_grad()
    if step == 0:
        first = loss.item()
print("the loss fell to a hundredth:", loss.item() < first / 100)

net.eval()
with paddle.no_grad():
    print(f"0.5 * 0.8 = {net(paddle.to_tensor([[0.5, 0.8]])).item():.1f}")

with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "net.pdparams")
    paddle.save(net.state_dict(), path)
    other = Net(hidden=16)
    other.set_state_dict(paddle.load(path))
print("loaded:", paddle.allclose(net(x), other(x)).item())

# Layers in a row need no class.
row = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1))
print(row)
print(row(x).shape, row[0].weight.shape, row[2].bias.tolist())

# Prints:
# ['first.weight', 'first.bias', 'second.weight', 'second.bias'] 65
# the loss fell to a hundredth: True
# 0.5 * 0.8 = 0.4
# loaded: True
# Sequential(
#   (0): Linear(in_features=2, out_features=8…)
#   (1): ReLU()
#   (2): Linear(in_features=8, out_features=1…)
# )
# [256, 1] [2, 8] [0.0]
