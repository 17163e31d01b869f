"""A network as an ONNX model: a graph, weights, and the functions of custom operators."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from app.errors import AppError, ExportError, ProgramError
from app.graph.program import Block, Operator
from app.graph.serialise import DAMAGE_ERRORS
from app.graph.variable import Variable
from app.onnx.graph import GraphNodes, Values, described, inputs_of, needed, sizes_of
from app.onnx.library import DOMAIN, Library
from app.onnx.nodes import Value
from app.onnx.types import IR_VERSION, OPSET, package
from app.ops.spec import UNKNOWN
from app.static.model_file import SavedModel
from app.version import __version__

BATCH = "batch"
"""The name of the open size of an input's first axis."""


def model_of(network: SavedModel, output_names: Sequence[str] = ()) -> tuple[Any, Library]:
    """The ONNX model of a network, checked, and its custom operators."""
    package()  # an error before any operator is converted
    block = network.program.global_block()
    library = Library()
    nodes = GraphNodes(library)
    inputs = [block.var(name) for name in network.inputs]
    values: Values = {v.name: Value(nodes, nodes.fresh(v.name), v.dtype, v.spec.shape) for v in inputs}
    operators = needed(block, network.outputs)
    weights = _weights(network, operators)
    values.update((v.name, Value(nodes, nodes.fresh(v.name), v.dtype, v.spec.shape)) for v in weights)
    for operator in operators:
        try:
            nodes.append_operator(operator, block, values)
        except DAMAGE_ERRORS as error:
            if isinstance(error, AppError):
                raise
            input_specs = ", ".join(str(block.var(name).spec) for name in operator.inputs if name is not None)
            call = f"{operator.definition.label} of ({input_specs}) with {dict(operator.attributes)}"
            raise ProgramError(
                f"{call} cannot be exported: {error}. "
                "No Program that is built has it; if the model was read from a file, save it again"
            ) from error
    if nodes.problems:
        raise ExportError("\n  ".join([_HEAD, *(f"{label}: {why}" for label, why in nodes.problems.items())]))
    outputs = [block.var(name) for name in network.outputs]
    if lacking := [v.name for v in outputs if v.name not in values]:
        raise ProgramError(f"no operator of the network computes its output {', '.join(lacking)}")
    wishes = output_names or [values[v.name].name for v in outputs]
    nodes.scope = "output"
    names = nodes.hand_out([values[v.name] for v in outputs], wishes)
    alone = sum(v.shape[:1] == (UNKNOWN,) for v in inputs) == 1
    make = package().helper
    graph = make.make_graph(
        nodes.protos,
        "main_graph",
        [described(v.name, v.dtype, _named_sizes(v, alone)) for v in inputs],
        [described(name, v.dtype, sizes_of(v.shape)) for name, v in zip(names, outputs, strict=True)],
        [package().numpy_helper.from_array(network.values[v.name], values[v.name].name) for v in weights],
        value_info=list(_of_own_operators(nodes, operators, block, values)),
    )
    return _checked(_wrapped(graph, library)), library


_HEAD = "this network cannot be exported to ONNX:"


def _weights(network: SavedModel, operators: Sequence[Operator]) -> list[Variable]:
    """The variables whose values are stored in the model."""
    block = network.program.global_block()
    read = dict.fromkeys([name for op in operators for name in inputs_of(op) if name is not None] + network.outputs)
    computed: set[str] = set()
    for op in operators:
        computed.update(op.outputs)
    variables = [block.var(name) for name in read if name not in network.inputs]
    return [v for v in variables if v.persistable and (v.name in network.values or v.name not in computed)]


def _of_own_operators(nodes: GraphNodes, operators: Sequence[Operator], block: Block, values: Values) -> Iterator[Any]:
    """Shapes and types of the outputs of own operators, which ONNX cannot infer."""
    own = {name for node in nodes.protos if node.op_type in nodes.library.own for name in node.output}
    for variable in (block.var(name) for op in operators for name in op.outputs):
        if variable.name in values and values[variable.name].name in own:
            yield described(values[variable.name].name, variable.dtype, sizes_of(variable.shape))


def _named_sizes(variable: Variable, alone: bool) -> list[Any]:
    """The sizes of an input's axes, a name for an open one.

    Equal names would declare equal sizes, so the plain name is used only if a single input has an open first axis.
    """
    batch = BATCH if alone else f"{variable.name}_{BATCH}"
    return [
        size if size != UNKNOWN else batch if axis == 0 else f"{variable.name}_axis{axis}"
        for axis, size in enumerate(variable.shape)
    ]


def _wrapped(graph: Any, library: Library) -> Any:

    make = package().helper
    domains = [("", OPSET), *([(DOMAIN, 1)] if library.used else [])]
    return make.make_model(
        graph,
        opset_imports=[make.make_opsetid(domain, version) for domain, version in domains],
        functions=list(library.functions.values()),
        ir_version=IR_VERSION,
        producer_name=DOMAIN,
        producer_version=__version__,
    )


def _checked(model: Any) -> Any:
    """The model with inferred shapes, after ONNX's checker accepted it."""
    onnx = package()
    try:
        model = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
        onnx.checker.check_model(model, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        raise ExportError(f"ONNX's checker does not accept the model: {error}") from error
    return model
