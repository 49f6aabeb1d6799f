"""Which layers and parameters of a model the targets of an adapter name, as peft reads them."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, NoReturn

from paramcount.costs.adapters.sites import FORMER, MODULES, LayerRange, Site, ends_in, list_modules
from paramcount.counting import Count
from paramcount.errors import ParamcountError, find_nearest, join_words, quote

ALL_LINEAR = "all-linear"
# {group: components}
GROUPS = {
    "attention": ("qkv", "output_projection"),
    "mlp": ("mlp", "shared_experts"),
    "mixer": ("mixer",),
    "experts": ("experts",),
    "router": ("router",),
}
STACKED_GROUPS = ("experts", "router")  # of parameters, not of modules

Modules = Mapping[str, Site | None]  # as of list_modules


class AdapterRequest(NamedTuple):
    """What an adapter is asked to apply to, in the names of peft. Source: check_target_module_exists of peft."""

    r: int  # rank
    targets: tuple[str, ...]  # names of modules, or their ends, groups, all-linear
    target_pattern: str  # regular expression for full names of modules, instead of names
    target_parameters: tuple[str, ...]  # names, or their ends
    exclude_modules: tuple[str, ...]  # names of modules, or their ends
    exclude_pattern: str  # regular expression for full names of modules, instead of names
    layers_to_transform: tuple[int, ...] | None  # indices; None: all
    layers_pattern: tuple[str, ...]  # regular expressions for what precedes the index of a layer
    rank_pattern: dict[str, int]  # {regular expression for the end of a name: rank}; the first one counts
    modules_to_save: tuple[str, ...]  # names of modules that are trained as a whole, or their ends

    def excludes(self, module: str) -> bool:
        """Whether a module is named among those to exclude."""
        if self.exclude_pattern and re.fullmatch(self.exclude_pattern, module):
            return True
        return any(ends_in(module, word) for word in self.exclude_modules)

    def allows(self, module: str) -> bool:
        """Whether a module may take an adapter if a target names it."""
        return not self.excludes(module) and not is_inside(module, self.modules_to_save)

    def matches(self, module: str, target: str) -> bool:
        """Whether a target names a module. As in peft, its layer does not matter if the target is its full name."""
        return module == target or (ends_in(module, target) and self.has_layer(module))

    def has_layer(self, module: str) -> bool:
        if self.layers_to_transform is None:
            return True
        patterns = [rf"(?:^|.*?\.){pattern}" for pattern in self.layers_pattern] or [r".*?\.[^.]*"]
        found = (re.match(rf"{pattern}\.(?P<layer>\d+)\.", module) for pattern in patterns)
        layer = next((int(match["layer"]) for match in found if match), None)
        return layer in self.layers_to_transform

    def find_rank(self, name: str, factor: int = 1) -> int:
        return next(
            (rank for pattern, rank in self.rank_pattern.items() if matches_end(name, pattern)), factor * self.r
        )


class TargetChoice(NamedTuple):
    """The layers and parameters that targets name."""

    ranks: tuple[tuple[Site, int], ...]  # (layers, of which `copies` are chosen; rank)
    modules: frozenset[str]  # full names of the adapted modules, and of those whose parameters are adapted
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def is_inside(name: str, modules: Sequence[str]) -> bool:
    """Whether a module is one of these or inside one. As in peft, the end of a name suffices.

    >>> is_inside("model.layers.0.mlp.up_proj", ["mlp"]), is_inside("lm_head", ["embed_tokens"])
    (True, False)
    """
    parts = name.split(".") if modules else ()
    return any(".".join(parts[:n]).endswith(module) for n in range(1, len(parts) + 1) for module in modules)


def matches_end(name: str, pattern: str) -> bool:
    """Whether a regular expression matches a name or its end. Source: get_pattern_key of peft.

    >>> matches_end("layers.0.mlp.gate", "gate"), matches_end("layers.0.mlp.shared_gate", "gate")
    (True, False)
    """
    return re.match(rf"(.*\.)?({pattern})$", name) is not None


def choose_sites(count: Count, layers: LayerRange, request: AdapterRequest, *, is_lora: bool) -> TargetChoice:
    """The layers and the parameters that the targets name. As in peft, a name that there is not has no effect.

    Raises: ParamcountError if no target names anything, and for modules that peft refuses.
    """
    every = list_modules(layers)
    modules = {name: site for name, site in every.items() if request.allows(name)}
    before = [leaf for site in layers.sites for leaf in site.former] or FORMER
    old_names = {"gate", *before} if is_lora and count.sizes.adapts_experts else set()
    former: dict[str, None] = {}  # names of experts and router before transformers 5
    chosen: dict[Site, dict[str, None]] = {}  # full names
    unknown: list[str] = []
    left_out: list[str] = []  # targets without any module but excluded ones

    where = "target_pattern" if request.target_pattern else "targets"

    def choose(names: Iterable[str]) -> None:
        for name in names:
            site = modules[name]
            if not site:
                raise ParamcountError(f"{name} is not a linear layer or an embedding", where=where)
            if is_lora and name.rpartition(".")[2] in layers.refused:
                found = f"peft 0.21 refuses {join_words(layers.refused, 'and')} for this model type: {name}"
                raise ParamcountError(found, where=where, expected="names of other modules")
            chosen.setdefault(site, {})[name] = None

    if request.target_pattern and not old_names:
        choose(name for name in modules if re.fullmatch(request.target_pattern, name))
    targets = (
        list_leaves_of_pattern(layers, modules, request) if request.target_pattern and old_names else request.targets
    )
    for target in targets:
        if target.lower() == ALL_LINEAR:
            linear = [name for name, site in modules.items() if site and site.kind == "linear" and not site.is_head]
            former |= dict.fromkeys(sorted(old_names))
            found = find_by_leaf(modules, linear, old_names) if old_names else linear
        elif target in STACKED_GROUPS:
            stacked = choose_group(layers.sites, target, request)
            chosen |= {site: dict.fromkeys(site.list_names()) for site in stacked}
            continue
        elif target in GROUPS:
            sites = choose_group(layers.sites, target, request)
            found = [name for name, site in modules.items() if site in sites and request.has_layer(name)]
        elif target.rpartition(".")[2] in old_names:
            former[target.rpartition(".")[2]] = None
            continue
        else:
            found = [name for name in modules if request.matches(name, target)]
        if not found and not request.target_pattern:
            is_known = target.lower() == ALL_LINEAR or target in GROUPS or any(ends_in(name, target) for name in every)
            (left_out if is_known else unknown).append(target)
        choose(found)
    adapted = {name for names in chosen.values() for name in names}
    check_saved(every, left_out, request)
    missing = []
    for parameter in request.target_parameters:
        named = find_parameters(layers, parameter, adapted, request.modules_to_save)
        missing += [] if named else [parameter]
        for site, names in named.items():
            chosen.setdefault(site, {}).update(names)
    factors = choose_former(layers.sites, tuple(former)) if former else {}
    for site in factors:
        chosen.setdefault(site, {}).update(dict.fromkeys(site.list_names()))
    if not chosen:
        check_limits(every, left_out, request)
        raise_unknown(layers, unknown, missing)
    ranks = [pair for site, names in chosen.items() for pair in divide_by_rank(site, names, request, factors)]
    warnings = [
        *warn_unknown(layers, unknown),
        *(f"no parameter is named {quote(name)}, so it has no effect, as in peft" for name in missing),
        *warn_patterns(every, chosen, left_out, request),
    ]
    if former:
        notes = describe_former(layers.sites, chosen, factors, tuple(former))
    else:
        notes = describe_experts(layers, chosen, targets)
    adapted = {
        name if site.kind in MODULES else name.rpartition(".")[0] for site, names in chosen.items() for name in names
    }
    return TargetChoice(tuple(ranks), frozenset(adapted), tuple(warnings), tuple(notes))


def divide_by_rank(
    site: Site, names: Iterable[str], request: AdapterRequest, factors: Mapping[Site, int]
) -> Iterator[tuple[Site, int]]:
    copies: dict[int, int] = {}
    for name in names:
        rank = request.find_rank(name, factors.get(site, 1))
        copies[rank] = copies.get(rank, 0) + 1
    return ((site._replace(copies=n), rank) for rank, n in copies.items())


def choose_group(sites: Iterable[Site], group: str, request: AdapterRequest) -> list[Site]:
    """The sites of a group's components."""
    found = [site for site in sites if site.component.partition(".")[0] in GROUPS[group]]
    if group not in STACKED_GROUPS:
        found = [site for site in found if site.kind == "linear"]
    elif request.layers_to_transform is not None:
        raise ParamcountError(
            f"does not apply to {group}", where="layers_to_transform", expected="names of modules as targets"
        )
    if not found:
        raise ParamcountError(f"no linear layer belongs to {group}", where="targets")
    return found


