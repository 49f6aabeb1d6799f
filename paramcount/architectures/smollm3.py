"""SmolLM3: the Llama layout, every fourth layer without positions."""

from paramcount.declare import Data, parts, sizes


def without_positions(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[int, ...]:
    """Layers for which no_rope_layers has a 0, in spite of its name; without it one of no_rope_layer_interval."""
    rotates = js.get("no_rope_layers")
    if rotates is None:
        return tuple(i for i in sizes.per_layer(c) if (i + 1) % js.get("no_rope_layer_interval", 4) == 0)
    if (
        not isinstance(rotates, (list, tuple))
        or len(rotates) < c["n_layers"]
        or not all(type(n) is int for n in rotates)
    ):
        raise sizes.make_value_error(rotates, "no_rope_layers", "one integer per layer")
    return tuple(i for i in sizes.per_layer(c) if not rotates[i])


def windows(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[str, ...]:
    """Where windows are asked for, the layers without positions have them."""
    sliding = sizes.flag(js, "use_sliding_window", False) and c["window"] is not None
    return tuple(sizes.SLIDING[not (sliding and i in c["unrotated_layers"])] for i in sizes.per_layer(c))


class SmolLM3(parts.AttentionBias, parts.AttentionDecoder):
    """Source: modeling_smollm3.py of the reference; layers without positions arXiv:2501.18795."""

    reference = "SmolLM3ForCausalLM"
    gguf = "smollm3"
    gguf_rope_factors = "llama3"
    task_heads = "GENERIC_MOVED"
    conditions = (sizes.padding_in_table(128004),)

    unrotated_layers: sizes.Indices = sizes.derived(without_positions)
    window: sizes.Positive | None = sizes.hf(absent=None)
    layer_types: sizes.Words = sizes.hf(absent=windows, null=sizes.ABSENT)
    mlp_bias: sizes.Flag = sizes.hf()

    check = sizes.check_sliding_or_full

    def kinds(c) -> parts.Kinds:
        """(attention, whether it rotates)"""
        unrotated_layers = set(c.unrotated_layers)
        return [((kind, i not in unrotated_layers), 1) for i, kind in enumerate(c.layer_types)]

    def layer(c, x: Data, kind: tuple[str, bool]) -> Data:
        word, rotates = kind
        window = c.window if word == "sliding_attention" else None
        h = c.norm(x, "input_layernorm")
        x = x + c.self_attention(h, bias=c.attention_bias, window=window, prepare=c.prepare_by(rotates))
        return x + c.gated_mlp(c.norm(x, "post_attention_layernorm"), bias=c.mlp_bias)
