"""The pass alone: what it inserts, where, and what it leaves out; nothing runs here but on one process."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

import app
from app.dist.operators import all_reduce, average
from app.dist.parallel import at_other_ranks, data_parallel
from app.dist.rewriting import COMMUNICATION, SHARE, SHARE_TIMES_RANKS
from app.errors import ProgramError
from app.graph import Program, names, static_mode
from app.graph.passes import optimise
from app.graph.program import OPTIMIZE, Operator
from app.ops.update import sgd


class Place(NamedTuple):
    rank: int
    size: int


class Network(NamedTuple):
    main: Program
    startup: Program
    loss: str


def network(optimizer: Any = None, normalised: bool = False) -> Network:
    main, startup = Program(), Program()
    startup.random_seed = main.random_seed = 0
    with names.guard(), app.static.program_guard(main, startup), static_mode():
        x = app.static.data("x", [None, 4])
        hidden = app.static.nn.fc(x, 3)
        if normalised:
            hidden = app.nn.BatchNorm1D(3)(hidden)
        loss = app.mean(app.tanh(hidden))
        (optimizer or app.optimizer.SGD(0.1)).minimize(loss)
    return Network(main, startup, loss.name)


def ops(program: Program, role: str = COMMUNICATION) -> list[str]:
    return [op.type for op in program.global_block().ops if op.role == role]


def shared_out(rank: int, shape: Any = "allreduce", given: Network | None = None) -> tuple[Program, Program]:
    one = given or network()
    return data_parallel(one.main, one.startup, Place(rank, 2), shape, loss=one.loss, means=[one.loss])


def test_one_rank_runs_the_program_as_it_is():
    one = network()
    assert data_parallel(one.main, one.startup, Place(0, 1), loss=one.loss) == (one.main, one.startup)


def test_the_program_that_is_given_is_left_alone():
    one, same = network(), network()
    shared_out(1, "pserver", one)
    assert (one.main, one.startup) == (same.main, same.startup)


def test_gradients_are_added_up_where_they_go_over_to_the_update():
    main, startup = shared_out(0, given=network(app.optimizer.Momentum(0.1)))
    text = str(main)
    backward, communication, update = (text.index(f"// {role}") for role in ("backward", COMMUNICATION, OPTIMIZE))
    assert backward < communication < update
    (op,) = [op for op in main.global_block().ops if op.definition is all_reduce]
    assert op.inputs == op.outputs == ("fc_0.w_0@GRAD", "fc_0.b_0@GRAD", "mean.out_0")
    assert ops(main) == ["multiply", "all_reduce"]
    assert ops(startup) == ["fill_constant", "broadcast"]


@pytest.mark.parametrize(("optimizer", "share"), [(app.optimizer.Adam, SHARE), (app.optimizer.SGD, SHARE_TIMES_RANKS)])
def test_the_backward_pass_starts_from_the_share_of_the_batch(optimizer: Any, share: str):
    main, _ = shared_out(0, given=network(optimizer(0.1)))
    op = next(op for op in main.global_block().ops if op.outputs == ("mean.out_0@GRAD",))
    assert (op.type, op.inputs[1]) == ("multiply", share)


def test_parameters_are_averaged_where_updates_subtract_gradients_and_no_more():
    main, startup = shared_out(0)
    op = main.global_block().ops[-1]
    assert op.definition is average
    assert op.inputs == op.outputs == ("fc_0.w_0", "fc_0.b_0", "mean.out_0")
    assert ops(main) == ["multiply", "average"]
    assert ops(startup) == ["fill_constant", "broadcast"]


def test_a_step_of_averaged_parameters_is_taken_in_the_product_that_gives_the_gradient():
    main, _ = shared_out(0)
    assert "matmul_step" in [op.type for op in optimise(main, {"mean.out_0"}).global_block().ops]


def after_the_update(loss: Any) -> None:
    app.optimizer.SGD(0.1).minimize(loss)
    app.mean(loss.block.var("fc_0.w_0"))


def by_a_rate_of_the_batch(loss: Any) -> None:
    ((parameter, gradient), *_) = app.static.append_backward(loss)
    names = [parameter.name, gradient.name, loss.name]
    loss.block.ops.append(Operator(sgd, names, [parameter.name], {}, OPTIMIZE))


def less_its_size(loss: Any) -> None:
    app.optimizer.SGD(0.1, weight_decay=0.1).minimize(loss)


@pytest.mark.parametrize("updates", [after_the_update, by_a_rate_of_the_batch, less_its_size])
def test_otherwise_gradients_are_added_up_first(updates: Any):
    main, startup = Program(), Program()
    with names.guard(), app.static.program_guard(main, startup), static_mode():
        loss = app.mean(app.static.nn.fc(app.static.data("x", [None, 4]), 3))
        updates(loss)
    here, _ = data_parallel(main, startup, Place(0, 2), loss=loss.name, means=[loss.name])
    assert average not in [op.definition for op in here.global_block().ops]
    roles = [op.role for op in here.global_block().ops]
    assert COMMUNICATION not in roles[roles.index(OPTIMIZE) + 1 : len(roles) - roles[::-1].index(OPTIMIZE)]


def test_every_rank_of_an_allreduce_runs_the_same_program():
    assert shared_out(0) == shared_out(1)


def test_of_a_parameter_server_the_first_rank_alone_has_an_optimiser():
    adam = network(app.optimizer.Adam(0.1))
    server, server_startup = shared_out(0, "pserver", adam)
    trainer, trainer_startup = shared_out(1, "pserver", adam)
    assert ops(server) == ["multiply", "receive_gradients", "send_parameters"]
    assert ops(trainer) == ["multiply", "send_gradients", "receive_parameters"]
    assert (ops(server, OPTIMIZE).count("adam"), ops(trainer, OPTIMIZE)) == (2, [])
    assert not trainer.schedulers
    gone = at_other_ranks(adam.main, [trainer])
    assert {"fc_0.w_0_moment1_0", "learning_rate_0"} <= gone
    assert gone.isdisjoint(trainer_startup.global_block().vars)
    assert gone <= server_startup.global_block().vars.keys()
    assert not at_other_ranks(adam.main, [server])


def test_what_the_server_sends_is_what_trainers_receive():
    one = network()
    sent, received = (shared_out(rank, "pserver", one)[0].global_block().ops[-1] for rank in (0, 1))
    assert (sent.type, sent.outputs) == ("send_parameters", ())
    assert sent.inputs == received.inputs == received.outputs == ("fc_0.w_0", "fc_0.b_0", "mean.out_0")


def test_an_update_with_clipping_and_decay_sees_the_sums():
    clip = app.nn.ClipGradByGlobalNorm(1.0)
    main, _ = shared_out(0, given=network(app.optimizer.Momentum(0.1, weight_decay=0.01, grad_clip=clip)))
    roles = [op.role for op in main.global_block().ops]
    assert roles.index(COMMUNICATION) < roles.index(OPTIMIZE)
    assert COMMUNICATION not in roles[roles.index(OPTIMIZE) :]


def test_a_gradient_that_no_row_has_a_part_in_is_shared_out_and_added_up_too():
    main, startup = Program(), Program()
    with names.guard(), app.static.program_guard(main, startup), static_mode():
        x = app.static.data("x", [None, 4])
        alone = app.static.create_parameter([1], "float32", name="alone")
        loss = app.mean(app.static.nn.fc(x, 3)) + app.sum(alone * alone)
        app.optimizer.Momentum(0.1).minimize(loss)
    here, _ = data_parallel(main, startup, Place(0, 2), loss=loss.name)
    (op,) = [op for op in here.global_block().ops if op.definition is all_reduce]
    assert "alone@GRAD" in op.inputs


@pytest.mark.parametrize(("optimizer", "how"), [(app.optimizer.Adam, all_reduce), (app.optimizer.SGD, average)])
def test_running_statistics_become_those_of_the_whole_batch(optimizer: Any, how: Any):
    main, _ = shared_out(0, given=network(optimizer(0.1), normalised=True))
    (op,) = [op for op in main.global_block().ops if op.definition is how]
    statistics = [v.name for v in main.list_vars() if (v.persistable and "mean" in v.name) or "variance" in v.name]
    assert [name for name in op.inputs if name in statistics] == [n for n in statistics if "@" not in n]


def test_figures_of_a_program_without_update_are_those_of_the_whole_batch():
    one = network()
    test = one.main.clone(for_test=True)
    count = one.main.clone(for_test=True).global_block().ops[-2].outputs[0]
    main, _ = data_parallel(test, Program(), Place(1, 3), "pserver", means=[one.loss], totals=[count])
    assert ops(main) == ["ceil", "multiply", "multiply", "all_reduce"]
    assert main.global_block().ops[-1].inputs == (one.loss, count)


def test_each_rank_draws_random_numbers_of_its_own():
    main, startup = Program(), Program()
    main.random_seed = 1
    with names.guard(), app.static.program_guard(main, startup), static_mode():
        x = app.static.data("x", [None, 4])
        loss = app.mean(app.static.nn.fc(x, 3) * app.rand([3]))
        app.optimizer.SGD(0.1).minimize(loss)
    seeds = []
    for rank in range(3):
        here, _ = data_parallel(main, startup, Place(rank, 3), loss=loss.name)
        seeds += [op.attributes["seed"] for op in here.global_block().ops if "seed" in op.attributes]
    assert len(set(seeds)) == 3
    assert seeds[0] in [op.attributes.get("seed") for op in main.global_block().ops]


def test_a_loss_that_is_not_minimised_is_refused_by_name():
    one = network()
    with pytest.raises(ProgramError, match="no backward pass"):
        data_parallel(one.main, one.startup, Place(0, 2), loss=one.main.global_block().ops[0].outputs[0])


def test_with_nobody_to_wait_for_a_rank_computes_as_one_process_does():
    one = network()
    (main, startup), x = shared_out(0, given=one), np.linspace(-1, 1, 20, dtype="float32").reshape(5, 4)
    results = []
    for program, start in ((one.main, one.startup), (main, startup)):
        scope, executor = app.static.Scope(), app.static.Executor()
        executor.run(start, scope=scope)
        losses = [executor.run(program, feed={"x": x}, fetch_list=[one.loss], scope=scope)[0] for _ in range(3)]
        results.append([*losses, scope.values["fc_0.w_0"]])
    for alone, here in zip(*results, strict=True):
        np.testing.assert_array_equal(alone, here)
