"""ConvBERT: half of the attention heads are convolutions over adjacent tokens, whose weights each token gives.

Its embeddings may be narrower than its layers.
"""

from paramcount.architectures.electra import HEAD
from paramcount.errors import FieldName, ParamcountError, describe_value
from paramcount.flow import (
    Data,
    Unreachable,
    Weight,
    activate,
    add_vector,
    attend,
    block,
    convolve_by_token,
    convolve_tokens,
    given,
    join,
    layers,
    linear,
    linear_by_head,
    reshape,
)
from paramcount.flow.graph import Size
from paramcount.parts import task_heads as heads
from paramcount.parts.encoders import MaskedEncoder, bert_mlp, embed_tokens, masked_head
from paramcount.parts.tasks import LABELS, OF_D_MODEL, SPAN_OF_LABELS, TOKENS, TaskHead, summarised
from paramcount.sizes import ConfigJson, FieldValues, Flag, Natural, Positive, derived, hf
from paramcount.sizes.conditions import memory_needs_a_decoder, padding_inside
from paramcount.sizes.rules import check_divides, check_projection


def attention_heads(js: ConfigJson, c: FieldValues) -> int:
    """The heads that are left for attention: one of head_ratio, and at least one."""
    ratio = js.get("head_ratio", 2)
    if type(ratio) is not int or ratio < 1:
        raise ParamcountError(f"= {describe_value(ratio)}", where="head_ratio", expected="a positive integer")
    return max(1, int(c["n_heads"] // ratio))


class ConvBert(MaskedEncoder):
    """Source: arXiv:2008.02496, section 4; ConvBertLayer of the reference."""

    reference = "ConvBertForMaskedLM"
    task_heads = {
        "ForSequenceClassification": TaskHead(heads.classify_first_activated, LABELS),
        "ForMultipleChoice": TaskHead(
            heads.summarise_then("classifier", lambda c: 1), LABELS | summarised(projected=False), OF_D_MODEL
        ),
        "ForTokenClassification": TOKENS,
        "ForQuestionAnswering": SPAN_OF_LABELS,
    }
    conditions = (memory_needs_a_decoder, padding_inside(1))
    prefix = "convbert."

    d_embedding: Positive = hf()
    embeddings_projected: Flag = derived(lambda js, c: c["d_embedding"] != c["d_model"])
    n_token_types: Positive = hf()
    n_attention_heads: Positive = derived(attention_heads)
    d_head: Positive = derived(lambda js, c: c["d_model"] // attention_heads(js, c) // 2)
    d_conv: Positive = hf("conv_kernel_size")
    n_groups_of_mlp: Positive = hf("num_groups")
    grouped: Flag = derived(lambda js, c: c["n_groups_of_mlp"] != 1)
    d_model_group: Positive = derived(lambda js, c: c["d_model"] // c["n_groups_of_mlp"])
    d_ff_group: Natural = derived(lambda js, c: c["d_ff"] // c["n_groups_of_mlp"])
    is_decoder: Flag = hf()
    cross_attention: Flag = hf()
    tie_word_embeddings: Flag = hf()

    def embed(c, tokens: Data, *reads: Data) -> Data:
        x = c.norm(embed_tokens(c, tokens, reads[0], c.d_embedding), "convbert.embeddings.LayerNorm")
        return linear(x, "convbert.embeddings_project", "other", c.d_model, bias=True) if c.embeddings_projected else x

    def layer(c, x: Data) -> Data:
        x = block(x, "attention.", c.attend)
        return c.norm(x + (c.grouped_mlp(x) if c.grouped else bert_mlp(c, x)), "output.LayerNorm")

    def attend(c, x: Data) -> Data:
        """Attention, and beside it the convolution, whose weights per token a query and adjacent tokens give."""
        heads, width = (c.n_attention_heads, c.d_head), c.n_attention_heads * c.d_head
        q = linear(x, "self.query", "qkv.q", width, bias=True)
        k = linear(x, "self.key", "qkv.k", heads, bias=True)
        v = linear(x, "self.value", "qkv.v", heads, bias=True)
        scores = linear(q * c.look_around(x), "self.conv_kernel_layer", "mixer", (heads[0], c.d_conv), bias=True)
        y = linear(x, "self.conv_out_layer", "mixer", heads, bias=True)
        y = reshape(convolve_by_token(y, scores, c.d_conv), width)
        a = reshape(attend(reshape(q, *heads), k, v, cached=()), width)
        o = linear(join(a, y), "output.dense", "output_projection", c.d_model, bias=True)
        return c.norm(x + o, "output.LayerNorm")

    def look_around(c, x: Data) -> Data:
        """Adjacent tokens: each channel by itself, then all channels."""
        width, name = c.n_attention_heads * c.d_head, "self.key_conv_attn_layer."
        x = convolve_tokens(x, name + "depthwise", c.d_model, c.d_conv, group=1, bias=False)
        x = convolve_tokens(x, name + "pointwise", width, 1, bias=False)
        return add_vector(x, name + "bias", "mixer", width, 1)

    def grouped_mlp(c, x: Data) -> Data:
        h = c.grouped_linear(x, "intermediate.dense", "mlp.up", c.d_model_group, c.d_ff_group, c.d_ff)
        return c.grouped_linear(
            activate(h, c.activation), "output.dense", "mlp.down", c.d_ff_group, c.d_model_group, c.d_model
        )

    def grouped_linear(c, x: Data, name: str, component: str, d_in: Size, d_out: Size, width: Size) -> Data:
        weight = Weight(name + ".weight", component, (c.n_groups_of_mlp, d_in, d_out))
        y = linear_by_head(reshape(x, c.n_groups_of_mlp, d_in), d_out, weight, transposed=True, of="group")
        return add_vector(reshape(y, width), name + ".bias", component, width)

    def head(c, x: Data) -> Data:
        return masked_head(c, x, HEAD, c.d_embedding, "gelu")

    def unreachable(c, tokens: Data) -> tuple[Unreachable, ...]:
        if not c.cross_attention:
            return ()
        x, name = given("vectors", "tokens", c.d_model), "convbert.encoder.layer.{layer}."
        unread = layers(x, name, [("layer", c.n_layers)], lambda kind, x: block(x, "crossattention.", c.attend))
        return (Unreachable(unread, "the model reads no other encoder's output"),)

    def check(c) -> None:
        check_projection(c)
        if 2 * c.n_attention_heads * c.d_head != c.d_model:
            found = f"= {c.d_model} is not a multiple of twice {c.n_attention_heads}"
            where, expected = FieldName("d_model"), f"a multiple of {2 * c.n_attention_heads}"
            raise ParamcountError(found, where=where, expected=expected)
        if not c.d_conv % 2:
            raise ParamcountError(f"= {c.d_conv} is even", where=FieldName("d_conv"), expected="an odd number")
        check_divides(c, "n_groups_of_mlp", "d_model")
        check_divides(c, "n_groups_of_mlp", "d_ff")
