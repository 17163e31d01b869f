"""PyTorch: one sine, fitted by a polynomial of the third order in three ways."""

import math

import numpy as np
import torch

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

# Prints:
# 99 293.73
# 199 197.59
# 299 133.92
# 399 91.73
# 499 63.78
# y = 0.048 + 0.633 x + -0.008 x^2 + -0.062 x^3
# y = 0.048 + 0.633 x + -0.008 x^2 + -0.062 x^3
# y = 0.00 + -1.77 * P3(0.00 + 0.25 x), loss 50.98
