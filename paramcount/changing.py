"""What if: a model with some of its sizes changed, and what that costs."""

from __future__ import annotations

from collections.abc import Sequence

from paramcount import zoo
from paramcount.counting import counted
from paramcount.errors import ParamcountError
from paramcount.rules import validated
from paramcount.strict_yaml import loads


def what_if(model: zoo.Model, changes: Sequence[str]) -> zoo.Model:
    """The model with these sizes (`n_layers=40`) in place of its own; what was checked or published of it goes."""
    sizes = model.sizes
    settings: dict[str, object] = {}
    for change in changes:
        name, equals, value = change.partition("=")
        if not equals or name not in type(sizes).model_fields:
            raise ParamcountError(f"= {change}", where="--set", accepted=", ".join(type(sizes).model_fields))
        settings |= loads(f"{name}: {value}")
    if not settings:
        return model
    config = validated(type(sizes), sizes.model_dump() | settings)
    changed = zoo.Model(id=model.id, name=model.name, architecture=model.architecture, config=config)
    changed._reading, changed._original = model._reading, model
    return changed


def said(model: zoo.Model) -> list[str]:
    """What was changed, and the difference it makes."""
    if model.original is None:
        return []
    before, after = model.original.sizes, model.sizes
    names = [name for name in type(after).model_fields if getattr(before, name) != getattr(after, name)]
    difference = counted(model).total - counted(model.original).total
    changes = ", ".join(f"{name} {getattr(before, name)} → {getattr(after, name)}" for name in names)
    return [f"what if {changes}: {difference:+,} parameters to {counted(model.original).total:,}"]
