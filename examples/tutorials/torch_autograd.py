"""PyTorch: gradients by backward() and by autograd.grad, and where they stop."""

import torch

# A layer by hand: only what asks for gradients gets them.
x = torch.ones(4)
target = torch.tensor([0.0, 1.0])
w = torch.tensor([[0.1, -0.2], [0.3, 0.4], [-0.5, 0.6], [0.7, -0.3]], requires_grad=True)
b = torch.zeros(2, requires_grad=True)
z = x @ w + b
loss = torch.nn.functional.binary_cross_entropy_with_logits(z, target)
print(z, loss, sep="\n")
loss.backward()
print(w.grad, b.grad, x.grad, sep="\n")

# Gradients add up until they are forgotten.
v = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
cubes = (v**3).sum()
cubes.backward(retain_graph=True)
cubes.backward()
print(v.grad, v.grad == 2 * 3 * v**2)
v.grad.zero_()

# The values that a backward pass needs are kept for one, unless it says otherwise.
try:
    cubes.backward()
except RuntimeError as error:
    print("a second time:", "retain_graph=True" in str(error))

# More than one number: the gradient that arrives there has to be said.
a = torch.tensor([2.0, 3.0], requires_grad=True)
q = 3 * a**3 - a**2
q.backward(gradient=torch.ones(2))
print(q, a.grad)

# No recording
with torch.no_grad():
    print((a * 2).requires_grad)
print((a * 2).detach().requires_grad, (a * 2).requires_grad)


@torch.no_grad()
def predict(values):
    return values * 2


print(predict(a), torch.is_grad_enabled())

# Gradients of gradients
t = torch.tensor(2.0, requires_grad=True)
(first,) = torch.autograd.grad(t**4, t, create_graph=True)
(second,) = torch.autograd.grad(first, t, create_graph=True)
(third,) = torch.autograd.grad(second, t)
print(first, second, third, t.grad, sep="\n")

# Hooks see gradients on their way, and may change them.
leaf = torch.tensor([1.0, 1.0], requires_grad=True)
middle = leaf * 3
middle.retain_grad()
handle = middle.register_hook(lambda gradient: gradient * 10)
middle.sum().backward()
print(middle.grad, leaf.grad)
handle.remove()

# A leaf is not changed in place while operators are recorded; a result is, and the gradient knows it.
try:
    leaf += 1
except RuntimeError as error:
    print("a leaf:", "in-place" in str(error) or "in place" in str(error))
copied = leaf.clone()
copied[0] = 100
leaf.grad = None
copied.sum().backward()
print(copied, leaf.grad)

# Prints:
# tensor([0.6000, 0.5000], grad_fn=<…>)
# tensor(0.7558, grad_fn=<…>)
# tensor([[ 0.3228, -0.1888],
#         [ 0.3228, -0.1888],
#         [ 0.3228, -0.1888],
#         [ 0.3228, -0.1888]])
# tensor([ 0.3228, -0.1888])
# None
# tensor([ 6., 24., 54.]) tensor([True, True, True])
# a second time: True
# tensor([20., 72.], grad_fn=<…>) tensor([32., 75.])
# False
# False True
# tensor([4., 6.]) True
# tensor(32., grad_fn=<…>)
# tensor(48., grad_fn=<…>)
# tensor(48.)
# None
# tensor([10., 10.]) tensor([30., 30.])
# a leaf: True
# tensor([100.,   1.], grad_fn=<…>) tensor([0., 1.])
