"""BioGPT: learned positions with two rows more, norms first, biases everywhere, tied head."""

from math import sqrt

from paramcount.declare import Data, ops, parts, sizes


class BioGPT(parts.EqualHeads, parts.Decoder):
    """Source: arXiv:2210.10341; BioGptDecoderLayer of the reference."""

    reference = "BioGptForCausalLM"
    is_section_type = True
    task_heads = "GPT"
    conditions = (sizes.padding_in_table(1),)

    n_positions: sizes.Positive = sizes.hf("max_position_embeddings")
    d_ff: sizes.Natural = sizes.hf()

    prefix = "biogpt."
    names = ("embed_tokens", "layers", "layer_norm")
    norm_eps = 1e-5
    rope = None
    embedding_scale = sizes.setting(default=lambda js, c: sqrt(c.d_model) if js.get("scale_embedding", True) else 1.0)
    norm = parts.use_layer_norm

    def embed(c, tokens: Data) -> Data:
        """Positions are counted from 2: fairseq counts them from behind its padding token."""
        x, name, rows = (
            ops.scale_by(super().embed(tokens), c.embedding_scale),
            "biogpt.embed_positions.weight",
            c.n_positions + 2,
        )
        return x + ops.lookup_position(tokens, name, rows, c.d_model, offset=2)

    def layer(c, x: Data) -> Data:
        x = x + parts.multi_head(c, c.norm(x, "self_attn_layer_norm"), "self_attn.", mix=ops.attend_causally)
        h = c.norm(x, "final_layer_norm")
        return x + parts.plain_mlp(h, ("fc1", "fc2"), "mlp", c.d_ff, activation=c.activation, bias=True)

    def head(c, x: Data) -> Data:
        return parts.head(c, x, "biogpt.embed_tokens.weight", "output_projection")
