"""The configuration and the environment of a run."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from xml.etree.ElementTree import Element

import msgspec

from app.report.markup import tag
from app.report.sections.section import Section
from app.run.activation import passed_only
from app.run.config import Config, dump_config
from app.run.record import RunRecord
from app.run.resume import changes
from app.run.wording import count
from app.run.yaml_text import in_a_line


def section(runs: Sequence[RunRecord]) -> Section:
    """Return the data, the machine, how the engine runs each operator, and the configuration."""
    parts, start = [], runs[0].start
    if start is not None:
        data, shape = start.data, " × ".join(map(str, start.data.shape))
        held = f"{count(data.validation, 'validation image')}, " if data.validation else ""
        images = f"{count(data.training, 'training image')}, {held}{count(data.test, 'test image')} of {shape} pixels"
        checked = "verified" if data.verified else "not verified"
        parts += [_listed("Data", {"origin": f"{data.origin} ({checked})", "images": images})]
        parts += [_listed("Machine", {**start.machine, "begun": start.at})]
        if engines := {name: how for name, how in start.engines.items() if how}:
            parts.append(_listed("How the engine runs each network", engines))
    if command := command_of(runs[0]):
        title = "To train this again" if len(runs) == 1 else "To train the first seed again"
        parts += [tag("h3", title), tag("pre", command, tabindex="0")]
    text = tag("pre", dump_config(runs[0].config), tabindex="0")
    return Section("settings", "Settings and machine", "", (), [*parts, tag("h3", "Configuration"), text])


def command_of(run: RunRecord) -> str:
    """Return a command line that trains the same again; '' if an operator cannot be named there."""
    if passed_only(run.operators):
        return ""
    pairs = changes(msgspec.to_builtins(Config()), msgspec.to_builtins(run.config))
    settings = [f"{key}={in_a_line(value)}" for key, _, value in pairs if key != "output"]
    return shlex.join(["opsmith", "train", *settings])


def _listed(title: str, items: Mapping[str, str]) -> Element:
    pairs = [tag("div", tag("dt", name), tag("dd", value)) for name, value in items.items()]
    return tag("div", tag("h3", title), tag("dl", pairs))
