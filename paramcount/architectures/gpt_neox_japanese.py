"""GPT-NeoX Japanese: GPT-NeoX one after the other and without biases, but for one behind the last layer's attention."""

from paramcount.architectures.gpt_neox import rotary_width, rotation_fits
from paramcount.declare import Data, ops, parts, sizes


class GPTNeoXJapanese(parts.Decoder):
    """Source: modeling_gpt_neox_japanese.py of the reference, GPTNeoXJapaneseLayer."""

    reference = "GPTNeoXJapaneseForCausalLM"
    conditions = (sizes.rotates_stated_share(1.0, "rotary_pct"),)

    n_heads: sizes.Positive = sizes.hf()
    d_head: sizes.Positive = sizes.derived(sizes.d_model_per_head)
    d_rope: sizes.Natural | None = sizes.derived(rotary_width(1.0))
    d_ff: sizes.Natural = sizes.derived(
        lambda js, c: c["d_model"] * sizes.check_no_types(js, "intermediate_multiple_size", 4)
    )

    prefix = "gpt_neox_japanese."
    names = ("embed_in", "layers", "final_layer_norm")
    norm_eps = sizes.setting("layer_norm_eps")
    rope = sizes.rotary(key="rotary_emb_base", share=1.0, share_key="rotary_pct")
    norm = parts.use_layer_norm

    def kinds(c) -> parts.Kinds:
        return parts.last_differs(c.n_layers)

    def layer(c, x: Data, kind: str) -> Data:
        x = x + c.attention(c.norm(x, "input_layernorm"), bias=kind == "last")
        h = c.norm(x, "post_attention_layernorm")
        return x + parts.plain_mlp(
            h, ("mlp.dense_h_to_4h", "mlp.dense_4h_to_h"), "mlp", c.d_ff, activation=c.activation
        )

    def attention(c, x: Data, *, bias: bool) -> Data:
        q, k, v = parts.fused_qkv(c, x, "attention.query_key_value", bias=False, groups=c.n_heads)
        a = ops.attend_causally(parts.partial_rope(q, c.d_rope, c.rope), parts.partial_rope(k, c.d_rope, c.rope), v)
        y = ops.linear(a, "attention.dense", "output_projection", c.d_model)
        return ops.add_vector(y, "attention.dense_bias", "output_projection", c.d_model) if bias else y

    def head(c, x: Data) -> Data:
        return parts.head(c, x, "gpt_neox_japanese.embed_in.weight", "embed_out")

    def check(c) -> None:
        sizes.check_heads_fill(c)
        rotation_fits(c)
