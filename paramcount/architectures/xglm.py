"""XGLM: sinusoidal positions, norms first, and if wanted a look at an encoder's output in every layer."""

from math import sqrt

from paramcount.flow import Data, scale_by, sinusoids
from paramcount.parts.classic import crossing, multi_head, source_states
from paramcount.parts.decoder import Decoder
from paramcount.parts.decoders import use_layer_norm
from paramcount.parts.feed_forward import plain_mlp
from paramcount.sizes import Flag, Natural, Positive, d_model_per_head, derived, hf, setting
from paramcount.sizes.conditions import padding_in_table, positions_from
from paramcount.sizes.rules import check_heads_fill, check_sinusoids


class XGLM(Decoder):
    """Source: arXiv:2112.10668; XGLMDecoderLayer of the reference."""

    reference = "XGLMForCausalLM"
    is_section_type = True
    conditions = (padding_in_table(1), positions_from(0))

    d_model: Positive = hf("hidden_size", "d_model")
    n_layers: Natural = hf("num_hidden_layers", "num_layers")
    n_heads: Positive = hf("num_attention_heads", "attention_heads")
    d_head: Positive = derived(d_model_per_head)
    d_ff: Natural = hf("ffn_dim")
    cross_attention: Flag = hf("add_cross_attention")
    tie_word_embeddings: Flag = hf()

    names = ("embed_tokens", "layers", "layer_norm")
    activation = setting("activation_function", default="gelu")
    norm_eps = 1e-5
    rope = None
    embedding_scale = setting(default=lambda js, c: sqrt(c.d_model) if js.get("scale_embedding", True) else 1.0)
    norm = use_layer_norm

    def embed(c, tokens: Data) -> Data:
        x = scale_by(super().embed(tokens), c.embedding_scale)
        return x + sinusoids(x, slowest="base", offset=2)

    def forward(c, tokens: Data) -> Data:
        memory = (source_states(c.d_model),) if c.cross_attention else ()
        return c.head(c.transform(c.embed(tokens), *memory))

    def layer(c, x: Data, *memory: Data) -> Data:
        x = x + multi_head(c, c.norm(x, "self_attn_layer_norm"), "self_attn.")
        for source in memory:
            x = crossing(x, "", c.look, source)
        h = c.norm(x, "final_layer_norm")
        return x + plain_mlp(h, ("fc1", "fc2"), "mlp", c.d_ff, activation=c.activation, bias=True)

    def look(c, x: Data, memory: Data) -> Data:
        return x + multi_head(c, c.norm(x, "encoder_attn_layer_norm"), "encoder_attn.", memory=memory)

    def check(c) -> None:
        check_heads_fill(c)
        check_sinusoids(c)
