"""DistilBERT: half of BERT's layers, without token types and pooler."""

from typing import ClassVar

from paramcount.declare import Data, ops, parts, sizes

MATRICES = ("q_lin", "k_lin", "v_lin", "out_lin")
HEAD = ("vocab_transform", "vocab_layer_norm", "vocab_projector", "vocab_projector.bias")


class DistilBert(sizes.Sizes):
    """Source: arXiv:1910.01108, section 3; TransformerBlock in modeling_distilbert.py of the reference."""

    reference = "DistilBertForMaskedLM"
    gguf = "bert"
    task_heads = parts.tasks.BERT | {
        "ForSequenceClassification": parts.TaskHead(
            parts.through("pre_classifier", "classifier", activation="relu"), parts.LABELS
        ),
        "ForMultipleChoice": parts.tasks.APPROXIMATE["ForMultipleChoice"],
    }
    conditions = (sizes.padding_inside(0),)

    vocab_size: sizes.Positive = sizes.hf()
    d_model: sizes.Positive = sizes.hf("hidden_size", "dim")
    n_layers: sizes.Natural = sizes.hf("num_hidden_layers", "n_layers")
    n_heads: sizes.Positive = sizes.hf("num_attention_heads", "n_heads")
    d_head: sizes.Positive = sizes.derived(sizes.d_model_per_head)
    d_ff: sizes.Natural = sizes.hf("hidden_dim")
    n_positions: sizes.Positive = sizes.hf("max_position_embeddings")
    tie_word_embeddings: sizes.Flag = sizes.hf()

    prefix: ClassVar[str] = "distilbert."
    activation = sizes.setting("activation")
    norm_eps: ClassVar = 1e-12
    first_position: ClassVar = 0
    norm = parts.use_layer_norm
    check = sizes.check_heads_fill

    def forward(c, tokens: Data, head: bool = True) -> Data:
        def build(tokens: Data) -> Data:
            x = c.norm(parts.embed_tokens(c, tokens, None, c.d_model), "distilbert.embeddings.LayerNorm")
            name, kinds = "distilbert.transformer.layer.{layer}.", [("layer", c.n_layers)]
            x = ops.layers(x, name, kinds, lambda kind, x: c.layer(x))
            return parts.masked_head(c, x, HEAD, c.d_model, c.activation) if head else x

        return ops.block(tokens, "", build, part="encoder")

    def layer(c, x: Data) -> Data:
        x = c.norm(x + parts.multi_head(c, x, "attention.", MATRICES), "sa_layer_norm")
        mlp = parts.plain_mlp(x, ("ffn.lin1", "ffn.lin2"), "mlp", c.d_ff, activation=c.activation, bias=True)
        return c.norm(x + mlp, "output_layer_norm")

    def body(c, tokens: Data) -> Data:
        return c.forward(tokens, head=False)
