"""ConvBERT: half of the attention heads are convolutions over adjacent tokens, whose weights each token gives.

Its embeddings may be narrower than its layers.
"""

from paramcount.architectures.electra import HEAD
from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import FieldName, ParamcountError


def attention_heads(js: sizes.ConfigJson, c: sizes.FieldValues) -> int:
    """The heads that are left for attention: one of head_ratio, and at least one."""
    ratio = js.get("head_ratio", 2)
    if type(ratio) is not int or ratio < 1:
        raise sizes.make_value_error(ratio, "head_ratio", "a positive integer")
    return max(1, int(c["n_heads"] // ratio))


class ConvBert(parts.NarrowEncoder):
    """Source: arXiv:2008.02496, section 4; ConvBertLayer of the reference."""

    reference = "ConvBertForMaskedLM"
    task_heads = {
        "ForSequenceClassification": parts.FIRST_ACTIVATED,
        "ForMultipleChoice": parts.TaskHead(
            parts.task_heads.summarise_then("classifier", 1),
            parts.LABELS | parts.summarised(projected=False),
            parts.OF_D_MODEL,
        ),
        "ForTokenClassification": parts.TOKENS,
        "ForQuestionAnswering": parts.SPAN_OF_LABELS,
    }
    conditions = (sizes.memory_needs_a_decoder, sizes.padding_inside(1))
    prefix = "convbert."
    head_names = HEAD
    head_activation = "gelu"

    n_attention_heads: sizes.Positive = sizes.derived(attention_heads)
    d_head: sizes.Positive = sizes.derived(lambda js, c: c["d_model"] // attention_heads(js, c) // 2)
    d_conv: sizes.Positive = sizes.hf("conv_kernel_size")
    n_groups_of_mlp: sizes.Positive = sizes.hf("num_groups")
    grouped: sizes.Flag = sizes.derived(lambda js, c: c["n_groups_of_mlp"] != 1)
    d_model_group: sizes.Positive = sizes.derived(lambda js, c: c["d_model"] // c["n_groups_of_mlp"])
    d_ff_group: sizes.Natural = sizes.derived(lambda js, c: c["d_ff"] // c["n_groups_of_mlp"])
    is_decoder: sizes.Flag = sizes.hf()
    cross_attention: sizes.Flag = sizes.hf()
    tie_word_embeddings: sizes.Flag = sizes.hf()

    def layer(c, x: Data) -> Data:
        x = ops.block(x, "attention.", c.attend)
        return c.norm(x + (c.grouped_mlp(x) if c.grouped else parts.bert_mlp(c, x)), "output.LayerNorm")

    def attend(c, x: Data) -> Data:
        """Attention, and beside it the convolution, whose weights per token a query and adjacent tokens give."""
        heads, width = (c.n_attention_heads, c.d_head), c.n_attention_heads * c.d_head
        q = ops.linear(x, "self.query", "qkv.q", width, bias=True)
        k = ops.linear(x, "self.key", "qkv.k", heads, bias=True)
        v = ops.linear(x, "self.value", "qkv.v", heads, bias=True)
        scores = ops.linear(q * c.look_around(x), "self.conv_kernel_layer", "mixer", (heads[0], c.d_conv), bias=True)
        y = ops.linear(x, "self.conv_out_layer", "mixer", heads, bias=True)
        y = ops.reshape(ops.convolve_by_token(y, scores, c.d_conv), width)
        a = ops.reshape(ops.attend(ops.reshape(q, *heads), k, v), width)
        o = ops.linear(ops.join(a, y), "output.dense", "output_projection", c.d_model, bias=True)
        return c.norm(x + o, "output.LayerNorm")

    def look_around(c, x: Data) -> Data:
        """Adjacent tokens: each channel by itself, then all channels."""
        width, name = c.n_attention_heads * c.d_head, "self.key_conv_attn_layer."
        x = ops.convolve_tokens(x, name + "depthwise", c.d_model, c.d_conv, group=1, bias=False)
        x = ops.convolve_tokens(x, name + "pointwise", width, 1, bias=False)
        return ops.add_vector(x, name + "bias", "mixer", width, 1)

    def grouped_mlp(c, x: Data) -> Data:
        h = c.grouped_linear(x, "intermediate.dense", "mlp.up", c.d_model_group, c.d_ff_group, c.d_ff)
        return c.grouped_linear(
            ops.activate(h, c.activation), "output.dense", "mlp.down", c.d_ff_group, c.d_model_group, c.d_model
        )

    def grouped_linear(c, x: Data, name: str, component: str, d_in: ops.Size, d_out: ops.Size, width: ops.Size) -> Data:
        weight = ops.Weight(name + ".weight", component, (c.n_groups_of_mlp, d_in, d_out))
        y = ops.linear_by_head(ops.reshape(x, c.n_groups_of_mlp, d_in), d_out, weight, transposed=True, of="group")
        return ops.add_vector(ops.reshape(y, width), name + ".bias", component, width)

    def unreachable(c, tokens: Data) -> tuple[ops.Unreachable, ...]:
        if not c.cross_attention:
            return ()
        x, name = ops.given("vectors", "tokens", c.d_model), "convbert.encoder.layer.{layer}."
        unread = ops.layers(x, name, [("layer", c.n_layers)], lambda kind, x: ops.block(x, "crossattention.", c.attend))
        return (ops.Unreachable(unread, "the model reads no other encoder's output"),)

    def check(c) -> None:
        sizes.check_projection(c)
        if 2 * c.n_attention_heads * c.d_head != c.d_model:
            found = f"= {c.d_model} is not a multiple of twice {c.n_attention_heads}"
            where, expected = FieldName("d_model"), f"a multiple of {2 * c.n_attention_heads}"
            raise ParamcountError(found, where=where, expected=expected)
        if not c.d_conv % 2:
            raise ParamcountError(f"= {c.d_conv} is even", where=FieldName("d_conv"), expected="an odd number")
        sizes.check_divides(c, "n_groups_of_mlp", "d_model")
        sizes.check_divides(c, "n_groups_of_mlp", "d_ff")
