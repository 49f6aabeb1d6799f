"""Which layers and parameters of a model the targets of an adapter name."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, NoReturn

from paramcount.costs.adapter_sites import FORMER, MODULES, Layers, Site, ends_in
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


class Choice(NamedTuple):
    """The layers and parameters that targets name."""

    ranks: dict[Site, int]  # factors of the rank
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def choose_sites(
    count: Count, layers: Layers, targets: Sequence[str], parameters: Sequence[str], *, is_lora: bool
) -> Choice:
    """The layers and the parameters that the targets name. As in peft, a name that there is not has no effect.

    Raises: ParamcountError if no target names anything, and for modules that peft refuses.
    """
    names_experts = is_lora and count.sizes.adapts_experts
    sites, chosen = layers.sites, dict[Site, int]()
    former: dict[str, None] = {}  # names of experts and router before transformers 5
    old_names = {"gate", *(find_former(sites) or FORMER)} if names_experts else set()
    unknown = []
    for target in targets:
        if target.lower() == ALL_LINEAR:
            linear = [site for site in sites if site.kind == "linear" and not site.is_head]
            former |= dict.fromkeys(sorted(old_names))
            found = dict.fromkeys(find_by_leaf(layers, linear, old_names) if old_names else linear, 1)
        elif target in GROUPS:
            found = {site: 1 for site in sites if site.component.partition(".")[0] in GROUPS[target]}
            if target != "experts" and target != "router":
                found = {site: 1 for site in found if site.kind == "linear"}
            if not found:
                raise ParamcountError(f"no linear layer belongs to {target}", where="targets")
        elif target.rpartition(".")[2] in old_names:
            former[target.rpartition(".")[2]] = None
            continue
        else:
            found = dict.fromkeys(find_named(layers, target), 1)
        check_refused(layers, found, is_lora=is_lora)
        unknown += [] if found else [target]
        chosen |= found
    adapted = {site.module for site in chosen}
    missing = []
    for parameter in parameters:
        named = find_parameters(layers, parameter, adapted)
        missing += [] if named else [parameter]
        chosen |= dict.fromkeys(named, 1)
    if former:
        chosen |= choose_former(sites, tuple(former))
    if not chosen:
        raise_unknown(layers, unknown, missing)
    warnings = [*warn_unknown(layers, unknown), *map(warn_missing, missing)]
    notes = describe_former(sites, chosen, tuple(former)) if former else describe_experts(layers, chosen, targets)
    return Choice(chosen, tuple(warnings), tuple(notes))


def find_named(layers: Layers, target: str) -> list[Site]:
    """The layers that a name belongs to.

    Raises: ParamcountError if it also belongs to modules that are no such layers, which peft refuses.
    """
    found = [site for site in layers.sites if site.kind in MODULES and site.matches(target)]
    modules = {site.name for site in found}
    if any(ends_in(module, target) and module not in modules for module in layers.modules):
        raise ParamcountError(f"{target} is not a linear layer or an embedding", where="targets")
    return found


def find_parameters(layers: Layers, target: str, adapted: Container[str]) -> list[Site]:
    """The parameters that a name belongs to. `adapted`: modules with an adapter.

    Raises: ParamcountError for parameters that peft refuses.
    """
    found = [site for site in layers.parameters if site.matches(target)]
    for site in found:
        reason = ""
        if not site.module:
            reason = "belongs to the model itself, not to a module"
        elif len(site.shape) not in (2, 3):
            reason = f"has {len(site.shape)} dimensions"
        elif site.module in adapted:
            reason = "belongs to a module that targets name"
        elif site.module.rpartition(".")[2] in layers.refused:
            reason = "belongs to a module that peft refuses for this model type"
        if reason:
            raise ParamcountError(
                f"{site.name} {reason}", where="target_parameters", expected="a matrix, or matrices of experts"
            )
    return found


def check_refused(layers: Layers, sites: Iterable[Site], *, is_lora: bool) -> None:
    """Raises: ParamcountError for modules that peft refuses."""
    for site in sites:
        if is_lora and site.module.rpartition(".")[2] in layers.refused:
            raise ParamcountError(
                f"peft 0.21 refuses {join_words(layers.refused, 'and')} for this model type: {site.module}",
                where="targets",
                expected="names of other modules",
            )


def find_by_leaf(layers: Layers, linear: Iterable[Site], left_out: Container[str]) -> list[Site]:
    """All layers whose last names are those of linear layers: how peft chooses them if it adapts experts as well.

    Raises: ParamcountError if other modules have such names, which peft refuses.
    """
    leaves = {site.leaf for site in linear if site.leaf not in left_out}
    found = [site for site in layers.sites if site.kind in MODULES and site.leaf in leaves]
    for module in sorted(layers.modules - {site.name for site in found}):
        leaf = module.rpartition(".")[2]
        clash = next((name for name in sorted(leaves) if name == leaf or (leaf == "{layer}" and name.isdigit())), None)
        if clash:
            raise ParamcountError(
                f"{clash} is the last name of linear layers and of {module}, so peft 0.21 refuses all-linear",
                where="targets",
                expected="names of modules",
            )
    return found


def find_former(sites: Sequence[Site]) -> tuple[str, ...]:
    """The names of the experts' matrices before they were stacked."""
    return tuple(dict.fromkeys(leaf for site in sites for leaf in site.former))


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


