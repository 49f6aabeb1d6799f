"""EXAONE 4: post-norm, and a norm on every query and key head.

Full-attention layers have no rotary positions.
"""

from paramcount.declare import Data, parts, sizes


def pattern(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[str, ...]:
    """One layer of sliding_window_pattern looks back over all.

    Without a window the reference divides by 0 unless layers are named.
    """
    period = js.get("sliding_window_pattern", 4) if c["window"] is not None else 0
    return tuple(sizes.SLIDING[(i + 1) % period == 0] for i in sizes.per_layer(c))


class Exaone4(parts.SlidingLayers, parts.AttentionDecoder):
    """Source: arXiv:2507.11407, section 2.1."""

    reference = "Exaone4ForCausalLM"
    gguf = "exaone4"
    gguf_names = {"post_attention_layernorm": "post_attention_norm"}
    gguf_rope_factors = "llama3"
    task_heads = "GENERIC_MOVED"
    conditions = (sizes.padding_in_table(None),)

    layer_types: sizes.Words = sizes.hf(absent=pattern, null=sizes.ABSENT)

    norms_heads = True

    def layer(c, x: Data, kind: str) -> Data:
        window = c.window if kind == "sliding_attention" else None
        rotate = kind == "sliding_attention" or c.window is None
        a = c.self_attention(x, window=window, prepare=c.prepare_by(rotate))
        x = x + c.norm(a, "post_attention_layernorm")
        h = c.gated_mlp(x)
        return x + c.norm(h, "post_feedforward_layernorm")
