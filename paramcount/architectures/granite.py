"""Granite 3: the Llama layout with four fixed multipliers.

In its later form most layers attend to a sliding window, with attention sinks.
"""

from functools import partial
from typing import Any

from paramcount.architectures.granitemoe import inverse_scaling
from paramcount.architectures.granitemoe_swa import without_positions
from paramcount.declare import Data, ops, parts, sizes


class Granite(parts.AttentionBias, parts.AttentionDecoder):
    """Source: modeling_granite.py of the reference."""

    reference = "GraniteForCausalLM"
    gguf = "granite"
    gguf_rope_factors = "llama3"
    conditions = (sizes.padding_in_table(None),)

    mlp_bias: sizes.Flag = sizes.hf()

    embedding_multiplier = sizes.setting("embedding_multiplier")
    attention_multiplier = sizes.setting("attention_multiplier")
    residual_multiplier = sizes.setting("residual_multiplier")
    logit_scale = sizes.setting(default=inverse_scaling)

    def to_first_layer(c, x: Data, tokens: Data) -> Data:
        return ops.scale_by(x, c.embedding_multiplier, "times embedding_multiplier")

    def layer(c, x: Data, kind: tuple[Any, ...] = ()) -> Data:
        x = x + c.shrink(c.attend(c.norm(x, "input_layernorm"), *kind))
        h = c.norm(x, "post_attention_layernorm")
        return x + c.shrink(c.gated_mlp(h, bias=c.mlp_bias))

    def attend(c, x: Data, *kind: Any) -> Data:
        return c.self_attention(
            x, bias=c.attention_bias, mix=partial(ops.attend_causally, scale=c.attention_multiplier)
        )

    def shrink(c, x: Data) -> Data:
        return ops.scale_by(x, c.residual_multiplier, "times residual_multiplier")

    def head(c, x: Data) -> Data:
        return ops.scale_by(super().head(x), c.logit_scale, "over logits_scaling")


class GraniteSWA(Granite):
    """Source: modeling_granite_swa.py of the reference."""

    reference = "GraniteSWAForCausalLM"
    model_types = ("granite_swa",)
    gguf = "granite_swa"
    gguf_rope_factors = sizes.constant(None)

    layer_types: sizes.Words = sizes.hf(absent=sizes.words_by(lambda i, n: i % 4 == 0), null=sizes.ABSENT)
    unrotated_layers: sizes.Indices = sizes.derived(without_positions)
    window: sizes.Positive = sizes.hf()

    layer_rope_theta = sizes.setting("layer_rope_theta", default=None)

    def kinds(c) -> parts.Kinds:
        """(attention, whether it rotates[, the rotary base if the config states one for each layer])"""
        unrotated_layers = set(c.unrotated_layers)
        kinds = [(kind, i not in unrotated_layers) for i, kind in enumerate(c.layer_types)]
        bases = c.layer_rope_theta if ops.is_known(c.layer_rope_theta) else None
        return [((*kind, base) if bases else kind, 1) for kind, base in zip(kinds, bases or c.layer_types)]

    def attend(c, x: Data, *kind: Any) -> Data:
        word, rotates, *base = kind
        angles = c.rope._replace(base=base[0]) if base and ops.is_known(c.rope) else c.rope
        window, sinks = c.window if word == "sliding_attention" else None, parts.add_sinks(c, "self_attn.sinks")
        mix = partial(ops.attend_causally, window=window, scale=c.attention_multiplier, sinks=sinks)
        prepare = c.prepare_by(rotates and partial(ops.rope, settings=angles))
        return c.self_attention(x, bias=c.attention_bias, prepare=prepare, mix=mix)

    def check(c) -> None:
        sizes.check_layer_types(c, "layer_types", "n_layers", sizes.SLIDING)
