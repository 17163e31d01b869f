"""The named stages of a Program, from the statements that build it to generated source."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from app.custom.operator import CustomOperator
from app.engine.compiled.engine import compile_program
from app.engine.compiled.explain import explain
from app.engine.compiled.passes import PASSES, passes
from app.errors import ConfigError
from app.graph.passes import after_each
from app.graph.program import Program
from app.inspection.memory import needs, table
from app.inspection.passes import Row, changed, format_rows
from app.inspection.subject import Subject

ALL = "all"
DATA_PARALLEL = "data_parallel"
PASS_NAMES = tuple(each.name for each in PASSES)


@dataclass(frozen=True)
class Section:
    """A stage as a heading and a text, with its Program if it has one."""

    heading: str
    text: str
    program: Program | None = None


class Stages:
    """The stages of a subject, computed on demand."""

    def __init__(self, subject: Subject, batch: int | None = None):
        self.subject = subject
        self.batch = batch or subject.batch

    def sections(self, stage: str | None = None) -> list[Section]:
        """The sections of a stage, of all stages, or of the usual ones."""
        if stage is not None and stage not in (*NAMES, ALL):
            raise ConfigError(f"there is no stage {stage!r}; there are {', '.join(NAMES)} and {ALL}")
        usual = OF_OPERATORS if self.subject.is_operator else USUAL
        names = {None: usual, ALL: tuple(NAMES)}.get(stage, (str(stage),))
        if len(names) > 1 and self.subject.of_rank is None:
            names = tuple(name for name in names if name != DATA_PARALLEL)
        return [section for name in names for section in NAMES[name](self, name)]

    @cached_property
    def _steps(self) -> list[tuple[str, Program]]:
        """The Program as built and after each pass, with names; only the former if no pass runs."""
        run = passes(self.subject.sparse)
        after = after_each(run, self.subject.runs, set(self.subject.fetch)) if not self._why_not else ()
        here = [] if self.subject.of_rank is None else [(DATA_PARALLEL, self.subject.of_rank)]
        return [("as built", self.subject.main), *here, *((each.name, program) for each, program in after)]

    @cached_property
    def _why_not(self) -> str:
        """Why the Program cannot be compiled, so that there are no later stages; '' if it can."""
        native = compile_program(self.subject.runs, self.subject.fetch, self.subject.sparse)
        return (
            f"The reference engine runs this Program operator by operator: {native}." if isinstance(native, str) else ""
        )

    def _build(self, stage: str) -> list[Section]:
        text = str(self.subject.built) or "This is known of configurations and of functions that build a network."
        return [Section("What each statement put into the startup and the main Program", text)]

    def _startup(self, stage: str) -> list[Section]:
        return [Section("The startup Program, run once", str(self.subject.startup), self.subject.startup)]

    def _main(self, stage: str) -> list[Section]:
        return [Section("The main Program, run for every batch", str(self.subject.main), self.subject.main)]

    def _after(self, stage: str) -> list[Section]:
        """The Program after each run of a pass."""
        texts = []
        for (_, before), (name, after) in pairwise(self._steps):
            if name == stage:
                text = f"// {changed(before, after)}\n{after}"
                texts.append(Section(f"The main Program after {name}", text, after))
        return texts or [Section(f"The main Program after {stage}", self._why_not or "One process runs it as it is.")]

    def _passes(self, stage: str) -> list[Section]:
        if self._why_not:
            return [Section("What each pass did", self._why_not)]
        rows = []
        before = needs(self.subject.main, self.subject.fetch, self.batch)
        for (_, old), (name, new) in pairwise(self._steps):
            after = needs(new, self.subject.fetch, self.batch)
            rows.append(Row(name, before, after, changed(old, new)))
            before = after
        return [Section(f"What each pass did, in a batch of {self.batch}", format_rows(rows))]

    def _optimised(self, stage: str) -> list[Section]:
        _, program = self._steps[-1]
        return [Section("The main Program after the passes", self._why_not or str(program), program)]

    def _engine(self, stage: str) -> list[Section]:
        text = explain(self.subject.runs, self.subject.fetch, source=False, sparse=self.subject.sparse)
        return [Section("How the compiled engine runs it", text)]

    def _memory(self, stage: str) -> list[Section]:
        heading = f"The memory of values, in a batch of {self.batch}"
        if self._why_not:
            return [Section(heading, self._why_not)]
        built, after = (needs(self._steps[i][1], self.subject.fetch, self.batch) for i in (0, -1))
        return [Section(heading, table(built, after))]

    def _source(self, stage: str) -> list[Section]:
        native = compile_program(self.subject.runs, self.subject.fetch, self.subject.sparse)
        text = self._why_not if isinstance(native, str) else native.source.text.rstrip()
        operators = {id(op.definition): op.definition for op in self.subject.runs.global_block().ops}
        derived = [o for o in operators.values() if isinstance(o, CustomOperator) and o.source]
        sections = [Section(f"The source of {o.name}, which was derived", o.source.rstrip()) for o in derived]
        return [*sections, Section("The source that is generated", text)]


NAMES: dict[str, Callable[[Stages, str], list[Section]]] = {
    "build": Stages._build,
    "startup": Stages._startup,
    "main": Stages._main,
    DATA_PARALLEL: Stages._after,
    "passes": Stages._passes,
    **dict.fromkeys(PASS_NAMES, Stages._after),
    "optimised": Stages._optimised,
    "engine": Stages._engine,
    "memory": Stages._memory,
    "source": Stages._source,
}
"""The stages in order."""

USUAL = tuple(name for name in NAMES if name not in ("build", *PASS_NAMES))
"""The stages of a network that are shown by default."""
OF_OPERATORS = ("main", "engine", "source")
"""Those of an operator."""
