"""Which rank and targets of LoRA or DoRA have a given number of trainable parameters, the simplest first.

An adapter trains r · (inputs + outputs) parameters per layer, and DoRA the outputs besides, so each set of targets has
at most one rank. Every explanation is confirmed by the count of that adapter.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any, NamedTuple

from paramcount.costs.adapters.adapters import Lora, measure_adapter
from paramcount.costs.adapters.sites import Site, list_layers
from paramcount.costs.adapters.targets import ALL_LINEAR, GROUPS
from paramcount.counting.components import TOWERS
from paramcount.counting.results import JsonResult
from paramcount.errors import ParamcountError
from paramcount.output.numbers import Figure, match_figure, parse_figure
from paramcount.zoo import Model, count_model

MOST_RANK = 1024
USUAL_RANKS = tuple(2**i for i in range(11))  # of targets that are not one of the usual sets
MOST_LEAVES = 11  # names whose every combination is tried; of more, up to three at once
MOST_SHOWN = 12
DEFAULTS = (("q_proj", "v_proj"), ("query", "value"), ("q", "v"), ("query_key_value",), ("c_attn",))  # peft's own


class TargetSet(NamedTuple):
    """Targets, and what an adapter of them trains."""

    arguments: Mapping[str, Any]  # of `lora`
    words: str
    sites: frozenset[Site]
    is_usual: bool

    @property
    def per_rank(self) -> int:
        """Parameters of A and B for each unit of the rank."""
        return sum(site.copies * site.sizes[0] * (site.sizes[1] + site.sizes[2]) for site in self.sites)

    @property
    def outputs(self) -> int:
        """Magnitudes of DoRA."""
        return sum(site.copies * site.sizes[1] for site in self.sites)


class AdapterExplanation(NamedTuple):
    """An adapter with as many trainable parameters."""

    method: str
    r: int
    targets: str  # in words
    modules_to_save: tuple[str, ...]
    trainable: int
    total: int
    arguments: Mapping[str, Any]  # of `lora`


@dataclass(frozen=True, repr=False)
class AdapterSearch(JsonResult):
    """The adapters that explain a number of trainable parameters."""

    json_fields = ("id", "name", "trainable", "value", "explanations", "more")

    id: str
    name: str
    trainable: str  # as given
    value: int
    explanations: tuple[AdapterExplanation, ...]  # the simplest first
    more: int  # further ones that are not listed

    html_table = "paramcount.costs.adapters.render:build_search_table"

    @property
    def ok(self) -> bool:
        """Whether there is one."""
        return bool(self.explanations)


def find_adapters(model: Model, trainable: str | int) -> AdapterSearch:
    """The adapters of a model with this number of trainable parameters; a short number may be rounded.

    Raises: ParamcountError if that is not a number.
    """
    figure = parse_figure(trainable)
    sets = list(list_target_sets(list_layers(count_model(model)).sites))
    found: list[AdapterExplanation] = []
    more = 0
    seen: set[tuple[object, ...]] = set()
    for targets, method, r, saved in match_sets(sets, figure, list(list_saved(model))):
        key = targets.sites, method, r, saved
        if key in seen:
            continue
        seen.add(key)
        if len(found) == MOST_SHOWN:
            more += 1
            continue
        arguments = {**targets.arguments, "r": r, "method": method, "modules_to_save": saved}
        adapter = try_adapter(model, arguments)
        if adapter and match_figure(adapter.trainable, figure):
            sums = adapter.trainable, adapter.total
            found.append(AdapterExplanation(method, r, targets.words, saved, *sums, clean(arguments)))
    text = f"{figure.value:,}" if figure.step == 1 else str(trainable).strip()
    return AdapterSearch(model.id, model.name, text, figure.value, tuple(found), more)


def clean(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments without defaults."""
    return {name: value for name, value in arguments.items() if value not in ((), "lora")}


def try_adapter(model: Model, arguments: Mapping[str, Any]) -> Lora | None:
    with suppress(ParamcountError):  # peft refuses some targets
        return measure_adapter(model, **arguments)
    return None


