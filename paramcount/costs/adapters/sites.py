"""The layers and the parameters of a model that an adapter can be added to."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from math import prod
from typing import NamedTuple

from paramcount.costs.adapters.reference_tensors import Modules, list_reference_tensors, name_in_reference, rename
from paramcount.counting import Count
from paramcount.counting.quantisation.storage import MatrixFacts, merge_facts
from paramcount.counting.sum_weights import list_weight_flows
from paramcount.counting.tensors import iterate_names, list_unreachable
from paramcount.errors import ParamcountError
from paramcount.flow import Linear, Repeat, TableLookup, TensorRow, given
from paramcount.flow.walk import fold_weight, list_steps

MODULES = ("linear", "convolution", "embedding")  # kinds of sites that are modules of the reference
MOST_DECLARED = 1_000_000  # tensors of a model
# Components whose matrices are usually no linear layers of the reference.
NOT_LINEAR = ("experts", "router")
# Components of other tables, if their names end in ".weight": of tokens, segments and positions.
OTHER_TABLES = ("other_embedding", "position")
# The experts' matrices before transformers 5, if checkpoints do not have them one by one.
FORMER = ("gate_proj", "up_proj", "down_proj")


class Site(NamedTuple):
    """Layers of one name pattern, each of which can take an adapter."""

    row: TensorRow  # with the name and shape of the reference
    kind: str  # of module: linear | convolution | embedding; of parameter: experts | router | parameter
    copies: int
    is_transposed: bool = False  # whether the weight of a module is stored [in, out]
    former: tuple[str, ...] = ()  # names of the experts' matrices before they were stacked
    is_head: bool = False  # whether the reference returns it as its output embedding

    @property
    def name(self) -> str:
        """The name of the module, or of the parameter; "{layer}" stands for an index."""
        return self.row.name.removesuffix(".weight") if self.kind in MODULES else self.row.name

    @property
    def component(self) -> str:
        return self.row.component

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the weight; of stacked experts with their number first."""
        return self.row.shape

    @property
    def sizes(self) -> tuple[int, int, int]:
        """(experts that share one adapter, outputs, inputs). peft takes one of three dimensions for experts."""
        shape = self.row.shape
        if self.kind in MODULES:
            outputs, *inputs = reversed(shape) if self.is_transposed else shape
            return 1, outputs, prod(inputs)
        *several, outputs, d_in = (1, 1, *shape)[-max(2, len(shape)) :]
        return prod(several), outputs, d_in

    @property
    def is_down(self) -> bool:
        """Whether it is the last matrix of an MLP."""
        return self.component.endswith(".down")

    @property
    def module(self) -> str:
        """The module, or that of the parameter."""
        return self.name if self.kind in MODULES else self.name.rpartition(".")[0]

    @property
    def leaf(self) -> str:
        return self.name.rpartition(".")[2]

    def list_names(self) -> Iterator[str]:
        """The full name of each copy."""
        return iterate_names(self.name, self.row.repeats)


def ends_in(name: str, target: str) -> bool:
    """Whether a target is a name or its end, in whole words.

    >>> ends_in("layers.0.mlp.gate", "mlp.gate"), ends_in("layers.0.mlp.shared_gate", "gate")
    (True, False)
    """
    return f".{name}".endswith(f".{target}")


class LayerRange(NamedTuple):
    """What adapters of a model can be added to, in the order of the forward pass."""

    sites: tuple[Site, ...]  # experts come last
    parameters: tuple[Site, ...]  # all that the reference has, those of experts and routers as among the sites
    refused: tuple[str, ...] = ()  # last names of modules that peft refuses


