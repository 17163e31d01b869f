"""7. A setting.

`exponent` is a setting, not an input: it gets no gradient, and backward takes it by its name, as its last parameter.
This backward is right only for the default. Make it right for every whole exponent of at least 1.
"""

import opsmith


@opsmith.custom_op
def power(x, exponent=2):
    return x**exponent


@power.backward
def power_grad(x, dy):
    return dy * 2 * x
