"""MPNet: BERT without segments, whose layers share a bias for the distance of each pair of tokens."""

from paramcount.errors import ParamcountError
from paramcount.flow import Data, Unreachable, bucket_distances, lookup
from paramcount.parts.classic import multi_head, second_bias
from paramcount.parts.encoders import ROBERTA_HEAD, MaskedEncoder, bert_mlp, embed_tokens, masked_head
from paramcount.sizes import ConfigJson, FieldValues, Flag, Positive, class_ends, derived, hf
from paramcount.sizes.conditions import padding_inside

BUCKETS, FARTHEST = 32, 128  # of distances, whatever the size of the table


def buckets_in_table(js: ConfigJson, c: FieldValues) -> None:
    """The table of distances has a row for each bucket."""
    if (n := c["n_buckets"]) < BUCKETS:
        raise ParamcountError(f"= {n}", where="relative_attention_num_buckets", expected=f"at least {BUCKETS}")


def padding_is_1(js: ConfigJson, c: FieldValues) -> None:
    """The padding token has id 1, whatever the config says, and positions follow that."""
    padding_inside(1, places=2)({}, c)


class MPNet(MaskedEncoder):
    """Source: arXiv:2004.09297, section 3; MPNetLayer of the reference."""

    reference = "MPNetForMaskedLM"
    task_heads = "ROBERTA"
    conditions = (padding_is_1, buckets_in_table)
    prefix = "mpnet."

    n_buckets: Positive = hf("relative_attention_num_buckets")
    pooled: Flag = derived(class_ends("Model", "ForMultipleChoice"))
    tie_word_embeddings: Flag = hf()

    first_position = 2

    def inputs(c) -> dict[str, int]:
        return {}

    def embed(c, tokens: Data, *reads: Data) -> Data:
        return c.norm(embed_tokens(c, tokens, None, c.d_model), "mpnet.embeddings.LayerNorm")

    def share(c, tokens: Data, *reads: Data) -> tuple[Data, ...]:
        buckets = bucket_distances(tokens, BUCKETS, FARTHEST, causal=False)
        name = "mpnet.encoder.relative_attention_bias.weight"
        return (lookup(buckets, name, "position", c.n_buckets, c.n_heads),)

    def layer(c, x: Data, bias: Data) -> Data:
        a = multi_head(c, x, "attention.attn.", ("q", "k", "v", "o"), cached=False, biases=(bias,))
        x = c.norm(x + a, "attention.LayerNorm")
        return c.norm(x + bert_mlp(c, x), "output.LayerNorm")

    def head(c, x: Data) -> Data:
        return masked_head(c, x, ROBERTA_HEAD, c.d_model, "gelu")

    def unreachable(c, tokens: Data) -> tuple[Unreachable, ...]:
        return second_bias(c, tokens, "lm_head.bias")
