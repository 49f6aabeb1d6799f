"""Beam: gated attention, residuals scaled by depth, and experts.

Five of six layers attend to a sliding window with rotary positions; the sixth attends to all tokens without them.
"""

from collections.abc import Mapping

from paramcount.errors import ParamcountError, describe_value
from paramcount.flow import Data, activate, add_by_depth, add_vector, linear, rope, scale_by_position, soft_cap
from paramcount.parts.decoder import AttentionDecoder
from paramcount.parts.decoders import layers_by_type_and_mlp
from paramcount.parts.feed_forward import choose_in_groups, mixture, routing_bias
from paramcount.sizes import ABSENT, SLIDING, ConfigJson, FieldValues, derived, hf, per_layer, rotary_of, setting
from paramcount.sizes.conditions import grouped_routing, padding_in_table
from paramcount.sizes.layer_types import dense_by_type
from paramcount.sizes.rules import check_even, check_sliding_or_full
from paramcount.sizes.types import Flag, Indices, Natural, Positive, Words

# The reference's default of rope_parameters.
ROPES = {SLIDING[1]: None, SLIDING[0]: {"rope_type": "default", "rope_theta": 10_000.0}}


def full_every_sixth(js: ConfigJson, c: FieldValues) -> tuple[str, ...]:
    """Every sixth layer and the last see all tokens."""
    return tuple(SLIDING[(i + 1) % 6 == 0 or i == c["n_layers"] - 1] for i in per_layer(c))


def turned(js: ConfigJson, c: FieldValues) -> tuple[str, ...]:
    """The words of the layers that rotate: those to which rope_parameters gives any, where it is there."""
    rope = js.get("rope_parameters")
    if rope is None:
        return ("sliding_attention",)
    words = sorted(set(c["layer_types"]))
    if not isinstance(rope, Mapping) or any(not isinstance(rope[word], (Mapping, type(None))) for word in words):
        raise ParamcountError(
            f"= {describe_value(rope)}",
            where="rope_parameters",
            expected="a JSON object or null for each entry of layer_types",
        )
    return tuple(word for word in words if rope[word] is not None)


class Beam(AttentionDecoder):
    """Source: BeamDecoderLayer of the reference."""

    reference = "BeamForCausalLM"
    is_section_type = True
    adapts_experts = True
    float32 = ("e_score_correction_bias", "mlp.gate.weight")
    conditions = (grouped_routing(8, 4), padding_in_table(None))
    defaults = {"d_head": 128}

    layer_types: Words = hf(absent=full_every_sixth, null=ABSENT)
    rotated_words: Words = derived(turned)
    window: Positive | None = hf()
    d_ff: Natural = hf()
    dense_layers: Indices = derived(dense_by_type(lambda js, c: tuple(range(min(3, c["n_layers"])))))
    d_expert: Natural = hf()
    n_routed_experts: Positive = hf("num_experts")
    n_active_experts: Natural = hf()
    attention_bias: Flag = hf()
    tie_word_embeddings: Flag = hf()

    rope = rotary_of(SLIDING[0], ROPES, 8192, optional=True)
    full_rope = rotary_of(SLIDING[1], ROPES, 8192, optional=True)
    soft_cap = setting("final_logit_softcapping", default=30.0, nullable=True)
    norm_topk_prob = setting("norm_topk_prob", default=True)
    routed_scale = setting("routed_scaling_factor", default=2.5)
    n_groups = setting("n_group", default=8)
    n_active_groups = setting("topk_group", default=4)
    kinds = layers_by_type_and_mlp

    def layer(c, x: Data, kind: tuple[str, str]) -> Data:
        word, mlp = kind
        a = c.attention(c.norm(x, "input_layernorm"), word)
        x = add_by_depth(x, c.norm(a, "post_attention_layernorm"), 1)
        h = c.norm(x, "pre_feedforward_layernorm")
        y = mixture(c, h, "mlp.", choose=c.choose) if mlp == "moe" else c.gated_mlp(h)
        return add_by_depth(x, c.norm(y, "post_feedforward_layernorm"), 2)

    def attention(c, x: Data, word: str) -> Data:
        window = c.window if word == SLIDING[0] else None
        angles = c.rope if word == SLIDING[0] else c.full_rope

        def prepare(q: Data, k: Data) -> tuple[Data, Data]:
            q, k = c.norm(q, "self_attn.q_norm"), c.norm(k, "self_attn.k_norm")
            if word in c.rotated_words:
                return rope(q, angles), rope(k, angles)
            return scale_by_position(q, "power", 2048, 0.1, first=1), k

        return c.self_attention(x, bias=c.attention_bias, prepare=prepare, gate=c.gate, window=window)

    def gate(c, x: Data, a: Data) -> Data:
        """A gate for each value, with one learned number for each head."""
        g = linear(x, "self_attn.gate_proj", "qkv.gate", a.shape[1:])
        g = add_vector(g, "self_attn.gate_bias", "qkv.gate", c.n_heads, per_head=True)
        return a * activate(g, "sigmoid")

    def choose(c, logits: Data) -> Data:
        return choose_in_groups(c, logits, routing_bias(c, "mlp.gate.e_score_correction_bias"))

    def head(c, x: Data) -> Data:
        return soft_cap(super().head(x), c.soft_cap)

    def check(c) -> None:
        check_sliding_or_full(c)
        if set(c.rotated_words) & set(c.layer_types):
            check_even(c, "d_head")
