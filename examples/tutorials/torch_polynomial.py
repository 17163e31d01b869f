"""PyTorch: one sine, fitted by a polynomial of the third order in six ways."""

import math

import numpy as np
import torch
from torch import nn

STEPS = 500


def result(a, b, c, d):
    print(f"y = {a:.3f} + {b:.3f} x + {c:.3f} x^2 + {d:.3f} x^3")


# 1. NumPy, the gradient by hand
x = np.linspace(-math.pi, math.pi, 2000)
y = np.sin(x)
a, b, c, d = 0.1, 0.2, -0.1, -0.2
for step in range(STEPS):
    error = a + b * x + c * x**2 + d * x**3 - y
    if step % 100 == 99:
        print(step, round(np.square(error).sum(), 2))
    slope = 2 * error
    a -= 1e-6 * slope.sum()
    b -= 1e-6 * (slope * x).sum()
    c -= 1e-6 * (slope * x**2).sum()
    d -= 1e-6 * (slope * x**3).sum()
result(a, b, c, d)

# 2. The same with tensors, and the gradient by backward()
device = torch.device("cpu")
x = torch.linspace(-math.pi, math.pi, 2000, device=device, dtype=torch.float)
y = torch.sin(x)
weights = [torch.tensor(start, requires_grad=True) for start in (0.1, 0.2, -0.1, -0.2)]
for _ in range(STEPS):
    a, b, c, d = weights
    loss = (a + b * x + c * x**2 + d * x**3 - y).pow(2).sum()
    loss.backward()
    with torch.no_grad():
        for weight in weights:
            weight -= 1e-6 * weight.grad
            weight.grad = None
result(*(weight.item() for weight in weights))


# 3. A polynomial of Legendre's, with a gradient of one's own
class LegendrePolynomial3(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input):
        ctx.save_for_backward(input)
        return 0.5 * (5 * input**3 - 3 * input)

    @staticmethod
    def backward(ctx, grad_output):
        (input,) = ctx.saved_tensors
        return grad_output * 1.5 * (5 * input**2 - 1)


a, b, c, d = (torch.full((), start, requires_grad=True) for start in (0.0, -1.0, 0.0, 0.3))
for _ in range(STEPS):
    loss = (a + b * LegendrePolynomial3.apply(c + d * x) - y).pow(2).sum()
    loss.backward()
    with torch.no_grad():
        for weight in (a, b, c, d):
            weight -= 5e-6 * weight.grad
            weight.grad = None
print(f"y = {abs(a.item()):.2f} + {b.item():.2f} * P3({abs(c.item()):.2f} + {d.item():.2f} x), loss {loss.item():.2f}")

# 4. Layers: powers of x into a linear layer, a loss, and an optimiser
powers = x.unsqueeze(-1).pow(torch.tensor([1, 2, 3]))
model = nn.Sequential(nn.Linear(3, 1), nn.Flatten(0, 1))
with torch.no_grad():
    model[0].weight.copy_(torch.tensor([[0.2, -0.1, -0.2]]))
    model[0].bias.fill_(0.1)
loss_fn = nn.MSELoss(reduction="sum")
optimizer = torch.optim.RMSprop(model.parameters(), lr=4e-3)
for step in range(STEPS):
    loss = loss_fn(model(powers), y)
    if step % 100 == 99:
        print(step, loss.item() < 10)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
linear = model[0]
print(model, linear.weight.shape, f"y = {linear.weight[:, 0].item():.1f} x + ...")


# 5. A module of one's own
class Polynomial3(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c, self.d = (nn.Parameter(torch.tensor(start)) for start in (0.1, 0.2, -0.1, -0.2))

    def forward(self, x):
        return self.a + self.b * x + self.c * x**2 + self.d * x**3

    def string(self):
        return f"y = {self.a.item():.3f} + {self.b.item():.3f} x + {self.c.item():.3f} x^2 + {self.d.item():.3f} x^3"


model = Polynomial3()
criterion = torch.nn.MSELoss(reduction="sum")
optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
for _ in range(STEPS):
    loss = criterion(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(model.string(), [name for name, _ in model.named_parameters()])


# 6. A weight used several times, as often as the step says
class Dynamic(Polynomial3):
    def __init__(self):
        super().__init__()
        self.e = nn.Parameter(torch.tensor(0.0))

    def forward(self, x, more=0):
        y = super().forward(x)
        for power in range(4, 4 + more):
            y = y + self.e * x**power
        return y


model = Dynamic()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-8, momentum=0.9)
for step in range(300):
    loss = criterion(model(x, more=step % 3), y)
    if step % 100 == 99:
        print(step, f"{loss.item():.1f}")
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

# Prints:
# 99 293.73
# 199 197.59
# 299 133.92
# 399 91.73
# 499 63.78
# y = 0.048 + 0.633 x + -0.008 x^2 + -0.062 x^3
# y = 0.048 + 0.633 x + -0.008 x^2 + -0.062 x^3
# y = 0.00 + -1.77 * P3(0.00 + 0.25 x), loss 50.98
# 99 False
# 199 False
# 299 False
# 399 True
# 499 True
# Sequential(
#   (0): Linear(in_features=3, out_features=1, bias=True)
#   (1): Flatten(start_dim=0, end_dim=1)
# ) torch.Size([1, 3]) y = 0.9 x + ...
# y = 0.048 + 0.633 x + -0.008 x^2 + -0.062 x^3 ['a', 'b', 'c', 'd']
# 99 526.7
# 199 423.9
# 299 384.6
