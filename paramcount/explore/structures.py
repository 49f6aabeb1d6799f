"""The structure of a model as data: its sizes, tensors, caches, FLOPs and checks, with polynomials in its sizes.

A page evaluates them for any values of the sizes. Nothing here is a second declaration: everything is read off the
flow with symbols in place of sizes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import reduce
from typing import Any

from paramcount.costs.absorption import absorb_up_projections
from paramcount.costs.caches import CacheGroup, list_flow_groups, merge_groups
from paramcount.costs.dtypes import parse_weight_format
from paramcount.costs.sharding import find_decoder, find_size_names, is_replicated
from paramcount.costs.weights import store_weights
from paramcount.counting.components import locate_component
from paramcount.counting.sum_weights import STRUCTURE_ERRORS, list_flows, list_numbers, make_symbolic, sum_weights
from paramcount.explaining.pieces import walk_model
from paramcount.explore.conditions import NoConditionsError, derive_conditions
from paramcount.explore.flow import CONTEXT, derive_flow
from paramcount.explore.packings import Packings
from paramcount.explore.sharing import is_divided
from paramcount.flow import Size, TensorRow, list_rows
from paramcount.output.layer_kinds import describe_kind
from paramcount.sizes import Sizes, inner_configs
from paramcount.sizes.values import format_size
from paramcount.sweeping.validity import find_limits, list_all_checks
from paramcount.symbolic.polynomials import Condition, Polynomial, decide_by
from paramcount.tracing.trace import Step
from paramcount.zoo import Model, count_model
from paramcount.zoo.what_if import get_size, list_paths

Data = dict[str, Any]
LARGEST_EXACT = 2**53  # of JavaScript's numbers


def export_structure(model: Model, packings: Packings) -> Data:
    """The structure of a model. `sizes`: [path, least, most] of each, or [path] if it must keep its value."""
    sizes = model.sizes
    walk = walk_model(model.sizes, model.reading.head)
    paths = [path for path in walk.values if find_limits(sizes, path)]
    checks, fixed = export_checks(sizes, paths)
    settled = make_symbolic(sizes, False, concrete=walk.fixed)
    share_settings(settled, sizes)
    encode = Encoder(list(walk.values))
    float32 = find_float32(model)
    with decide_by(list_numbers(sizes)) as decisions:
        sums = sum_weights(walk.c, model.reading.head)
        tensors = [
            export_tensor(row, encode, row.name in float32) | export_packings(row, encode, packings, sizes)
            for out, part in list_flows(walk.c, model.reading.head)
            for row in list_rows(out, part)
        ]
        caches = export_caches((settled, walk.c), model.reading.head, encode)
        flow = export_flow(settled, model.reading.head, encode)
    return {
        "architecture": type(sizes).__name__,
        "sizes": [
            [path, *(find_limits(sizes, path) or ())] if path in paths and path not in fixed else [path]
            for path in walk.values
        ],
        "structure": {
            path: format_size(get_size(sizes, path)) for path in list_paths(sizes) if path not in walk.values
        },
        "tensors": tensors,
        "heads": export_heads(sizes, list(walk.values)),
        "caches": caches,
        "flow": flow or export_only_flow(sizes, model.reading.head, encode),
        "checks": [*checks, *map(export_condition, decisions.conditions)],
        "formulas": {name: str(n) for name, n in sums.components.items()},
        "fixed": dict(walk.fixed),
        **({"conditions": list(map(str, decisions.conditions))} if decisions.conditions else {}),
    }


class Encoder:
    """Polynomials as lists of terms [coefficient, index of a size, …]; unknown names are indices after the sizes."""

    def __init__(self, names: Sequence[str]) -> None:
        self.index = {name: i for i, name in enumerate(names)}

    def __call__(self, size: Any) -> Any:
        """A number, or the terms of a polynomial."""
        if not isinstance(size, Polynomial):
            return encode_integer(int(size))
        terms = [
            [encode_integer(coefficient), *(self.index[name] for name, power in monomial for _ in range(power))]
            for monomial, coefficient in sorted(size.terms.items())
        ]
        if not terms or (len(terms) == 1 and len(terms[0]) == 1):
            return terms[0][0] if terms else 0
        return terms

    def extend(self, names: Iterable[str]) -> Encoder:
        """The same with more names."""
        return Encoder([*self.index, *names])


def encode_integer(n: int) -> int | str:
    """An integer for JSON; a string where JavaScript's numbers are not exact."""
    return n if abs(n) < LARGEST_EXACT else str(n)


