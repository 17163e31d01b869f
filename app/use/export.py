"""`python -m app export`: write a trained network to a file for other programs."""

from __future__ import annotations

import argparse
from pathlib import Path

from app.errors import AppError
from app.files import refuse_foreign
from app.onnx.export import SUFFIX, write_model
from app.onnx.library import DOMAIN
from app.printing import say
from app.run.folder import MODEL
from app.use.models import add_trust_arguments, read_named_model

FORMATS = ("onnx",)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command-line arguments."""
    parser.add_argument("model", help="a run's folder, or a saved model (the path without .json)")
    parser.add_argument("--to", choices=FORMATS, required=True, help="the format")
    parser.add_argument("--output", metavar="FILE", help="the file to write (by default the model's name with .onnx)")
    add_trust_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Write the file, and print its inputs and outputs, and which operators ONNX does not have."""
    network, name = read_named_model(options)
    file = Path(options.output or Path(name).with_suffix(""))
    if file.suffix != SUFFIX:
        if not file.name:
            raise AppError(f"--output {file} is a folder; name a file in it, such as {file / MODEL}{SUFFIX}")
        file = file.with_name(file.name + SUFFIX)
    if str(file) != options.output:
        # a model starts with the name of the program that wrote it
        refuse_foreign(file, DOMAIN, 64, f"add --output {file} to replace it, or name another")
    own = write_model(network, file).own
    block = network.program.global_block()
    taken, given = (", ".join(f"{n} {block.var(n).spec}" for n in group) for group in (network.inputs, network.outputs))
    say(f"{file}: from {taken} to {given}; -1 is any size")
    for operator in own:
        say(
            f"note: {operator} is a node of the domain {DOMAIN}, which other programs cannot run until they get an "
            'implementation; an equivalent of ONNX is declared with onnx=, such as @app.custom_op(onnx="Relu")'
        )
    return 0
