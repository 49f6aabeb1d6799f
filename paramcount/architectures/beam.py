"""Beam: gated attention, residuals scaled by depth, and experts.

Five of six layers attend to a sliding window with rotary positions; the sixth attends to all tokens without them.
"""

from collections.abc import Mapping

from paramcount.declare import Data, ops, parts, sizes

# The reference's default of rope_parameters.
ROPES = {sizes.SLIDING[1]: None, sizes.SLIDING[0]: {"rope_type": "default", "rope_theta": 10_000.0}}


def turned(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[str, ...]:
    """The words of the layers that rotate: those to which rope_parameters gives any, where it is there."""
    rope = js.get("rope_parameters")
    if rope is None:
        return ("sliding_attention",)
    words = sorted(set(c["layer_types"]))
    if not isinstance(rope, Mapping) or any(not isinstance(rope[word], (Mapping, type(None))) for word in words):
        raise sizes.make_value_error(rope, "rope_parameters", "a JSON object or null for each entry of layer_types")
    return tuple(word for word in words if rope[word] is not None)


class Beam(parts.AttentionBias, parts.GroupedExperts, parts.AttentionDecoder):
    """Source: BeamDecoderLayer of the reference."""

    reference = "BeamForCausalLM"
    rotated = None
    float32 = ("e_score_correction_bias", "mlp.gate.weight")
    conditions = (sizes.grouped_routing(8, 4), sizes.padding_in_table(None))
    defaults = {"d_head": 128}

    layer_types: sizes.Words = sizes.hf(
        absent=sizes.words_by(lambda i, n: (i + 1) % 6 == 0 or i == n - 1), null=sizes.ABSENT
    )
    rotated_words: sizes.Words = sizes.derived(turned)
    window: sizes.Positive | None = sizes.hf()
    dense_layers: sizes.Indices = sizes.derived(sizes.dense_by_type(lambda js, c: tuple(range(min(3, c["n_layers"])))))

    rope = sizes.rotary_of(sizes.SLIDING[0], ROPES, 8192, optional=True)
    full_rope = sizes.rotary_of(sizes.SLIDING[1], ROPES, 8192, optional=True)
    soft_cap = sizes.setting("final_logit_softcapping", nullable=True)
    kinds = parts.layers_by_type_and_mlp

    def layer(c, x: Data, kind: tuple[str, str]) -> Data:
        word, mlp = kind
        a = c.attention(c.norm(x, "input_layernorm"), word)
        x = ops.add_by_depth(x, c.norm(a, "post_attention_layernorm"), 1)
        h = c.norm(x, "pre_feedforward_layernorm")
        y = parts.mixture(c, h, "mlp.", choose=c.choose) if mlp == "moe" else c.gated_mlp(h)
        return ops.add_by_depth(x, c.norm(y, "post_feedforward_layernorm"), 2)

    def attention(c, x: Data, word: str) -> Data:
        window = c.window if word == sizes.SLIDING[0] else None
        angles = c.rope if word == sizes.SLIDING[0] else c.full_rope

        def prepare(q: Data, k: Data) -> tuple[Data, Data]:
            q, k = c.norm(q, "self_attn.q_norm"), c.norm(k, "self_attn.k_norm")
            if word in c.rotated_words:
                return ops.rope(q, angles), ops.rope(k, angles)
            return ops.scale_by_power(q, 2048, 0.1, first=1), k

        return c.self_attention(x, bias=c.attention_bias, prepare=prepare, window=window)

    def gate_heads(c, x: Data, a: Data) -> Data:
        """A gate for each value, with one learned number for each head."""
        g = ops.linear(x, "self_attn.gate_proj", "qkv.gate", a.shape[1:])
        g = ops.add_per_head(g, "self_attn.gate_bias", "qkv.gate")
        return a * ops.activate(g, "sigmoid")

    def head(c, x: Data) -> Data:
        return ops.soft_cap(super().head(x), c.soft_cap)

    def check(c) -> None:
        sizes.check_sliding_or_full(c)
        if set(c.rotated_words) & set(c.layer_types):
            sizes.check_even(c, "d_head")
