"""EuroBERT: Llama's layers, in which all tokens see one another."""

from paramcount.flow import Data, lookup, rms_norm
from paramcount.parts import task_heads as heads
from paramcount.parts.attentions import attention
from paramcount.parts.decoders import head
from paramcount.parts.encoders import PositionlessEncoder
from paramcount.parts.feed_forward import gated_mlp
from paramcount.parts.tasks import LABELS, TOKENS, TaskHead
from paramcount.sizes import Flag, Positive, d_model_per_head, equal_to, hf, rotary, setting
from paramcount.sizes.conditions import one_of, padding_in_table
from paramcount.sizes.rules import check_divides

TABLE = "model.embed_tokens.weight"


class EuroBert(PositionlessEncoder):
    """Source: arXiv:2503.05500, section 2; EuroBertDecoderLayer of the reference."""

    reference = "EuroBertForMaskedLM"
    task_heads = {
        "ForSequenceClassification": TaskHead(
            heads.classify_before_mean, LABELS, (one_of("classifier_pooling", ("bos", "mean", "late"), "late"),)
        ),
        "ForTokenClassification": TOKENS,
    }
    rotated = "d_head"
    conditions = (padding_in_table(128001),)
    prefix = "model."
    layers_name = "layers"
    last_norm = "norm"

    n_kv_heads: Positive = hf(absent=equal_to("n_heads"), null=equal_to("n_heads"))
    d_head: Positive = hf(absent=d_model_per_head, null=d_model_per_head)
    attention_bias: Flag = hf()
    mlp_bias: Flag = hf()
    tie_word_embeddings: Flag = hf()

    activation = setting("hidden_act", default="silu")
    pooling = setting("classifier_pooling", default="late")
    norm_eps = setting("rms_norm_eps", default=1e-5)
    rope = rotary(10_000, 8192)

    def inputs(c) -> dict[str, int]:
        return {}

    def embed(c, tokens: Data, *reads: Data) -> Data:
        return lookup(tokens, TABLE, "embedding", c.vocab_size, c.d_model)

    def layer(c, x: Data) -> Data:
        h = c.norm(x, "input_layernorm")
        x = x + attention(c, h, "self_attn.", bias=c.attention_bias, cached=False)
        h = c.norm(x, "post_attention_layernorm")
        return x + gated_mlp(h, "mlp.", "mlp", c.d_ff, activation=c.activation, bias=c.mlp_bias)

    def norm(c, x: Data, name: str) -> Data:
        return rms_norm(x, name, c.norm_eps)

    def head(c, x: Data) -> Data:
        return head(c, x, TABLE, bias=c.mlp_bias)

    def check(c) -> None:
        check_divides(c, "n_heads", "d_model")  # also where d_head is given: the reference asks it
