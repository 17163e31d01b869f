"""PyTorch: a network of two layers, with a ReLU and a loss of one's own, trained without torch.nn."""

import numpy as np
import torch


class MyReLU(torch.autograd.Function):
    """max(x, 0). Where x is negative, no gradient flows."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(min=0)

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        dx = dy.clone()
        dx[x < 0] = 0
        return dx


class SquaredError(torch.autograd.Function):
    """The sum of squared differences, computed by NumPy."""

    @staticmethod
    def forward(ctx, prediction, target):
        difference = prediction.detach().numpy() - target.numpy()
        ctx.difference = torch.from_numpy(difference)
        return torch.tensor(np.square(difference).sum())

    @staticmethod
    def backward(ctx, dy):
        return 2 * dy * ctx.difference, None


torch.manual_seed(0)
x, y = torch.randn(16, 30), torch.randn(16, 4)

# The gradients by hand
w1, w2 = torch.randn(30, 20), torch.randn(20, 4)
started_from = w1.clone(), w2.clone()
rate = 1e-4
for step in range(200):
    h = x.mm(w1)
    activated = h.clamp(min=0)
    error = activated.mm(w2) - y
    if step == 0:
        first = error.pow(2).sum().item()
    d_error = 2.0 * error
    d_w2 = activated.t().mm(d_error)
    d_h = d_error.mm(w2.t()).clone()
    d_h[h < 0] = 0
    w1 -= rate * x.t().mm(d_h)
    w2 -= rate * d_w2
by_hand = error.pow(2).sum().item()
print("by hand, the loss falls below a tenth:", by_hand < first / 10)

# The same by backward(), with functions of one's own
w1, w2 = (w.requires_grad_() for w in started_from)
for _ in range(200):
    loss = SquaredError.apply(MyReLU.apply(x.mm(w1)).mm(w2), y)
    loss.backward()
    with torch.no_grad():
        w1 -= rate * w1.grad
        w2 -= rate * w2.grad
        w1.grad.zero_()
        w2.grad.zero_()
print("the same loss:", abs(loss.item() - by_hand) < 1e-3 * by_hand, loss)

# Prints:
# by hand, the loss falls below a tenth: True
# the same loss: True tensor(…, grad_fn=<SquaredErrorBackward>)
