"""Norms with gradients, differences, and the limits of element types."""

import paddle

spring = paddle.to_tensor([[4.0, 1.0, 2.0], [1.0, 3.0, 0.0], [2.0, 0.0, 5.0]], dtype="float64", stop_gradient=False)
load = paddle.to_tensor([1.0, 0.0, 3.0], dtype="float64")

# The length of a product, and how it depends on each element
length = paddle.linalg.norm(spring @ load)
length.backward()
print("length", round(float(length), 4))
print("its slope", spring.grad.numpy().round(4).tolist())
print("sizes", [float(paddle.linalg.norm(spring.detach(), p, axis=[0, 1]).round()) for p in ("fro", 1, float("inf"))])

# Differences
times = paddle.to_tensor([[3.0, 1.0, 2.0, 7.0], [5.0, 4.0, 6.0, 0.5]])
print("changes", paddle.diff(times).numpy().tolist())

print(paddle.iinfo(paddle.int16).max, paddle.finfo(paddle.float32).eps)
print("process", paddle.distributed.get_rank(), "of", paddle.distributed.get_world_size())

# Prints:
# length 19.7484
# its slope [[0.5064, 0.0, 1.5191], [0.0506, 0.0, 0.1519], [0.8608, 0.0, 2.5825]]
# sizes [8.0, 7.0, 7.0]
# changes [[-2.0, 1.0, 5.0], [-1.0, 2.0, -5.5]]
# 32767 1.1920928955078125e-07
# process 0 of 1
