"""Pix2Struct: an encoder of patches of an image of any shape, and T5's decoder, which attends to them."""

from functools import partial
from typing import Any, ClassVar

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import ParamcountError

QKVO = ("query", "key", "value", "output")
BUCKETS = ("relative_attention_num_buckets", "relative_attention_max_distance")
GATED = ("wi_0", "wi_1", "wo")


def heads_of_size(js: sizes.ConfigJson, c: sizes.FieldValues) -> int:
    """The heads that the matrices have: of num_heads, only the biases depend."""
    d_model, d_head = c["d_model"], c["d_head"]
    if d_model % d_head:
        raise ParamcountError(
            f"= {d_head} does not divide hidden_size = {d_model}", where="d_kv", expected=f"a divisor of {d_model}"
        )
    return d_model // d_head


class PatchEncoder(sizes.Sizes):
    """Patches with the embeddings of their row and their column through pre-norm layers."""

    config_class = "Pix2StructVisionConfig"

    section = "vision_config"
    prefix: ClassVar[str] = "encoder."
    scale: ClassVar[float | None] = 1.0  # of the scores

    d_model: sizes.Positive = sizes.hf()
    d_patch: sizes.Positive = sizes.hf("patch_embed_hidden_size")
    n_layers: sizes.Natural = sizes.hf()
    n_heads: sizes.Positive = sizes.hf()
    d_head: sizes.Positive = sizes.hf("d_kv")
    d_ff: sizes.Positive = sizes.hf("d_ff")
    n_positions: sizes.Positive = sizes.hf("seq_len")

    activation = sizes.setting("dense_act_fn")
    norm_eps = sizes.setting("layer_norm_eps")

    def read(c) -> Data:
        """An image, as patches and their places."""
        patches = ops.given("flattened patches", "patches", c.d_patch)
        places = (ops.given("patch rows", "patches"), ops.given("patch columns", "patches"))
        return ops.block(patches, c.prefix, c.encode, reads=places, part="vision")

    def encode(c, patches: Data, rows: Data, columns: Data) -> Data:
        x = ops.linear(patches, "embeddings.patch_projection", "embedding", c.d_model, bias=True)
        x = x + ops.lookup(rows, "embeddings.row_embedder.weight", "position", c.n_positions, c.d_model)
        x = x + ops.lookup(columns, "embeddings.column_embedder.weight", "position", c.n_positions, c.d_model)
        x = ops.layers(x, "encoder.layer.{layer}.", [("layer", c.n_layers)], lambda kind, x: c.layer(x))
        return c.norm(x, "layernorm")

    def layer(c: Any, x: Data) -> Data:
        h = c.norm(x, "pre_attention_layer_norm")
        x = x + parts.multi_head(c, h, "attention.", QKVO, bias=False, mix=partial(ops.attend, scale=c.scale))
        h = c.norm(x, "pre_mlp_layer_norm")
        return x + parts.gated_mlp(h, "mlp.", "mlp", c.d_ff, activation=c.activation, names=GATED)

    norm = parts.use_rms_norm


class PatchReader(sizes.Sizes):
    """T5's decoder with other names. The first layer owns the table of relative positions, and all layers read it."""

    config_class = "Pix2StructTextConfig"

    section = "text_config"
    conditions = (sizes.buckets_reach(*BUCKETS, 128, one_sided=True, least=2),)

    vocab_size: sizes.Positive = sizes.hf()
    d_model: sizes.Positive = sizes.hf()
    n_layers: sizes.Natural = sizes.hf(
        "num_hidden_layers", "encoder_layers", "decoder_layers", "num_layers", n_aliases=3
    )
    n_bias_heads: sizes.Positive = sizes.hf(
        "num_attention_heads", "decoder_attention_heads", "encoder_attention_heads", "num_heads", n_aliases=3
    )
    d_head: sizes.Positive = sizes.hf("d_kv")
    n_heads: sizes.Positive = sizes.derived(heads_of_size)
    d_ff: sizes.Positive = sizes.hf("d_ff")
    n_buckets: sizes.Positive = sizes.hf("relative_attention_num_buckets")
    is_decoder: sizes.Flag = sizes.hf()
    tie_word_embeddings: sizes.Flag = sizes.hf("/tie_word_embeddings", absent=False)

    prefix: ClassVar[str] = "decoder."
    activation = sizes.setting("dense_act_fn")
    norm_eps = sizes.setting("layer_norm_epsilon")
    farthest = sizes.setting("relative_attention_max_distance")

    def decode(c, tokens: Data, image: Data) -> Data:
        x = ops.lookup(tokens, "decoder.embed_tokens.weight", "embedding", c.vocab_size, c.d_model)
        kinds, carry = parts.first_differs(c.n_layers), ((x.shape[0], c.n_bias_heads),)
        x = ops.layers(x, "decoder.layer.{layer}.", kinds, c.layer, reads=(image,), carry=carry)
        return c.norm(x, "decoder.final_layer_norm")

    def layer(c: Any, kind: str, x: Data, image: Data, bias: Data) -> tuple[Data, Data]:
        bias = c.relative_bias(x) if kind == "first" else bias
        h = c.norm(x, "self_attention.layer_norm")
        name, attend = "self_attention.attention.", parts.causally_if(c.is_decoder)
        x = x + parts.multi_head(c, h, name, QKVO, bias=False, mix=lambda q, k, v: attend(q, k, v, bias, scale=1.0))
        x = parts.crossing(x, "encoder_decoder_attention.", c.look, image)
        h = c.norm(x, "mlp.layer_norm")
        return x + parts.gated_mlp(h, "mlp.DenseReluDense.", "mlp", c.d_ff, activation=c.activation, names=GATED), bias

    def look(c: Any, x: Data, image: Data) -> Data:
        h = c.norm(x, "layer_norm")
        return x + parts.multi_head(
            c, h, "attention.", QKVO, memory=image, bias=False, mix=partial(ops.attend_to_memory, scale=1.0)
        )

    def relative_bias(c, x: Data) -> Data:
        buckets = ops.bucket_distances(x, c.n_buckets, c.farthest, causal=True)
        name = "self_attention.attention.relative_attention_bias.weight"
        return ops.lookup(buckets, name, "position", c.n_buckets, c.n_bias_heads)

    norm = parts.use_rms_norm

    def head(c, x: Data) -> Data:
        return parts.head(c, x, "decoder.embed_tokens.weight", "decoder.lm_head")

    def check(c) -> None:
        if c.n_bias_heads not in (1, c.n_heads):
            raise ParamcountError(
                f"= {c.n_bias_heads}, but d_kv = {c.d_head} makes {c.n_heads} heads of hidden_size = {c.d_model}",
                where="num_heads",
                expected=f"{c.n_heads}",
            )


class Pix2Struct(parts.Headed):
    """Source: arXiv:2210.03347, section 2.1."""

    reference = "Pix2StructForConditionalGeneration"

    vision: PatchEncoder
    text: PatchReader

    def forward(c, tokens: Data, head: bool = True) -> Data:
        x = c.text.decode(tokens, c.vision.read())
        return c.text.head(x) if head else x

    def check(c) -> None:
        if c.vision.d_model != c.text.d_model:
            raise ParamcountError(
                f"= {c.vision.d_model}, but the decoder reads vectors of {c.text.d_model} values",
                where="vision_config.hidden_size",
                expected=f"{c.text.d_model}",
            )
