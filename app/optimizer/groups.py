"""Parameter groups of an optimiser, each with its rule and settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

from app.errors import AppError
from app.ops.definition import OpDef
from app.regularizer import L2Decay

COMMON = ("params", "learning_rate", "weight_decay", "grad_clip")


class Rule(NamedTuple):
    """An update operator, and the state that it keeps for each parameter."""

    definition: OpDef
    states: Mapping[str, tuple[bool, float]] = MappingProxyType({})
    """For each state value: whether it has the parameter's shape (otherwise it is a scalar), and its initial value."""
    powers: Mapping[str, str] = MappingProxyType({})
    """Scalars of the state that each step multiplies by a setting before the operator reads them, with that setting."""


@dataclass(eq=False)
class Group:
    """Parameters with the same settings."""

    params: list[Any]
    rule: Rule
    learning_rate: float = 1.0
    """A factor of the optimiser's learning rate."""
    weight_decay: Any = None
    """A regularizer or, for decoupled weight decay, a coefficient."""
    grad_clip: Any = None
    settings: dict[str, Any] = field(default_factory=dict)
    """Attributes of the update operator."""
    replaces: bool = False
    """Whether its learning rate and weight decay replace those of a parameter's ParamAttr, as in a dictionary."""


def as_regularizer(weight_decay: Any) -> Any:
    """A regularizer from what an optimiser accepts: a number, a regularizer or None."""
    if weight_decay is None or hasattr(weight_decay, "penalty_gradient"):
        return weight_decay
    if isinstance(weight_decay, (int, float)):
        return L2Decay(weight_decay) if weight_decay else None
    raise AppError(f"weight_decay is a number, L1Decay or L2Decay, not {weight_decay!r}")


def groups_of(parameters: Iterable[Any] | None, default: Group) -> list[Group] | None:
    """Groups from what an optimiser accepts: parameters, or dictionaries with the key `params` and settings."""
    if parameters is None:
        return None
    if not isinstance(parameters, Iterable) or hasattr(parameters, "dtype"):
        raise AppError("parameters= takes a list of parameters, such as network.parameters(), not a single one")
    listed = list(parameters)
    if any(isinstance(item, Mapping) for item in listed):
        groups = [_group(item, default) for item in listed]
    else:
        default.params, groups = listed, [default]
    check_listed_once([p for group in groups for p in group.params])
    return groups


def check_listed_once(parameters: Sequence[Any]) -> None:
    """Raise an error if a parameter occurs twice, as each step would change it twice."""
    seen: set[int] = set()
    for parameter in parameters:
        if id(parameter) in seen:
            raise RepeatedError(
                f"the parameter {parameter.name} of shape {list(parameter.shape)} appears in more than one place, in "
                "the parameters of an optimizer or in a group, and each step would change it as often; give it once"
            )
        seen.add(id(parameter))


class RepeatedError(AppError, ValueError):
    """A parameter that is given to an optimiser more than once."""


def _group(given: Any, default: Group) -> Group:
    if not isinstance(given, Mapping) or "params" not in given:
        raise AppError("a group of parameters is a dictionary with the key 'params'")
    known = set(default.rule.definition.attributes)
    unknown = set(given) - known - set(COMMON)
    if unknown:
        raise AppError(
            f"a group of parameters has no setting {', '.join(sorted(unknown))}; "
            f"it can have {', '.join([*COMMON, *sorted(known)])}"
        )
    params = given["params"]
    return Group(
        params=[params] if hasattr(params, "dtype") else list(params),
        rule=default.rule,
        learning_rate=float(given.get("learning_rate", default.learning_rate)),
        weight_decay=given.get("weight_decay", default.weight_decay),
        grad_clip=given.get("grad_clip", default.grad_clip),
        settings={**default.settings, **{name: given[name] for name in given if name in known}},
        replaces=True,
    )
