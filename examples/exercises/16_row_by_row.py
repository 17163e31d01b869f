"""16. A declaration that does not hold.

`row_by_row=True` lets threads share the rows of a batch, and ranks of a cluster, too. Each thread then sees
only its own rows. `centred` subtracts the mean of the whole batch, so that its rows depend on each other. Make
it subtract the mean of each row; then the declaration holds.
"""

import opsmith


@opsmith.custom_op(row_by_row=True)
def centred(x):
    return x - x.mean()


@centred.backward
def centred_grad(x, dy):
    return dy - dy.mean()
