"""Bamba: Mamba 2 layers with a few attention layers among them, each followed by a gated MLP."""

from paramcount.declare import Data, parts, sizes


def kinds(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[str, ...]:
    indices = js.get("attn_layer_indices")
    if indices is not None and not (isinstance(indices, list) and all(type(i) is int for i in indices)):
        raise sizes.make_value_error(indices, "attn_layer_indices", "a list of layer indices")
    return tuple("attention" if i in (indices or ()) else "mamba" for i in sizes.per_layer(c))


class Bamba(parts.AttentionBias, parts.AttentionDecoder):
    """Source: modeling_bamba.py of the reference."""

    reference = "BambaForCausalLM"
    gguf = "granitehybrid"
    gguf_kv_heads_by_layer = True
    rotated = None
    names = ("embed_tokens", "layers", "final_layernorm")
    conditions = (sizes.padding_in_table(0), sizes.no_key("layer_types", "layers_block_type"), sizes.check_mamba_heads)

    layer_types: sizes.Words = sizes.derived(kinds)
    d_head: sizes.Positive = sizes.hf(absent=sizes.d_model_per_head, null=sizes.if_no_attention, late=True)
    d_rope: sizes.Natural = sizes.derived(sizes.rotary_dimension(0.5, key=""))
    n_mamba_heads: sizes.Positive = sizes.hf()
    d_mamba_head: sizes.Positive = sizes.derived(sizes.mamba_head)
    n_groups: sizes.Positive = sizes.hf(null=sizes.if_no_mixer)
    d_state: sizes.Positive = sizes.hf(null=sizes.if_no_mixer)
    d_conv: sizes.Positive = sizes.hf(null=sizes.if_no_mixer)
    conv_bias: sizes.Flag = sizes.hf(null=False)
    mixer_bias: sizes.Flag = sizes.hf(null=False)
    mlp_bias: sizes.Flag = sizes.hf()

    rope = sizes.rotary(share=0.5, share_key="")
    time_step_limit = sizes.setting(default=sizes.time_step_limit)
    kinds = parts.layers_by_type

    def layer(c, x: Data, kind: str) -> Data:
        h = c.norm(x, "input_layernorm")
        x = x + parts.mamba2(c, h, "mamba.") if kind == "mamba" else x + c.self_attention(h, bias=c.attention_bias)
        return x + c.gated_mlp(c.norm(x, "pre_ff_layernorm"), "feed_forward.", bias=c.mlp_bias)

    def rotate(c, x: Data) -> Data:
        return parts.partial_rope(x, c.d_rope, c.rope)

    def unused_fields(c) -> tuple[str, ...]:
        return sizes.list_unused_fields(c.layer_types)
