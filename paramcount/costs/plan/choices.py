"""What a plan chooses if the user does not: the engine for a GPU and the format of the weights, with the reasons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from paramcount.costs.caches import CacheGroup
from paramcount.costs.dtypes import parse_weight_format
from paramcount.costs.engines.engine import Engine
from paramcount.costs.engines.records import Support
from paramcount.costs.gpus import Gpu
from paramcount.costs.requests import find_engine
from paramcount.costs.weight_formats import choose_format
from paramcount.errors import ParamcountError, describe_value, join_words
from paramcount.formats.quantization_config import WeightDtype
from paramcount.formats.weights import get_format
from paramcount.zoo import Model
from paramcount.zoo.model import is_quantised

DEFAULTS = ("vllm", "sglang", "transformers")  # for weights that are not GGUF, the first that supports the model


class ReasonedChoice(NamedTuple):
    """A name, and why it was chosen."""

    name: str
    reason: str


def is_apple(gpu: Gpu) -> bool:
    return gpu.name.startswith("Apple ")


def choose_engine(
    gpu: Gpu, format: WeightDtype | None, engine: str | None, supported: Mapping[str, Support]
) -> ReasonedChoice:
    """The engine that the user names; otherwise llama.cpp for GGUF formats and Apple GPUs, and for the rest vLLM or the
    first that supports the model. `supported`: {engine: whether it
    does}, of those up to the first that does.

    Raises: ParamcountError for an engine that does not run on the GPU.
    """
    if engine is not None:
        if is_apple(gpu) and not find_engine(engine).runs_on_apple:
            found = f"= {describe_value(engine)}, which does not run on {gpu.name}"
            raise ParamcountError(found, where="engine", expected="llama.cpp")
        return ReasonedChoice(engine, "as asked")
    if format and format.mix:
        return ReasonedChoice("llama.cpp", "default for GGUF formats")
    if is_apple(gpu):
        return ReasonedChoice("llama.cpp", "default on Apple GPUs")
    *left, name = supported
    return ReasonedChoice(name, f"default without {join_words(left, 'and')}" if left else "default")


def list_support(model: Model, groups: Sequence[CacheGroup], engine: str | None) -> Mapping[str, Support]:
    """{engine: whether it supports a model}, up to the first that does; none if the user names one."""
    supported: dict[str, Support] = {}
    for name in () if engine else DEFAULTS:
        supported[name] = find_engine(name).find_support(model, groups, {})
        if supported[name].is_supported:
            break
    return supported


def choose_kv_dtype(engine: Engine, kv_dtype: object) -> object:
    """The dtype of the KV cache that the user names; otherwise the default of the engine."""
    if kv_dtype is not None:
        return kv_dtype
    return "f16" if engine.reads_gguf else "bf16"


def choose_weights(model: Model, dtype: str | None, engine: Engine, bits: float) -> tuple[str | None, ReasonedChoice]:
    """(the argument of `memory`, the format of the weights). `bits`: per weight, as released.

    Raises: ParamcountError for a format that the engine cannot read.
    """
    if dtype is not None:
        format = parse_weight_format(dtype)
        if engine.reads_gguf and format.plan.groups:
            found = f"= {describe_value(dtype)}, which no GGUF file has"
            raise ParamcountError(found, where="dtype", expected="a dtype such as q8_0 or q4_k_m")
        label = format.label
        is_released = not is_quantised(model) and label == choose_format(model, None).label
        return None if is_released else dtype, ReasonedChoice(label, "as asked")
    released = choose_format(model, None)
    if not engine.reads_gguf or not is_quantised(model):
        reason = "as released" if is_quantised(model) else "the release is not quantised"
        return None, ReasonedChoice(released.label, reason)
    mixes = {get_format(group.packing.layout).gguf_mix for group in released.plan.groups}
    kept = mixes.pop() if len(mixes) == 1 else ""
    name = "q8_0" if bits > 6 else kept.lower() or "q4_k_m"
    return name, ReasonedChoice(parse_weight_format(name).label, f"the GGUF format nearest to {released.label}")
