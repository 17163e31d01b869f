"""`python -m app demo --static FOLDER`: the demo as one page that contains its networks and needs no server.

The browser runs the networks. An operator between layers is stored as a table of its values, which is compared with the
operator before it is written.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from app.data.sample import load_sample
from app.errors import AppError
from app.files import refuse_foreign, write_whole
from app.nn import Linear
from app.run.network import Activation, Network
from app.tensor import Tensor, no_grad
from app.use.demo.reading import describe
from app.use.trained import TrainedRun

SCRIPTS = ("reading.js", "pad.js", "network.js", "demo.js")
"""The page's scripts in dependency order."""
PAGE, TITLE = "index.html", "<title>Draw a digit</title>"
STEPS = 4096
"""The number of intervals of a table; even, so that 0 is a point."""
TOLERANCE = 1e-3
"""The maximum error of a table, relative to the largest value."""


def write_page(run: TrainedRun, folder: Path) -> Path:
    """Write the page for the networks of a run into a folder; return the page."""
    page = page_of(run).encode()
    refuse_foreign(folder / PAGE, TITLE, 1 << 20, "name another folder, or remove it")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / PAGE, page)
    except OSError as error:
        raise AppError(f"{folder / PAGE} cannot be written: {error.strerror or error}") from error
    return folder / PAGE


def page_of(run: TrainedRun) -> str:
    """Return the self-contained page."""
    networks = [_network(trained.operator, trained.network) for trained in run.networks]
    units = [layer["units"] for layer in networks[0]["layers"] if "table" in layer]
    data = json.dumps({"about": describe(run, units), "networks": networks}, allow_nan=False).replace("<", "\\u003c")
    script = "\n".join(_as_part(_asset(name)) for name in SCRIPTS)
    style = _asset("demo.css")
    policy = f"default-src 'none'; img-src data:; style-src '{_hash(style)}'; script-src '{_hash(script)}'"
    icon = base64.b64encode(_asset("icon.svg").encode()).decode()
    page = _asset("index.html")
    for mark, put in {
        '<link rel="icon"': f'<link rel="icon" href="data:image/svg+xml;base64,{icon}">',
        '<link rel="stylesheet"': f"<style>{style}</style>",
        "<script ": "",
        "<title>": f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n{TITLE}',
        "</body>": f'<script type="application/json" id="data">{data}</script>\n<script>{script}</script>\n</body>',
    }.items():
        before, found, rest = page.partition(mark)
        assert found, f"the page has no {mark}"
        _, _, after = rest.partition("\n")  # the whole line is replaced
        page = f"{before}{put}\n{after}"
    return page


def _asset(name: str) -> str:
    return (files("app.use.demo") / "assets" / name).read_text(encoding="utf-8")


def _as_part(module: str) -> str:
    """Wrap a module as a part of one script. Its imports come earlier in the script, and its other names are
    private."""
    names = ", ".join(re.findall(r"^export (?:async )?(?:const|class|function) (\w+)", module, re.MULTILINE))
    inside = re.sub(r"^import .*?;\n|^export ", "", module, flags=re.MULTILINE)
    return f"const {{ {names} }} = (() => {{\n{inside}\nreturn {{ {names} }};\n}})();"


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _network(name: str, network: Network) -> dict[str, Any]:
    """Return a network as data for the page: dense layers, each optionally followed by an operator."""
    values = load_sample().test_images.astype(np.float32) * np.float32(network.scale) + np.float32(network.shift)
    layers: list[dict[str, Any]] = []
    for step, operator in zip(network.steps, network.between, strict=True):
        if step in network.others:
            continue  # dropout, which does nothing in evaluation
        if not isinstance(step, Linear):
            raise AppError(
                f"a page without a server supports only dense layers, but the network of {name} has "
                "others; show it with a server: opsmith demo RUN"
            )
        with no_grad():
            values = step(Tensor(values)).numpy()
        layers.append({"units": values.shape[1], "weight": _text(step.weight), "bias": _text(step.bias)})
        if operator is not None:
            layers[-1] |= _table(operator, values)
            with no_grad():
                values = operator(Tensor(values)).numpy()
    return {"scale": network.scale, "shift": network.shift, "layers": layers}


def _text(values: Any) -> str:
    return base64.b64encode(np.ascontiguousarray(np.asarray(values.numpy(), "<f4")).tobytes()).decode()


def _table(operator: Activation, seen: np.ndarray) -> dict[str, Any]:
    """Tabulate an operator over a range well beyond its inputs for MNIST's digits."""
    end = 2.0 ** np.ceil(np.log2(max(1.5 * float(np.abs(seen).max()), 1.0)))
    points = np.linspace(-end, end, STEPS + 1, dtype=np.float32)
    with no_grad(), np.errstate(all="ignore"):
        table = operator(Tensor(np.repeat(points[:, None], seen.shape[1], axis=1))).numpy()[:, 0]
        real = operator(Tensor(seen)).numpy()
    off = np.abs(np.interp(seen, points, table) - real).max() / max(float(np.abs(real).max()), 1e-6)
    if not off <= TOLERANCE:
        raise AppError(
            f"a page without a server evaluates an operator from a table of its values, but {operator.name} is not "
            "elementwise; show it with a server: opsmith demo RUN"
        )
    return {"table": base64.b64encode(table.astype("<f4").tobytes()).decode(), "low": -end, "step": 2 * end / STEPS}
