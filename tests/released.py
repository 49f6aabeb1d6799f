"""The tensors of released files: the declaration's, and what else a release holds.

Sources: of DeepSeek-V3 its README_WEIGHTS.md, for the layer of multi-token prediction and the FP8 scales; of gpt-oss
github openai/gpt-oss, gpt_oss/torch/weights.py. Causal masks and rotary frequencies are in
tests/data/published_totals.csv.
"""

from __future__ import annotations

from math import prod
from typing import Any

import paramcount as pc
from paramcount.checkpoints.matching import expand_names
from tests.headers import Tensors

BLOCK = 128


def make_release(config: dict[str, Any], beside: str = "") -> Tensors:
    """The tensors of a model of this config.json. `beside`: what the release holds besides them."""
    count = pc.count(config)
    rows = expand_names(
        tensor
        for tensor in count.tensors
        if tensor.role != "legacy_buffer" and (tensor.tied_to is None or tensor.part == "mtp")
    )
    found: Tensors = {name: ("BF16", tensor.shape) for name, tensor in rows.items()}
    if config["model_type"] == "gpt_oss":
        found = quantise_mxfp4(found)
    elif "quantization_config" in config:
        found = quantise_fp8(found)
    if beside == "masks":
        found |= {f"h.{i}.attn.bias": ("F32", (1, 1, 1024, 1024)) for i in range(config["n_layer"])}
    elif beside == "frequencies":
        half = config["hidden_size"] // config["num_attention_heads"] // 2
        for i in range(config["num_hidden_layers"]):
            found[f"model.layers.{i}.self_attn.rotary_emb.inv_freq"] = ("F32", (half,))
    return found


def count_hub_values(tensors: Tensors) -> int:
    """As the Hub counts them: a byte of MXFP4 holds two."""
    return sum(prod(shape) * (2 if name.endswith("_blocks") else 1) for name, (_, shape) in tensors.items())


def quantise_fp8(tensors: Tensors) -> Tensors:
    """Every matrix of the layers in blocks with a scale each, but for routers and what multi-token prediction adds."""
    found: Tensors = {}
    for name, (dtype, shape) in tensors.items():
        if name.endswith(("_proj.weight", "_with_mqa.weight")) and "eh_proj" not in name:
            found[name] = "F8_E4M3", shape
            found[name + "_scale_inv"] = "F32", (-(-shape[0] // BLOCK), -(-shape[1] // BLOCK))
        else:
            found[name] = dtype, shape
    return found


def quantise_mxfp4(tensors: Tensors) -> Tensors:
    """The experts, transposed, in blocks of 32 values, two in a byte, with a scale each."""
    found: Tensors = {}
    for name, (dtype, shape) in tensors.items():
        if name.endswith(("experts.gate_up_proj", "experts.down_proj")):
            experts, inputs, outputs = shape
            found[name + "_blocks"] = "U8", (experts, outputs, inputs // 32, 16)
            found[name + "_scales"] = "U8", (experts, outputs, inputs // 32)
        else:
            found[name] = dtype, shape
    return found
