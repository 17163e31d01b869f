"""**This project**, reference engine, custom ReLU as shipped"""

from benchmarks import ours


def train(data, work):
    return ours.train(data, work, "custom.relu", engine="reference")
