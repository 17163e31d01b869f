"""**This project**, built-in ReLU"""

from benchmarks import ours


def train(data, work):
    return ours.train(data, work, "relu")
