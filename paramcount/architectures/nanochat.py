"""nanochat: norms without parameters, also after the token embedding, and a squared-ReLU MLP."""

from paramcount.declare import Data, ops, parts, sizes


class NanoChat(parts.AttentionBias, parts.AttentionDecoder):
    """Source: modeling_nanochat.py of the reference."""

    reference = "NanoChatForCausalLM"
    linear_by_component = False
    conditions = (sizes.padding_in_table(1),)

    logit_cap = sizes.setting("final_logit_softcapping", nullable=True)

    def embed(c, tokens: Data) -> Data:
        return c.norm(super().embed(tokens))

    def layer(c, x: Data) -> Data:
        x = x + c.self_attention(c.norm(x), bias=c.attention_bias, prepare=c.prepare)
        return x + parts.plain_mlp(c.norm(x), ("mlp.fc1", "mlp.fc2"), "mlp", c.d_ff, activation=c.activation)

    def prepare(c, q: Data, k: Data) -> tuple[Data, Data]:
        return c.norm(ops.rope(q, c.rope, "reversed halves")), c.norm(ops.rope(k, c.rope, "reversed halves"))

    def norm(c, x: Data, name: str = "") -> Data:
        return ops.plain_norm(x, "rms", c.norm_eps)

    def head(c, x: Data) -> Data:
        return ops.soft_cap(super().head(x), c.logit_cap)
