"""The decoder of DeepSeek-V3 and its relatives: what it knows besides sizes, and how it chooses experts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from paramcount.flow import Data
from paramcount.parts.decoder import Decoder
from paramcount.parts.mixtures import choose_in_groups, routing_bias, shared_mixture
from paramcount.parts.mla import latent_attention
from paramcount.sizes.rotary_settings import scale_with_yarn
from paramcount.sizes.setting_fields import setting


def read_pairing(config: Mapping[str, Any], c: Any) -> str:
    return "interleaved" if config.get("rope_interleave", True) else "halves"


class LatentDecoder(Decoder):
    """A decoder with the settings of DeepSeek-V3's attention."""

    pairing: ClassVar = setting(default=read_pairing)
    attention_scale: ClassVar = setting(default=scale_with_yarn)


class RoutedLatentDecoder(LatentDecoder):
    """A decoder with the settings of DeepSeek-V3's attention and experts, whose defaults each model has its own of."""

    routing_bias: ClassVar[str] = "mlp.gate.e_score_correction_bias"

    norm_topk_prob: ClassVar = setting("norm_topk_prob", usual=True)
    routed_scale: ClassVar = setting("routed_scaling_factor", usual=2.5)
    n_groups: ClassVar = setting("n_group", usual=1)
    n_active_groups: ClassVar = setting("topk_group", usual=1)

    def choose(c, logits: Data) -> Data:
        """Source: arXiv:2412.19437, section 2.1.2."""
        return choose_in_groups(c, logits, routing_bias(c, c.routing_bias))


class LatentMixture(RoutedLatentDecoder):
    """A decoder with the layers of DeepSeek-V3. Source: arXiv:2412.19437, section 2."""

    def layer(c, x: Data, kind: str) -> Data:
        x = x + c.attend(c.norm(x, "input_layernorm"))
        h = c.norm(x, "post_attention_layernorm")
        return x + (c.moe(h) if kind == "moe" else c.mlp(h))

    def attend(c: Any, x: Data) -> Data:
        return latent_attention(c, x, "self_attn.", bias=c.attention_bias)

    def moe(c, x: Data) -> Data:
        """Routed experts and shared ones."""
        return shared_mixture(c, x, "mlp.", choose=c.choose)

    def mlp(c, x: Data) -> Data:
        """The MLP of a layer without experts."""
        return c.gated_mlp(x)
