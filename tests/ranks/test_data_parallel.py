"""The pass alone: what it inserts, where, and what it leaves out; nothing runs here but on one process."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

import app
from app.engine.compiled.passes import PASSES
from app.errors import ProgramError
from app.graph import Program, names, static_mode
from app.graph.passes import optimise
from app.graph.program import OPTIMIZE, Operator
from app.ops.update import sgd
from app.ranks.data_parallel import COMMUNICATION, WEIGHT, data_parallel
from app.ranks.operators import average


class Place(NamedTuple):
    rank: int
    size: int


class Network(NamedTuple):
    main: Program
    startup: Program
    loss: str


def network(optimizer: Any = None) -> Network:
    main, startup = Program(), Program()
    startup.random_seed = main.random_seed = 0
    with names.guard(), app.static.program_guard(main, startup), static_mode():
        x = app.static.data("x", [None, 4])
        loss = app.mean(app.tanh(app.static.nn.fc(x, 3)))
        (optimizer or app.optimizer.SGD(0.1)).minimize(loss)
    return Network(main, startup, loss.name)


def ops(program: Program, role: str = COMMUNICATION) -> list[str]:
    return [op.type for op in program.global_block().ops if op.role == role]


def shared_out(rank: int, shape: Any = "allreduce", given: Network | None = None) -> Program:
    one = given or network()
    return data_parallel(one.main, Place(rank, 2), shape, loss=one.loss)


def test_one_rank_runs_the_program_as_it_is():
    one = network()
    assert data_parallel(one.main, Place(0, 1), loss=one.loss) is one.main


def test_the_program_that_is_given_is_left_alone():
    one, same = network(), network()
    shared_out(1, "pserver", one)
    assert one.main.equals(same.main)


def test_the_mean_of_gradients_is_taken_where_they_go_over_to_the_update():
    main = shared_out(0, given=network(app.optimizer.Momentum(0.1)))
    text = str(main)
    backward, communication, update = (text.index(f"// {role}") for role in ("backward", COMMUNICATION, OPTIMIZE))
    assert backward < communication < update
    (op,) = [op for op in main.global_block().ops if op.definition is average]
    assert op.inputs == op.outputs == ("fc_0.w_0@GRAD", "fc_0.b_0@GRAD")
    assert ops(main) == ["average"]


@pytest.mark.parametrize("shape", ["allreduce", "pserver"])
def test_the_backward_pass_starts_from_the_weight_of_the_rank(shape: str):
    main = shared_out(0, shape)
    op = next(op for op in main.global_block().ops if op.outputs == ("mean.out_0@GRAD",))
    assert (op.type, op.inputs[1]) == ("multiply", f"{WEIGHT}.float32")


def test_the_mean_of_parameters_is_taken_where_updates_subtract_gradients_and_no_more():
    main = shared_out(0)
    op = main.global_block().ops[-1]
    assert op.definition is average
    assert op.inputs == op.outputs == ("fc_0.w_0", "fc_0.b_0")
    assert ops(main) == ["average"]


def test_a_step_of_averaged_parameters_is_taken_in_the_product_that_gives_the_gradient():
    main = shared_out(0)
    assert "matmul_step" in [op.type for op in optimise(main, {"mean.out_0"}, PASSES).global_block().ops]


def after_momentum(loss: Any) -> None:
    app.optimizer.Momentum(0.1).minimize(loss)
    app.mean(loss.block.var("fc_0.w_0"))


def by_a_rate_of_the_batch(loss: Any) -> None:
    ((parameter, gradient), *_) = app.static.append_backward(loss)
    names = [parameter.name, gradient.name, loss.name]
    loss.block.ops.append(Operator(sgd, names, [parameter.name], {}, OPTIMIZE))


def less_its_size(loss: Any) -> None:
    app.optimizer.SGD(0.1, weight_decay=0.1).minimize(loss)


@pytest.mark.parametrize("updates", [less_its_size, after_momentum])
def test_otherwise_the_mean_of_gradients_is_taken_first(updates: Any):
    main, startup = Program(), Program()
    with names.guard(), app.static.program_guard(main, startup), static_mode():
        loss = app.mean(app.static.nn.fc(app.static.data("x", [None, 4]), 3))
        updates(loss)
    here = data_parallel(main, Place(0, 2), loss=loss.name)
    roles = [op.role for op in here.global_block().ops]
    assert COMMUNICATION not in roles[roles.index(OPTIMIZE) + 1 : len(roles) - roles[::-1].index(OPTIMIZE)]


def test_every_rank_of_an_allreduce_runs_the_same_program():
    assert shared_out(0).equals(shared_out(1))


def test_of_a_parameter_server_only_rank_0_makes_the_update():
    adam = network(app.optimizer.Adam(0.1))
    server, trainer = (shared_out(rank, "pserver", adam) for rank in (0, 1))
    assert ops(server) == ["receive_gradients", "send_parameters"]
    assert ops(trainer) == ["send_gradients", "receive_parameters"]
    assert (ops(server, OPTIMIZE).count("adam"), ops(trainer, OPTIMIZE)) == (2, [])


def test_what_the_server_sends_is_what_trainers_receive():
    sent, received = (shared_out(rank, "pserver").global_block().ops[-1] for rank in (0, 1))
    assert (sent.type, sent.outputs) == ("send_parameters", ())
    assert sent.inputs == received.inputs == received.outputs == ("fc_0.w_0", "fc_0.b_0")


def test_an_update_that_reads_a_value_of_the_batch_besides_gradients_is_refused():
    main, startup = Program(), Program()
    with names.guard(), app.static.program_guard(main, startup), static_mode():
        loss = app.mean(app.static.nn.fc(app.static.data("x", [None, 4]), 3))
        by_a_rate_of_the_batch(loss)
    with pytest.raises(ProgramError, match=r"an update reads mean\.out_0, which is not a gradient"):
        data_parallel(main, Place(0, 2), loss=loss.name)


def test_an_update_with_clipping_and_decay_sees_the_sums():
    clip = app.nn.ClipGradByGlobalNorm(1.0)
    main = shared_out(0, given=network(app.optimizer.Momentum(0.1, weight_decay=0.01, grad_clip=clip)))
    roles = [op.role for op in main.global_block().ops]
    assert roles.index(COMMUNICATION) < roles.index(OPTIMIZE)
    assert COMMUNICATION not in roles[roles.index(OPTIMIZE) :]


def test_a_gradient_that_no_row_has_a_part_in_is_weighted_and_averaged_too():
    main, startup = Program(), Program()
    with names.guard(), app.static.program_guard(main, startup), static_mode():
        x = app.static.data("x", [None, 4])
        alone = app.static.create_parameter([1], "float32", name="alone")
        loss = app.mean(app.static.nn.fc(x, 3)) + app.sum(alone * alone)
        app.optimizer.Momentum(0.1).minimize(loss)
    here = data_parallel(main, Place(0, 2), loss=loss.name)
    (op,) = [op for op in here.global_block().ops if op.definition is average]
    assert "alone@GRAD" in op.inputs


def test_each_rank_draws_random_numbers_of_its_own():
    main, startup = Program(), Program()
    main.random_seed = 1
    with names.guard(), app.static.program_guard(main, startup), static_mode():
        x = app.static.data("x", [None, 4])
        loss = app.mean(app.static.nn.fc(x, 3) * app.rand([3]))
        app.optimizer.SGD(0.1).minimize(loss)
    seeds = []
    for rank in range(3):
        here = data_parallel(main, Place(rank, 3), loss=loss.name)
        seeds += [op.attributes["seed"] for op in here.global_block().ops if "seed" in op.attributes]
    assert len(set(seeds)) == 3
    assert seeds[0] in [op.attributes.get("seed") for op in main.global_block().ops]


def test_two_optimisers_in_one_program_are_refused():
    main, startup = Program(), Program()
    with names.guard(), app.static.program_guard(main, startup), static_mode():
        loss = app.mean(app.static.nn.fc(app.static.data("x", [None, 4]), 3))
        app.optimizer.SGD(0.1).minimize(loss)
        app.optimizer.SGD(0.1).minimize(app.mean(loss * loss))
    with pytest.raises(ProgramError, match="only one optimiser's update"):
        data_parallel(main, Place(0, 2), loss=loss.name)


def test_a_loss_that_is_not_minimised_is_refused_by_name():
    one = network()
    with pytest.raises(ProgramError, match="no backward pass"):
        data_parallel(one.main, Place(0, 2), loss=one.main.global_block().ops[0].outputs[0])
