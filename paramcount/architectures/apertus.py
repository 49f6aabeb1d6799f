"""Apertus: a norm on every query and key head, an MLP without a gate whose activation has two learned numbers."""

from paramcount.declare import Data, ops, parts, sizes

SCALED = {  # the reference's default of rope_parameters
    "rope_type": "llama3", "rope_theta": 12_000_000.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}  # fmt: skip


class Apertus(parts.AttentionBias, parts.AttentionDecoder):
    """Source: modeling_apertus.py of the reference; the activation arXiv:2411.13010."""

    reference = "ApertusForCausalLM"
    gguf = "apertus"
    gguf_rope_factors = "llama3"
    task_heads = "SCORED_TOKENS"
    conditions = (sizes.padding_in_table(3),)

    # Of the activations that hidden_act may name only xIELU has parameters.
    learned_activation: sizes.Flag = sizes.derived(lambda js, c: bool(js.get("hidden_act", "xielu") == "xielu"))

    rope = sizes.rotary(absent=SCALED)
    norms_heads = True

    def layer(c, x: Data) -> Data:
        h = c.norm(x, "attention_layernorm")
        x = x + c.self_attention(h, bias=c.attention_bias)
        h = ops.linear(c.norm(x, "feedforward_layernorm"), "mlp.up_proj", "mlp.up", c.d_ff)
        h = xielu(h, "mlp.act_fn.") if c.learned_activation else ops.activate(h, c.activation)
        return x + ops.linear(h, "mlp.down_proj", "mlp.down", c.d_model)


def xielu(x: Data, prefix: str) -> Data:
    """xIELU: two learned values, one for each side of zero, and two fixed ones that are saved with them."""
    learned = (ops.Weight(prefix + "alpha_p", "other", (1,)), ops.Weight(prefix + "alpha_n", "other", (1,)))
    fixed = (
        ops.Weight(prefix + "beta", "other", (), role="buffer"),
        ops.Weight(prefix + "eps", "other", (), role="buffer"),
    )
    return Data(ops.XIELU(), (x,), x.shape, learned + fixed)
