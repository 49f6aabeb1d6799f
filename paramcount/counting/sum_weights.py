"""Parameters of a model per part and component, summed over its weights.

If a structure (an architecture and its flags) repeats, its weights are summed once with symbols for sizes. Further
configs with the same structure only evaluate the resulting polynomials.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterator, Mapping, Sequence
from math import prod
from operator import attrgetter
from typing import Any, NamedTuple

from paramcount.counting.components import locate_component
from paramcount.errors import ParamcountError
from paramcount.flow import Data, Size, given, list_rows, list_steps
from paramcount.sizes import Sizes, inner_configs

WALKS_BEFORE_DERIVING = 2  # deriving polynomials pays off from the third config of a structure
NO_POLYNOMIALS = -1  # the structure depends on the value of a size
STRUCTURE_ERRORS = (ParamcountError, TypeError, AttributeError)  # raised if a declaration branches on a symbol
MAX_STRUCTURES = 5000  # about 6 KB each
MOST_VARIANTS = 8  # of a structure, by which of its sizes are equal
EXCLUDED = ("buffer", "mtp", "mtp_buffer", "mtp_copy")  # not included in the total


class Sums(NamedTuple):
    """Sums over the weights of one declaration."""

    components: Mapping[str, Size]
    active: Mapping[str, Size]  # active parameters, at least of the components that have inactive ones
    details: Mapping[str, Size]
    parts: Mapping[str, Size]
    excluded: Mapping[str, Size]  # by each name in EXCLUDED
    tied: bool
    active_slack: Size = 0  # maximum minus minimum of active parameters, if the number of active experts varies


def list_flows(sizes: Sizes, head: bool = True) -> Iterator[tuple[Data, str]]:
    """The forward passes of the model and of its MTP layers, each with the default part of its weights.

    `head`: include the LM head.
    """
    tokens = given("tokens", "tokens")
    out = sizes.task_forward(tokens) if head else sizes.body(tokens)
    if getattr(sizes, "language", sizes).is_causal in (False, None):
        show_later_tokens(out)
    yield out, "decoder"
    mtp = sizes.mtp(tokens)
    if mtp is not None:
        yield mtp, "mtp"


def list_weight_flows(sizes: Sizes, head: bool = True) -> Iterator[tuple[Data, str]]:
    """The same without settings, on which no weight depends: they may change which layers are of one kind."""
    return list_flows(sizes.without_document(), head)


def show_later_tokens(out: Data) -> None:
    """Let queries attend to later tokens, unless they attend to chunks: the reference masks those in any case.

    Source: create_causal_mask, create_sliding_window_causal_mask and create_chunked_causal_mask of the reference.
    """
    from paramcount.flow import ChooseTokens, Chunk, Hide

    for data, _, _, part in list_steps(out):
        operation = data.operation
        if part != "decoder":
            continue
        if isinstance(operation, Hide) and operation.mask.is_causal and not operation.mask.find(Chunk):
            data.operation = operation.with_changes(mask=operation.mask.show_later())
        elif isinstance(operation, ChooseTokens) and operation.causal:
            data.operation = operation.with_changes(causal=False)


def sum_weights(sizes: Sizes, head: bool) -> Sums:
    """The sums over all weights, as ints, int64 arrays or polynomials, depending on the sizes."""
    sums: dict[tuple[str, str], list[Size]] = {}
    excluded: dict[str, Size] = dict.fromkeys(EXCLUDED, 0)
    tied = False
    active_slack: Size = 0
    for out, flow_part in list_weight_flows(sizes, head):
        for row in list_rows(out, flow_part):
            copies, active, least = row.multiplicity
            kind = row.kind
            if kind == "total":
                if active is not least:
                    active_slack += prod(row.matrix) * (active - least)
                for component, elements in row.shares:
                    pair = sums.setdefault((row.part, component), [0, 0])
                    pair[0] += elements * copies
                    pair[1] += elements * active
            elif kind == "tied":
                tied = tied or row.component == "lm_head"
            else:
                excluded[kind] += prod(row.matrix) * copies
    return group_sums(sums, excluded, tied, active_slack)


def group_sums(
    sums: Mapping[tuple[str, str], Sequence[Size]], excluded: Mapping[str, Size], tied: bool, active_slack: Size
) -> Sums:
    """The sums by component, detail and part. `sums`: {(part, component): (parameters, active parameters)}."""
    components: dict[str, Size] = {}
    active_components: dict[str, Size] = {}
    details: dict[str, Size] = {}
    parts: dict[str, Size] = {}
    for (part, name), (n, active) in sums.items():
        component, detail = locate_component(part, name)
        components[component] = components.get(component, 0) + n
        active_components[component] = active_components.get(component, 0) + active
        if detail != component:
            details[detail] = details.get(detail, 0) + n
        parts[part] = parts.get(part, 0) + n
    return Sums(components, active_components, details, parts, excluded, tied, active_slack)


def cached_sums(sizes: Sizes, head: bool = True) -> Sums:
    """The sums of one config, evaluated from its structure's polynomials if the structure occurred often enough."""
    for fixed_numbers in (False, True):  # some structures depend on a number of layers, heads or experts
        key = (head, fixed_numbers, get_structure(sizes, fixed_numbers))
        entry = _structures.get(key, 0)
        if isinstance(entry, int) and 0 <= entry < WALKS_BEFORE_DERIVING:
            if len(_structures) >= MAX_STRUCTURES:
                _structures.clear()
            _structures[key] = entry + 1
            return sum_weights(sizes, head)
        if entry == WALKS_BEFORE_DERIVING:
            compiled = derive_polynomials(sizes, head, fixed_numbers)
            entry = _structures[key] = [compiled] if compiled else NO_POLYNOMIALS
        if isinstance(entry, list):
            for compiled in entry:
                if not compiled.are_zero or compiled.holds(sizes):
                    return compiled.evaluate(sizes)
            if len(entry) < MOST_VARIANTS and (compiled := derive_polynomials(sizes, head, fixed_numbers)):
                entry.append(compiled)
            return sum_weights(sizes, head)
    return sum_weights(sizes, head)


