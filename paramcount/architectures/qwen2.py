"""Qwen 1.5, 2 and 2.5: the Llama layout with a bias on q, k and v, always."""

from typing import ClassVar

from paramcount.flow import Data, given, join, layers, linear
from paramcount.parts.decoder import AttentionDecoder
from paramcount.parts.decoders import layers_by_setting
from paramcount.sizes import Condition, Flag, Natural, Positive, equal_to, hf, rotary, setting
from paramcount.sizes.conditions import attention_words, one_rope, padding_in_table, sliding_layers_have_a_window
from paramcount.sizes.layer_types import sliding_types, used_window


class Qwen2(AttentionDecoder):
    """Source: arXiv:2407.10671, section 2.2.1."""

    reference = "Qwen2ForCausalLM"
    gguf = "qwen2"
    is_section_type = True
    task_heads = "GENERIC_MOVED"
    rotated = "d_head"
    conditions: ClassVar[tuple[Condition, ...]] = (
        attention_words("full_attention", "sliding_attention"),
        sliding_layers_have_a_window,
        one_rope,
        padding_in_table(None),
    )

    n_kv_heads: Positive = hf(null=equal_to("n_heads"))
    d_ff: Natural = hf()
    tie_word_embeddings: Flag = hf()

    rope = rotary(positions=32768)
    layer_types = setting(default=sliding_types())
    window = setting(default=used_window(4096))
    kinds = layers_by_setting

    def layer(c, x: Data, kind: str = "full_attention") -> Data:
        window = c.window if kind == "sliding_attention" else None
        h = c.norm(x, "input_layernorm")
        x = x + c.self_attention(h, window=window, bias=True, o_bias=False)
        return x + c.gated_mlp(c.norm(x, "post_attention_layernorm"))


class MiMo(Qwen2):
    """MiMo: Qwen 2's layers, and layers that predict one token more from the last hidden state and the next token.

    Source: arXiv:2505.07608, section 2.
    """

    reference = "MiMoForCausalLM of XiaomiMiMo/MiMo-7B-Base"
    model_types = ("mimo",)

    n_mtp_layers: Natural = hf("num_nextn_predict_layers", absent=0)

    def mtp(c, tokens: Data) -> Data:
        hidden, token = given("hidden", "tokens", c.d_model), given("next token", "tokens", c.d_model)
        return layers(
            hidden,
            "model.mtp_layers.{layer}.",
            [("mtp", c.n_mtp_layers)],
            lambda kind, x, t: predict(c, x, t),
            reads=(token,),
        )


def predict(c: MiMo, x: Data, token: Data) -> Data:
    """The model's own table and head stand before and behind it."""
    x = linear(join(c.norm(x, "hidden_layernorm"), c.norm(token, "token_layernorm")), "input_proj", "other", c.d_model)
    return c.norm(c.layer(x), "final_layernorm")
