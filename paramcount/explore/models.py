"""The models of a page as data: each with its structure, the values of its sizes and its facts."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Iterator
from contextlib import suppress
from itertools import islice
from typing import Any

from paramcount.costs.requests import find_longest_context
from paramcount.counting.components import COMPONENTS
from paramcount.counting.sum_weights import get_structure
from paramcount.errors import ParamcountError
from paramcount.explaining.lessons import read_lessons
from paramcount.explore.article import render_article
from paramcount.explore.copies import export_config, export_yaml
from paramcount.explore.drawings import ROLES, Drawings, StepKey, make_key
from paramcount.explore.fitting import export_choices, export_released_weights
from paramcount.explore.packings import Packings, Pool
from paramcount.explore.structures import Data, export_structure, is_shared
from paramcount.output.weight_names import PARTS, name_block, name_group, name_part
from paramcount.sizes import Sizes, inner_configs
from paramcount.sizes.values import format_size
from paramcount.symbolic.trees import to_json
from paramcount.views.forward_settings import format_setting, list_forward_settings
from paramcount.zoo import Model, count_model
from paramcount.zoo.checks import describe_release_difference
from paramcount.zoo.what_if import change_sizes, get_size, list_paths

MOST_VARIANTS = 8  # of one model


class Structures:
    """The structures of a page, each once. Tensors and steps are positions in `parts`, others in `expressions`."""

    def __init__(self) -> None:
        self.structures, self.parts, self.expressions = Pool(), Pool(), Pool()
        self.packings, self.drawings = Packings(), Drawings()
        self.flows: dict[int, list[StepKey]] = {}  # {position of a structure: its steps, if they are known}
        self.paths: dict[int, list[str]] = {}  # {position of a structure: its sizes}
        self.known: dict[Hashable, tuple[int, list[str]]] = {}  # {what a structure depends on: (position, its sizes)}

    def add(self, model: Model) -> tuple[int, list[int | str]]:
        """(position of the model's structure, the values of its sizes)."""
        sizes = model.sizes
        key = (get_structure(sizes, False), model.reading.head, repr(list_all_settings(sizes)))
        if key not in self.known:
            structure = export_structure(model, self.packings)
            known = self.add_data(structure), [size[0] for size in structure["sizes"]]
            self.paths[known[0]] = known[1]
            if is_shared(structure):
                self.known[key] = known
        else:
            known = self.known[key]
        position, paths = known
        return position, [to_json(get_size(sizes, path)) for path in paths]

    def add_data(self, structure: Data) -> int:
        """The position of a structure."""
        flow = structure["flow"]
        steps = list(map(self.parts.add, flow["steps"])) if flow else []
        position = self.structures.add(
            structure
            | {"tensors": list(map(self.parts.add, structure["tensors"]))}
            | {name: self.add_expressions(structure[name]) for name in ("counts", "caches", "sharing")}
            | {"checks": list(map(self.expressions.add, structure["checks"]))}
            | {"flow": flow and flow | {"steps": steps, "flops": self.add_expressions(flow["flops"])}}
        )
        if flow:
            self.flows[position] = [
                make_key(step["text"], [scope[3] for scope in step["scopes"]]) for step in flow["steps"]
            ]
        return position

    def add_expressions(self, data: Any) -> Any:
        """The positions of an expression, or of all expressions in a table."""
        if isinstance(data, dict):
            return {name: self.add_expressions(value) for name, value in data.items()}
        return self.expressions.add(data)


def list_all_settings(sizes: Sizes) -> list[object]:
    """The settings of the forward pass, those of inner configs included."""
    inner = [getattr(sizes, name) for name in inner_configs(type(sizes))]
    return [dict(sizes.settings), *(list_all_settings(part) for part in inner if isinstance(part, Sizes))]


def export_models(models: Iterable[Model]) -> Data:
    """All models as data for the page. Integers that JavaScript cannot hold exactly are strings."""
    structures = Structures()
    exported = [export_model(model, structures) for model in models]
    return {
        "components": COMPONENTS,
        "names": {name: name_group(name) for name in COMPONENTS} | {name: name_part(name) for name in PARTS},
        "places": {name: name_block(name) for name in COMPONENTS},
        "lessons": list_lessons(structures.parts.list_all()),
        **export_choices(),
        "models": exported,
        "structures": structures.structures.list_all(),
        "parts": structures.parts.list_all(),
        "expressions": structures.expressions.list_all(),
        "packings": structures.packings.list_all(),
        "drawings": structures.drawings.drawings.list_all(),
        "roles": ROLES,
        "words": structures.drawings.words.list_all(),
    }


def list_lessons(parts: Iterable[Data]) -> dict[str, list[str]]:
    """{key: what, why, title of a paper, its address} of the operations of some steps, each once."""
    keys = {part["lesson"] for part in parts if part.get("lesson")}
    return {key: list(lesson[1:]) for key, lesson in read_lessons().items() if key in keys}


def export_model(model: Model, structures: Structures) -> Data:
    count = count_model(model)
    structure, values = structures.add(model)
    variants = list(export_variants(model, structures))
    paths = [set(structures.paths[n]) for n in (structure, *(variant["structure"] for variant in variants))]
    return {
        "id": model.id,
        "name": model.name,
        "family": model.family,
        "publisher": model.publisher,
        "released": model.released.isoformat() if model.released else None,
        "hf": model.hf,
        "aliases": list(model.aliases),
        "architecture": model.architecture or count.architecture,
        "reference": count.reference,
        "context": find_longest_context(model),
        "published_context": model.context_length,
        "as_released": export_released_weights(model),
        "unverified": model.checked == "unverified",
        "own": model.is_own,
        "scope": count.scope,
        "total": to_json(count.total),
        "reference_total": to_json(count.reference_total),
        "release_difference": describe_release_difference(count),
        "active": to_json(count.active),
        "active_min": to_json(count.active_min),
        "structure": structure,
        "values": values,
        "settings": {name: format_setting(values) for name, values in list_forward_settings(model).items()},
        "drawing": structures.drawings.add(model, structures.flows.get(structure, [])),
        "variants": variants,
        "article": render_article(model),
        "yaml": export_yaml(model),
        "config": export_config(model, set.intersection(*paths)),
    }


def list_variants(model: Model) -> Iterator[tuple[str, str, object]]:
    """(label, size, its value) of changes to the structure: a flag the other way, or layers of one kind only."""
    for path in list_paths(model.sizes):
        value = get_size(model.sizes, path)
        if type(value) is bool:
            yield f"{path} = {format_size(not value)}", path, not value
        elif isinstance(value, tuple) and all(isinstance(kind, str) for kind in value):
            for kind in dict.fromkeys(value) if len(set(value)) > 1 else ():
                yield f"{path} = {kind} in every layer", path, (kind,) * len(value)


def export_variants(model: Model, structures: Structures) -> Iterator[Data]:
    """The variants that are valid. `changes`: {size: its value in JSON}."""
    for label, path, value in islice(list_variants(model), MOST_VARIANTS):
        with suppress(ParamcountError):
            structure, values = structures.add(change_sizes(model, {path: value}))
            changes = {path: json.dumps(value)}
            yield {"label": label, "changes": changes, "structure": structure, "values": values}
