"""nanochat: norms without parameters, also after the token embedding, and a squared-ReLU MLP."""

from paramcount.flow import Data, plain_norm, rope, soft_cap
from paramcount.parts.decoder import AttentionDecoder
from paramcount.parts.feed_forward import plain_mlp
from paramcount.sizes import ABSENT, Flag, Natural, Positive, equal_to, hf, setting
from paramcount.sizes.conditions import padding_in_table


class NanoChat(AttentionDecoder):
    """Source: modeling_nanochat.py of the reference."""

    reference = "NanoChatForCausalLM"
    is_section_type = True
    linear_by_component = False
    rotated = "d_head"
    conditions = (padding_in_table(1),)

    n_kv_heads: Positive = hf(absent=equal_to("n_heads"), null=ABSENT)
    d_ff: Natural = hf()
    attention_bias: Flag = hf()
    tie_word_embeddings: Flag = hf()

    activation = setting("hidden_act", default="relu2")
    logit_cap = setting("final_logit_softcapping", default=15.0, nullable=True)

    def embed(c, tokens: Data) -> Data:
        return c.norm(super().embed(tokens))

    def layer(c, x: Data) -> Data:
        x = x + c.self_attention(c.norm(x), bias=c.attention_bias, prepare=c.prepare)
        return x + plain_mlp(c.norm(x), ("mlp.fc1", "mlp.fc2"), "mlp", c.d_ff, activation=c.activation)

    def prepare(c, q: Data, k: Data) -> tuple[Data, Data]:
        return c.norm(rope(q, c.rope, "reversed halves")), c.norm(rope(k, c.rope, "reversed halves"))

    def norm(c, x: Data, name: str = "") -> Data:
        return plain_norm(x, "rms", c.norm_eps)

    def head(c, x: Data) -> Data:
        return soft_cap(super().head(x), c.logit_cap)