def get_structure(sizes: Sizes, fixed_numbers: bool) -> Hashable:
    """Everything about a config that is not a symbol. Configs with equal structures have the same polynomials."""
    fields = sizes.__dict__
    if inner := inner_configs(type(sizes)):
        blocks = [name for name in inner if fields[name] is not None]
        fields = {**fields, **{name: get_structure(fields[name], fixed_numbers) for name in blocks}}
    if fixed_numbers:
        structure = [... if is_symbolic(name, value, fixed_numbers) else value for name, value in fields.items()]
    else:
        structure = [... if type(value) is int else value for value in fields.values()]
    return (type(sizes), *structure)


def is_symbolic(name: str, value: object, fixed_numbers: bool) -> bool:
    """Whether a field becomes a symbol. `fixed_numbers`: numbers of layers, heads and experts (n_*) do not."""
    return type(value) is int and not (fixed_numbers and name.startswith("n_"))


class CompiledSums(NamedTuple):
    """The sums of a structure as compiled polynomials, ready to evaluate for many configs."""

    get_sizes: Callable[[Sizes], tuple[int, ...]]
    compute: Callable[..., tuple[int, ...]]  # all sums, from these sizes
    compare: Callable[..., tuple[int, ...]]  # the differences of sizes, each of which is zero or not
    are_zero: tuple[bool, ...]  # these differences: other sizes have other polynomials
    names: tuple[tuple[str, ...], ...]  # of the sums, for each mapping of `Sums`
    tied: bool

    def holds(self, sizes: Sizes) -> bool:
        """Whether the polynomials are those of a config with this structure."""
        differences = self.compare(*self.get_sizes(sizes))
        return all((n == 0) == is_zero for n, is_zero in zip(differences, self.are_zero))

    def evaluate(self, sizes: Sizes) -> Sums:
        values = self.compute(*self.get_sizes(sizes))
        remaining = iter(values)
        components, active, details, parts, excluded = [dict(zip(names, remaining)) for names in self.names]
        return Sums(components, active, details, parts, excluded, self.tied, values[-1])


_structures: dict[Hashable, int | list[CompiledSums]] = {}


def derive_polynomials(sizes: Sizes, head: bool, fixed_numbers: bool) -> CompiledSums | None:
    """The compiled polynomials of a structure, for configs in which the same sizes are equal as in this one.

    None if it depends on the value of a size otherwise.
    """
    from paramcount.symbolic.compiled import arrange, compile_trees
    from paramcount.symbolic.polynomials import decide_by, has_same_terms, to_polynomial

    try:
        with decide_by(list_numbers(sizes)) as decisions:
            sums = sum_weights(make_symbolic(sizes, fixed_numbers), head)
    except STRUCTURE_ERRORS:
        return None
    active = {name: n for name, n in sums.active.items() if not has_same_terms(n, sums.components[name])}
    tables = (sums.components, active, sums.details, sums.parts, sums.excluded)
    polynomials = [*(n for table in tables for n in table.values()), sums.active_slack]
    compared = [condition.difference for condition in decisions.conditions]
    names = sorted({name for p in (*polynomials, *compared) if type(p) is not int for name in p.names})
    if len(names) < 2:  # attrgetter returns a tuple only for two names or more
        return None
    trees = [arrange(to_polynomial(p).terms) for p in polynomials]
    return CompiledSums(
        attrgetter(*names),
        compile_trees(trees, names),
        compile_trees([arrange(difference.terms) for difference in compared], names),
        tuple(condition.is_zero for condition in decisions.conditions),
        tuple(map(tuple, tables)),
        sums.tied,
    )


def list_numbers(sizes: Sizes, prefix: str = "") -> dict[str, int]:
    """Every integer size, including the sizes of inner configs such as "vision.n_layers"."""
    numbers: dict[str, int] = {}
    for name, value in sizes.__dict__.items():
        if name in inner_configs(type(sizes)) and value is not None:
            numbers |= list_numbers(value, f"{prefix}{name}.")
        elif type(value) is int:
            numbers[prefix + name] = value
    return numbers


def make_symbolic(sizes: Sizes, fixed_numbers: bool, *, concrete: Container[str] = ()) -> Sizes:
    """The same config with a symbol for each size; flags and other structure keep their values.

    `fixed_numbers`: fields named n_* keep their values too. `concrete`: paths of further fields that keep their values,
    such as "vision.n_layers".
    """
    from paramcount.symbolic.polynomials import make_symbols

    def replace(path: str, value: Any) -> Any:
        name = path.rpartition(".")[2]
        return make_symbols(path)[0] if is_symbolic(name, value, fixed_numbers) and path not in concrete else value

    return replace_sizes(sizes, replace)


def replace_sizes(sizes: Sizes, replace: Callable[[str, Any], Any], prefix: str = "") -> Sizes:
    """The same config with replace(path, value) in place of each value; paths are such as "vision.n_layers"."""
    inner = inner_configs(type(sizes))
    fields = {
        name: replace_sizes(value, replace, f"{prefix}{name}.")
        if name in inner and isinstance(value, Sizes)
        else replace(prefix + name, value)
        for name, value in sizes.__dict__.items()
    }
    return sizes.make(fields)
