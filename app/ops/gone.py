"""Names that were here once, with what to write instead: CHANGELOG.md has a table of them."""

from __future__ import annotations

_OPTIMIZERS = "SGD, Momentum, Adam, AdamW, RMSProp, Adagrad and Adadelta are there"

_NUMPY = "np.{0}(x.numpy()) computes it; where a gradient is needed, make a custom operator of it"


def _with_numpy(**names: str) -> dict[str, str]:
    return {name: _NUMPY.format(function) for name, function in names.items()}


INSTEAD = {
    **_with_numpy(
        cholesky="linalg.cholesky",
        corrcoef="corrcoef",
        cov="cov",
        det="linalg.det",
        eigh="linalg.eigh",
        eigvalsh="linalg.eigvalsh",
        inverse="linalg.inv",
        inv="linalg.inv",
        lstsq="linalg.lstsq",
        matrix_power="linalg.matrix_power",
        matrix_rank="linalg.matrix_rank",
        multi_dot="linalg.multi_dot",
        pinv="linalg.pinv",
        pinverse="linalg.pinv",
        qr="linalg.qr",
        slogdet="linalg.slogdet",
        solve="linalg.solve",
        svd="linalg.svd",
        svdvals="linalg.svdvals",
        cond="linalg.cond",
        quantile="quantile",
        nanquantile="nanquantile",
        nanmedian="nanmedian",
        histogram="histogram",
        histc="histogram",
        bincount="bincount",
        bucketize="searchsorted",
        searchsorted="searchsorted",
        rot90="rot90",
    ),
    "logdet": "np.linalg.slogdet(x.numpy()) computes it; where a gradient is needed, make a custom operator of it",
    "triangular_solve": "np.linalg.solve(np.triu(a), b) computes it, with np.tril for a lower triangle",
    "solve_triangular": "np.linalg.solve(np.triu(a), b) computes it, with np.tril for a lower triangle",
    "cholesky_solve": "np.linalg.solve(l @ l.T, b) computes it for a lower factor l",
    "median": "app.sort(x)[(n - 1) // 2] is the lower of the middle values of n",
    "nansum": "app.sum(app.where(app.isnan(x), 0.0, x)) is the same",
    "nanmean": "the sum of app.where(app.isnan(x), 0.0, x) over that of app.logical_not(app.isnan(x)) is the same",
    **dict.fromkeys(("Adamax", "AdamaxOptimizer", "NAdam", "RAdam"), f"Adam is the nearest to it; {_OPTIMIZERS}"),
    "Rprop": f"RMSProp is the nearest to it; {_OPTIMIZERS}",
    **dict.fromkeys(("ASGD", "AveragedSGD"), f"use SGD and average the parameters in your own loop; {_OPTIMIZERS}"),
    "heaviside": "app.where(x == 0, y, app.cast(x > 0, x.dtype)) is the same",
}
"""What to write instead of a name."""


def without(owner: str, name: str) -> str:
    """The message about a name that something does not have: what to write instead, if the name was there once."""
    if name in INSTEAD:
        return f"{owner} no longer has {name!r}: {INSTEAD[name]}"
    return f"{owner} has no {name!r}"