def describe_former(sites: Sequence[Site], chosen: Mapping[Site, int], names: Sequence[str]) -> Iterator[str]:
    """Notes about what peft makes of names of experts and router."""
    yield f"as in peft 0.21, {join_words(names, 'and')} name the routed experts and the router"
    fused = next((site for site, factor in chosen.items() if factor > 1), None)
    if fused:
        yield f"{join_words(fused.former, 'and')} of the experts share one adapter of twice the rank"
    dense = [site.leaf for site in sites if site.kind == "linear" and site.leaf in names and site not in chosen]
    if dense:
        yield f"{join_words(dict.fromkeys(dense), 'and')} of dense and shared MLPs get no adapter"


def describe_experts(layers: Layers, chosen: Container[Site], targets: Iterable[str]) -> Iterator[str]:
    """A note if targets have names of the experts' matrices, which are no modules of the reference."""
    experts = [site for site in layers.sites if site.kind == "experts" and site not in chosen]
    last = {target.rpartition(".")[2] for target in targets}
    if any({*site.former, site.leaf} & last for site in experts):
        names = dict.fromkeys(".".join(site.name.split(".")[-2:]) for site in experts)
        reason = "they are parameters, not modules; target_parameters names them"
        yield f"the routed experts get no adapter: {reason}: {join_words(names, 'and')}"


def warn_unknown(layers: Layers, targets: Sequence[str]) -> Iterator[str]:
    """A warning for each target that names no module."""
    names = list_leaves(layers)
    of_experts = {name for site in layers.sites for name in (*site.former, site.leaf) if site.kind == "experts"}
    for target in targets:
        nearest = () if target.rpartition(".")[2] in of_experts else find_nearest(target, names)
        hint = f"; did you mean {join_words(nearest, 'or')}?" if nearest else ""
        yield f"no module is named {quote(target)}, so it has no effect, as in peft{hint}"


def warn_missing(parameter: str) -> str:
    return f"no parameter is named {quote(parameter)}, so it has no effect, as in peft"


def list_leaves(layers: Layers) -> tuple[str, ...]:
    """The last parts of the names of all layers that names of modules can choose."""
    return tuple(dict.fromkeys(site.leaf for site in layers.sites if site.kind in ("linear", "embedding")))


def raise_unknown(layers: Layers, targets: Sequence[str], parameters: Sequence[str]) -> NoReturn:
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
