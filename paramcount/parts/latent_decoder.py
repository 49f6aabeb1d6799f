"""The decoder of DeepSeek-V3 and its relatives: what it knows besides sizes, and how it chooses experts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from paramcount import parts, sizes
from paramcount.flow import Data


def read_pairing(config: Mapping[str, Any], c: Any) -> str:
    return "interleaved" if config.get("rope_interleave", True) else "halves"


class LatentDecoder(parts.AttentionBias):
    """A decoder with the sizes and settings of DeepSeek-V3's attention."""

    is_section_type = True
    rotated: ClassVar[str | None] = "d_rope"

    n_heads: sizes.Positive = sizes.hf()
    d_q_lora: sizes.Positive | None = sizes.hf()
    d_kv_lora: sizes.Positive = sizes.hf()
    d_nope: sizes.Positive = sizes.hf()
    d_rope: sizes.Positive = sizes.hf()
    d_v: sizes.Positive = sizes.hf()
    d_ff: sizes.Natural = sizes.hf()

    pairing: ClassVar = sizes.setting(default=read_pairing)
    attention_scale: ClassVar = sizes.setting(default=sizes.scale_with_yarn)


class RoutedLatentDecoder(parts.GroupedExperts, LatentDecoder):
    """A decoder with DeepSeek-V3's attention and experts."""

    adapts_experts = False
    check = sizes.check_pairs_in_latent


class LatentMixture(RoutedLatentDecoder):
    """A decoder with the layers of DeepSeek-V3. Source: arXiv:2412.19437, section 2."""

    adapts_experts = True

    def layer(c, x: Data, kind: str) -> Data:
        x = x + c.attend(c.norm(x, "input_layernorm"))
        h = c.norm(x, "post_attention_layernorm")
        return x + (c.moe(h) if kind == "moe" else c.mlp(h))

    def attend(c: Any, x: Data) -> Data:
        return parts.latent_attention(c, x, "self_attn.", bias=c.attention_bias)

    def moe(c, x: Data) -> Data:
        """Routed experts and shared ones."""
        return parts.shared_mixture(c, x, "mlp.", choose=c.choose)

    def mlp(c, x: Data) -> Data:
        """The MLP of a layer without experts."""
        return c.gated_mlp(x)