def find_parameters(
    layers: LayerRange, target: str, adapted: Container[str], saved: Sequence[str]
) -> dict[Site, dict[str, None]]:
    """The parameters that a name belongs to. `adapted`: modules with an adapter; `saved`: as in `CacheRequest`.

    Raises: ParamcountError for parameters that peft refuses.
    """
    found: dict[Site, dict[str, None]] = {}
    for site in layers.parameters:
        for name in site.list_names():
            module = name.rpartition(".")[0]
            if not ends_in(name, target) or is_inside(module, saved):
                continue
            reason = ""
            if not module:
                reason = "belongs to the model itself, not to a module"
            elif len(site.shape) not in (2, 3):
                reason = f"has {len(site.shape)} dimensions"
            elif module in adapted:
                reason = "belongs to a module that targets name"
            elif module.rpartition(".")[2] in layers.refused:
                reason = "belongs to a module that peft refuses for this model type"
            if reason:
                raise ParamcountError(
                    f"{name} {reason}", where="target_parameters", expected="a matrix, or matrices of experts"
                )
            found.setdefault(site, {})[name] = None
    return found


def find_by_leaf(modules: Modules, linear: Iterable[str], left_out: Container[str]) -> list[str]:
    """All modules whose last names are those of linear layers: how peft chooses them if it adapts experts as well."""
    leaves = {leaf for name in linear if (leaf := name.rpartition(".")[2]) not in left_out}
    found = [name for name in modules if name.rpartition(".")[2] in leaves]
    for name in found:
        if not modules[name]:
            raise ParamcountError(
                f"{name.rpartition('.')[2]} is the last name of linear layers and of {name}, so peft 0.21 refuses "
                "all-linear",
                where="targets",
                expected="names of modules",
            )
    return found


