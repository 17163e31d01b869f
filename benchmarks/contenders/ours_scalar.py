"""**This project**, custom ReLU as a function of one number"""

from app import custom_op
from benchmarks import ours


@custom_op(elementwise=True)
def relu(x):
    return max(x, 0.0)


@relu.backward
def relu_backward(y, dy):
    return dy if y > 0 else 0.0


def train(data, work):
    return ours.train(data, work, f"{__file__}:relu")
