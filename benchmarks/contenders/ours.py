"""**This project**, custom ReLU as shipped (Numba, through py_func)"""

from benchmarks import ours


def train(data, work):
    return ours.train(data, work, "custom.relu")
