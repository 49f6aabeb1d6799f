"""Qwen 1.5, 2 and 2.5: the Llama layout with a bias on q, k and v, always."""

from typing import ClassVar

from paramcount.declare import Data, ops, parts, sizes


class Qwen2(parts.AttentionDecoder):
    """Source: arXiv:2407.10671, section 2.2.1."""

    reference = "Qwen2ForCausalLM"
    gguf = "qwen2"
    task_heads = "GENERIC_MOVED"
    published_heads = "QWEN2"
    conditions: ClassVar[tuple[sizes.Condition, ...]] = (
        sizes.attention_words("full_attention", "sliding_attention"),
        sizes.sliding_layers_have_a_window,
        sizes.one_rope,
        sizes.padding_in_table(None),
    )

    layer_types = sizes.setting(default=sizes.sliding_types())
    window = sizes.setting(default=sizes.used_window(4096))
    kinds = parts.layers_by_setting

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

    n_mtp_layers: sizes.Natural = sizes.hf("num_nextn_predict_layers", absent=0)

    def mtp(c, tokens: Data) -> Data:
        hidden, token = ops.given("hidden", "tokens", c.d_model), ops.given("next token", "tokens", c.d_model)
        return ops.layers(
            hidden,
            "model.mtp_layers.{layer}.",
            [("mtp", c.n_mtp_layers)],
            lambda kind, x, t: predict(c, x, t),
            reads=(token,),
        )


def predict(c: MiMo, x: Data, token: Data) -> Data:
    """The model's own table and head stand before and behind it."""
    x = ops.linear(
        ops.join(c.norm(x, "hidden_layernorm"), c.norm(token, "token_layernorm")), "input_proj", "other", c.d_model
    )
    return c.norm(c.layer(x), "final_layernorm")
