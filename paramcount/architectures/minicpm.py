"""MiniCPM, MiniCPM4 and MiniCPM-MoE: Llama's layers or experts, their outputs scaled before the residual.

A tied LM head by default.
"""

from math import sqrt

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import ParamcountError


def n_active(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """No num_experts_per_tok, which only a model without experts may lack."""
    if c["n_routed_experts"] is not None:
        raise ParamcountError("is missing", where="num_experts_per_tok", expected="a positive integer")


class MiniCPM(parts.EqualHeads, parts.AttentionDecoder):
    """Source: modeling_minicpm.py of openbmb/MiniCPM-2B-sft-bf16 and openbmb/MiniCPM-MoE-8x2B."""

    reference = "MiniCPMForCausalLM of openbmb/MiniCPM-2B-sft-bf16"
    gguf = "minicpm"
    published_heads = "MINICPM"
    gguf_rope_factors = "longrope"
    defaults = {"vocab_size": 32000, "d_model": 4096, "n_layers": 32, "n_heads": 32}

    d_ff: sizes.Natural = sizes.hf(absent=11008)
    n_routed_experts: sizes.Positive | None = sizes.derived(lambda js, c: js.get("num_experts", 0) or None)
    n_active_experts: sizes.Positive | None = sizes.hf(absent=n_active)
    attention_bias: sizes.Flag = sizes.hf(absent=False)
    tie_word_embeddings: sizes.Flag = sizes.hf(absent=True)

    embedding_scale = sizes.setting("scale_emb", default=1.0)
    residual_scale = sizes.setting(default=lambda config, c: float(config.get("scale_depth", 1) / sqrt(c.n_layers)))
    output_scale = sizes.setting(default=lambda config, c: float(config.get("dim_model_base", 1) / c.d_model))

    def embed(c, tokens: Data) -> Data:
        return ops.scale_by(super().embed(tokens), c.embedding_scale, "times scale_emb")

    def layer(c, x: Data) -> Data:
        h = c.self_attention(c.norm(x, "input_layernorm"), bias=c.attention_bias)
        x = x + ops.scale_by(h, c.residual_scale, "times scale_depth / √n_layers")
        h = c.feed_forward(c.norm(x, "post_attention_layernorm"))
        return x + ops.scale_by(h, c.residual_scale, "times scale_depth / √n_layers")

    def feed_forward(c, x: Data) -> Data:
        """A gated MLP, or experts of the same size."""
        if c.n_routed_experts is None:
            return c.gated_mlp(x)
        names, activation = ("w1", "w3", "w2"), c.activation
        logits = ops.linear(x, "mlp.gate", "router", c.n_routed_experts)  # [n, experts]
        scores = ops.route(logits, c.n_active_experts, "softmax", normalise=True)  # [n, experts], 0 if not chosen
        prefix, counts = "mlp.experts.{expert}.", (c.n_routed_experts, c.n_active_experts)
        return ops.experts(
            x,
            scores,
            prefix,
            *counts,
            lambda x: parts.gated_mlp(x, "", "experts", c.d_ff, names=names, activation=activation),
        )

    def head(c, x: Data) -> Data:
        return super().head(ops.scale_by(x, c.output_scale, "times dim_model_base / d_model"))

    def unused_fields(c) -> tuple[str, ...]:
        return ("n_active_experts",) if c.n_routed_experts is None else ()
