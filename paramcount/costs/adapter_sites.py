"""The layers of a model that an adapter can be added to, and which of them a list of targets names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from math import prod
from typing import NamedTuple, NoReturn

from paramcount.costs.reference_tensors import Modules, list_reference_tensors, name_in_reference
from paramcount.counting import Count, Tensor
from paramcount.counting.quantisation.storage import MatrixFacts, merge_facts
from paramcount.counting.sum_weights import list_flows
from paramcount.counting.tensors import list_unreachable
from paramcount.errors import ParamcountError, find_nearest, join_words, quote
from paramcount.flow import given
from paramcount.flow.operations import Linear, Lookup
from paramcount.flow.walk import list_steps, locate_weight

ALL_LINEAR = "all-linear"
# Components whose matrices are usually no linear layers of the reference.
NOT_LINEAR = ("experts", "router")
FORMER = ("gate_proj", "up_proj", "down_proj")  # the experts' matrices, if no layer of the architecture has any
# {group: components}
GROUPS = {
    "attention": ("qkv", "output_projection"),
    "mlp": ("mlp", "shared_experts"),
    "mixer": ("mixer",),
    "experts": ("experts",),
    "router": ("router",),
}


class Site(NamedTuple):
    """Layers of one name pattern, each of which can take an adapter."""

    name: str  # of the module, "{layer}" stands for an index; of stacked experts of their parameter
    component: str
    kind: str  # linear | convolution | embedding | experts | router; the last two are parameters of the reference
    shape: tuple[int, ...]  # of the weight; of stacked experts with their number first
    inputs: int
    outputs: int
    copies: int
    experts: int = 1  # that share one adapter
    former: tuple[str, ...] = ()  # names of the experts' matrices in checkpoints
    is_head: bool = False  # whether the reference returns it as its output embedding

    @property
    def is_down(self) -> bool:
        """Whether it is the last matrix of an MLP."""
        return self.component.endswith(".down")

    @property
    def leaf(self) -> str:
        return self.name.rpartition(".")[2]

    def matches(self, target: str) -> bool:
        """Whether a target is the module's name or its end."""
        return f".{self.name}".endswith(f".{target}")


def list_sites(count: Count) -> list[Site]:
    """The layers of a model that can take an adapter, in the order of the forward pass; experts come last.

    Raises: ParamcountError if the reference has other linear layers than its checkpoints show.
    """
    facts = merge_facts(count.sizes)
    if facts.has_other_linear_layers:
        raise ParamcountError(f"the linear layers of {count.sizes.reference} differ from its checkpoint's matrices")
    facts = rename_facts(facts)
    linear, tables = find_weights(count, facts.modules)
    copies: dict[Site, int] = {}  # layers of different kinds may have the same modules
    experts: dict[tuple[object, ...], list[Tensor]] = {}
    tensors = list(list_all_tensors(count))
    n_uses = count_uses(tensors, facts.rebuilt_blocks)
    for tensor in tensors:
        kind = find_kind(tensor, facts, linear, tables)
        if kind == "experts":
            experts.setdefault(find_stack(tensor), []).append(tensor)
        elif kind:
            transposed = kind == "embedding" or linear.get(tensor.name, False)
            site = make_site(tensor, kind, transposed=transposed)
            is_head = tensor.component == "lm_head" and not tensor.name.endswith(facts.linear_heads)
            n = next((n for block, n in n_uses.items() if tensor.name.startswith(block)), 1)
            add_site(copies, site._replace(is_head=is_head, copies=n * site.copies))
    for stacked in experts.values():
        add_site(copies, stack_experts(stacked))
    return [site._replace(copies=n) for site, n in copies.items()]


def count_uses(tensors: Iterable[Tensor], blocks: Iterable[str]) -> dict[str, int]:
    """{a block's first use, with a dot: how often the reference builds it}."""
    names = tuple(f".{block}." for block in blocks)
    tied: Counter[tuple[str, str]] = Counter()
    for tensor in tensors:
        for name in names:
            before, found, after = (tensor.tied_to or "").partition(name)
            if found:
                tied[before + found, after] += tensor.copies
    return {block: 1 + n for (block, _), n in tied.items()}