def list_layers(count: Count) -> LayerRange:
    """The layers and the parameters of a model that can take an adapter.

    Raises: ParamcountError if the reference has other linear layers than its checkpoints show.
    """
    facts = merge_facts(count.sizes)
    if facts.has_other_linear_layers:
        raise ParamcountError(f"the linear layers of {count.sizes.reference} differ from its checkpoint's matrices")
    facts = rename_facts(facts)
    linear, tables = find_weights(count, facts.modules)
    sites: list[Site] = []
    parameters: list[Site] = []
    experts: dict[tuple[object, ...], list[TensorRow]] = {}
    tensors = list(list_all_tensors(count))
    if (n := sum(tensor.copies for tensor in tensors)) > MOST_DECLARED:
        raise ParamcountError(f"has {n:,} tensors", where=count.id, expected=f"at most {MOST_DECLARED:,}")
    uses = find_uses(tensors, facts.rebuilt_blocks)
    for tensor in tensors:
        kind = find_kind(tensor, facts, linear, tables)
        transposed = kind == "embedding" or linear.get(tensor.name, False)
        tensor = spread_over_uses(tensor, uses)
        if kind == "experts":
            experts.setdefault(find_stack(tensor), []).append(tensor)
            continue
        parameters.append(Site(tensor, "router" if kind == "router" else "parameter", tensor.copies))
        if kind == "router":
            sites.append(parameters[-1])
        elif kind:
            is_head = tensor.component == "lm_head" and not tensor.name.endswith(facts.linear_heads)
            sites.append(Site(tensor, kind, tensor.copies, transposed, is_head=is_head))
    stacks = [stack_experts(stacked, facts.modules) for stacked in experts.values()]
    return LayerRange((*sites, *stacks), (*parameters, *stacks), count.sizes.not_adapted)


def list_modules(layers: LayerRange) -> dict[str, Site | None]:
    """{full name: its site} of all modules with parameters, inside or themselves; None of those without an adapter."""
    modules: dict[str, Site | None] = {}
    for site in layers.sites:
        if site.kind in MODULES:
            modules |= dict.fromkeys(site.list_names(), site)
    for parameter in layers.parameters:
        for name in parameter.list_names():
            while name := name.rpartition(".")[0]:
                modules.setdefault(name, None)
    return modules


def find_uses(tensors: Iterable[TensorRow], blocks: Iterable[str]) -> dict[str, tuple[str, Repeat]]:
    """{a block's first use, with a dot: the same with {layer}, and the layers of all its uses}."""
    names = tuple(f".{block}." for block in blocks)
    layers: dict[tuple[str, str], dict[int, None]] = {}
    for tensor in tensors:
        for name in names:
            before, found, _ = tensor.name.partition(name)
            if not found or "{layer}" not in before:
                continue
            for i in tensor.repeats[0].indices:
                use = before.replace("{layer}", str(i)) + found
                first = tensor.tied_to.partition(name)[0] + found if tensor.tied_to else use
                layers.setdefault((first, before + found), {})[i] = None
    return {
        first: (pattern, Repeat("layer", len(found), len(found), runs=tuple((i, 1) for i in found)))
        for (first, pattern), found in layers.items()
    }


def spread_over_uses(tensor: TensorRow, uses: Mapping[str, tuple[str, Repeat]]) -> TensorRow:
    """The tensor in all uses of its block, if checkpoints have it only in the first one."""
    for first, (pattern, layers) in uses.items():
        if tensor.name.startswith(first):
            return tensor._replace(name=pattern + tensor.name.removeprefix(first), repeats=(layers,))
    return tensor


def rename_facts(facts: MatrixFacts) -> MatrixFacts:

    def rename_all(names: Iterable[str]) -> tuple[str, ...]:
        return tuple(new for name in names for new in name_in_reference(name, facts.modules))

    return facts._replace(
        linear_routers=rename_all(facts.linear_routers),
        linear_subclasses=rename_all(facts.linear_subclasses),
        linear_heads=rename_all(facts.linear_heads),
    )


def list_all_tensors(count: Count) -> Iterator[TensorRow]:
    """The parameters of all modules, those that are reused once, and those that no forward pass reads."""
    unread = (tensor._replace(role="parameter") for tensor, _ in list_unreachable(count.sizes, count.head))
    tensors = [*list_reference_tensors(count), *unread]
    names = {tensor.name for tensor in tensors}
    copies = merge_facts(count.sizes).table_copies
    tables = [tensor for tensor in tensors if tensor.component == "embedding" and not tensor.tied_to]
    copied = (
        table._replace(name=name, tied_to=table.name)
        for table in tables
        if (name := name_copy(table.name, copies)) and name not in names
    )
    for tensor in (*tensors, *copied):
        is_reused = tensor.tied_to == tensor.name and tensor.component != "lm_head"
        if tensor.kind in ("total", "tied") and tensor.role == "parameter" and not is_reused:
            tied_to = rename(tensor.tied_to, count.sizes.reference_names) if tensor.tied_to else None
            yield tensor._replace(name=rename(tensor.name, count.sizes.reference_names), tied_to=tied_to)


