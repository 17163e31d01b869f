"""PyTorch: tensors, what they say of themselves, and what can be done with them."""

import numpy as np
import torch

# From lists, from NumPy, from sizes, and like another tensor
grid = torch.tensor([[1, 2], [3, 4]])
print(grid, grid.dtype, grid.shape, grid.device)
print(torch.ones_like(grid), torch.zeros(2, 3), torch.full((2,), 7.5))
print(torch.rand_like(grid, dtype=torch.float).shape, torch.arange(0, 1, 0.25), torch.eye(2))

# An array and the tensor made of it share their numbers, both ways.
array = np.ones(3)
shared = torch.from_numpy(array)
np.add(array, 1, out=array)
shared.mul_(10)
print(array, shared, torch.tensor(array, dtype=torch.float32))

# Indexing gives views; what is put into them is seen in the whole.
square = torch.ones(3, 4)
square[:, 1] = 0
column = square[:, 2]
column += 5
print(square, square[0], square[..., -1], sep="\n")
print(square[square > 1], square[[0, 2], [1, 2]])

# Joining, reshaping, arithmetic
print(torch.cat([grid, grid], dim=1), torch.stack([grid, grid]).shape)
print(grid.view(-1), grid.reshape(4, 1).squeeze(1), grid.unsqueeze(0).shape, grid.T)
print(grid @ grid.T, grid * grid, grid.float() / 3, sep="\n")
values = torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.0, -4.0]])
print(values.sum(), values.sum(dim=0), values.mean(1, keepdim=True), values.std())
print(values.max(dim=1), values.argmax(), values.clamp(min=0), sep="\n")
total = values.sum().item()
print(total, type(total))

# Methods that end in an underscore change the tensor itself.
values.add_(1).t_()
print(values)

# Wide rows are wrapped, large tensors are summarised, and some numbers need an exponent.
print(torch.linspace(0, 1, 21))
print(torch.arange(4000).reshape(40, 100))
print(torch.tensor([1e-5, 1.0, 12345.678]), torch.tensor(3.0), torch.tensor([]))

# There is one device.
device = "cuda" if torch.cuda.is_available() else "cpu"
print(values.to(device).device, torch.is_tensor(values), torch.get_default_dtype())

# Prints:
# tensor([[1, 2],
#         [3, 4]]) torch.int64 torch.Size([2, 2]) cpu
# tensor([[1, 1],
#         [1, 1]]) tensor([[0., 0., 0.],
#         [0., 0., 0.]]) tensor([7.5000, 7.5000])
# torch.Size([2, 2]) tensor([0.0000, 0.2500, 0.5000, 0.7500]) tensor([[1., 0.],
#         [0., 1.]])
# [20. 20. 20.] tensor([20., 20., 20.], dtype=torch.float64) tensor([20., 20., 20.])
# tensor([[1., 0., 6., 1.],
#         [1., 0., 6., 1.],
#         [1., 0., 6., 1.]])
# tensor([1., 0., 6., 1.])
# tensor([1., 1., 1.])
# tensor([6., 6., 6.]) tensor([0., 6.])
# tensor([[1, 2, 1, 2],
#         [3, 4, 3, 4]]) torch.Size([2, 2, 2])
# tensor([1, 2, 3, 4]) tensor([1, 2, 3, 4]) torch.Size([1, 2, 2]) tensor([[1, 3],
#         [2, 4]])
# tensor([[ 5, 11],
#         [11, 25]])
# tensor([[ 1,  4],
#         [ 9, 16]])
# tensor([[0.3333, 0.6667],
#         [1.0000, 1.3333]])
# tensor(0.) tensor([ 3.5000, -1.5000, -2.0000]) tensor([[ 0.3333],
#         [-0.3333]]) tensor(2.5100)
# torch.return_types.max(
# values=tensor([2., 3.]),
# indices=tensor([2, 0]))
# tensor(3)
# tensor([[0.5000, 0.0000, 2.0000],
#         [3.0000, 0.0000, 0.0000]])
# 0.0 <class 'float'>
# tensor([[ 1.5000,  4.0000],
#         [-0.5000,  1.0000],
#         [ 3.0000, -3.0000]])
# tensor([0.0000, 0.0500, 0.1000, 0.1500, 0.2000, 0.2500, 0.3000, 0.3500, 0.4000,
#         0.4500, 0.5000, 0.5500, 0.6000, 0.6500, 0.7000, 0.7500, 0.8000, 0.8500,
#         0.9000, 0.9500, 1.0000])
# tensor([[   0,    1,    2,  ...,   97,   98,   99],
#         [ 100,  101,  102,  ...,  197,  198,  199],
#         [ 200,  201,  202,  ...,  297,  298,  299],
#         ...,
#         [3700, 3701, 3702,  ..., 3797, 3798, 3799],
#         [3800, 3801, 3802,  ..., 3897, 3898, 3899],
#         [3900, 3901, 3902,  ..., 3997, 3998, 3999]])
# tensor([1.0000e-05, 1.0000e+00, 1.2346e+04]) tensor(3.) tensor([])
# cpu True torch.float32