def rename_facts(facts: MatrixFacts) -> MatrixFacts:
    """The facts with the names of tensors that the reference has."""

    def rename(names: Iterable[str]) -> tuple[str, ...]:
        return tuple(new for name in names for new in name_in_reference(name, facts.modules))

    return facts._replace(
        linear_routers=rename(facts.linear_routers),
        linear_subclasses=rename(facts.linear_subclasses),
        linear_heads=rename(facts.linear_heads),
    )


def add_site(copies: dict[Site, int], site: Site) -> None:
    """Add the number of modules to that of modules which are alike."""
    pattern = site._replace(copies=0)
    copies[pattern] = copies.get(pattern, 0) + site.copies


def list_all_tensors(count: Count) -> Iterator[Tensor]:
    """The parameters of all modules, those that are reused once, and those that no forward pass reads."""
    for tensor in list_reference_tensors(count):
        is_reused = tensor.tied_to == tensor.name and tensor.component != "lm_head"
        if tensor.part != "mtp" and tensor.role == "parameter" and not is_reused:
            yield tensor
    yield from (tensor for tensor, _ in list_unreachable(count.sizes, count.head))


def find_kind(tensor: Tensor, facts: MatrixFacts, linear: Container[str], tables: Container[str]) -> str:
    """The kind of site that a tensor is, empty if it is none."""
    name, component = tensor.name, tensor.component.partition(".")[0]
    is_matrix = name.endswith(".weight") and len(tensor.shape) == 2
    is_table = component == "embedding" and name in tables  # which may also be the LM head's
    is_linear = name in linear and (component not in NOT_LINEAR or name.endswith(facts.linear_routers))
    if (is_matrix and is_linear and not is_table) or name.endswith(facts.linear_subclasses):
        return "linear"
    if is_linear and name.endswith(".weight") and len(tensor.shape) > 2 and not tensor.stacked:
        return "convolution"
    if is_matrix and component == "router":
        return "router"
    if is_matrix and is_table and name not in linear:
        return "embedding"
    is_expert = component == "experts" and len(tensor.shape) > 1 and not name.endswith("bias")
    return "experts" if is_expert else ""


def find_stack(tensor: Tensor) -> tuple[object, ...]:
    """Equal for the experts' matrices that the reference stores as one parameter: those that read the hidden state."""
    layers = tuple(repeat for repeat in tensor.repeats if repeat.axis != "expert")
    if tensor.stacked:
        return (tensor.name, layers)
    return (tensor.component.endswith(".down"), tensor.name.partition("{expert}")[0], layers)


def find_weights(count: Count, modules: Modules) -> tuple[dict[str, bool], set[str]]:
    """The matrices of linear layers, each with whether it is stored [in, out], and the tables of lookups, by name."""
    linear: dict[str, bool] = {}
    tables: set[str] = set()
    unreachable = [(group.flow, "decoder") for group in count.sizes.unreachable(given("tokens", "tokens"))]
    for out, part in (*list_flows(count.sizes, count.head), *unreachable):
        for data, prefix, repeats, where in list_steps(out, part):
            for weight in data.weights[:1]:
                name = locate_weight(weight, prefix, repeats, where).name
                if isinstance(data.operation, Linear):
                    linear |= dict.fromkeys(name_in_reference(name, modules), data.operation.transposed)
                elif isinstance(data.operation, Lookup):
                    tables.add(name)
    return linear, tables


def make_site(tensor: Tensor, kind: str, *, transposed: bool = False) -> Site:
    outputs, *inputs = reversed(tensor.shape) if transposed else tensor.shape
    name = tensor.name.removesuffix(".weight")
    return Site(name, tensor.component, kind, tensor.shape, prod(inputs), outputs, tensor.copies)


