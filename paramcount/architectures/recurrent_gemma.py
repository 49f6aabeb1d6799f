"""RecurrentGemma, Griffin's descendant: two layers of a gated linear recurrence to one of attention over a window."""

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import ParamcountError, describe_value, make_choice_error


def kinds(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[str, ...]:
    """block_types again and again, at most a hundred times; what is not recurrent is attention."""
    words = js.get("block_types", ("recurrent", "recurrent", "attention"))
    if (
        not isinstance(words, (list, tuple))
        or not all(isinstance(word, str) for word in words)
        or 100 * len(words) < c["n_layers"]
    ):
        raise ParamcountError(
            f"= {describe_value(words)} for {c['n_layers']} layers",
            where="block_types",
            expected="a list of strings that covers all layers when repeated at most 100 times",
        )
    return tuple("recurrent" if words[i % len(words)] == "recurrent" else "attention" for i in sizes.per_layer(c))


def rope_is_unscaled(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """The reference has no other rotary positions than the usual ones."""
    where = "rope_scaling" if js.get("rope_scaling") else "rope_parameters"
    block = js.get(where) or {}
    key = "rope_type" if "rope_type" in block else "type"
    if (kind := block.get(key, "default")) != "default":
        raise make_choice_error(kind, ("default",), where=f"{where}.{key}")


class RecurrentGemma(parts.AttentionBias, parts.AttentionDecoder):
    """Source: arXiv:2404.07839, section 2; arXiv:2402.19427, section 2. Gates of the recurrence have n_heads blocks."""

    reference = "RecurrentGemmaForCausalLM"
    rotated = None
    names = ("embed_tokens", "layers", "final_norm")
    conditions = (sizes.padding_in_table(0), sizes.no_key("layer_types", "layers_block_type"), rope_is_unscaled)

    n_layers: sizes.Positive = sizes.hf()  # the reference needs one
    layer_types: sizes.Words = sizes.derived(kinds)
    d_head: sizes.Positive = sizes.hf(absent=sizes.d_model_per_head, null=sizes.if_no_attention, late=True)
    d_rope: sizes.Natural = sizes.derived(sizes.rotary_dimension(0.5))
    window: sizes.Positive = sizes.hf("sliding_window", "attention_window_size")
    d_inner: sizes.Positive = sizes.hf("lru_width", absent=sizes.equal_to("d_model"), null=sizes.ABSENT)
    d_gate: sizes.Positive = sizes.derived(lambda js, c: c["d_inner"] // c["n_heads"])
    d_conv: sizes.Positive = sizes.hf("conv1d_width")
    d_ff: sizes.Natural = sizes.derived(lambda js, c: sizes.check_no_types(js, "intermediate_size", 7680) // 2)

    activation = sizes.setting("hidden_activation")
    rope = sizes.rotary(share=0.5)
    logits_cap = sizes.setting("logits_soft_cap")
    kinds = parts.layers_by_type

    def to_first_layer(c, x: Data, tokens: Data) -> Data:
        return ops.scale_by_root(x, c.d_model, rounded=True)

    def layer(c, x: Data, kind: str) -> Data:
        h = c.norm(x, "temporal_pre_norm")
        if kind == "recurrent":
            x = x + c.recurrence(h, "temporal_block.")
        else:
            x = x + c.self_attention(h, "temporal_block.", bias=c.attention_bias, o_bias=True, window=c.window)
        return x + c.gated_mlp(c.norm(x, "channel_pre_norm"), "mlp_block.", bias=True)

    def norm(c, x: Data, name: str) -> Data:
        return ops.rms_norm(x, name, c.norm_eps, offset=1.0)

    def rotate(c, x: Data) -> Data:
        return parts.partial_rope(x, c.d_rope, c.rope)

    def recurrence(c, x: Data, prefix: str) -> Data:
        """A convolution and a linear recurrence in one branch, a GELU in the other.

        Source: arXiv:2402.19427, sections 2.2 to 2.4.
        """
        gate = ops.activate(ops.linear(x, prefix + "linear_y", "mixer.gate", c.d_inner, bias=True), c.activation)
        u = ops.convolve(
            ops.linear(x, prefix + "linear_x", "mixer.x", c.d_inner, bias=True), prefix + "conv_1d", c.d_conv
        )
        y = c.gated_unit(u, prefix + "rg_lru.") * gate
        return ops.linear(y, prefix + "linear_out", "mixer.out", x.shape[-1], bias=True)

    def gated_unit(c, u: Data, prefix: str) -> Data:
        """The real-gated linear recurrent unit: every channel decays by itself; its gates are computed per block."""
        blocks = ops.to_heads(u, c.n_heads, c.d_gate)

        def gate(name: str) -> Data:
            weight = ops.Weight(f"{prefix}{name}_weight", "mixer." + name, (c.n_heads, c.d_gate, c.d_gate))
            bias = ops.Weight(f"{prefix}{name}_bias", "mixer." + name, (c.n_heads, c.d_gate))
            return ops.activate(ops.linear_by_head(blocks, c.d_gate, weight, bias, transposed=True), "sigmoid")

        decay = ops.Weight(prefix + "recurrent_param", "mixer.state", (c.d_inner,))
        inputs = (u, gate("input_gate"), gate("recurrent_gate"))
        return Data(ops.GatedUnit(c.d_inner), inputs, u.shape, (decay,))

    def head(c, x: Data) -> Data:
        return ops.soft_cap(parts.Decoder.head(c, x), c.logits_cap)

    def unused_fields(c) -> tuple[str, ...]:
        return () if "attention" in c.layer_types else ("n_kv_heads",)

    def check(c) -> None:
        sizes.check_at_most(c, "n_kv_heads", "n_heads")
        if "recurrent" in c.layer_types:
            sizes.check_divides(c, "n_heads", "d_inner")
