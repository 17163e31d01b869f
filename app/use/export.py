"""`opsmith export`: write a trained network, or an operator, to files for other programs."""

from __future__ import annotations

import argparse
from collections.abc import Collection
from pathlib import Path

from app.bridge.out.writing import TARGETS
from app.errors import AppError, ConfigError, ExportError
from app.files import refuse_foreign, write_whole
from app.onnx.export import SUFFIX
from app.onnx.library import DOMAIN
from app.onnx.model import model_of
from app.printing import say
from app.use import export_operators
from app.use.models import MODEL, add_trust_arguments, read_named_model

ONNX = "onnx"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command-line arguments."""
    parser.add_argument(
        "model",
        metavar="WHAT",
        help="a run's folder or a saved model (the path without .json), for ONNX; an operator for the others: "
        "my_ops.py:name, custom.swish, or my_ops.py for all of its operators",
    )
    parser.add_argument(
        "--to", choices=[ONNX, *TARGETS], action="append", required=True, help="the format; several for an operator"
    )
    parser.add_argument(
        "--output",
        metavar="PATH",
        help="the file to write (by default the model's name with .onnx); for an operator a folder (by default this)",
    )
    parser.add_argument(
        "--shape",
        action="append",
        default=[],
        metavar="N,N[:TYPE]",
        help="the shape of an input of an operator, once for each (by default found by trying)",
    )
    parser.add_argument(
        "--allow-opaque",
        action="store_true",
        help="write a file with operators that no runtime has an implementation of",
    )
    add_trust_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Write the file, and print its inputs and outputs, and which operators ONNX does not have."""
    if export_operators.names_operator(options.model):
        return export_operators.run(options)
    if options.to != [ONNX]:
        other = next((target for target in options.to if target != ONNX), ONNX)
        raise ConfigError(f"a network is exported --to {ONNX}; --to {other} is for a custom operator, my_ops.py:name")
    if options.shape:
        raise ConfigError(f"--shape is for operators; {options.model} is a network")
    network, name = read_named_model(options.model, options.custom_op, options.accept_changed)
    file = Path(options.output or name)
    if file.suffix != SUFFIX:
        if not file.name:
            raise AppError(f"--output {file} is a folder; name a file in it, such as {file / MODEL}{SUFFIX}")
        file = file.with_name(file.name + SUFFIX)
    if str(file) != options.output:
        # a model starts with the name of the program that wrote it
        refuse_foreign(file, DOMAIN, 64, f"add --output {file} to replace it, or name another")
    model, library = model_of(network)
    if library.own and not options.allow_opaque:
        raise ExportError(f"{_opaque(library.own)}; add --allow-opaque to write {file} all the same")
    write_whole(file, model.SerializeToString())
    block = network.program.global_block()
    inputs, outputs = (
        ", ".join(f"{n} {block.var(n).spec}" for n in group) for group in (network.inputs, network.outputs)
    )
    say(f"{file}: from {inputs} to {outputs}; -1 is any size")
    if library.own:
        say(f"note: {_opaque(library.own)}")
    return 0


def _opaque(operators: Collection[str]) -> str:
    """What is wrong with operators that have no nodes of ONNX."""
    are = "is a node" if len(operators) == 1 else "are nodes"
    return (
        f"{', '.join(operators)} {are} of the domain {DOMAIN}, which other programs cannot run until they get an "
        'implementation; an equivalent of ONNX is declared with onnx=, such as @opsmith.custom_op(onnx="Relu")'
    )
