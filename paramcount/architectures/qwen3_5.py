"""Qwen3.5: three layers of gated delta net to one of gated attention, an MLP or many experts in each.

With Qwen3-VL's tower around it.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, ClassVar

from pydantic import SerializeAsAny

from paramcount.architectures.qwen3_next import GatedDeltaHybrid
from paramcount.architectures.qwen3_vl import QwenVision, tower_layer
from paramcount.flow import Data, Size, Weight, block, elementwise, layers
from paramcount.parts.decoders import decoder
from paramcount.parts.qwen_vision import cubes, merge, pixels, widen
from paramcount.parts.vision import insert
from paramcount.sizes import Positive, Sizes, hf


class Qwen35(GatedDeltaHybrid):
    """Source: modeling_qwen3_5.py of the reference."""

    reference: ClassVar[str] = "Qwen3_5ForCausalLM"
    base_model: ClassVar[str | None] = "Qwen3_5TextModel"

    d_ff: Positive = hf(absent=12288)

    def kinds(c) -> list[tuple[Hashable, Size]]:
        return [((word, "dense"), 1) for word in c.layer_types]


class Qwen35MoE(GatedDeltaHybrid):
    """Source: modeling_qwen3_5_moe.py of the reference."""

    reference: ClassVar[str] = "Qwen3_5MoeForCausalLM"
    base_model: ClassVar[str | None] = "Qwen3_5MoeTextModel"
    defaults: ClassVar[Mapping[str, Any]] = {"d_model": 2048, "n_layers": 40, "n_kv_heads": 2}

    n_routed_experts: Positive = hf("num_experts", absent=256)
    n_active_experts: Positive = hf(absent=8)
    d_expert: Positive = hf(absent=512)
    d_shared_expert: Positive = hf("shared_expert_intermediate_size", absent=512)

    norm_topk_prob: ClassVar[bool] = True

    def kinds(c) -> list[tuple[Hashable, Size]]:
        return [((word, "moe"), 1) for word in c.layer_types]


class Qwen35TextOf(Qwen35):
    """The language model of a config that has a tower too."""

    section: ClassVar[str | None] = "text_config"


class Qwen35MoETextOf(Qwen35MoE):
    """The language model of a config that has a tower too."""

    section: ClassVar[str | None] = "text_config"


class Qwen35VL(Sizes):
    """Source: modeling_qwen3_5.py of the reference."""

    reference: ClassVar[str] = "Qwen3_5ForConditionalGeneration"

    language: SerializeAsAny[Sizes]
    vision: QwenVision

    def forward(c, tokens: Data) -> Data:
        image = block(pixels(c.vision), "model.visual.", lambda x: tower(c.vision, x), part="vision")
        image = block(image, "model.visual.", lambda x: project(c.vision, x), part="projector")
        return spoken(c.language, tokens, image)


class Qwen35MoEVL(Qwen35VL):
    """The same around experts. Source: modeling_qwen3_5_moe.py of the reference."""

    reference: ClassVar[str] = "Qwen3_5MoeForConditionalGeneration"


def spoken(c: Any, tokens: Data, image: Data) -> Data:
    return decoder(
        c,
        tokens,
        lambda c, kind, x: c.layer(x, kind),
        c.kinds(),
        prefix="model.language_model.",
        enter=lambda x: insert(x, image),
        leave=lambda x: c.norm(x, "model.language_model.norm"),
    )


def tower(c: Any, x: Data) -> Data:
    x = elementwise(cubes(c, x, bias=True), "positions", "pos_embed.weight", "position", c.n_positions, c.d_model)
    return layers(x, "blocks.{layer}.", [("layer", c.n_layers)], lambda kind, x: tower_layer(c, x))


def project(c: Any, x: Data) -> Data:
    """Patches normed, put side by side and widened."""
    weights = tuple(Weight(f"merger.norm.{name}", "projector", x.shape[-1:]) for name in ("weight", "bias"))
    return widen(c, merge(c, Data("norm", (x,), x.shape, weights)), ("merger.linear_fc1", "merger.linear_fc2"))
