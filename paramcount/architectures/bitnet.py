"""BitNet b1.58: the Llama layout with one norm more before each layer's two last matrices; its MLP squares a ReLU."""

from paramcount.flow import Data, activate, linear, rms_norm
from paramcount.parts.decoder import AttentionDecoder
from paramcount.sizes import Flag, Natural, Positive, equal_to, hf, rotary, setting
from paramcount.sizes.conditions import padding_in_table
from paramcount.sizes.rules import check_heads_fill


class BitNet(AttentionDecoder):
    """Source: arXiv:2504.12285, section 2."""

    reference = "BitNetForCausalLM"
    gguf = "bitnet bitnet-b1.58"
    is_section_type = True
    rotated = "d_head"
    conditions = (padding_in_table(None),)

    n_kv_heads: Positive = hf(null=equal_to("n_heads"))
    d_ff: Natural = hf()
    attention_bias: Flag = hf()
    tie_word_embeddings: Flag = hf()

    activation = setting("hidden_act", default="relu2")
    norm_eps = setting("rms_norm_eps", default=1e-5)
    rope = rotary(500_000)

    def layer(c, x: Data) -> Data:
        h = c.norm(x, "input_layernorm")
        x = x + c.self_attention(h, bias=c.attention_bias, gate=c.normalise)
        h = c.norm(x, "post_attention_layernorm")
        gated = activate(linear(h, "mlp.gate_proj", "mlp.gate", c.d_ff), c.activation)
        h = c.norm(gated * linear(h, "mlp.up_proj", "mlp.up", c.d_ff), "mlp.ffn_sub_norm")
        return x + linear(h, "mlp.down_proj", "mlp.down", c.d_model)

    def normalise(c, x: Data, a: Data) -> Data:
        """A norm over all heads of the attended values."""
        return rms_norm(a, "self_attn.attn_sub_norm", c.norm_eps, wide=True)

    def check(c) -> None:
        check_heads_fill(c)  # the norm of the attended values is as wide as d_model
