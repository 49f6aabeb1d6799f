"""DistilBERT: half of BERT's layers, without token types and pooler."""

from typing import ClassVar

from paramcount.flow import Data, block, layers
from paramcount.parts import task_heads as heads
from paramcount.parts.classic import multi_head
from paramcount.parts.decoders import use_layer_norm
from paramcount.parts.encoders import embed_tokens, masked_head
from paramcount.parts.feed_forward import plain_mlp
from paramcount.parts.tasks import BERT, LABELS, TaskHead
from paramcount.sizes import Flag, Natural, Positive, Sizes, d_model_per_head, derived, hf, setting
from paramcount.sizes.conditions import padding_inside
from paramcount.sizes.rules import check_heads_fill

MATRICES = ("q_lin", "k_lin", "v_lin", "out_lin")
HEAD = ("vocab_transform", "vocab_layer_norm", "vocab_projector", "vocab_projector.bias")


class DistilBert(Sizes):
    """Source: arXiv:1910.01108, section 3; TransformerBlock in modeling_distilbert.py of the reference."""

    reference = "DistilBertForMaskedLM"
    gguf = "bert"
    task_heads = BERT | {
        "ForSequenceClassification": TaskHead(heads.preclassified(lambda c: c.n_labels), LABELS),
        "ForMultipleChoice": TaskHead(heads.preclassified(lambda c: 1), {}),
    }
    conditions = (padding_inside(0),)

    vocab_size: Positive = hf()
    d_model: Positive = hf("hidden_size", "dim")
    n_layers: Natural = hf("num_hidden_layers", "n_layers")
    n_heads: Positive = hf("num_attention_heads", "n_heads")
    d_head: Positive = derived(d_model_per_head)
    d_ff: Natural = hf("hidden_dim")
    n_positions: Positive = hf("max_position_embeddings")
    tie_word_embeddings: Flag = hf()

    prefix: ClassVar[str] = "distilbert."
    activation = setting("activation", default="gelu")
    norm_eps: ClassVar = 1e-12
    first_position: ClassVar = 0
    norm = use_layer_norm
    check = check_heads_fill

    def forward(c, tokens: Data, head: bool = True) -> Data:
        def build(tokens: Data) -> Data:
            x = c.norm(embed_tokens(c, tokens, None, c.d_model), "distilbert.embeddings.LayerNorm")
            name, kinds = "distilbert.transformer.layer.{layer}.", [("layer", c.n_layers)]
            x = layers(x, name, kinds, lambda kind, x: c.layer(x))
            return masked_head(c, x, HEAD, c.d_model, c.activation) if head else x

        return block(tokens, "", build, part="encoder")

    def layer(c, x: Data) -> Data:
        x = c.norm(x + multi_head(c, x, "attention.", MATRICES, cached=False), "sa_layer_norm")
        mlp = plain_mlp(x, ("ffn.lin1", "ffn.lin2"), "mlp", c.d_ff, activation=c.activation, bias=True)
        return c.norm(x + mlp, "output_layer_norm")

    def body(c, tokens: Data) -> Data:
        return c.forward(tokens, head=False)
