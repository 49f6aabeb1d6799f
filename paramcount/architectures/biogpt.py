"""BioGPT: learned positions with two rows more, norms first, biases everywhere, tied head."""

from math import sqrt

from paramcount.flow import Data, lookup, scale_by
from paramcount.parts.classic import multi_head
from paramcount.parts.decoder import Decoder
from paramcount.parts.decoders import head, use_layer_norm
from paramcount.parts.feed_forward import plain_mlp
from paramcount.sizes import Flag, Natural, Positive, d_model_per_head, derived, hf, setting
from paramcount.sizes.conditions import padding_in_table
from paramcount.sizes.rules import check_heads_fill


class BioGPT(Decoder):
    """Source: arXiv:2210.10341; BioGptDecoderLayer of the reference."""

    reference = "BioGptForCausalLM"
    is_section_type = True
    task_heads = "GPT"
    conditions = (padding_in_table(1),)

    n_positions: Positive = hf("max_position_embeddings")
    n_heads: Positive = hf()
    d_head: Positive = derived(d_model_per_head)
    d_ff: Natural = hf()
    tie_word_embeddings: Flag = hf()

    prefix = "biogpt."
    names = ("embed_tokens", "layers", "layer_norm")
    activation = setting("hidden_act", default="gelu")
    norm_eps = 1e-5
    rope = None
    embedding_scale = setting(default=lambda js, c: sqrt(c.d_model) if js.get("scale_embedding", True) else 1.0)
    norm = use_layer_norm
    check = check_heads_fill

    def embed(c, tokens: Data) -> Data:
        """Positions are counted from 2: fairseq counts them from behind its padding token."""
        x, name, rows = (
            scale_by(super().embed(tokens), c.embedding_scale),
            "biogpt.embed_positions.weight",
            c.n_positions + 2,
        )
        return x + lookup(tokens, name, "position", rows, c.d_model, index="positions", offset=2)

    def layer(c, x: Data) -> Data:
        x = x + multi_head(c, c.norm(x, "self_attn_layer_norm"), "self_attn.")
        h = c.norm(x, "final_layer_norm")
        return x + plain_mlp(h, ("fc1", "fc2"), "mlp", c.d_ff, activation=c.activation, bias=True)

    def head(c, x: Data) -> Data:
        return head(c, x, "biogpt.embed_tokens.weight", "output_projection")