def stack_experts(tensors: Sequence[Tensor]) -> Site:
    """One parameter of the reference: the matrices that a checkpoint stores as one, or one per expert."""
    first = tensors[0]
    rows = {tensor.name.removesuffix(".weight").rpartition(".")[2]: tensor.shape[0] for tensor in tensors}
    if first.stacked:
        *several, a, b = first.shape
        name, n = first.name.removesuffix(".weight"), prod(several)
        return Site(name, first.component, "experts", first.shape, b, a, first.copies, n, tuple(rows))
    n = sum(repeat.count for tensor in tensors for repeat in tensor.repeats if repeat.axis == "expert") // len(rows)
    copies = prod(repeat.count for repeat in first.repeats if repeat.axis != "expert")
    outputs, inputs = sum(rows.values()), first.shape[1]
    name = first.name.partition("{expert}")[0] + "+".join(rows)
    return Site(name, first.component, "experts", (n, outputs, inputs), inputs, outputs, copies, n, tuple(rows))


def choose_sites(
    count: Count, sites: Sequence[Site], targets: Sequence[str], *, is_lora: bool
) -> tuple[dict[Site, int], list[str]]:
    """{layer: factor of the rank} for the layers that the targets name, and notes.

    Raises: ParamcountError for a target that names no layer.
    """
    names_experts = is_lora and count.sizes.adapts_experts
    chosen: dict[Site, int] = {}
    former: dict[str, None] = {}  # names of experts and router before transformers 5
    old_names = {"gate", *(find_former(sites) or FORMER)} if names_experts else set()
    for target in targets:
        if target.lower() == ALL_LINEAR:
            linear = [site for site in sites if site.kind == "linear" and not site.is_head]
            former |= dict.fromkeys(sorted(old_names))
            found = dict.fromkeys(find_by_leaf(count, sites, linear, old_names) if old_names else linear, 1)
        elif target in GROUPS:
            found = {site: 1 for site in sites if site.component.partition(".")[0] in GROUPS[target]}
            if target != "experts" and target != "router":
                found = {site: 1 for site in found if site.kind == "linear"}
        elif target.rpartition(".")[2] in old_names:
            former[target.rpartition(".")[2]] = None
            continue
        else:
            found = {site: 1 for site in sites if site.matches(target)}
        if not found:
            raise_unknown(count, sites, target)
        chosen |= found
    if not former:
        return chosen, []
    chosen |= choose_former(sites, tuple(former))
    return chosen, [*describe_former(sites, chosen, tuple(former))]


def find_by_leaf(count: Count, sites: Sequence[Site], linear: Iterable[Site], left_out: Container[str]) -> list[Site]:
    """All layers whose last names are those of linear layers: how peft chooses them if it adapts experts as well.

    Raises: ParamcountError if other modules have such names, which peft refuses.
    """
    leaves = {site.leaf for site in linear if site.leaf not in left_out}
    found = [site for site in sites if site.leaf in leaves]
    names = [tensor.name.split(".")[:-1] for tensor in list_reference_tensors(count)]
    modules = {".".join(name[: n + 1]) for name in names for n in range(len(name))}
    for module in sorted(modules - {site.name for site in found}):
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
    """The names of the experts' matrices in checkpoints."""
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
        elif site.leaf == "gate" and "gate" in names:
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


def raise_unknown(count: Count, sites: Sequence[Site], target: str) -> NoReturn:
    """Raises: ParamcountError, with the names that exist."""
    if target in GROUPS:
        raise ParamcountError(f"no linear layer belongs to {target}", where="targets")
    if target in list_module_names(list_reference_tensors(count)):
        raise ParamcountError(f"{target} is not a linear layer or an embedding", where="targets")
    names = tuple(dict.fromkeys(site.leaf for site in sites if site.kind in ("linear", "embedding")))
    raise ParamcountError(
        f"no module is named {quote(target)}",
        where="targets",
        expected=f"{ALL_LINEAR}, {', '.join(GROUPS)}, or names among {', '.join(names)}",
        nearest=find_nearest(target, (ALL_LINEAR, *GROUPS, *names)),
    )


def list_module_names(tensors: Iterable[Tensor]) -> tuple[str, ...]:
    """The last parts of the names of all modules with weights."""
    modules = [tensor.name.rpartition(".")[0] for tensor in tensors if tensor.part != "mtp"]
    return tuple(dict.fromkeys(module.rpartition(".")[2] for module in modules if module))
