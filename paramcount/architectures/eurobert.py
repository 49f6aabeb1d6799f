"""EuroBERT: Llama's layers, in which all tokens see one another."""

from paramcount.declare import Data, ops, parts, sizes

TABLE = "model.embed_tokens.weight"


class EuroBert(parts.PositionlessEncoder):
    """Source: arXiv:2503.05500, section 2; EuroBertDecoderLayer of the reference."""

    reference = "EuroBertForMaskedLM"
    task_heads = {
        "ForSequenceClassification": parts.TaskHead(
            parts.task_heads.classify_before_mean,
            parts.LABELS,
            (sizes.one_of("classifier_pooling", ("bos", "mean", "late"), "late"),),
        ),
        "ForTokenClassification": parts.TOKENS,
    }
    rotated = "d_head"
    conditions = (sizes.padding_in_table(128001),)
    prefix = "model."
    layers_name = "layers"
    last_norm = "norm"

    n_kv_heads: sizes.Positive = sizes.hf(absent=sizes.equal_to("n_heads"), null=sizes.equal_to("n_heads"))
    d_head: sizes.Positive = sizes.hf(absent=sizes.d_model_per_head, null=sizes.d_model_per_head)
    attention_bias: sizes.Flag = sizes.hf()
    mlp_bias: sizes.Flag = sizes.hf()
    tie_word_embeddings: sizes.Flag = sizes.hf()

    pooling = sizes.setting("classifier_pooling")
    norm_eps = sizes.setting("rms_norm_eps")
    rope = sizes.rotary(10_000, 8192)

    def embed(c, tokens: Data, *reads: Data) -> Data:
        return ops.lookup(tokens, TABLE, "embedding", c.vocab_size, c.d_model)

    def layer(c, x: Data) -> Data:
        h = c.norm(x, "input_layernorm")
        x = x + parts.attentions.attention(c, h, "self_attn.", bias=c.attention_bias, mix=ops.attend)
        h = c.norm(x, "post_attention_layernorm")
        return x + parts.gated_mlp(h, "mlp.", "mlp", c.d_ff, activation=c.activation, bias=c.mlp_bias)

    norm = parts.use_rms_norm

    def head(c, x: Data) -> Data:
        return parts.head(c, x, TABLE, bias=c.mlp_bias)

    def check(c) -> None:
        sizes.check_divides(c, "n_heads", "d_model")  # also where d_head is given: the reference asks it
