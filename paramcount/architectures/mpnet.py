"""MPNet: BERT without segments, whose layers share a bias for the distance of each pair of tokens."""

from paramcount.declare import Data, ops, parts, sizes

BUCKETS, FARTHEST = 32, 128  # of distances, whatever the size of the table


def buckets_in_table(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """The table of distances has a row for each bucket."""
    if (n := c["n_buckets"]) < BUCKETS:
        raise sizes.make_value_error(n, "relative_attention_num_buckets", f"at least {BUCKETS}")


def padding_is_1(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """The padding token has id 1, whatever the config says, and positions follow that."""
    sizes.padding_inside(1, places=2)({}, c)


class MPNet(parts.LikeRoberta, parts.MaskedEncoder):
    """Source: arXiv:2004.09297, section 3; MPNetLayer of the reference."""

    reference = "MPNetForMaskedLM"
    task_heads = "ROBERTA"
    conditions = (padding_is_1, buckets_in_table)
    prefix = "mpnet."

    n_buckets: sizes.Positive = sizes.hf("relative_attention_num_buckets")
    pooled: sizes.Flag = sizes.derived(sizes.class_ends("Model", "ForMultipleChoice"))
    tie_word_embeddings: sizes.Flag = sizes.hf()

    first_position = 2

    def share(c, tokens: Data, *reads: Data) -> tuple[Data, ...]:
        buckets = ops.bucket_distances(tokens, BUCKETS, FARTHEST, causal=False)
        name = "mpnet.encoder.relative_attention_bias.weight"
        return (ops.lookup(buckets, name, "position", c.n_buckets, c.n_heads),)

    def layer(c, x: Data, bias: Data) -> Data:
        a = parts.multi_head(
            c, x, "attention.attn.", ("q", "k", "v", "o"), mix=lambda q, k, v: ops.attend(q, k, v, bias)
        )
        x = c.norm(x + a, "attention.LayerNorm")
        return c.norm(x + parts.bert_mlp(c, x), "output.LayerNorm")
