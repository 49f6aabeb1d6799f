"""XGLM: sinusoidal positions, norms first, and if wanted a look at an encoder's output in every layer."""

from math import sqrt

from paramcount.declare import Data, ops, parts, sizes


class XGLM(parts.Decoder):
    """Source: arXiv:2112.10668; XGLMDecoderLayer of the reference."""

    reference = "XGLMForCausalLM"
    is_section_type = True
    conditions = (sizes.padding_in_table(1), sizes.positions_from(0))

    d_model: sizes.Positive = sizes.hf("hidden_size", "d_model")
    n_layers: sizes.Natural = sizes.hf("num_hidden_layers", "num_layers")
    n_heads: sizes.Positive = sizes.hf("num_attention_heads", "attention_heads")
    d_head: sizes.Positive = sizes.derived(sizes.d_model_per_head)
    d_ff: sizes.Natural = sizes.hf("ffn_dim")
    cross_attention: sizes.Flag = sizes.hf()

    names = ("embed_tokens", "layers", "layer_norm")
    activation = sizes.setting("activation_function")
    norm_eps = 1e-5
    rope = None
    embedding_scale = sizes.setting(default=lambda js, c: sqrt(c.d_model) if js.get("scale_embedding", True) else 1.0)
    norm = parts.use_layer_norm

    def embed(c, tokens: Data) -> Data:
        x = ops.scale_by(super().embed(tokens), c.embedding_scale)
        return x + ops.sinusoids(x, slowest="base", offset=2)

    def forward(c, tokens: Data) -> Data:
        memory = (parts.source_states(c.d_model),) if c.cross_attention else ()
        return c.head(c.transform(c.embed(tokens), *memory))

    def layer(c, x: Data, *memory: Data) -> Data:
        x = x + parts.multi_head(c, c.norm(x, "self_attn_layer_norm"), "self_attn.", mix=ops.attend_causally)
        for source in memory:
            x = parts.crossing(x, "", c.look, source)
        h = c.norm(x, "final_layer_norm")
        return x + parts.plain_mlp(h, ("fc1", "fc2"), "mlp", c.d_ff, activation=c.activation, bias=True)

    def look(c, x: Data, memory: Data) -> Data:
        return x + parts.multi_head(c, c.norm(x, "encoder_attn_layer_norm"), "encoder_attn.", memory=memory)

    def check(c) -> None:
        sizes.check_heads_fill(c)
        sizes.check_sinusoids(c)
