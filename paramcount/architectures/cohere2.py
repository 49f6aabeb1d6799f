"""Command R7B and Command A: Command R, three of four layers looking back over a window; the others rotate nothing."""

from paramcount.declare import Data, ops, parts, sizes


class Cohere2(parts.AttentionBias, parts.AttentionDecoder):
    """Source: modeling_cohere2.py of the reference; layers without positions arXiv:2501.18795."""

    reference = "Cohere2ForCausalLM"
    gguf = "cohere2"
    conditions = (sizes.padding_in_table(0),)

    layer_types: sizes.Words = sizes.hf(absent=sizes.full_every_stated(4), null=sizes.ABSENT)
    window: sizes.Positive = sizes.hf()

    norm_eps = sizes.setting("layer_norm_eps")
    logit_scale = sizes.setting("logit_scale")
    kinds = parts.layers_by_type

    def layer(c, x: Data, kind: str) -> Data:
        h = c.norm(x, "input_layernorm")
        local = kind == "sliding_attention"
        window = c.window if local else None
        a = c.self_attention(h, bias=c.attention_bias, prepare=c.prepare_by(local), window=window)
        return x + a + c.gated_mlp(h)

    def rotate(c, x: Data) -> Data:
        return ops.rope(x, c.rope, "interleaved")

    def norm(c, x: Data, name: str) -> Data:
        return ops.layer_norm(x, name, c.norm_eps, bias=False)

    def head(c, x: Data) -> Data:
        return ops.scale_by(super().head(x), c.logit_scale, "times logit_scale")

    def check(c) -> None:
        sizes.check_rotated_in_pairs(c, "d_head")
        sizes.check_layer_types(c, "layer_types", "n_layers", sizes.SLIDING)
