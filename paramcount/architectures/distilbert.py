"""DistilBERT: half of BERT's layers, without token types and pooler."""

from paramcount.declare import Data, parts, sizes

MATRICES = ("q_lin", "k_lin", "v_lin", "out_lin")
HEAD = ("vocab_transform", "vocab_layer_norm", "vocab_projector", "vocab_projector.bias")


class DistilBert(parts.MaskedEncoder):
    """Source: arXiv:1910.01108, section 3; TransformerBlock in modeling_distilbert.py of the reference."""

    reference = "DistilBertForMaskedLM"
    gguf = "bert"
    task_heads = parts.tasks.BERT | {
        "ForSequenceClassification": parts.TaskHead(
            parts.through("pre_classifier", "classifier", activation="relu"), parts.LABELS
        ),
        "ForMultipleChoice": parts.tasks.APPROXIMATE["ForMultipleChoice"],
    }
    prefix = "distilbert."
    layers_name = "transformer.layer"
    head_names = HEAD
    reads_source = False

    d_model: sizes.Positive = sizes.hf("hidden_size", "dim")
    n_layers: sizes.Natural = sizes.hf("num_hidden_layers", "n_layers")
    n_heads: sizes.Positive = sizes.hf("num_attention_heads", "n_heads")
    d_ff: sizes.Natural = sizes.hf("hidden_dim")
    tie_word_embeddings: sizes.Flag = sizes.hf()

    activation = sizes.setting("activation")
    norm_eps = 1e-12
    unreachable = sizes.Sizes.unreachable

    def layer(c, x: Data) -> Data:
        x = c.norm(x + parts.multi_head(c, x, "attention.", MATRICES), "sa_layer_norm")
        mlp = parts.plain_mlp(x, ("ffn.lin1", "ffn.lin2"), "mlp", c.d_ff, activation=c.activation, bias=True)
        return c.norm(x + mlp, "output_layer_norm")
