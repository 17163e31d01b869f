"""The Program of one rank: which operators the pass inserts, where, and what it leaves out. Nothing runs here."""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby
from typing import Any, NamedTuple

import pytest

import app
from app.engine.compiled.passes import PASSES
from app.errors import ProgramError
from app.graph import Program, names, static_mode
from app.graph.passes import optimise
from app.graph.program import BACKWARD, OPTIMIZE, Operator
from app.ops.update import sgd
from app.ranks.data_parallel import COMMUNICATION, WEIGHT, data_parallel
from app.ranks.operators import average

PARAMETERS = ("fc_0.w_0", "fc_0.b_0")
GRADIENTS = ("fc_0.w_0@GRAD", "fc_0.b_0@GRAD")


class Network(NamedTuple):
    main: Program
    loss: str


Training = Callable[[Any], Any]
"""Minimises a loss of hidden values, and returns it."""


def by(optimizer: Callable[[], Any], after: Training = app.tanh) -> Training:
    def minimised(hidden: Any) -> Any:
        loss = app.mean(after(hidden))
        optimizer().minimize(loss)
        return loss

    return minimised


SGD = by(lambda: app.optimizer.SGD(0.1))
MOMENTUM = by(lambda: app.optimizer.Momentum(0.1))


def network(train: Training = SGD) -> Network:
    main = Program()
    main.random_seed = 1
    with names.guard(), app.static.program_guard(main, Program()), static_mode():
        loss = train(app.static.nn.fc(app.static.data("x", [None, 4]), 3))
    return Network(main, loss.name)


def shared_out(rank: int, shape: Any = "allreduce", train: Training = SGD) -> Program:
    one = network(train)
    return data_parallel(one.main, rank, shape, loss=one.loss)


def ops(program: Program, role: str = COMMUNICATION) -> list[str]:
    return [op.type for op in program.global_block().ops if op.role == role]


def test_the_given_program_is_unchanged_and_ranks_of_an_allreduce_run_the_same_one():
    one = network()
    programs = [data_parallel(one.main, rank, loss=one.loss) for rank in (0, 1)]
    assert programs[0].equals(programs[1])
    assert one.main.equals(network().main)


@pytest.mark.parametrize("shape", ["allreduce", "pserver"])
def test_the_backward_pass_starts_from_the_weight_of_the_rank(shape: str):
    main = shared_out(0, shape)
    op = next(op for op in main.global_block().ops if op.outputs == ("mean.out_0@GRAD",))
    assert (op.type, op.inputs[1]) == ("multiply", f"{WEIGHT}.float32")


def test_parameters_are_averaged_after_updates_that_only_subtract_gradients():
    main = shared_out(0)
    assert ops(main) == ["average"]
    op = main.global_block().ops[-1]
    assert op.inputs == op.outputs == PARAMETERS
    optimised = optimise(main, {"mean.out_0"}, PASSES)
    assert "matmul_step" in [op.type for op in optimised.global_block().ops]  # the update is a part of the product


def before_another_result(hidden: Any) -> Any:
    loss = MOMENTUM(hidden)
    app.mean(loss.block.var("fc_0.w_0"))
    return loss


def with_a_parameter_alone(hidden: Any) -> Any:
    """The gradient of one parameter depends on no row of the batch."""
    alone = app.static.create_parameter([1], "float32", name="alone")
    loss = app.mean(hidden) + app.sum(alone * alone)
    app.optimizer.Momentum(0.1).minimize(loss)
    return loss


CLIP = app.nn.ClipGradByGlobalNorm(1.0)


@pytest.mark.parametrize(
    ("train", "averaged"),
    [
        (MOMENTUM, GRADIENTS),
        (by(lambda: app.optimizer.Momentum(0.1, weight_decay=0.01, grad_clip=CLIP)), GRADIENTS),
        (by(lambda: app.optimizer.SGD(0.1, weight_decay=0.1)), GRADIENTS),
        (before_another_result, GRADIENTS),
        (with_a_parameter_alone, (*GRADIENTS, "alone@GRAD")),
    ],
    ids=["momentum", "clipping and decay", "sgd with decay", "another result", "a parameter alone"],
)
def test_gradients_are_averaged_before_other_updates(train: Training, averaged: tuple[str, ...]):
    inserted = shared_out(0, train=train).global_block().ops
    (op,) = [op for op in inserted if op.definition is average]
    assert op.inputs == op.outputs
    assert sorted(op.inputs) == sorted(averaged)
    roles = [role for role, _ in groupby(op.role for op in inserted)]
    first = roles.index(BACKWARD)
    assert roles[first : first + 3] == [BACKWARD, COMMUNICATION, OPTIMIZE]
    assert roles.count(OPTIMIZE) == roles.count(COMMUNICATION) == 1


def test_only_rank_0_of_a_parameter_server_makes_the_update():
    server, trainer = (shared_out(rank, "pserver", by(lambda: app.optimizer.Adam(0.1))) for rank in (0, 1))
    assert ops(server) == ["receive_gradients", "send_parameters"]
    assert ops(trainer) == ["send_gradients", "receive_parameters"]
    assert (ops(server, OPTIMIZE).count("adam"), ops(trainer, OPTIMIZE)) == (2, [])
    sent, received = (program.global_block().ops[-1] for program in (server, trainer))
    assert sent.outputs == ()
    assert sent.inputs == received.inputs == received.outputs == PARAMETERS


def test_each_rank_draws_its_own_random_numbers():
    one = network(by(lambda: app.optimizer.SGD(0.1), after=lambda hidden: hidden * app.rand([3])))

    def seeds(program: Program) -> list[Any]:
        return [op.attributes["seed"] for op in program.global_block().ops if "seed" in op.attributes]

    of_ranks = [seeds(data_parallel(one.main, rank, loss=one.loss)) for rank in range(3)]
    assert len(set(map(tuple, of_ranks))) == 3
    assert of_ranks[0] == seeds(one.main)


def by_a_rate_of_the_batch(hidden: Any) -> Any:
    loss = app.mean(hidden)
    ((parameter, gradient), *_) = app.static.append_backward(loss)
    inputs = [parameter.name, gradient.name, loss.name]
    loss.block.ops.append(Operator(sgd, inputs, [parameter.name], {}, OPTIMIZE))
    return loss


def of_another_loss(hidden: Any) -> Any:
    SGD(hidden)
    return hidden


@pytest.mark.parametrize(
    ("train", "message"),
    [
        (by_a_rate_of_the_batch, r"an update reads mean\.out_0, which is not a gradient"),
        (lambda hidden: SGD(SGD(hidden)), "only one optimiser's update"),
        (of_another_loss, r"add\.out_0 has no backward pass"),
    ],
    ids=["a rate of the batch", "two optimisers", "another loss"],
)
def test_programs_that_cannot_be_shared_are_errors(train: Training, message: str):
    with pytest.raises(ProgramError, match=message):
        shared_out(0, train=train)
