"""**This project**, custom ReLU as a function of one number"""

import tempfile
from pathlib import Path

from app import custom_op
from benchmarks import ours


@custom_op(elementwise=True)
def relu(x):
    return max(x, 0.0)


@relu.backward
def relu_backward(y, dy):
    return dy if y > 0 else 0.0


EDITED = """from app import custom_op


@custom_op(elementwise=True)
def leaky(x):
    return x if x > 0 else {slope} * x
"""


def train(data, work):
    if work.slope is None:
        return ours.train(data, work, f"{__file__}:relu")
    file = Path(tempfile.mkdtemp(prefix="edited-"), "operator.py")
    file.write_text(EDITED.format(slope=work.slope), encoding="utf-8")
    return ours.train(data, work, f"{file}:leaky")
