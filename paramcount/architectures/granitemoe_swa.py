"""Granite MoE with sliding windows in three of four layers.

Each head has an attention sink; some layers have no positions.
"""

from functools import partial

from paramcount.architectures.granitemoe import GraniteMoeShared
from paramcount.declare import Data, ops, parts, sizes

KINDS = ("full_attention", "sliding_attention", "attention")  # the last is the older word for the first
NAMES = (
    "router",
    "experts.gate_up_proj",
    "experts.down_proj",
)  # the older names of Granite MoE are not saved for this type


def without_positions(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[int, ...]:
    """Layers whose base of rotation is 0 rotate nothing."""
    bases = js.get("layer_rope_theta")
    if bases is None:
        return ()
    if (
        not isinstance(bases, (list, tuple))
        or len(bases) < c["n_layers"]
        or not all(type(base) in (int, float) for base in bases)
    ):
        raise sizes.make_value_error(bases, "layer_rope_theta", "one number per layer")
    return tuple(i for i in sizes.per_layer(c) if not bases[i])


class GraniteMoeSWA(GraniteMoeShared):
    """Source: GraniteMoeSWAAttention and GraniteMoeSWADecoderLayer of the reference, modeling_granitemoe_swa.py."""

    reference = "GraniteMoeSWAForCausalLM"
    gguf = "granite_swa"
    conditions = (*GraniteMoeShared.conditions, sizes.not_null("attention_multiplier"))
    moe_names = NAMES

    layer_types: sizes.Words = sizes.hf(absent=sizes.words_by(lambda i, n: i % 4 > 0, KINDS), null=sizes.ABSENT)
    unrotated_layers: sizes.Indices = sizes.derived(without_positions)
    window: sizes.Positive = sizes.hf()

    bases = sizes.setting("layer_rope_theta", default=None)

    def kinds(c) -> parts.Kinds:
        """((attention, base of rotation), 1) per layer; the base is True for the usual one, False without rotation."""
        bases = c.bases if isinstance(c.bases, (list, tuple)) and isinstance(c.rope, ops.Rope) else ()
        own = {i: base for i, base in enumerate(bases) if base and base != c.rope.base}
        unrotated = set(c.unrotated_layers)
        return [((word, own.get(i, i not in unrotated)), 1) for i, word in enumerate(c.layer_types)]

    def layer(c, x: Data, kind: tuple[str, float | bool]) -> Data:  # type: ignore[override]
        word, base = kind
        angles = c.rope if isinstance(base, bool) else c.rope._replace(base=base)
        prepare = c.prepare_by(bool(base) and partial(ops.rope, settings=angles))
        window, sinks = c.window if word == "sliding_attention" else None, parts.add_sinks(c, "self_attn.sinks")
        mix = partial(ops.attend_causally, window=window, scale=c.attention_scale, sinks=sinks)
        a = c.self_attention(c.norm(x, "input_layernorm"), bias=c.attention_bias, prepare=prepare, mix=mix)
        x = x + ops.scale_by(a, c.residual_scale)
        return x + ops.scale_by(c.feed_forward(c.norm(x, "post_attention_layernorm")), c.residual_scale)

    def check(c) -> None:
        sizes.check_layer_types(c, "layer_types", "n_layers", KINDS)
        sizes.check_layer_indices(c, "unrotated_layers", "n_layers")
