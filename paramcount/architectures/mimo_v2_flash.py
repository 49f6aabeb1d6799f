"""MiMo-V2-Flash: layers with a window have sinks and twice the key-value heads.

Values narrower than keys, a third of each head rotated.
"""

from collections.abc import Mapping
from typing import Any

from paramcount.errors import FieldName, ParamcountError
from paramcount.flow import Data
from paramcount.parts.attentions import Heads, attention, partial_rope
from paramcount.parts.decoder import AttentionDecoder
from paramcount.parts.decoders import layers_by_type_and_mlp
from paramcount.parts.feed_forward import choose_in_groups, mixture, routing_bias
from paramcount.sizes import SLIDING, Flag, Indices, Natural, Positive, Words, per_layer, rotary_of, setting
from paramcount.sizes.conditions import grouped_routing, not_null, padding_in_table
from paramcount.sizes.fields import ABSENT, ConfigJson, FieldValues, derived, hf
from paramcount.sizes.layer_types import check_no_types, dense_by_type, unused
from paramcount.sizes.rotary_sizes import rotary_width_of
from paramcount.sizes.rules import check_at_most, check_sliding_or_full

ROPES = {  # the reference's default of rope_parameters
    SLIDING[1]: {"rope_type": "default", "rope_theta": 5_000_000.0, "partial_rotary_factor": 0.334},
    SLIDING[0]: {"rope_type": "default", "rope_theta": 10_000.0, "partial_rotary_factor": 0.334},
}


def looks_back(js: ConfigJson, c: FieldValues) -> int:
    """Released files count the tokens before this one, the reference this one too."""
    if js.get("sliding_window_size") is not None:
        return check_no_types(js, "sliding_window_size", 0) + 1
    return check_no_types(js, "sliding_window", 129)


def value_scale(config: Mapping[str, Any], c: Any) -> float:
    """Null stands for 1."""
    return 1.0 if "attention_value_scale" in config else 0.707


ROPES = {  # the reference's default of rope_parameters
    SLIDING[1]: {"rope_type": "default", "rope_theta": 5_000_000.0, "partial_rotary_factor": 0.334},
    SLIDING[0]: {"rope_type": "default", "rope_theta": 10_000.0, "partial_rotary_factor": 0.334},
}


class MiMoV2Flash(AttentionDecoder):
    """Source: arXiv:2601.02780, section 2; MiMoV2FlashAttention and MiMoV2FlashTopkRouter of the reference."""

    reference = "MiMoV2FlashForCausalLM"
    gguf = "mimo2"
    is_section_type = True
    conditions = (grouped_routing(1, 1), not_null("n_routed_experts"), padding_in_table(None))
    defaults = {"d_head": 192}

    n_kv_heads: Positive = hf()  # of a layer that sees everything
    d_v: Positive = hf()
    layer_types: Words = hf(
        absent=lambda js, c: tuple(SLIDING[i == 0 or (i + 1) % 6 == 0] for i in per_layer(c)), null=ABSENT
    )
    window: Positive = derived(looks_back)
    d_rope: Natural = derived(rotary_width_of(SLIDING[1], 0.334, 0.334))
    d_rope_sliding: Natural = derived(rotary_width_of(SLIDING[0], 0.334, 0.334))
    d_ff: Natural = hf()
    dense_layers: Indices = derived(dense_by_type(lambda js, c: (0,)))
    d_expert: Natural = hf()
    n_routed_experts: Positive = hf("num_local_experts", "n_routed_experts", null=unused)
    n_active_experts: Natural = hf()
    attention_bias: Flag = hf()
    tie_word_embeddings: Flag = hf()

    norm_eps = setting("rms_norm_eps", default=1e-5)
    rope = rotary_of(SLIDING[1], ROPES, 131072, share=0.334)
    rope_sliding = rotary_of(SLIDING[0], ROPES, 131072, share=0.334)
    value_scale = setting("attention_value_scale", default=value_scale)
    norm_topk_prob = setting("norm_topk_prob", default=True)
    routed_scale = setting("routed_scaling_factor", default=1.0)
    n_groups = setting("n_group", default=1)
    n_active_groups = setting("topk_group", default=1)
    kinds = layers_by_type_and_mlp

    def layer(c, x: Data, kind: tuple[str, str]) -> Data:
        word, mlp = kind
        x = x + c.attention(c.norm(x, "input_layernorm"), sliding=word == SLIDING[0])
        h = c.norm(x, "post_attention_layernorm")
        if mlp == "moe":
            return x + mixture(c, h, "mlp.", choose=c.choose)
        return x + c.gated_mlp(h)

    def attention(c, x: Data, *, sliding: bool) -> Data:
        heads = Heads(c.n_heads, 2 * c.n_kv_heads if sliding else c.n_kv_heads, c.d_head)
        d_rope, settings = (c.d_rope_sliding, c.rope_sliding) if sliding else (c.d_rope, c.rope)
        return attention(
            heads, x, "self_attn.", bias=c.attention_bias, o_bias=False, d_v=c.d_v, value_scale=c.value_scale,
            rotate=lambda y: partial_rope(y, d_rope, settings), window=c.window if sliding else None,
            sinks="attention_sink_bias" if sliding else False,
        )  # fmt: skip

    def choose(c, logits: Data) -> Data:
        return choose_in_groups(c, logits, routing_bias(c, "mlp.gate.e_score_correction_bias"))

    def check(c) -> None:
        check_sliding_or_full(c)
        if SLIDING[0] in c.layer_types and c.n_heads % (2 * c.n_kv_heads):
            found = (
                f"= {c.n_kv_heads}, and 2 × {c.n_kv_heads} does not divide " + FieldName("n_heads") + f" = {c.n_heads}"
            )
            raise ParamcountError(
                found,
                where=FieldName("n_kv_heads"),
                expected="half of a divisor of " + FieldName("n_heads"),
                sizes=(c.n_kv_heads, c.n_heads),
            )
        check_at_most(c, "d_rope", "d_head")
        check_at_most(c, "d_rope_sliding", "d_head")