def is_shared(structure: Data) -> bool:
    """Whether a structure is that of all models with its flags, rather than one for some values of sizes."""
    return not structure["fixed"] and "conditions" not in structure and "only" not in (structure["flow"] or ())


def share_settings(symbolic: Any, sizes: Sizes) -> None:
    """Give symbolic sizes the settings of the model, which no count depends on."""
    symbolic.keep_settings(sizes.settings)
    for name in inner_configs(type(sizes)):
        if isinstance(part := getattr(sizes, name), Sizes):
            share_settings(getattr(symbolic, name), part)


def find_float32(model: Model) -> frozenset[str]:
    """The names of the tensors that stay in FP32 where the others are BF16."""
    stored = store_weights(count_model(model), parse_weight_format("bf16"))
    return frozenset(row.tensor.name for row in stored if row.packing.format == "F32")


def export_heads(sizes: Sizes, paths: Sequence[str]) -> Data:
    """The numbers of heads that tensor parallelism divides: indices of sizes, or numbers that do not vary."""
    block, language = find_decoder(sizes)
    prefix = f"{block}." if block else ""
    names = find_size_names(language)
    return {
        what: {"index": paths.index(prefix + name)} if prefix + name in paths else {"number": getattr(language, name)}
        for what in ("n_heads", "n_kv_heads")
        if (name := names[what])
    }


def export_tensor(row: TensorRow, encode: Encoder, is_float32: bool) -> Data:
    """A tensor as data; keys that are missing have the usual value."""
    copies, active, least = row.multiplicity
    shares = [(*locate_component(row.part, name), encode(n)) for name, n in row.shares]
    tensor: Data = {
        "name": row.name,
        "shape": [encode(n) for n in row.matrix],
        "part": row.part,
        "shares": shares,
        "copies": encode(copies),
    }
    if row.layer is not None:
        tensor["layers"] = [encode(row.layer.count), describe_kind(row.layer.label)]
    if row.expert is not None:
        tensor["experts"] = encode(row.expert.count)
        tensor["active"] = encode(active)
        tensor["least"] = encode(least)
    if row.role != "parameter":
        tensor["role"] = row.role
    if row.tied_to is not None:
        tensor["tied"] = row.tied_to
    if is_float32:
        tensor["float32"] = True
    if is_replicated(row.component, row.part):
        tensor["replicated"] = True
    return tensor


def export_packings(row: TensorRow, encode: Encoder, packings: Packings, sizes: Sizes) -> Data:
    """The packings of a tensor, and its shape and copies as stored if experts share one tensor."""
    if not row.is_counted:
        return {}
    found: Data = {"packings": packings.add_tensor(sizes, row)}
    if row.stacked is not None:
        found["stored"] = [encode(n) for n in row.shape]
        found["files"] = encode(row.copies)
    return found


def export_caches(symbolic: Iterable[Sizes], head: bool, encode: Encoder) -> list[Data] | None:
    """What layers keep for later tokens, from the first sizes with which it is a polynomial; None if there are none."""
    for sizes in symbolic:
        with suppress(*STRUCTURE_ERRORS):
            return [export_cache(group, encode) for group in merge_groups(list_flow_groups(sizes, head))]
    return None


