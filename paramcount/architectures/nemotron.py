"""Nemotron-4 and Minitron: LayerNorms that scale by 1 + weight, squared ReLU without a gate, partial rotation."""

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import ParamcountError


def rotated_width(js: sizes.ConfigJson, c: sizes.FieldValues) -> int:
    """Half of a head where nothing else is said; null does not stand for that."""
    rope = js.get("rope_scaling") or js.get("rope_parameters") or {}
    if js.get("partial_rotary_factor", 0.5) is None and rope.get("partial_rotary_factor") is None:
        raise ParamcountError("= null", where="partial_rotary_factor", expected="a number, or no such key")
    width: int = sizes.rotary_dimension(0.5)(js, c)
    return (
        1 if width == 2 and c["d_head"] == 1 else width
    )  # it meets its pair of angles by broadcasting, so the reference runs it


class Nemotron(parts.AttentionBias, parts.PartlyRotated):
    """Source: arXiv:2402.16819, section 2; modeling_nemotron.py of the reference."""

    reference = "NemotronForCausalLM"
    gguf = "nemotron"
    task_heads = "GENERIC_MOVED"
    conditions = (sizes.padding_in_table(None),)

    n_kv_heads: sizes.Positive = sizes.hf()  # absent or null, the reference divides by None
    d_head: sizes.Positive = sizes.hf(absent=sizes.d_model_per_head, null=sizes.ABSENT)
    d_rope: sizes.Natural = sizes.derived(rotated_width)
    mlp_bias: sizes.Flag = sizes.hf()

    norm_eps = sizes.setting("norm_eps")
    rope = sizes.rotary(share=0.5)

    def layer(c, x: Data) -> Data:
        x = x + c.self_attention(c.norm(x, "input_layernorm"), bias=c.attention_bias)
        h, names = c.norm(x, "post_attention_layernorm"), ("mlp.up_proj", "mlp.down_proj")
        return x + parts.plain_mlp(h, names, "mlp", c.d_ff, activation=c.activation, bias=c.mlp_bias)

    def norm(c, x: Data, name: str) -> Data:
        return ops.layer_norm(x, name, c.norm_eps, offset=1.0)