def name_copy(table: str, copies: Mapping[str, str]) -> str:
    """The name of the module with the same token embedding; empty if there is none. `copies`: as in `Sizes`.

    >>> name_copy("model.shared.weight", {"shared": "encoder.embed_tokens"})
    'model.encoder.embed_tokens.weight'
    """
    module, _, leaf = table.rpartition(".")
    found = (f"{module.removesuffix(end)}{copy}.{leaf}" for end, copy in copies.items() if ends_in(module, end))
    return next(found, "")


def find_kind(tensor: TensorRow, facts: MatrixFacts, linear: Container[str], tables: Container[str]) -> str:
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
    if is_matrix and (is_table or component in OTHER_TABLES) and name not in linear:
        return "embedding"
    is_expert = component == "experts" and len(tensor.shape) > 1 and not name.endswith("bias")
    return "experts" if is_expert else ""


def find_stack(tensor: TensorRow) -> tuple[object, ...]:
    """Equal for the experts' matrices that the reference stores as one parameter: those that read the hidden state."""
    layers = tuple(repeat for repeat in tensor.repeats if repeat.axis != "expert")
    if tensor.stacked:
        return (tensor.name, layers)
    return (tensor.component.endswith(".down"), tensor.name.partition("{expert}")[0], layers)


def find_weights(count: Count, modules: Modules) -> tuple[dict[str, bool], set[str]]:
    """The matrices of linear layers, each with whether it is stored [in, out], and the tables of lookups, by name."""
    linear: dict[str, bool] = {}
    tables: set[str] = set()
    copies = merge_facts(count.sizes).table_copies
    unreachable = [(group.flow, "decoder") for group in count.sizes.unreachable(given("tokens", "tokens"))]
    for out, part in (*list_weight_flows(count.sizes, count.head), *unreachable):
        for data, inside, repeats, where in list_steps(out, part):
            for weight in data.weights[:1]:
                name = fold_weight(weight, inside, repeats, where).name
                names = [rename(new, count.sizes.reference_names) for new in name_in_reference(name, modules)]
                if isinstance(data.operation, Linear):
                    linear |= dict.fromkeys(names, data.operation.transposed)
                elif isinstance(data.operation, TableLookup):
                    tables.update(names, filter(None, (name_copy(table, copies) for table in names)))
    return linear, tables


def stack_experts(tensors: Sequence[TensorRow], modules: Modules) -> Site:
    """One parameter of the reference: the matrices that a checkpoint stores as one, or one per expert."""
    first = tensors[0]
    rows = {tensor.name.removesuffix(".weight").rpartition(".")[2]: tensor.shape[0] for tensor in tensors}
    if first.stacked:
        # A module of all experts has its matrices as parameters, a module of one projection has a weight.
        name = first.name.removesuffix(".weight") if first.name.endswith("_proj.weight") else first.name
        former = FORMER[:2] if name.endswith(".gate_up_proj") else tuple(rows)
        return Site(first._replace(name=name), "experts", first.copies, former=former)
    repeats = [repeat for tensor in tensors for repeat in tensor.repeats if repeat.axis == "expert"]
    stacked = repeats[0]._replace(count=sum(repeat.count for repeat in repeats) // len(rows))
    leaf = "down_proj" if first.component.endswith(".down") else "gate_up_proj" if len(rows) > 1 else "up_proj"
    (name,) = name_in_reference(first.name.partition("{expert}")[0] + leaf, modules)
    layers = tuple(repeat for repeat in first.repeats if repeat.axis != "expert")
    matrix = (sum(rows.values()), first.shape[1])
    row = first._replace(name=name, matrix=matrix, splits=(), repeats=layers, stacked=stacked)
    return Site(row, "experts", row.copies, former=tuple(rows))


def list_module_names(tensors: Iterable[TensorRow]) -> tuple[str, ...]:
    """The last parts of the names of all modules with weights."""
    modules = [tensor.name.rpartition(".")[0] for tensor in tensors]
    return tuple(dict.fromkeys(module.rpartition(".")[2] for module in modules if module))