def export_cache(group: CacheGroup, encode: Encoder) -> Data:
    return {
        "what": group.what,
        "kind": group.kind,
        "layers": encode(group.layers),
        "shapes": [[encode(n) for n in shape] for shape in group.shapes],
        "divided": [is_divided(len(shape), group.is_state) for shape in group.shapes],
        "stream": group.stream,
        "longest": None if group.longest is None else encode(group.longest),
        "block": encode(group.block),
        "front": [rows if isinstance(rows, str) else encode(rows) for rows in group.front],
    }


def export_flow(symbolic: Sizes, head: bool, encode: Encoder) -> Data | None:
    """The steps of the forward pass; None if they branch on a size. `decodes`: whether they decode one token, or read a
    whole text."""
    flow = derive_flow(symbolic, head)
    if flow is None:
        return None
    extended = encode.extend([CONTEXT, *flow.windows])
    absorbed = absorb_up_projections(flow.steps) if flow.decodes else {}
    return {
        "steps": [export_step(step, extended, absorbed.get(i)) for i, step in enumerate(flow.steps)],
        "windows": [encode(n) for n in flow.windows.values()],
        "decodes": flow.decodes,
    }


def export_only_flow(sizes: Sizes, head: bool, encode: Encoder) -> Data | None:
    """The steps of one model only, if they branch on a size. `only`: the values of its sizes."""
    flow = export_flow(sizes, head, encode)
    return flow and flow | {"only": [encode_integer(get_size(sizes, path)) for path in encode.index]}


def export_step(step: Step, encode: Encoder, absorbed: Size | None) -> Data:
    """A step as data. `products`: multiply-adds in one layer; null if they depend on an input other than text.
    `absorbed`: the same if engines compute it in another way.
    """
    extra = {} if absorbed is None else {"absorbed": encode(absorbed)}
    return extra | {
        "text": step.text,
        "component": step.component.partition(".")[0],
        "inputs": [export_shape(shape, encode) for shape in step.inputs],
        "weights": [[weight.name, export_shape(weight.shape, encode)] for weight in step.weights],
        "out": export_shape(step.out, encode),
        "scopes": [
            [scope.axis, encode(scope.copies), encode(scope.active), describe_kind(scope.kind), scope.name]
            for scope in step.scopes
        ],
        "reads": list(step.reads),
        "products": None if step.multiply_adds is None else encode(step.multiply_adds),
    }


def export_shape(shape: Sequence[Any], encode: Encoder) -> list[Any]:
    """A shape whose sizes are numbers, polynomials, or in a list of one element the name of an input's length."""
    return [[n] if isinstance(n, str) else encode(n) for n in shape]


def export_condition(condition: Condition) -> Any:
    """A check that the same sizes are equal as in the model, without which it has other tensors."""
    difference = condition.difference
    other = condition._replace(is_zero=not condition.is_zero)
    error = {"where": difference.names[0], "text": [f"{other} changes the tensors (expected {condition})"]}
    is_zero = ["==", make_tree(difference), 0]
    return [is_zero, None, error] if condition.is_zero else [is_zero, error, None]


def make_tree(polynomial: Polynomial) -> Any:
    """A polynomial as the expression that a check compares."""
    products = []
    for monomial, coefficient in sorted(polynomial.terms.items()):
        factors = [coefficient, *(name for name, power in monomial for _ in range(power))]
        products.append(reduce(lambda left, right: ["*", left, right], factors))
    return reduce(lambda left, right: ["+", left, right], products)


def export_checks(sizes: Sizes, paths: Sequence[str]) -> tuple[list[Any], set[str]]:
    """(the checks as trees, the sizes that must keep their value because a check is no such tree)."""
    fixed: set[str] = set()
    while True:
        varying = frozenset(paths) - fixed
        try:
            trees = [derive_conditions(check, sizes, varying) for check in list_all_checks(sizes)]
        except NoConditionsError as error:
            fixed |= error.paths
            continue
        return [tree for tree in trees if tree is not None], fixed