def list_leaves_of_pattern(layers: LayerRange, modules: Modules, request: AdapterRequest) -> list[str]:
    """The last names that peft makes of a pattern if it adapts experts by their names before transformers 5.

    Source: _resolve_string_target_modules of peft.
    """
    parameters = [name for site in layers.parameters for name in site.list_names()]
    former = [
        f"{name.rpartition('.')[0]}.{leaf}"
        for site in layers.sites
        if site.kind == "experts"
        for name in site.list_names()
        for leaf in site.former
    ]
    names = (*modules, *filter(request.allows, (*parameters, *former)))
    return list(dict.fromkeys(name.rpartition(".")[2] for name in names if re.fullmatch(request.target_pattern, name)))


def choose_former(sites: Sequence[Site], names: Sequence[str]) -> dict[Site, int]:
    """{layer: factor of the rank} for names of experts and router: where the reference stores two as one, twice r.

    Source: peft.utils.transformers_weight_conversion.

    Raises: ParamcountError if only one of two such names is given.
    """
    found: dict[Site, int] = {}
    for site in sites:
        present = [name for name in site.former if name in names]
        if present and len(present) < len(site.former):
            given, missing = present[0], next(name for name in site.former if name not in present)
            raise ParamcountError(
                f"{given} of the experts requires {missing}: the reference stores them as one parameter",
                where="targets",
            )
        if present:
            found[site] = len(present)
        elif ends_in(site.module, "gate") and "gate" in names:
            found[site] = 1
    return found


def describe_former(
    sites: Sequence[Site], chosen: Container[Site], factors: Mapping[Site, int], names: Sequence[str]
) -> Iterator[str]:
    """Notes about what peft makes of names of experts and router."""
    yield f"as in peft 0.21, {join_words(names, 'and')} name the routed experts and the router"
    fused = next((site for site, factor in factors.items() if factor > 1), None)
    if fused:
        yield f"{join_words(fused.former, 'and')} of the experts share one adapter of twice the rank"
    dense = [site.leaf for site in sites if site.kind == "linear" and site.leaf in names and site not in chosen]
    if dense:
        yield f"{join_words(dict.fromkeys(dense), 'and')} of dense and shared MLPs get no adapter"


def describe_experts(layers: LayerRange, chosen: Container[Site], targets: Iterable[str]) -> Iterator[str]:
    """A note if targets have names of the experts' matrices, which are no modules of the reference."""
    experts = [site for site in layers.sites if site.kind == "experts" and site not in chosen]
    last = {target.rpartition(".")[2] for target in targets}
    if any({*site.former, site.leaf} & last for site in experts):
        names = dict.fromkeys(".".join(site.name.split(".")[-2:]) for site in experts)
        reason = "they are parameters, not modules; target_parameters names them"
        yield f"the routed experts get no adapter: {reason}: {join_words(names, 'and')}"


