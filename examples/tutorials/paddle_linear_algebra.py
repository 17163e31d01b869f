"""Linear algebra with gradients, shares of many values, and the limits of element types."""

import paddle

spring = paddle.to_tensor([[4.0, 1.0, 2.0], [1.0, 3.0, 0.0], [2.0, 0.0, 5.0]], dtype="float64", stop_gradient=False)
load = paddle.to_tensor([1.0, 0.0, 3.0], dtype="float64")

# Equations, and how the determinant answers to each element
bend = paddle.linalg.solve(spring, load)
print("bend", bend.numpy().round(4))
print("left over", float(paddle.linalg.norm(spring @ bend - load) < 1e-12))
det = paddle.linalg.det(spring)
det.backward()
print("det", float(det))
print("its slope", spring.grad.numpy().round(4).tolist())

# Factors
values, vectors = paddle.linalg.eigh(spring.detach())
print("eigenvalues", values.numpy().round(4))
again = vectors @ paddle.diag(values) @ vectors.t()
print("together again", bool(paddle.allclose(again, spring)))
lower = paddle.linalg.cholesky(spring.detach())
print("cholesky", bool(paddle.allclose(lower @ lower.t(), spring)), float(lower[0, 1]))
print("power", paddle.linalg.matrix_power(paddle.to_tensor([[1.0, 1.0], [1.0, 0.0]]), 10).numpy()[0])
tall = paddle.to_tensor([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]])
print(
    "rank",
    int(paddle.linalg.matrix_rank(tall)),
    "sizes",
    [round(float(paddle.linalg.norm(tall, p, axis=[0, 1])), 4) for p in ("fro", "nuc", 1, float("inf"))],
)

# Shares and differences
times = paddle.to_tensor([[3.0, 1.0, 2.0, 7.0], [5.0, 4.0, 6.0, 0.5]])
print("quartiles", paddle.quantile(times, [0.25, 0.5, 0.75], axis=1).numpy().tolist())
print("changes", paddle.diff(times).numpy().tolist())
print("together", paddle.linalg.corrcoef(times).numpy().round(3).tolist())
print("histogram", paddle.histogram(times, bins=3, min=0, max=6).tolist())

print(paddle.iinfo(paddle.int16).max, paddle.finfo(paddle.float32).eps)
print("process", paddle.distributed.get_rank(), "of", paddle.distributed.get_world_size())

# Prints:
# bend [-0.0698  0.0233  0.6279]
# left over 1.0
# det 43.000000000000014
# its slope [[15.0, -5.0, -6.0], [-5.0, 16.0, 2.0], [-6.0, 2.0, 11.0]]
# eigenvalues [1.8549 3.476  6.6691]
# together again True
# cholesky True 0.0
# power [89. 55.]
# rank 1 sizes [8.3666, 8.3666, 12.0, 9.0]
# quartiles [[1.75, 3.125], [2.5, 4.5], [4.0, 5.25]]
# changes [[-2.0, 1.0, 5.0], [-1.0, 2.0, -5.5]]
# together [[1.0, -0.8410000205039978], [-0.8410000205039978, 1.0]]
# histogram [2, 2, 3]
# 32767 1.1920928955078125e-07
# process 0 of 1
