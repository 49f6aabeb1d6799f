"""GLM-4.5 and GLM-4.5-Air: DeepSeek-V3's experts behind grouped-query attention, half of each head rotated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from paramcount.flow import Data, norm
from paramcount.parts.attentions import partial_rope
from paramcount.parts.decoders import decoder, dense_first, usual_layer
from paramcount.parts.feed_forward import corrected_mixture
from paramcount.parts.mtp import next_token_layers
from paramcount.sizes import Condition, Flag, Natural, Positive, Sizes, d_model_per_head, derived, hf
from paramcount.sizes.conditions import grouped_routing, not_null, padding_in_table
from paramcount.sizes.layer_types import needed
from paramcount.sizes.rotary import rotary_width
from paramcount.sizes.rules import check_at_most, check_experts_exist


def rotated(js: Mapping[str, Any], c: Mapping[str, Any]) -> int:
    """How much of each head is rotated: half by default.

    Rotation works on pairs unless the head has a single element.
    """
    width: int = rotary_width(0.5)(js, c)
    return min(width, 1) if c["d_head"] == 1 else width


class Glm4Moe(Sizes):
    """Source: arXiv:2508.06471."""

    reference: ClassVar[str] = "Glm4MoeForCausalLM"
    conditions: ClassVar[tuple[Condition, ...]] = (
        grouped_routing(1, 1),
        padding_in_table(None),
        not_null("n_routed_experts", "n_group", "topk_group"),
    )

    vocab_size: Positive = hf(absent=151552)
    d_model: Positive = hf(absent=4096)
    n_layers: Positive = hf(absent=46)
    n_heads: Positive = hf(absent=96)
    n_kv_heads: Positive = hf(absent=8)
    d_head: Positive = hf(absent=d_model_per_head)
    d_rope: Natural = derived(rotated)
    d_ff: Positive = hf(absent=10944)
    n_dense_layers: Natural = hf(absent=1, at_most="n_layers")
    d_expert: Positive = hf(absent=1408)
    n_routed_experts: Natural = hf(
        "num_local_experts", "n_routed_experts", absent=128, null=needed("num_local_experts")
    )
    n_active_experts: Positive = hf(absent=8)
    n_shared_experts: Natural = hf(absent=1)
    n_mtp_layers: Natural = hf("num_nextn_predict_layers", "num_mtp_layers", absent=1, null=0)
    attention_bias: Flag = hf(absent=False)
    qk_norm: Flag = hf("use_qk_norm", absent=False)
    tie_word_embeddings: Flag = hf(absent=False)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer, dense_first(c))

    def mtp(c, tokens: Data) -> Data:
        return next_token_layers(c, tokens, lambda x: layer(c, "moe", x))

    def check(c) -> None:
        check_at_most(c, "d_rope", "d_head")
        check_experts_exist(c)


def layer(c: Any, kind: str, x: Data) -> Data:
    mixture = (lambda h: corrected_mixture(c, h, "mlp.")) if kind == "moe" else None
    return usual_layer(c, x, mixture, bias=c.attention_bias, o_bias=False, prepare=lambda q, k: prepare(c, q, k))


def prepare(c: Any, q: Data, k: Data) -> tuple[Data, Data]:
    if c.qk_norm:
        q, k = norm(q, "self_attn.q_norm"), norm(k, "self_attn.k_norm")
    return partial_rope(q, c.d_rope), partial_rope(k, c.d_rope)
