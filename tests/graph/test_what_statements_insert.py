"""What optimisers add to Programs, and how Programs are printed."""

from __future__ import annotations

import app
from app import static
from app.graph.program import OPTIMIZE, Program


def operators(program: Program) -> list[tuple[str, str]]:
    return [(op.role, str(op)) for op in program.global_block().ops]


def test_minimize_gives_the_update_operators_and_the_pairs_of_parameter_and_gradient():
    loss = app.mean(static.nn.fc(static.data("x", [None, 3]), 2))
    updates, pairs = app.optimizer.SGD(0.1).minimize(loss)
    assert [op.type for op in updates] == ["sgd", "sgd"]
    assert [(p.name, g.name) for p, g in pairs] == [("fc_0.w_0", "fc_0.w_0@GRAD"), ("fc_0.b_0", "fc_0.b_0@GRAD")]


def test_an_optimiser_with_memory_adds_its_states_to_both_programs():
    loss = app.mean(static.nn.fc(static.data("x", [None, 3]), 2, bias_attr=False))
    app.optimizer.Momentum(0.1, momentum=0.9).minimize(loss)
    state = "fc_0.w_0_velocity_0"
    assert static.default_main_program().global_block().var(state).persistable
    assert static.default_startup_program().global_block().var(state).shape == (3, 2)
    assert operators(static.default_main_program())[-1] == (
        OPTIMIZE,
        f"fc_0.w_0, {state} = momentum(fc_0.w_0, fc_0.w_0@GRAD, learning_rate_0, {state})",
    )


def test_a_printed_program_shows_variables_with_flags_and_operators_under_the_part_they_belong_to():
    loss = app.mean(static.nn.fc(static.data("x", [None, 3]), 2, bias_attr=False))
    app.optimizer.SGD(0.1).minimize(loss)
    assert (
        str(static.default_main_program())
        == """\
{ // block 0
    var x : float32[-1, 3] data stop_gradient
    param fc_0.w_0 : float32[3, 2] persistable
    var matmul.out_0 : float32[-1, 2]
    var mean.out_0 : float32[]
    var mean.out_0@GRAD : float32[] stop_gradient
    var matmul.out_0@GRAD : float32[-1, 2]
    var fc_0.w_0@GRAD : float32[3, 2]
    var learning_rate_0 : float32[] persistable stop_gradient

    // forward
    matmul.out_0 = matmul(x, fc_0.w_0)
    mean.out_0 = mean(matmul.out_0)

    // backward
    mean.out_0@GRAD = full_like(mean.out_0, fill_value=1)
    matmul.out_0@GRAD = spread(mean.out_0@GRAD, matmul.out_0, share=True)
    fc_0.w_0@GRAD = matmul(x, matmul.out_0@GRAD, transpose_x=True)

    // optimize
    fc_0.w_0 = sgd(fc_0.w_0, fc_0.w_0@GRAD, learning_rate_0)
}"""
    )


def test_a_custom_operator_is_printed_with_the_place_that_registered_it():
    static.py_func(lambda v: None, static.data("x", [3]), None)
    assert "    py_func.<lambda>(x)  // test_what_statements_insert.py:" in str(static.default_main_program())


def test_a_very_long_operator_is_cut_when_printed():
    app.enable_static()
    try:
        app.arange(0, 1000)
    finally:
        app.disable_static()
    assert max(map(len, str(static.default_main_program()).splitlines())) < 420


def test_building_again_with_names_counted_from_the_start_gives_an_equal_program():
    def build() -> tuple[Program, Program]:
        programs = Program(), Program()
        with app.graph.names.guard(), static.program_guard(*programs):
            app.optimizer.Adam(0.1).minimize(app.mean(static.nn.fc(static.data("x", [None, 3]), 2, activation="tanh")))
        return programs

    (main, startup), (other_main, other_startup) = build(), build()
    assert main.equals(other_main)
    assert startup.equals(other_startup)
    assert main != startup
    assert str(main) == str(other_main)
