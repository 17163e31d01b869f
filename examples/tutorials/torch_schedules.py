"""Optimisers and schedules of their rates, alone and two at once; saving all of it."""

import io

import torch
from torch import nn
from torch.optim import lr_scheduler

weights = nn.Parameter(torch.tensor([2.0, -1.0]))


def restart(kind, **settings):
    with torch.no_grad():
        weights.copy_(torch.tensor([2.0, -1.0]))
    weights.grad = None
    return kind([weights], **settings)


def step(optimizer):
    optimizer.zero_grad()
    loss = (weights * weights).sum()
    loss.backward()
    optimizer.step()
    return loss.item()


for kind, settings in (
    (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    (torch.optim.Adam, {"lr": 0.1, "amsgrad": True}),
    (torch.optim.AdamW, {"lr": 0.1}),
):
    optimizer = restart(kind, **settings)
    losses = [step(optimizer) for _ in range(10)]
    print(f"{kind.__name__}: {losses[0]:.3f} -> {losses[-1]:.3f}")

# A cycle: the rate rises for three epochs and falls for three
optimizer = restart(torch.optim.SGD, lr=0.4)
cycle = lr_scheduler.LambdaLR(optimizer, lambda epoch: 1 - abs(epoch - 3) / 4)
rates = []
for _ in range(6):
    rates.append(cycle.get_last_lr()[0])
    optimizer.step()
    cycle.step()
print("cycle", rates)

# Two at once
optimizer = restart(torch.optim.SGD, lr=1.0)
slow, sudden = lr_scheduler.ExponentialLR(optimizer, 0.5), lr_scheduler.MultiStepLR(optimizer, [2], 0.1)
for _ in range(3):
    optimizer.step()
    slow.step()
    sudden.step()
print("both", round(optimizer.param_groups[0]["lr"], 6))


class Hyperbolic(lr_scheduler.LRScheduler):
    """A schedule of one's own."""

    def get_lr(self):
        return [rate / (1 + self.last_epoch) for rate in self.base_lrs]


own = Hyperbolic(restart(torch.optim.SGD, lr=1.0))
for _ in range(3):
    own.optimizer.step()
    own.step()
print("own", own.get_last_lr())

# A checkpoint of everything
optimizer = restart(torch.optim.Adam, lr=0.1)
step(optimizer)
file = io.BytesIO()
torch.save({"weights": weights.detach(), "optimizer": optimizer.state_dict(), "epoch": 1}, file)
file.seek(0)
checkpoint = torch.load(file)
print(checkpoint["epoch"], sorted(checkpoint["optimizer"]["state"][0]))
optimizer.load_state_dict(checkpoint["optimizer"])

# Norms
spring = torch.tensor([[4.0, 1.0], [1.0, 3.0]], requires_grad=True)
torch.linalg.norm(spring).backward()
print(spring.grad)
print(torch.linalg.norm(spring.detach(), 1), torch.diff(torch.tensor([1, 4, 9])))

# Prints:
# SGD: 5.000 -> 0.013
# Adam: 5.000 -> 1.273
# AdamW: 5.000 -> 1.241
# cycle [0.1, 0.2, 0.3, 0.4, 0.3, 0.2]
# both 0.0125
# own [0.25]
# 1 ['exp_avg', 'exp_avg_sq', 'step']
# tensor([[0.7698, 0.1925],
#         [0.1925, 0.5774]])
# tensor(5.) tensor([3, 5])
