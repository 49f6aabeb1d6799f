"""The structure of a model as data: its sizes, tensors, caches, FLOPs and checks, as expressions of its sizes.

A page evaluates them for any values of the sizes. Nothing here is a second declaration: everything is read off the
flow with symbols in place of sizes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paramcount.costs.absorption import absorb_up_projections
from paramcount.costs.sharding import ShardShape
from paramcount.counting.count import build_count
from paramcount.counting.sum_weights import Sums, list_numbers, make_symbolic, sum_weights
from paramcount.counting.tensors import list_weight_rows
from paramcount.explaining.lessons import find_lesson
from paramcount.explaining.pieces import walk_model
from paramcount.explore.conditions import PASSES, NoConditionsError, derive_conditions
from paramcount.explore.flow import CONTEXT, SymbolicFlow, derive_flow
from paramcount.explore.packings import Packings
from paramcount.explore.sharing import derive_check, export_caches, export_limits, find_shape, list_caches, share_tensor
from paramcount.flow import Size, TensorRow
from paramcount.flow.operation import Form
from paramcount.huggingface.validity import find_limits, list_all_checks
from paramcount.output.layer_kinds import describe_kind
from paramcount.output.weight_names import name_tensor
from paramcount.sizes import Sizes, inner_configs
from paramcount.sizes.values import format_size
from paramcount.symbolic.polynomials import Condition, decide_by, has_same_terms, make_tree
from paramcount.symbolic.trees import Literal, TreeOperation, to_json
from paramcount.tracing.trace import Step, count_layers
from paramcount.zoo import Model
from paramcount.zoo.what_if import get_size, list_paths

Data = dict[str, Any]
COUNTS = ("total", "active", "active_min", "buffers", "mtp")
TEXT_PARTS = ("decoder", "encoder", "cross_attention")
BYTES = {"FP32": 4, "BF16": 2}  # of a value in the formats that need no packing


def export_structure(model: Model, packings: Packings) -> Data:
    """The structure of a model. `sizes`: [path, least, most] of each, or [path] if it must keep its value."""
    sizes, head = model.sizes, model.reading.head
    walk = walk_model(sizes, head)
    paths = [path for path in walk.values if find_limits(sizes, path)]
    checks, fixed = export_checks(sizes, paths)
    settled = make_symbolic(sizes, False, concrete=walk.fixed)
    share_settings(settled, sizes)
    shape = find_shape(sizes, walk.c)
    with decide_by(list_numbers(sizes)) as decisions:
        sums = sum_weights(walk.c, head)
        rows = list(list_weight_rows(walk.c, head))
        flow = export_flow(settled, head)
        caches = list_caches((settled, walk.c), head)
        limits = export_limits((settled, walk.c), head)
    return {
        "architecture": type(sizes).__name__,
        "sizes": [
            [path, *(find_limits(sizes, path) or ())] if path in paths and path not in fixed else [path]
            for path in walk.values
        ],
        "structure": {
            path: format_size(get_size(sizes, path)) for path in list_paths(sizes) if path not in walk.values
        },
        "counts": export_counts(sums, head),
        "tied": sums.tied,
        "tensors": [export_tensor(row) | export_bytes(row, packings, sizes, shape) for row in rows],
        "sharing": to_json(derive_check(shape)),
        **limits,
        "caches": None if caches is None else export_caches(caches),
        "flow": flow or export_only_flow(sizes, head, list(walk.values)),
        "checks": [*checks, *map(export_condition, decisions.conditions)],
        "formulas": {name: str(n) for name, n in sums.components.items()},
        "fixed": dict(walk.fixed),
        **({"conditions": list(map(str, decisions.conditions))} if decisions.conditions else {}),
    }


def encode(size: Size) -> Any:
    """A number or a polynomial as an expression in JSON."""
    return to_json(make_tree(size))


def export_counts(sums: Sums, head: bool) -> Data:
    """The counts that the page shows. `active_components`: those that differ from `components`."""
    count = build_count(sums, None, "", head)
    active = {name: n for name, n in sums.active.items() if not has_same_terms(n, sums.components[name])}
    tables = {
        "components": count.components,
        "active_components": active,
        "details": count.details,
        "parts": sums.parts,
    }
    encoded = {name: {key: encode(n) for key, n in table.items()} for name, table in tables.items()}
    return {name: encode(getattr(count, name)) for name in COUNTS} | encoded


def is_shared(structure: Data) -> bool:
    """Whether a structure is that of all models with its flags, rather than one for some values of sizes."""
    return not structure["fixed"] and "conditions" not in structure and "only" not in (structure["flow"] or ())


def share_settings(symbolic: Any, sizes: Sizes) -> None:
    """Give symbolic sizes the settings of the model, which no count depends on."""
    symbolic.keep_settings(sizes.settings)
    for name in inner_configs(type(sizes)):
        if isinstance(part := getattr(sizes, name), Sizes):
            share_settings(getattr(symbolic, name), part)


def export_tensor(row: TensorRow) -> Data:
    """A tensor as data. `component`: if the total includes it. `layers`: their number, their kind, and the stack."""
    tensor: Data = {
        "name": row.name,
        "title": name_tensor(row.name, [share.detail for share in row.split()], row.part),
        "shape": list(map(encode, row.matrix)),
        "copies": encode(row.multiplicity[0]),
        "elements": encode(row.elements),
    }
    if row.is_counted:
        tensor["part"], tensor["component"] = row.part, row.split()[0].main_component
    if row.layer is not None:
        kind = describe_kind(row.layer.label)
        tensor["layers"] = [encode(row.layer.count), kind, f"{row.name.partition('{layer}')[0]}|{kind}"]
    return tensor


def export_bytes(row: TensorRow, packings: Packings, sizes: Sizes, shape: ShardShape) -> Data:
    """The bytes of a tensor that is loaded, in each format, and on one of several GPUs.

    `shared`: an expression of the sizes and of the `bytes` of all copies. `widths`: of a value in the formats without
    packing. `packings`: functions of the axes of a tensor as stored, of which there are so many `files`.
    """
    if row.kind not in ("total", "buffer"):
        return {}
    width = BYTES["FP32" if row.float32 == "always" else "BF16"]
    found: Data = {
        "shared": to_json(share_tensor(row, shape, packings)),
        "widths": [max(width, n) for n in BYTES.values()],
        "packings": packings.add_tensor(sizes, row),
    }
    if row.stacked is not None:
        found["stored"], found["files"] = list(map(encode, row.shape)), encode(row.copies)
    return found


def export_flow(symbolic: Sizes, head: bool) -> Data | None:
    """The steps of the forward pass; None if they branch on a size. `decodes`: whether they decode one token, or read a
    whole text."""
    flow = derive_flow(symbolic, head)
    if flow is None:
        return None
    absorbed = absorb_up_projections(flow.steps) if flow.decodes else {}
    return {
        "steps": list(map(export_step, flow.steps)),
        "windows": {name: to_json(TreeOperation("min", (make_tree(n), CONTEXT))) for name, n in flow.windows.items()},
        "decodes": flow.decodes,
        "flops": export_flops(flow, absorbed),
    }


def export_only_flow(sizes: Sizes, head: bool, paths: Sequence[str]) -> Data | None:
    """The steps of one model only, if they branch on a size. `only`: the values of its sizes."""
    flow = export_flow(sizes, head)
    return flow and flow | {"only": {path: encode(get_size(sizes, path)) for path in paths}}


def export_flops(flow: SymbolicFlow, absorbed: Mapping[int, Size]) -> Data | None:
    """The FLOPs of a pass, in total and by component; None if they depend on an input other than text.

    MLA runs over the compressed latents, as engines compute it; `expanded`: as the reference does, which expands all.
    """
    components: dict[str, Size] = {}
    expanded: Size = 0
    for i, step in enumerate(flow.steps):
        if step.multiply_adds is None:
            return None
        name = step.component.partition(".")[0] or "attention"
        components[name] = components.get(name, 0) + count_flops(step, absorbed.get(i, step.multiply_adds))
        expanded += count_flops(step, step.multiply_adds)
    tables = {name: encode(n) for name, n in components.items() if not has_same_terms(n, 0)}
    return {"total": encode(sum(components.values())), "components": tables, "expanded": encode(expanded)}


def count_flops(step: Step, multiply_adds: Size) -> Size:
    return 2 * multiply_adds * count_layers(step)


def export_step(step: Step) -> Data:
    """A step as data. `products`: multiply-adds in one layer; null if they depend on an input other than text."""
    return {
        "text": step.text,
        "lesson": lesson.key if (lesson := find_lesson(step.operation, step.text, step.note)) else "",
        "component": step.component.partition(".")[0],
        "inputs": list(map(export_shape, step.inputs)),
        "weights": [[weight.name, export_shape(weight.shape)] for weight in step.weights],
        "out": export_shape(step.out),
        "axes": name_axes(step),
        "scopes": [
            [scope.axis, encode(scope.copies), encode(scope.active), describe_kind(scope.kind), scope.name]
            for scope in step.scopes
        ],
        "reads": list(step.reads),
        "products": None if step.multiply_adds is None else encode(step.multiply_adds),
        "flops": None if step.multiply_adds is None else encode(count_flops(step, step.multiply_adds)),
    }


def name_axes(step: Step) -> list[str]:
    """What the axes of a step's output are; none if they have other meanings."""
    if step.form in (Form.SCORES, Form.MASK, Form.ATTENTION_WEIGHTS):
        return ["heads", "queries", "keys"] if len(step.out) == 3 else ["queries", "keys"]
    if step.part not in TEXT_PARTS or step.mask or any(isinstance(n, str) for n in step.out):
        return []
    if len(step.out) == 1 and not step.reads:
        return ["tokens"]
    return {1: ["values"], 2: ["tokens", "values"], 3: ["tokens", "heads", "values"]}.get(len(step.out), [])


def export_shape(shape: Sequence[Any]) -> list[Any]:
    """A shape of expressions, or in a list of one element the name of an input's length."""
    return [[n] if isinstance(n, str) else encode(n) for n in shape]


def export_condition(condition: Condition) -> Any:
    """A check that the same sizes are equal as in the model, without which it has other tensors."""
    other = condition._replace(is_zero=not condition.is_zero)
    text = [f"{other} changes the tensors (expected {condition})"]
    error = Literal({"where": condition.difference.names[0], "text": text})
    is_zero = TreeOperation("=", tuple(side.factor() for side in condition.difference.split_sides()))
    return to_json(TreeOperation("if", (is_zero, *(PASSES, error)[:: 1 if condition.is_zero else -1])))


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
        return [to_json(tree) for tree in trees if tree != PASSES], fixed
