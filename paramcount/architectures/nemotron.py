"""Nemotron-4 and Minitron: LayerNorms that scale by 1 + weight, squared ReLU without a gate, partial rotation."""

from paramcount.errors import ParamcountError
from paramcount.flow import Data, layer_norm
from paramcount.parts.attentions import partial_rope
from paramcount.parts.decoder import AttentionDecoder
from paramcount.parts.feed_forward import plain_mlp
from paramcount.sizes import ABSENT, ConfigJson, FieldValues, Flag, Natural, Positive, derived, hf, rotary, setting
from paramcount.sizes.conditions import padding_in_table
from paramcount.sizes.derivations import d_model_per_head
from paramcount.sizes.rotary_sizes import rotary_width
from paramcount.sizes.rules import check_at_most


def rotated_width(js: ConfigJson, c: FieldValues) -> int:
    """Half of a head where nothing else is said; null does not stand for that."""
    rope = js.get("rope_scaling") or js.get("rope_parameters") or {}
    if js.get("partial_rotary_factor", 0.5) is None and rope.get("partial_rotary_factor") is None:
        raise ParamcountError("= null", where="partial_rotary_factor", expected="a number, or no such key")
    width: int = rotary_width(0.5)(js, c)
    return (
        1 if width == 2 and c["d_head"] == 1 else width
    )  # it meets its pair of angles by broadcasting, so the reference runs it


class Nemotron(AttentionDecoder):
    """Source: arXiv:2402.16819, section 2; modeling_nemotron.py of the reference."""

    reference = "NemotronForCausalLM"
    gguf = "nemotron"
    is_section_type = True
    task_heads = "GENERIC_MOVED"
    conditions = (padding_in_table(None),)

    n_kv_heads: Positive = hf()  # absent or null, the reference divides by None
    d_head: Positive = hf(absent=d_model_per_head, null=ABSENT)
    d_rope: Natural = derived(rotated_width)
    d_ff: Natural = hf()
    attention_bias: Flag = hf()
    mlp_bias: Flag = hf()
    tie_word_embeddings: Flag = hf()

    activation = setting("hidden_act", default="relu2")
    norm_eps = setting("norm_eps", default=1e-5)
    rope = rotary(positions=4096, share=0.5)

    def layer(c, x: Data) -> Data:
        x = x + c.self_attention(c.norm(x, "input_layernorm"), bias=c.attention_bias, rotate=c.rotate)
        h, names = c.norm(x, "post_attention_layernorm"), ("mlp.up_proj", "mlp.down_proj")
        return x + plain_mlp(h, names, "mlp", c.d_ff, activation=c.activation, bias=c.mlp_bias)

    def rotate(c, x: Data) -> Data:
        return partial_rope(x, c.d_rope, c.rope)

    def norm(c, x: Data, name: str) -> Data:
        return layer_norm(x, name, c.norm_eps, offset=1.0)

    def check(c) -> None:
        check_at_most(c, "d_rope", "d_head")
