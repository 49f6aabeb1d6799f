"""Mellum 2: Qwen 3's layers with windows and mixtures of experts where layer_types and mlp_layer_types say so."""

from typing import Any

from paramcount.errors import ParamcountError
from paramcount.flow import Data, route
from paramcount.parts.decoder import AttentionDecoder
from paramcount.parts.decoders import layers_by_type_and_mlp
from paramcount.parts.feed_forward import mixture
from paramcount.sizes import ABSENT, SLIDING, ConfigJson, FieldValues, derived, hf, per_layer, rotary_of, setting
from paramcount.sizes.conditions import not_null, padding_in_table
from paramcount.sizes.layer_types import dense_by_type, unused
from paramcount.sizes.rules import check_sliding_or_full
from paramcount.sizes.types import Flag, Indices, Natural, Positive, Words

ROPES = {  # the reference's default of rope_parameters
    SLIDING[1]: {"rope_type": "default", "rope_theta": 500_000.0},
    SLIDING[0]: {"rope_type": "default", "rope_theta": 10_000.0},
}


def one_mtp_layer(js: ConfigJson, c: FieldValues) -> None:
    n = js.get("num_nextn_predict_layers", js.get("num_mtp_layers"))
    if n is not None and n > 1:
        raise ParamcountError(f"= {n}", where="num_mtp_layers", expected="0 or 1")


class Mellum(AttentionDecoder):
    """Source: modeling_mellum.py of the reference."""

    reference = "MellumForCausalLM"
    gguf = "mellum"
    is_section_type = True
    adapts_experts = True
    rotated = "d_head"
    conditions = (one_mtp_layer, not_null("num_experts"), padding_in_table(None))
    defaults = {"d_head": 128}

    d_ff: Natural = hf()
    layer_types: Words = hf(absent=lambda js, c: tuple(SLIDING[1] for _ in per_layer(c)), null=ABSENT)
    window: Positive | None = hf()
    dense_layers: Indices = derived(dense_by_type(lambda js, c: ()))
    d_expert: Natural = hf()
    n_routed_experts: Positive = hf("num_local_experts", "num_experts", null=unused)
    n_active_experts: Natural = hf()
    attention_bias: Flag = hf()
    tie_word_embeddings: Flag = hf()

    norm_topk_prob = setting("norm_topk_prob", default=True)
    rope = rotary_of(SLIDING[1], ROPES, 131072, reads_share=True)
    local_rope = rotary_of(SLIDING[0], ROPES, 131072, reads_share=True)
    kinds = layers_by_type_and_mlp
    check = check_sliding_or_full

    def layer(c, x: Data, kind: tuple[str, str]) -> Data:
        sliding = kind[0] == SLIDING[0]
        local: Any = {"window": c.window, "angles": c.local_rope} if sliding else {}
        h = c.norm(x, "input_layernorm")
        x = x + c.self_attention(h, bias=c.attention_bias, qk_norm=True, **local)
        h = c.norm(x, "post_attention_layernorm")
        if kind[1] == "moe":
            return x + mixture(c, h, "mlp.", choose=c.choose)
        return x + c.gated_mlp(h)

    def choose(c, logits: Data) -> Data:
        return route(logits, c.n_active_experts, "softmax", normalise=c.norm_topk_prob)
