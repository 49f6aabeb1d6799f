"""The format of a model's weights: which one is chosen, how its tensors are stored, and what the usual ones take."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from typing import NamedTuple

from paramcount.costs.dtypes import parse_weight_format
from paramcount.costs.sharding import StoredRows
from paramcount.costs.weights import (
    STORED,
    WeightGroup,
    describe_weights,
    group_weights,
    split_files,
    store_weights,
    sum_mtp,
)
from paramcount.counting import Count
from paramcount.counting.quantisation.storage import find_plan, read_storage
from paramcount.errors import ParamcountError
from paramcount.formats.quantization_config import WeightDtype
from paramcount.zoo import Model, count_model
from paramcount.zoo.model import is_quantised

ALTERNATIVES = ("f32", "bf16", "fp8", "int8", "int4", "nf4", "q4_k_m")  # formats that every result lists


class WeightCost(NamedTuple):
    """The weights in one format."""

    dtype: str  # for people: "INT4 (group 128)"
    weights_bytes: int  # of a GGUF mix: the model's file, as llama.cpp prints it
    mmproj_bytes: int  # of a GGUF mix: vision and audio encoders, which are in a file of their own
    mtp_bytes: (
        int  # of a GGUF mix: MTP layers in the model's file, included in its bytes, which llama.cpp does not load
    )
    note: str  # what the format leaves in a higher precision: "embedding and norm in BF16"


def store_model(model: Model, format: WeightDtype, overrides: Mapping[str, WeightDtype]) -> StoredRows:
    """How a model's tensors are stored, those that llama.cpp's converter adds included."""
    return store_anew(model, format, overrides) if overrides else store_once(model, format)


@lru_cache(maxsize=16)
def store_once(model: Model, format: WeightDtype) -> StoredRows:
    """The same object for the same model and format, with the shares that were computed from it."""
    return store_anew(model, format, {})


def store_anew(model: Model, format: WeightDtype, overrides: Mapping[str, WeightDtype]) -> StoredRows:
    count = count_model(model)
    stored = store_weights(count, format, overrides)
    if format.mix:
        from paramcount.costs.gguf_mixes import list_rope_tables

        stored += list_rope_tables(model.sizes, count.architecture)
    return StoredRows(stored)


def choose_format(model: Model, dtype: object) -> WeightDtype:
    """The format that the user names; otherwise the one that the config states; otherwise BF16."""
    if dtype is not None:
        return parse_weight_format(dtype)
    if not is_quantised(model):
        return parse_weight_format("bf16")
    try:
        plan = find_plan(model.release, model.storage_keys)
        read_storage(model.sizes, model.release, model.storage_keys, count_model(model).tensors)
    except ParamcountError as error:
        raise ParamcountError(f"{error}; choose a dtype", where=f"{model.id}: quantization_config") from None
    return parse_weight_format("bf16") if plan is None else WeightDtype(STORED, label_plan(plan.text), plan)


def label_plan(text: str) -> str:
    """The label of a stored format.

    >>> label_plan("GPTQ 4-bit, groups of 128")
    'GPTQ 4-bit (group 128, as stored)'
    """
    name, comma, detail = text.replace("groups of", "group").partition(", ")
    return f"{name} ({detail}{comma}as stored)"


def list_formats(count: Count, chosen: WeightDtype, weights: tuple[WeightGroup, ...]) -> tuple[WeightCost, ...]:
    """The weights in the usual formats, and in the chosen one: in place of an equal one, otherwise first."""
    found = []
    for format in map(parse_weight_format, ALTERNATIVES):
        with suppress(ParamcountError):  # llama.cpp does not support the model
            groups = weights if format == chosen else group_weights(store_weights(count, format))
            found.append((chosen if groups == weights else format, groups))
    costs = []
    for format, groups in found if (chosen, weights) in found else ((chosen, weights), *found):
        inside, mmproj_bytes = split_files(groups, format)
        mtp_bytes = sum_mtp(count, format)
        weights_bytes = sum(group.bytes for group in inside) + mtp_bytes
        costs.append(WeightCost(format.label, weights_bytes, mmproj_bytes, mtp_bytes, describe_weights(groups, format)))
    return tuple(costs)
