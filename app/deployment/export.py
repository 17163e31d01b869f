"""`python -m app export`: a trained network as a file that other programs run."""

from __future__ import annotations

import argparse
from pathlib import Path

from app.deployment.named_model import add_trust_arguments, read_named_model
from app.onnx import export

FORMATS = ("onnx",)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command line may say."""
    parser.add_argument("model", help="a run's folder, or a saved model (the name that its files begin with)")
    parser.add_argument("--to", choices=FORMATS, required=True, help="the format")
    parser.add_argument("--output", metavar="FILE", help="the file to write (model.onnx in the folder)")
    add_trust_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Write the file, and say what it takes and gives."""
    network, name = read_named_model(options)
    file = export(network, options.output or Path(name).with_suffix(""))
    block = network.program.global_block()
    taken, given = (", ".join(f"{n} {block.var(n).spec}" for n in group) for group in (network.inputs, network.outputs))
    print(f"{file}: from {taken} to {given}; -1 is any size")
    return 0
