"""Which matrices a scheme that quantises linear layers packs, and which tensors stay in float32: asked of the
reference's own models.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import pytest

import paramcount as pc
from paramcount.architectures import split_name
from paramcount.counting.tensors import list_unreachable
from paramcount.flow import TensorRow
from tests.model_types import MODEL_TYPES
from tests.oracle.differential import build_model

EIGHT_BIT = {"quantization_config": {"load_in_8bit": True}, "dtype": "bfloat16", "transformers_version": "5.23.0"}


def is_named(tensor: TensorRow, words: Iterable[str]) -> bool:
    """Whether a tensor's name contains one of these as whole words."""
    return any(f".{word}." in f".{tensor.name}." for word in words)


def load_default(name: str) -> tuple[pc.Model, Any]:
    """A model type with its default config, and the reference's model of it on the meta device."""
    facts = MODEL_TYPES[name]
    document: dict[str, Any] = {
        "model_type": split_name(name)[0],
        "architectures": [facts.cls],
        **facts.vary.get("=", {}),
    }
    return pc.load(document | EIGHT_BIT), build_model(document, facts.cls)


@pytest.mark.parametrize("name", sorted(MODEL_TYPES))
def test_bitsandbytes_quantises_the_linear_layers_that_the_reference_has(name: str) -> None:
    from torch.nn import Linear
    from transformers.pytorch_utils import Conv1D
    from transformers.quantizers.base import get_keys_to_not_convert
    from transformers.quantizers.quantizers_utils import should_convert_module

    model, reference = load_default(name)
    storage = pc.count(model).storage
    if storage is None:
        return  # no number is given
    kept = [
        *get_keys_to_not_convert(reference),
        *(reference._keep_in_fp32_modules or ()),
        *(reference._keep_in_fp32_modules_strict or ()),
        *(tensor.name.removesuffix(".weight") for tensor, _ in list_unreachable(model.sizes)),
    ]
    linear = [
        module.weight.numel()
        for path, module in reference.named_modules()
        if (type(module) is Linear or isinstance(module, Conv1D)) and should_convert_module(path, kept)
    ]
    assert storage.quantized == sum(linear)


@pytest.mark.parametrize("name", sorted(MODEL_TYPES))
def test_what_stays_in_float32_is_what_the_reference_names(name: str) -> None:
    model, reference = load_default(name)
    always, half = set(reference._keep_in_fp32_modules_strict or ()), set(reference._keep_in_fp32_modules or ())
    inner = [value for value in vars(model.sizes).values() if hasattr(value, "float32")]
    assert always - {word for part in (model.sizes, *inner) for word in part.float32} == set()
    assert half - {word for part in (model.sizes, *inner) for word in part.float32_if_float16} == set()


@pytest.mark.parametrize("name", sorted(MODEL_TYPES))
def test_as_many_values_stay_in_float32_as_in_the_reference(name: str) -> None:
    """Under the names of a checkpoint, which differ from those of the reference's parameters. A routing bias stays so
    without them, too.
    """
    model, reference = load_default(name)
    tensors = pc.count(model).tensors
    parts = [model.sizes, *(value for value in vars(model.sizes).values() if hasattr(value, "float32"))]
    for theirs, ours in (
        (reference._keep_in_fp32_modules_strict, {word for part in parts for word in part.float32}),
        (reference._keep_in_fp32_modules, {word for part in parts for word in part.float32_if_float16}),
    ):
        pattern = re.compile("|".join(rf"(^|\.){word}(\.|$)" for word in theirs or ("never",)))  # as from_pretrained
        words = tuple(word for word in ours if word in (theirs or ()) or word != "e_score_correction_bias")
        named = [tensor for tensor in tensors if tensor.part != "mtp" and is_named(tensor, words)]
        unreachable = [tensor for tensor, _ in list_unreachable(model.sizes) if is_named(tensor, words)]
        assert sum(
            tensor.elements for tensor in (*named, *unreachable) if tensor.kind in ("total", "unreachable")
        ) == sum(parameter.numel() for path, parameter in reference.named_parameters() if pattern.search(path))
