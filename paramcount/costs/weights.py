"""The bytes of a model's weights in a format, tensor by tensor."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from paramcount.counting import Count
from paramcount.counting.components import TOWERS
from paramcount.counting.quantisation.storage import StoredTensor, list_stored
from paramcount.errors import ParamcountError, join_words
from paramcount.flow import TensorRow
from paramcount.formats.quantization_config import WeightDtype
from paramcount.formats.weights import get_label
from paramcount.formats.weights.plain import LABELS

STORED = "stored"  # the name of the format that a config states


class WeightGroup(NamedTuple):
    """Weights of one component that are stored alike."""

    component: str
    format: str  # dtype or packed format: "BF16", "GPTQ 4-bit"
    parameters: int
    bytes: int  # scales and zero points included


def store_weights(
    count: Count, format: WeightDtype, overrides: Mapping[str, WeightDtype] | None = None
) -> list[StoredTensor]:
    """How a model's tensors are stored in a format, or in that of the names in `overrides`, see dtype_choices.py.

    Raises: ParamcountError for a name that means no weights of the model.
    """
    tensors = [tensor for tensor in count.tensors if tensor.kind in ("total", "buffer")]  # without MTP layers
    if not overrides:
        return list(list_rows(count, tensors, format))
    from paramcount.costs.dtype_choices import divide_tensors

    divided = divide_tensors(count, tensors, overrides)
    mix = next((chosen.label for chosen in (format, *overrides.values()) if chosen.mix), None)
    if mix is None:
        stored = list(list_rows(count, divided[None], format))
        for name, chosen in overrides.items():
            stored += list_rows(count, divided[name], chosen._replace(only=()))
        return stored
    # The type of a tensor in a mix depends on all others.
    components = dict.fromkeys(tensor.main_component for tensor in tensors)
    for name in overrides:
        if name not in components:
            raise ParamcountError(f"{name} beside the GGUF mix {mix}", where="dtype", choices=tuple(components))
    stored = [row for row in list_rows(count, tensors, format) if row.tensor.main_component not in overrides]
    for component, chosen in overrides.items():
        rows = list_rows(count, tensors, chosen._replace(only=()))
        stored += [row for row in rows if row.tensor.main_component == component]
    return stored


def list_rows(count: Count, tensors: list[TensorRow], format: WeightDtype) -> Iterator[StoredTensor]:
    """How the tensors are stored in one format."""
    if format.mix:
        from paramcount.costs.gguf_mixes import list_mix

        mix = list_mix(count, format.mix, imatrix=format.imatrix)
        yield from (row for row in mix if row.tensor.part != "mtp")
        tensors = [tensor for tensor in tensors if tensor.part in TOWERS]  # in a file of their own, not quantised
    is_packed = {name for name in format.only if any(tensor.main_component == name for tensor in tensors)}
    plain = format.plan._replace(groups=())
    for tensor in tensors:
        plan = plain if is_packed and tensor.main_component not in is_packed else format.plan
        yield from list_stored(count.sizes, [tensor], plan, hypothetical=format.name != STORED)


def sum_mtp(count: Count, format: WeightDtype) -> int:
    """Bytes of the MTP layers in a GGUF file, which llama.cpp does not load unless it drafts with them."""
    if not format.mix or not count.mtp:
        return 0
    from paramcount.costs.gguf_mixes import list_mix

    mix = list_mix(count, format.mix, imatrix=format.imatrix)
    return sum(row.bytes for row in mix if row.tensor.part == "mtp")


def group_weights(stored: Iterable[StoredTensor]) -> tuple[WeightGroup, ...]:
    """The same, summed by component and format; buffers are not weights."""
    sums: dict[tuple[str, str], list[int]] = {}
    for row in stored:
        if row.tensor.is_counted:
            sums_of_group = sums.setdefault((row.tensor.main_component, get_label(row.packing)), [0, 0])
            sums_of_group[0] += row.values
            sums_of_group[1] += row.bytes
    return tuple(WeightGroup(*key, *values) for key, values in sums.items())


def split_files(groups: Sequence[WeightGroup], format: WeightDtype) -> tuple[tuple[WeightGroup, ...], int]:
    """(weights in the model's file, bytes of the rest): encoders beside a GGUF file have their own, called mmproj."""
    if not format.mix:
        return tuple(groups), 0
    inside = tuple(group for group in groups if group.component not in TOWERS)
    return inside, sum(group.bytes for group in groups) - sum(group.bytes for group in inside)


def sum_weights(stored: Iterable[StoredTensor], format: WeightDtype) -> int:
    """Bytes of the weights in the model's file, scales included."""
    return sum(group.bytes for group in split_files(group_weights(stored), format)[0])


def sum_buffers(stored: Iterable[StoredTensor]) -> int:
    """Bytes of the persisted buffers, such as routing biases."""
    return sum(row.bytes for row in stored if not row.tensor.is_counted)


def list_storage_notes(stored: Sequence[StoredTensor], format: WeightDtype) -> list[str]:
    """What the sizes in a format assume, and which matrices the format cannot pack."""
    if format.name == STORED or format.mix:
        return []
    notes = []
    is_stacked = any(row.tensor.stacked and row.packing.layout != "plain" for row in stored)
    if is_stacked and format.plan.scope not in ("stacks", "release"):
        notes.append(f"assumes that {format.label} packs the matrices of each expert separately")
    unfit = [row for row in stored if row.is_unfit]
    if unfit:
        names = join_words(list(dict.fromkeys(row.tensor.name.removesuffix(".weight") for row in unfit))[:3], "and")
        dtypes = join_words(list(dict.fromkeys(get_label(row.packing) for row in unfit)), "and")
        number = sum(row.copies for row in unfit)
        verb = "stays" if number == 1 else "stay"
        noun = "matrix" if number == 1 else "matrices"
        reason = f"which {format.label} cannot divide into groups or words"
        notes.append(f"{number:,} {noun} {verb} in {dtypes}, {reason}: {names}")
    return notes


def describe_weights(groups: Sequence[WeightGroup], format: WeightDtype) -> str:
    """What a packed format leaves in a higher precision: "embedding, norm and lm_head in BF16"; of a mix, its bits."""
    if format.mix:
        inside, _ = split_files(groups, format)
        bits = round(800 * sum(group.bytes for group in inside) / sum(group.parameters for group in inside))
        return f"{bits // 100}.{bits % 100:02} bits per weight"
    packed = {get_label(group.packing) for group in format.plan.groups}
    parameters: dict[str, int] = {}
    for group in groups:
        parameters[group.component] = parameters.get(group.component, 0) + group.parameters
    by_dtype: dict[str, list[str]] = {}
    for group in groups if packed else ():
        if group.format not in packed and 2 * group.parameters > parameters[group.component]:  # not just its biases
            by_dtype.setdefault(LABELS.get(group.format, group.format), []).append(group.component)
    return "; ".join(f"{join_words(components, 'and')} in {dtype}" for dtype, components in by_dtype.items())
