"""Tensors, operators on them, and gradients."""

import numpy as np
import paddle

# A tensor is made of numbers, of a list or of an array; Python's floats become float32.
a = paddle.to_tensor([[1.0, 2.0], [3.0, 4.0]])
b = paddle.to_tensor(np.array([[0.5, -1.0], [2.0, 0.0]], dtype="float32"))
print(a.shape, a.dtype, a.ndim, a.numel())

# Operators are functions of the package, methods of the tensor, and Python's own signs.
print(paddle.add(a, b))
print((a @ b).numpy())
print(a.sum(axis=0).tolist(), a.max().item(), paddle.mean(a, axis=1, keepdim=True).tolist())
print(paddle.concat([a, b], axis=1).shape, paddle.reshape(a, [-1]).tolist(), a[:, 1].tolist())
print(paddle.where(b > 0, a, paddle.zeros_like(a)).tolist())

# A tensor with stop_gradient=False remembers what was made of it.
x = paddle.to_tensor([1.0, 2.0, 3.0], stop_gradient=False)
y = paddle.sum(x * x)
y.backward()
print("dy/dx at x is", x.grad.tolist())

# Gradients add up until they are cleared, which makes them zero.
paddle.sum(3 * x).backward()
print("added up:", x.grad.tolist())
x.clear_grad()

# paddle.grad gives gradients without touching .grad, and can differentiate them again.
(first,) = paddle.grad(paddle.sum(x**3), [x], create_graph=True)
(second,) = paddle.grad(paddle.sum(first), [x])
print(first.tolist(), second.tolist(), x.grad.tolist())

# Nothing is remembered inside no_grad.
with paddle.no_grad():
    z = x * 2
print(z.stop_gradient)

# Prints:
# [2, 2] float32 2 4
# Tensor(shape=[2, 2], dtype=float32, place=Place(cpu), stop_gradient=True,
#        [[1.5, 1. ],
#         [5. , 4. ]])
# [[ 4.5 -1. ]
#  [ 9.5 -3. ]]
# [4.0, 6.0] 4.0 [[1.5], [3.5]]
# [2, 4] [1.0, 2.0, 3.0, 4.0] [2.0, 4.0]
# [[1.0, 0.0], [3.0, 0.0]]
# dy/dx at x is [2.0, 4.0, 6.0]
# added up: [5.0, 7.0, 9.0]
# [3.0, 12.0, 27.0] [6.0, 12.0, 18.0] [0.0, 0.0, 0.0]
# True
