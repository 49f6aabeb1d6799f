"""GLM-4: half of every head is rotated, q, k and v have a bias, gate and up are stored as one matrix."""

from typing import Any, ClassVar

from paramcount.declare import Data, parts, sizes


class Glm(parts.PartlyRotated):
    """Source: arXiv:2406.12793, section 2."""

    reference = "GlmForCausalLM"
    gguf = "chatglm"
    task_heads = "GENERIC"
    conditions: ClassVar[tuple[sizes.Condition, ...]] = (sizes.padding_in_table(151329),)
    defaults = {"d_head": 128}

    n_kv_heads: sizes.Positive = sizes.hf()
    qkv_bias: sizes.Flag = sizes.hf("attention_bias")

    rope = sizes.rotary(share=0.5)
    axes: ClassVar[Any] = None  # of the rotation, if positions have several

    def layer(c, x: Data) -> Data:
        x = x + c.attend(c.norm(x, "input_layernorm"))
        return x + c.feed_forward(c.norm(x, "post_attention_layernorm"))

    def attend(c, x: Data, *places: Data) -> Data:
        return c.self_attention(x, bias=c.qkv_bias, o_bias=False, prepare=c.prepare_by(lambda y: c.rotate(y, *places)))

    def rotate(c, x: Data, *places: Data) -> Data:
        """`places`: of the tokens, if there may be images."""
        return parts.partial_rope(x, c.d_rope, c.rope, "interleaved", *places, axes=c.axes)

    def feed_forward(c, x: Data) -> Data:
        return parts.fused_gated_mlp(x, "mlp.", "mlp", c.d_ff, activation=c.activation)


class Glm4(Glm):
    """GLM-4-0414: norms behind attention and MLP too. Source: modeling_glm4.py of the reference."""

    reference = "Glm4ForCausalLM"
    model_types = ("glm4",)
    gguf = "glm4"
    task_heads = "GENERIC"

    def layer(c, x: Data, *places: Data) -> Data:
        x = x + c.norm(c.attend(c.norm(x, "input_layernorm"), *places), "post_self_attn_layernorm")
        return x + c.norm(c.feed_forward(c.norm(x, "post_attention_layernorm")), "post_mlp_layernorm")
