"""The bytes of a model's weights in a format, tensor by tensor."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from paramcount.costs.dtypes import WeightFormat
from paramcount.counting import Count, Tensor
from paramcount.counting.components import locate_component
from paramcount.counting.quantisation.storage import StoredTensor, list_stored
from paramcount.errors import ParamcountError, join_words


class WeightGroup(NamedTuple):
    """Weights of one component that are stored alike."""

    component: str
    format: str  # dtype or packed format: "BF16", "GPTQ 4-bit"
    parameters: int
    bytes: int  # scales and zero points included


def list_loaded(count: Count) -> list[Tensor]:
    """The tensors that inference loads: parameters once each and buffers, without MTP layers."""
    return [
        tensor
        for tensor in count.tensors
        if tensor.part != "mtp" and not tensor.tied_to and tensor.role != "legacy_buffer"
    ]


def store_weights(
    count: Count, format: WeightFormat, overrides: Mapping[str, WeightFormat] | None = None
) -> list[StoredTensor]:
    """How a model's tensors are stored in a format, or in that of their component.

    Raises: ParamcountError for an override of a component that the model does not have.
    """
    tensors = list_loaded(count)
    overrides = dict(overrides or {})
    present = dict.fromkeys(map(find_component, tensors))
    for name in overrides:
        if name not in present:
            raise ParamcountError(f"has no component {name}", where=count.id, choices=tuple(present))
    only = [name for name in format.only if name in present]
    stored: list[StoredTensor] = []
    for component in present:
        chosen = overrides.get(component, format)
        group = [tensor for tensor in tensors if find_component(tensor) == component]
        plan = chosen.plan
        if only and component not in only and component not in overrides:
            plan = plan._replace(groups=())
        stored += list_stored(count.sizes, group, plan, hypothetical=True)
    return stored


def find_component(tensor: Tensor) -> str:
    """The component of the overview that a tensor belongs to; of a fused matrix the first."""
    return locate_component(tensor.part, tensor.component)[0]


def group_weights(stored: Iterable[StoredTensor]) -> tuple[WeightGroup, ...]:
    """The same, summed by component and format; buffers are not weights."""
    sums: dict[tuple[str, str], list[int]] = {}
    for row in stored:
        if row.tensor.role == "parameter":
            sums_of_group = sums.setdefault((find_component(row.tensor), row.packing.format), [0, 0])
            sums_of_group[0] += row.values
            sums_of_group[1] += row.bytes
    return tuple(WeightGroup(*key, *values) for key, values in sums.items())


def sum_buffers(stored: Iterable[StoredTensor]) -> int:
    """Bytes of the persisted buffers, such as routing biases."""
    return sum(row.bytes for row in stored if row.tensor.role != "parameter")


def list_unpacked(groups: Iterable[WeightGroup], format: WeightFormat) -> Iterator[str]:
    """The components that a packed format leaves in a higher precision, with their dtypes: "embedding in BF16"."""
    packed = {group.packing.format for group in format.plan.groups}
    parameters: dict[str, int] = {}
    for group in groups:
        parameters[group.component] = parameters.get(group.component, 0) + group.parameters
    by_dtype: dict[str, list[str]] = {}
    for group in groups if packed else ():
        if group.format not in packed and 2 * group.parameters > parameters[group.component]:  # not just its biases
            by_dtype.setdefault(group.format, []).append(group.component)
    for dtype, components in by_dtype.items():
        yield f"{join_words(components, 'and')} in {dtype}"