def match_sets(
    sets: Iterable[TargetSet], figure: Figure, saved: Sequence[tuple[tuple[str, ...], int]]
) -> Iterator[tuple[TargetSet, str, int, tuple[str, ...]]]:
    """(targets, method, rank, modules trained as a whole) of LoRA and DoRA that fit a figure, the usual ones first.
    `saved`: as of `list_saved`."""
    found = []
    for i, targets in enumerate(sets):
        per_rank, outputs = targets.per_rank, targets.outputs
        for (j, (names, extra)), is_dora in product(enumerate(saved), (False, True)):
            base = extra + is_dora * outputs
            nearest = (figure.value - base) // per_rank if per_rank else 0
            for r in (nearest, nearest + 1):
                is_odd = r not in USUAL_RANKS
                if not 1 <= r <= MOST_RANK or (is_odd and not targets.is_usual):
                    continue
                if match_figure(base + r * per_rank, figure):
                    order = not targets.is_usual, is_dora + is_odd + (j > 0), j, is_dora, i
                    found.append((order, (targets, "dora" if is_dora else "lora", r, names)))
    yield from (item for _, item in sorted(found, key=lambda pair: pair[0]))


def list_saved(model: Model) -> Iterator[tuple[tuple[str, ...], int]]:
    """(modules that are trained as a whole, their parameters): none, the LM head, the token embedding, or both."""
    yield (), 0
    sites = list_layers(count_model(model)).sites
    heads = [site for site in sites if site.is_head]
    tables = [site for site in sites if site.component == "embedding"]
    for chosen in (heads, tables, [*tables, *heads]):
        names = tuple(dict.fromkeys(site.leaf for site in chosen))
        if names and (chosen in (heads, tables) or (heads and tables)):
            arguments = {"targets": next(site.leaf for site in sites if is_matrix(site)), "r": 1}
            with suppress(ParamcountError, StopIteration):
                adapter = measure_adapter(model, **arguments, modules_to_save=names)
                yield names, sum(module.parameters for module in adapter.modules if module.kind == "saved")


# ---- sets of targets


def is_matrix(site: Site) -> bool:
    return site.kind == "linear" and not site.is_head


def list_target_sets(sites: Sequence[Site]) -> Iterator[TargetSet]:
    """Targets, the usual ones first: all linear layers, groups, those of the language model alone, then names."""
    linear = [site for site in sites if is_matrix(site)]
    experts = [site for site in sites if site.kind == "experts"]
    towers = [site for site in linear if site.row.part in TOWERS]
    yield TargetSet({"targets": ALL_LINEAR}, "all linear layers", frozenset(linear), is_usual=True)
    if towers:
        inside = frozenset(linear) - frozenset(towers)
        pattern = exclude(towers)
        words = "all linear layers without encoders and projector"
        yield TargetSet({"targets": ALL_LINEAR, "exclude_pattern": pattern}, words, inside, is_usual=True)
    names: dict[str, list[Site]] = {}
    for site in linear:
        names.setdefault(site.leaf, []).append(site)
    for default in DEFAULTS:
        if set(default) <= set(names):
            yield make_named(default, names, is_usual=True)
    groups = {group: choose(linear, group) for group in ("attention", "mlp", "mixer")} | {"experts": experts}
    present = [group for group, found in groups.items() if found]
    for n in range(1, len(present) + 1):
        for chosen in combinations(present, n):
            members = frozenset(site for group in chosen for site in groups[group])
            yield TargetSet({"targets": ",".join(chosen)}, " and ".join(chosen), members, is_usual=True)
            if set(members) & set(towers):
                arguments = {"targets": ",".join(chosen), "exclude_pattern": exclude(towers)}
                words = f"{' and '.join(chosen)} without encoders and projector"
                yield TargetSet(arguments, words, members - frozenset(towers), is_usual=True)
    others = [site for site in sites if (site.is_head or site.kind == "embedding") and site.row.part not in TOWERS]
    for site in others:
        names.setdefault(site.leaf, []).append(site)
    most = len(names) if len(names) <= MOST_LEAVES else 3
    for n in range(1, most + 1):
        for words_of_set in combinations(names, n):
            yield make_named(words_of_set, names, is_usual=False)


def make_named(words: Sequence[str], names: Mapping[str, Sequence[Site]], *, is_usual: bool) -> TargetSet:
    members = frozenset(site for name in words for site in names[name])
    return TargetSet({"targets": ",".join(words)}, ", ".join(words), members, is_usual)


def choose(linear: Iterable[Site], group: str) -> list[Site]:
    return [site for site in linear if site.component.partition(".")[0] in GROUPS[group]]


def exclude(towers: Iterable[Site]) -> str:
    """A regular expression for the modules of encoders and projectors: of their first two names."""
    prefixes = dict.fromkeys(".".join(re.escape(part) for part in site.name.split(".")[:2]) for site in towers)
    return f"({'|'.join(prefixes)})\\..*"
