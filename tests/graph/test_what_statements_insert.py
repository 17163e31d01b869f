"""The four lines of the framework document: what each of them adds to the startup and to the main Program."""

from __future__ import annotations

import app
from app import static
from app.graph.program import BACKWARD, FORWARD, OPTIMIZE, Program


def variables(program: Program) -> list[str]:
    return [str(v) for v in program.list_vars()]


def operators(program: Program) -> list[tuple[str, str]]:
    return [(op.role, str(op)) for op in program.global_block().ops]


class Watch:
    """What was added to the default Programs since the last look."""

    def __init__(self) -> None:
        self.main, self.startup = static.default_main_program(), static.default_startup_program()
        self._seen: dict[str, list] = {}

    def new(self, program: Program) -> tuple[list, list]:
        added = []
        for kind, found in (("variables", variables(program)), ("operators", operators(program))):
            key = f"{id(program)}.{kind}"
            added.append([item for item in found if item not in self._seen.get(key, [])])
            self._seen[key] = found
        return added[0], added[1]


def test_each_statement_inserts_what_it_needs_and_no_more():
    watch = Watch()

    data = static.data("X", shape=[None, 1], dtype="float32")
    assert watch.new(watch.main) == (["var X : float32[-1, 1] data stop_gradient"], [])
    assert watch.new(watch.startup) == ([], [])

    hidden = static.nn.fc(data, size=10)
    assert watch.new(watch.main) == (
        [
            "param fc_0.w_0 : float32[1, 10] persistable",
            "var matmul.out_0 : float32[-1, 10]",
            "param fc_0.b_0 : float32[10] persistable",
            "var add.out_0 : float32[-1, 10]",
        ],
        [
            (FORWARD, "matmul.out_0 = matmul(X, fc_0.w_0)"),
            (FORWARD, "add.out_0 = add(matmul.out_0, fc_0.b_0)"),
        ],
    )
    startup_variables, startup_operators = watch.new(watch.startup)
    assert startup_variables == [
        "var fc_0.w_0 : float32[1, 10] persistable",
        "var fc_0.b_0 : float32[10] persistable",
    ]
    weight, bias = (line for _, line in startup_operators)
    assert weight.startswith("fc_0.w_0 = uniform_random(shape=(1, 10), min=-0.738")
    assert bias == "fc_0.b_0 = fill_constant(shape=(10,), value=0.0)"

    loss = app.mean(hidden)
    assert watch.new(watch.main) == (["var mean.out_0 : float32[]"], [(FORWARD, "mean.out_0 = mean(add.out_0)")])
    assert watch.new(watch.startup) == ([], [])

    app.optimizer.SGD(learning_rate=0.01).minimize(loss)
    assert watch.new(watch.main) == (
        [
            "var mean.out_0@GRAD : float32[] stop_gradient",
            "var add.out_0@GRAD : float32[-1, 10]",
            "var fc_0.b_0@GRAD : float32[10]",
            "var fc_0.w_0@GRAD : float32[1, 10]",
            "var learning_rate_0 : float32[] persistable stop_gradient",
        ],
        [
            (BACKWARD, "mean.out_0@GRAD = full_like(mean.out_0, fill_value=1)"),
            (BACKWARD, "add.out_0@GRAD = spread(mean.out_0@GRAD, add.out_0, share=True)"),
            (BACKWARD, "fc_0.b_0@GRAD = sum_to(add.out_0@GRAD, shape=(10,))"),
            (BACKWARD, "fc_0.w_0@GRAD = matmul(X, add.out_0@GRAD, transpose_x=True)"),
            (OPTIMIZE, "fc_0.w_0 = sgd(fc_0.w_0, fc_0.w_0@GRAD, learning_rate_0)"),
            (OPTIMIZE, "fc_0.b_0 = sgd(fc_0.b_0, fc_0.b_0@GRAD, learning_rate_0)"),
        ],
    )
    assert watch.new(watch.startup) == (
        ["var learning_rate_0 : float32[] persistable"],
        [(FORWARD, "learning_rate_0 = fill_constant(shape=(), value=0.01)")],
    )


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
