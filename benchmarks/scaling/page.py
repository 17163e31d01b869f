"""The tables of docs/scaling.md, made of what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

from benchmarks import report
from benchmarks.scaling.model import (
    CLASSES,
    PIXELS,
    Computing,
    Network,
    arrays,
    exchanges,
    fitted,
    iteration,
    messages,
    stops_paying,
)

NETWORKS = {
    "Ethernet, 1 Gbit/s": Network(50e-6, 125e6),
    "Ethernet, 10 Gbit/s": Network(30e-6, 1.25e9),
    "InfiniBand, 100 Gbit/s": Network(2e-6, 12.5e9),
}
IMAGES = 60_000
"""Of an epoch."""
LARGE, LARGE_BATCH = 100_000_000, 4096
"""Parameters of the large network, and its batch."""


def texts(results: dict[str, Any]) -> dict[str, str]:
    """What stands at each place of the page."""
    computing, network = _computing(results), Network(**results["many"][0]["network"]["allreduce"])
    return {
        "machine": report.machine_text(results["machine"], sample=False),
        "alone": _alone(computing, results),
        "network": _network(results["many"]),
        "ranks": _ranks(computing, results),
        "larger": _larger(results["larger"]),
        "pieces": _pieces(results["pieces"]),
        "slower": _slower(computing, results),
        "stops": _stops(computing, network, results["batch"]),
    }


def _computing(results: dict[str, Any]) -> dict[int, Computing]:
    """What one rank computes, for every width."""
    widths = dict.fromkeys(point["width"] for point in results["one"])
    return {
        width: fitted({p["batch"]: p["seconds"] for p in results["one"] if p["width"] == width}) for width in widths
    }


def _alone(computing: dict[int, Computing], results: dict[str, Any]) -> str:
    rows = [["width", "parameters", "bytes of gradients", "iteration, ms", "fixed, ms", "a row, µs"]]
    for point in results["one"]:
        if point["batch"] == results["batch"]:
            found, count = computing[point["width"]], point["parameters"]
            figures = [_ms(point["seconds"]), _ms(found.fixed), f"{found.per_row * 1e6:.2f}"]
            rows.append([str(point["width"]), f"{count:,}", f"{4 * count:,}", *figures])
    return _table(rows)


def _network(many: Sequence[dict[str, Any]]) -> str:
    rows = [["ranks", "shape", "latency of a message, µs", "bandwidth, GB/s"]]
    for found in many:
        for shape, network in found["network"].items():
            figures = [f"{network['latency'] * 1e6:.1f}", f"{network['bandwidth'] / 1e9:.2f}"]
            rows.append([str(found["ranks"]), shape, *figures])
    return _table(rows)


def _ranks(computing: dict[int, Computing], results: dict[str, Any]) -> str:
    cores, batch = results["machine"]["cores"], results["batch"]
    one = {p["width"]: p["seconds"] for p in results["one"] if p["batch"] == batch}
    rows = [["width", "ranks", "shape", "derived, ms", "measured, ms", "measured over derived", "times one rank"]]
    points = [(found, point) for found in results["many"] for point in found["points"]]
    for found, point in sorted(points, key=lambda pair: (pair[1]["width"], pair[0]["ranks"])):
        ranks, width, shape, seconds = found["ranks"], point["width"], point["shape"], point["seconds"]
        network = Network(**found["network"][shape])
        sizes = exchanges(width, batch) if shape == "rows" else messages(arrays(width))
        derived = iteration(computing[width], batch, sizes, ranks, network, shape, cores)
        figures = [_ms(derived), _ms(seconds), f"{seconds / derived:.2f}", f"{one[width] / seconds:.2f}"]
        rows.append([str(width), str(ranks), shape, *figures])
    return _table(rows)


def _larger(pairs: Sequence[dict[str, Any]]) -> str:
    """How many times one rank two are, batch by batch: the median of pairs that were measured one after the other."""
    others = ["one rank with half a batch: times", "one process of two threads: times"]
    rows = [["width", "batch", "shape", "two ranks, ms", "times one rank", *others]]
    for point in sorted(pairs[0]["two"], key=lambda p: (p["width"], p["batch"], p["shape"])):
        width, batch, shape = point["width"], point["batch"], point["shape"]
        found = [(_of(p["two"], width, batch, shape), p["one"]) for p in pairs]
        times = [_of(one, width, batch) / two for two, one in found]
        halves = [_of(one, width, batch) / _of(one, width, batch // 2) for _, one in found]
        threads = [_of(p["one"], width, batch) / _of(p["threads"], width, batch) for p in pairs]
        figures = [f"{median(of_pairs):.2f}" for of_pairs in (times, halves, threads)]
        rows.append([str(width), str(batch), shape, _ms(median(two for two, _ in found)), *figures])
    return _table(rows)


def _of(points: Sequence[dict[str, Any]], width: int, batch: int, shape: str = "none") -> float:
    wanted = {"width": width, "batch": batch, "shape": shape}
    return next(float(p["seconds"]) for p in points if {key: p[key] for key in wanted} == wanted)


def _pieces(found: Sequence[dict[str, Any]]) -> str:
    """What pieces cost: seconds for each epoch of the images."""
    rows = [["width", "ranks", "pieces of a batch", "seconds an epoch", "times without pieces"]]
    points = [(of_ranks["ranks"], point) for of_ranks in found for point in of_ranks["points"]]
    whole = {(ranks, p["width"]): p["seconds"] for ranks, p in points if p["pieces"] is None}
    for ranks, point in sorted(points, key=lambda pair: pair[1]["width"]):
        seconds, batches = point["seconds"], -(-IMAGES // point["batch"])
        figures = [f"{seconds * batches:.3f}", f"{seconds / whole[ranks, point['width']]:.2f}"]
        rows.append([str(point["width"]), str(ranks), str(point["pieces"] or "-"), *figures])
    return _table(rows)


def _slower(computing: dict[int, Computing], results: dict[str, Any]) -> str:
    rows = [["ranks", "width", "latency added, ms", "bandwidth, MB/s", "derived, ms", "measured, ms", "over derived"]]
    cores, batch = results["machine"]["cores"], results["batch"]
    for found in results["slower"]:
        network = Network(**found["network"]["allreduce"])
        for point in found["points"]:
            sizes = messages(arrays(point["width"]))
            added = Network(found.get("latency", 0.0), found.get("bandwidth") or float("inf"))
            here = iteration(computing[point["width"]], batch, sizes, found["ranks"], network, cores=cores)
            derived = here + iteration(Computing(0, 0), batch, sizes, found["ranks"], added)
            bandwidth = f"{found['bandwidth'] / 1e6:g}" if found.get("bandwidth") else "as it is"
            figures = [_ms(derived), _ms(point["seconds"]), f"{point['seconds'] / derived:.2f}"]
            where = [str(found["ranks"]), str(point["width"]), f"{added.latency * 1e3:g}", bandwidth]
            rows.append([*where, *figures])
    return _table(rows)


def _stops(computing: dict[int, Computing], here: Network, batch: int) -> str:
    """Where doubling the machines stops to pay, for the widest network measured and for a large one."""
    width = max(computing)
    sizes, rows = arrays(width), [["network", "parameters", "batch", "one machine, ms", "machines", "times one"]]
    count = sum(sizes) // 4
    weights = (PIXELS + CLASSES) * width
    large = Computing(computing[width].fixed * LARGE / count, computing[width].per_row * 6 * LARGE / (4 * weights))
    for name, network in {"This machine's memory": here, **NETWORKS}.items():
        for parameters, found, rows_of_batch, bytes_of in (
            (count, computing[width], batch, messages(sizes)),
            (LARGE, large, LARGE_BATCH, [4 * LARGE]),
        ):
            machines, times = stops_paying(found, rows_of_batch, bytes_of, network)
            one = _ms(found.seconds(rows_of_batch))
            rows.append([name, f"{parameters:,}", str(rows_of_batch), one, str(machines), f"{times:.1f}"])
    return _table(rows)


def _table(rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([lines[0], "| " + " | ".join("---:" for _ in rows[0]) + " |", *lines[1:]])


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.3f}" if seconds < 0.01 else f"{seconds * 1e3:,.1f}"
