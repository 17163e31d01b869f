"""Removed names, with what to write instead; CHANGELOG.md lists them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NoReturn

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
    "cond": "np.linalg.cond(x.numpy()) computes it",
    "median": "app.sort(x)[(n - 1) // 2] is the lower of the middle values of n",
    "nansum": "app.sum(app.where(app.isnan(x), 0.0, x)) is the same",
    "nanmean": "the sum of app.where(app.isnan(x), 0.0, x) over that of app.logical_not(app.isnan(x)) is the same",
    **dict.fromkeys(("Adamax", "AdamaxOptimizer", "NAdam", "RAdam"), f"Adam is the nearest to it; {_OPTIMIZERS}"),
    "Rprop": f"RMSProp is the nearest to it; {_OPTIMIZERS}",
    **dict.fromkeys(("ASGD", "AveragedSGD"), f"use SGD and average the parameters in your own loop; {_OPTIMIZERS}"),
    **dict.fromkeys(
        (
            "ChainedScheduler",
            "ConstantLR",
            "CosineAnnealingWarmRestarts",
            "CyclicLR",
            "LinearLR",
            "MultiplicativeDecay",
            "MultiplicativeLR",
            "NoamDecay",
            "OneCycleLR",
            "PolynomialLR",
            "SequentialLR",
            "noam_decay",
        ),
        "LambdaDecay, which PyTorch calls LambdaLR, takes a function that computes the factor of each epoch",
    ),
    "heaviside": "app.where(x == 0, y, app.cast(x > 0, x.dtype)) is the same",
    **dict.fromkeys(
        ("jacrev", "vjp"), "torch.autograd.functional.jacobian and torch.autograd.grad compute such derivatives"
    ),
    **dict.fromkeys(
        ("ReduceLROnPlateau", "ReduceOnPlateau"),
        "keep the best metric in your loop, and call set_lr (in PyTorch, set group['lr']) when it stops improving",
    ),
    "EarlyStopping": "a Callback whose on_eval_end sets self.model.stop_training = True ends fit",
    # layers and losses
    **dict.fromkeys(
        ("Bilinear", "bilinear"),
        'app.einsum("bi,oij,bj->bo", x1, weight, x2) + bias is the same, in a Layer of your own',
    ),
    **dict.fromkeys(
        ("GroupNorm", "group_norm"), "app.nn.LayerNorm of the value reshaped to groups normalises each group"
    ),
    **dict.fromkeys(("Maxout", "maxout"), "app.max of the value reshaped to groups is the same"),
    "Unflatten": "app.reshape in forward splits an axis",
    **dict.fromkeys(
        ("CosineEmbeddingLoss", "CosineSimilarity", "cosine_embedding_loss", "cosine_similarity"),
        "app.sum(x * y, -1) / (app.norm(x, axis=-1) * app.norm(y, axis=-1)) is the cosine",
    ),
    **dict.fromkeys(
        ("PairwiseDistance", "TripletMarginLoss", "pairwise_distance", "triplet_margin_loss"),
        "app.norm(x - y, axis=-1) is the distance of each pair of rows",
    ),
    **dict.fromkeys(
        ("HingeEmbeddingLoss", "MarginRankingLoss", "hinge_embedding_loss", "margin_ranking_loss"),
        "app.nn.functional.relu(margin - label * x) is such a loss",
    ),
    **dict.fromkeys(
        ("SoftMarginLoss", "soft_margin_loss"), "app.nn.functional.softplus(-label * x) is the loss of each element"
    ),
    "sigmoid_focal_loss": "write it with app.nn.functional.sigmoid, or as a custom operator",
    **dict.fromkeys(
        ("Orthogonal", "orthogonal_"), "app.nn.initializer.Assign(np.linalg.qr(matrix)[0]) starts with such a matrix"
    ),
    **dict.fromkeys(
        ("parameters_to_vector", "vector_to_parameters"),
        "app.concat([p.flatten() for p in parameters]) is the vector, and p.set_value sets each parameter",
    ),
    "set_global_initializer": "weight_attr=app.ParamAttr(initializer=...) of a layer says how its weight starts",
    "device_guard": "leave it out, as the only device is the CPU",
    # data
    "ComposeDataset": "a Dataset of your own whose __getitem__ returns the fields of both",
    "ChainDataset": "itertools.chain in an __iter__ of your own gives one stream after another",
    "SubsetRandomSampler": "DataLoader(Subset(dataset, indices), shuffle=True) is the same",
    "WeightedRandomSampler": "a Sampler of your own whose __iter__ gives np.random.default_rng().choice(n, count, p=p)",
    "Auc": "scikit-learn's roc_auc_score computes it",
    "assert_close": "np.testing.assert_allclose(x.numpy(), y.numpy(), rtol, atol) compares Tensors",
    "multiprocessing": "mpiexec -n 2 python -m app run program.py starts the processes",
    "CompositeMetric": "keep the metrics in a list of your own",
    "VarDesc": 'write the name of the element type, such as "float32"',
    # elementwise
    **dict.fromkeys(("bitwise_invert", "bitwise_left_shift", "bitwise_right_shift"), "write ~x, x * 2**y or x // 2**y"),
    "stanh": "1.7159 * app.tanh(0.67 * x) is the same",
    # random numbers
    "poisson": "np.random.default_rng().poisson(x.numpy()) draws such numbers",
    # parts
    "index_fill": "x[:, index] = value writes to places of an axis",
    **dict.fromkeys(
        ("scatter_nd", "scatter_nd_add"),
        'app.index_add adds to rows, and app.put_along_axis(..., reduce="add") to places of an axis',
    ),
    "strided_slice": "write x[start:end:stride]",
    # joining and splitting
    **dict.fromkeys(("atleast_1d", "atleast_2d", "atleast_3d"), "app.reshape and app.unsqueeze insert axes"),
    **dict.fromkeys(
        ("column_stack", "dstack"),
        "app.concat([x, y], axis) joins values along an axis, and app.stack along a new one",
    ),
    **dict.fromkeys(
        ("dsplit", "hsplit", "tensor_split", "vsplit"),
        "app.split(x, sizes, axis) splits a value into parts of these sizes",
    ),
    # matrices
    "cross": "np.cross(x.numpy(), y.numpy()) computes it; where a gradient is needed, write its three products",
    **dict.fromkeys(
        ("diag_embed", "diagflat"),
        "app.diag(app.flatten(x)) puts the elements of x on the diagonal of a matrix",
    ),
    **dict.fromkeys(
        ("kron", "tensordot"),
        'app.einsum computes it: "ij,kl->ikjl", "ijk,jkl->il"',
    ),
    # along an axis
    "cumprod": _NUMPY.format("cumprod"),
    "is_empty": "0 in x.shape is the same",
    "kthvalue": "app.sort(x)[..., k - 1] is the k-th smallest value along the last axis",
    "logcumsumexp": "app.log(app.cumsum(app.exp(x), axis)) is the same",
}
"""Replacements by removed name."""


OF_PACKAGE = {
    **{
        name: f"app.optimizer.{optimizer} takes the steps of an optimiser"
        for name, optimizer in {
            "adadelta": "Adadelta",
            "adagrad": "Adagrad",
            "adam": "Adam",
            "amsgrad": "Adam",
            "momentum": "Momentum",
            "rmsprop": "RMSProp",
            "sgd": "SGD",
        }.items()
    },
    **{name: f"write app.static.nn.{name}" for name in ("case", "cond", "switch_case", "while_loop")},
    "add_along_axis": 'app.put_along_axis(x, index, values, axis, reduce="add") adds at places along an axis',
    "add_at": "app.index_add(x, index, axis, value) adds at places of an axis",
    "add_items": 'app.put_along_axis(x, index, values, axis, reduce="add") adds at places along an axis',
    "assign_value": "app.to_tensor(values, dtype) makes a value of numbers",
    "binary_cross_entropy": 'app.nn.functional.binary_cross_entropy(x, label, reduction="none") is the same',
    "bordered": "app.nn.functional.pad puts a border around a value",
    "cast_like": "app.cast(x, y.dtype) is the same",
    "different": "app.unique(x) gives the different elements",
    "dropout_mask": "app.nn.functional.dropout(x, p) drops elements",
    "fill_constant": "app.full(shape, value, dtype) is the same",
    "gaussian_random": "app.normal(mean, std, shape) draws from a normal distribution",
    "getitem": "write x[index]",
    "integer_random": "app.randint(low, high, shape) draws integers",
    "largest_with_places": "app.topk(x, k) gives the largest elements and their places",
    "number_of_elements": "app.numel(x) is the same",
    "one_hot": "app.nn.functional.one_hot(x, num_classes) is the same",
    "p_norm": "app.norm(x, p, axis) is the same",
    "permutation": "app.randperm(n) is the same",
    "pick": "app.take_along_axis(x, index, axis) takes the elements at places along an axis",
    "places_of_nonzero": "app.nonzero(x) is the same",
    "put_items": "write x[index] = value, or app.scatter for a new value",
    "replace_along_axis": "app.put_along_axis(x, index, values, axis) is the same",
    "reshape_like": "app.view_as(x, y) is the same",
    "running_mean": "app.nn.BatchNorm1D keeps running means",
    "shape_of": "app.shape(x) is the same",
    "sorted_with_places": "app.sort(x) and app.argsort(x) give the elements in order and their places",
    "spread": "app.broadcast_to(x, shape) repeats a value",
    "take_items": "write x[index]",
    "truncated_gaussian_random": "app.nn.initializer.TruncatedNormal draws these numbers for a parameter",
    "uniform_random": "app.uniform(shape, dtype, min, max) is the same",
}
"""Replacements by the name of an operator that was a function of the package and is internal now."""


def without(owner: str, name: str, instead: Mapping[str, str] = INSTEAD) -> str:
    """The message for a missing name; for a removed name, with its replacement."""
    if name in instead:
        return f"{owner} no longer has {name!r}: {instead[name]}"
    return f"{owner} has no {name!r}"


def refuse_missing(owner: str) -> Callable[[str], NoReturn]:
    """The `__getattr__` of a module, which refuses names with the message of `without`."""

    def __getattr__(name: str) -> NoReturn:  # noqa: N807 - required by Python
        raise AttributeError(without(owner, name))

    return __getattr__
