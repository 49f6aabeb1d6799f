"""CTRL: sinusoidal positions, norms first, biases everywhere, the tied head's too."""

from paramcount.flow import Data, layer_norm, scale_by_root, sinusoids
from paramcount.parts import task_heads as heads
from paramcount.parts.classic import multi_head
from paramcount.parts.decoder import Decoder
from paramcount.parts.decoders import head, use_layer_norm
from paramcount.parts.feed_forward import plain_mlp
from paramcount.parts.tasks import LABELS, TaskHead
from paramcount.sizes import Flag, Natural, Positive, d_model_per_head, derived, hf, setting
from paramcount.sizes.conditions import positions_from
from paramcount.sizes.rules import check_heads_fill


class CTRL(Decoder):
    """Source: arXiv:1909.05858; EncoderLayer in modeling_ctrl.py of the reference."""

    reference = "CTRLLMHeadModel"
    task_heads = {"ForSequenceClassification": TaskHead(heads.score_last_unnamed_bias, LABELS)}
    conditions = (positions_from(1, "n_positions", "max_position_embeddings"),)

    d_model: Positive = hf("hidden_size", "n_embd")
    n_layers: Natural = hf("num_hidden_layers", "n_layer")
    n_heads: Positive = hf("num_attention_heads", "n_head")
    d_head: Positive = derived(d_model_per_head)
    d_ff: Natural = hf("dff")
    tie_word_embeddings: Flag = hf()

    prefix = "transformer."
    names = ("w", "h", "layernorm")
    activation = "relu"
    norm_eps = setting("layer_norm_epsilon", default=1e-6)  # of the last norm
    rope = None
    norm = use_layer_norm
    check = check_heads_fill

    def embed(c, tokens: Data) -> Data:
        x = scale_by_root(super().embed(tokens), c.d_model)
        return x + sinusoids(x)

    def layer(c, x: Data) -> Data:
        """Its norms have an epsilon of their own."""
        names = ("Wq", "Wk", "Wv", "dense")
        x = x + multi_head(c, layer_norm(x, "layernorm1", 1e-6), "multi_head_attention.", names)
        h = layer_norm(x, "layernorm2", 1e-6)
        return x + plain_mlp(h, ("ffn.0", "ffn.2"), "mlp", c.d_ff, activation=c.activation, bias=True)

    def head(c, x: Data) -> Data:
        return head(c, x, "transformer.w.weight", bias=True)
