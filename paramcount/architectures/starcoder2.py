"""StarCoder2: LayerNorms, a plain MLP and biases everywhere, grouped-query attention with an optional window."""

from paramcount.flow import Data
from paramcount.parts.decoder import AttentionDecoder
from paramcount.parts.decoders import use_layer_norm
from paramcount.parts.feed_forward import plain_mlp
from paramcount.sizes import ABSENT, Flag, Natural, Positive, d_model_per_head, hf, rotary, setting
from paramcount.sizes.conditions import one_mask, padding_in_table


class Starcoder2(AttentionDecoder):
    """Source: arXiv:2402.19173."""

    reference = "Starcoder2ForCausalLM"
    gguf = "starcoder2"
    is_section_type = True
    task_heads = "GENERIC"
    rotated = "d_head"
    conditions = (padding_in_table(None), one_mask())

    d_head: Positive = hf(absent=d_model_per_head, null=ABSENT)
    d_ff: Natural = hf()
    window: Positive | None = hf(absent=None)
    bias: Flag = hf("use_bias")
    tie_word_embeddings: Flag = hf()

    activation = setting("hidden_act", default="gelu_pytorch_tanh")
    norm_eps = setting("norm_epsilon", default=1e-5)
    rope = rotary(positions=4096)
    norm = use_layer_norm

    def layer(c, x: Data) -> Data:
        x = x + c.self_attention(c.norm(x, "input_layernorm"), bias=c.bias, window=c.window)
        h = c.norm(x, "post_attention_layernorm")
        return x + plain_mlp(h, ("mlp.c_fc", "mlp.c_proj"), "mlp", c.d_ff, activation=c.activation, bias=c.bias)