def warn_unknown(layers: LayerRange, targets: Sequence[str]) -> Iterator[str]:
    names = list_leaves(layers)
    of_experts = {name for site in layers.sites for name in (*site.former, site.leaf) if site.kind == "experts"}
    for target in targets:
        nearest = () if target.rpartition(".")[2] in of_experts else find_nearest(target, names)
        hint = f"; did you mean {join_words(nearest, 'or')}?" if nearest else ""
        yield f"no module is named {quote(target)}, so it has no effect, as in peft{hint}"


def warn_patterns(
    every: Modules, chosen: Mapping[Site, Iterable[str]], left_out: Iterable[str], request: AdapterRequest
) -> Iterator[str]:
    """Warnings for options without effect, and for a pattern that may match modules without parameters."""
    for target in left_out:
        yield f"every module that is named {quote(target)} is left out, so it has no effect, as in peft"
    excludes = any(request.excludes(name) for name in every)
    if not excludes and (request.exclude_modules or request.exclude_pattern):
        yield "no module is named among those to exclude, so they have no effect, as in peft"
    names = [name for chosen_names in chosen.values() for name in chosen_names]
    for pattern in request.rank_pattern:
        if not any(matches_end(name, pattern) for name in names):
            yield f"no adapted module is named {quote(pattern)}, so its rank has no effect, as in peft"
    parents = dict.fromkeys(name.rpartition(".")[0] for name in names) if request.target_pattern else {}
    parent = next((name for name in parents if re.fullmatch(request.target_pattern, f"{name}.any_module")), None)
    if parent:
        reason = "peft refuses it if one of them has no parameters, such as an activation function"
        yield f"the pattern matches every module inside {parent}; {reason}"


def list_leaves(layers: LayerRange) -> tuple[str, ...]:
    """The last parts of the names of all layers that names of modules can choose."""
    return tuple(dict.fromkeys(site.leaf for site in layers.sites if site.kind in ("linear", "embedding")))


def check_saved(every: Modules, left_out: Iterable[str], request: AdapterRequest) -> None:
    for target in left_out:
        names = [name for name in every if ends_in(name, target)]
        if names and all(is_inside(name, request.modules_to_save) for name in names):
            raise ParamcountError(f"{target} is one of modules_to_save", where="targets")


def check_limits(every: Modules, left_out: Sequence[str], request: AdapterRequest) -> None:
    """Raises: ParamcountError if other options leave no module of the targets, or a pattern matches none."""
    excluding = "exclude_modules" if request.exclude_modules else "exclude_pattern"
    for target in left_out:
        is_allowed = any(ends_in(name, target) and request.allows(name) for name in every)
        where = "layers_to_transform" if request.layers_to_transform is not None and is_allowed else excluding
        raise ParamcountError(f"no module of {quote(target)} is left", where=where)
    if request.target_pattern and any(
        site and re.fullmatch(request.target_pattern, name) for name, site in every.items()
    ):
        raise ParamcountError(f"no module that {quote(request.target_pattern)} matches is left", where=excluding)
    if request.target_pattern:
        example = next(name for name, site in every.items() if site)
        raise ParamcountError(
            f"= {quote(request.target_pattern)} matches no module",
            where="target_pattern",
            expected=f"a regular expression for full names such as {example}",
        )


def raise_unknown(layers: LayerRange, targets: Sequence[str], parameters: Sequence[str]) -> NoReturn:
    """Raises: ParamcountError, with the names that exist."""
    if targets:
        names, target = list_leaves(layers), targets[0]
        if target == ALL_LINEAR:
            found = f"= {ALL_LINEAR}, but the model has no linear layers"
            raise ParamcountError(found, where="targets", expected=f"names among {', '.join(names)}")
        raise ParamcountError(
            f"no module is named {quote(target)}",
            where="targets",
            expected=f"{ALL_LINEAR}, {', '.join(GROUPS)}, or names among {', '.join(names)}",
            nearest=find_nearest(target, (ALL_LINEAR, *GROUPS, *names)),
        )
    experts = [site.name for site in layers.parameters if site.kind in ("experts", "router")]
    known = experts or [site.name for site in layers.parameters if len(site.shape) in (2, 3)]
    choices = tuple(dict.fromkeys(name.rpartition("}.")[2] for name in known))
    parameter = parameters[0] if parameters else "gate"
    raise ParamcountError(
        f"no parameter is named {quote(parameter)}",
        where="target_parameters",
        choices=choices,
        nearest=find_nearest(parameter, choices),
    )
