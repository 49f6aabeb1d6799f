"""CTRL: sinusoidal positions, norms first, biases everywhere, the tied head's too."""

from paramcount.declare import Data, ops, parts, sizes


class CTRL(parts.EqualHeads, parts.Decoder):
    """Source: arXiv:1909.05858; EncoderLayer in modeling_ctrl.py of the reference."""

    reference = "CTRLLMHeadModel"
    task_heads = {
        "ForSequenceClassification": parts.TaskHead(
            parts.of_last_position(parts.score("classifier", bias=False)), parts.LABELS
        )
    }
    conditions = (sizes.positions_from(1, "n_positions", "max_position_embeddings"),)

    d_model: sizes.Positive = sizes.hf("hidden_size", "n_embd")
    n_layers: sizes.Natural = sizes.hf("num_hidden_layers", "n_layer")
    n_heads: sizes.Positive = sizes.hf("num_attention_heads", "n_head")
    d_ff: sizes.Natural = sizes.hf("dff")

    prefix = "transformer."
    names = ("w", "h", "layernorm")
    activation = "relu"
    norm_eps = sizes.setting("layer_norm_epsilon")  # of the last norm
    rope = None
    norm = parts.use_layer_norm

    def embed(c, tokens: Data) -> Data:
        x = ops.scale_by_root(super().embed(tokens), c.d_model)
        return x + ops.sinusoids(x)

    def layer(c, x: Data) -> Data:
        """Its norms have an epsilon of their own."""
        names = ("Wq", "Wk", "Wv", "dense")
        x = x + parts.multi_head(
            c, ops.layer_norm(x, "layernorm1", 1e-6), "multi_head_attention.", names, mix=ops.attend_causally
        )
        h = ops.layer_norm(x, "layernorm2", 1e-6)
        return x + parts.plain_mlp(h, ("ffn.0", "ffn.2"), "mlp", c.d_ff, activation=c.activation, bias=True)

    def head(c, x: Data) -> Data:
        return parts.head(c, x, "transformer.w.weight", bias=True)
