"""Qwen3.5: three layers of gated delta net to one of gated attention, with an MLP or with many experts beside a gated shared one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from paramcount.architectures.qwen2_moe import moe
from paramcount.architectures.qwen3_next import GatedDeltaHybrid, mixer
from paramcount.flow import Data
from paramcount.parts.decoders import decoder, pre_norm
from paramcount.parts.feed_forward import gated_mlp
from paramcount.sizes import Positive, hf


class Qwen35(GatedDeltaHybrid):
    """Source: modeling_qwen3_5.py of the reference."""

    reference: ClassVar[str] = "Qwen3_5ForCausalLM"

    d_ff: Positive = hf(absent=12288)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer, [(word, 1) for word in c.layer_types])


class Qwen35MoE(GatedDeltaHybrid):
    """Source: modeling_qwen3_5_moe.py of the reference."""

    reference: ClassVar[str] = "Qwen3_5MoeForCausalLM"
    defaults: ClassVar[Mapping[str, Any]] = {"d_model": 2048, "n_layers": 40, "n_kv_heads": 2}

    n_routed_experts: Positive = hf("num_experts", absent=256)
    n_active_experts: Positive = hf(absent=8)
    d_expert: Positive = hf(absent=512)
    d_shared_expert: Positive = hf("shared_expert_intermediate_size", absent=512)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, moe_layer, [(word, 1) for word in c.layer_types])


def layer(c: Any, word: str, x: Data) -> Data:
    return pre_norm(x, lambda h: mixer(c, word, h, together=False), lambda h: gated_mlp(h, "mlp.", "mlp", c.d_ff))


def moe_layer(c: Any, word: str, x: Data) -> Data:
    return pre_norm(x, lambda h: mixer(c, word, h, together=False), lambda h: moe(c, h))
