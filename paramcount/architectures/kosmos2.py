"""KOSMOS-2 and 2.5: learned queries turn an image into vectors for a decoder with sinusoidal positions."""

from math import sqrt
from typing import Any, ClassVar

from paramcount.architectures.git import GitVision
from paramcount.architectures.pix2struct import PatchEncoder
from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import ParamcountError


def counts_from_padding(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """Positions are counted from behind the padding token."""
    if js.get("pad_token_id", 1) is None:
        raise ParamcountError("= null", where="pad_token_id", expected="a token id")


class KosmosText(parts.Decoder):
    """The decoder: norms before attention and MLP, and inside both."""

    is_causal: ClassVar[Any] = True  # its attention has a mask of its own

    section = "text_config"
    conditions: ClassVar[tuple[sizes.Condition, ...]] = (
        counts_from_padding,
        sizes.padding_inside(1),
        sizes.positions_from(0),
    )
    unused_keys = ("max_position_embeddings",)

    vocab_size: sizes.Positive = sizes.hf()
    d_model: sizes.Positive = sizes.hf("hidden_size", "embed_dim")
    n_layers: sizes.Natural = sizes.hf("num_hidden_layers", "layers")
    n_heads: sizes.Positive = sizes.hf("num_attention_heads", "attention_heads")
    d_head: sizes.Positive = sizes.derived(sizes.d_model_per_head)
    d_ff: sizes.Natural = sizes.hf("ffn_dim")
    tie_word_embeddings: sizes.Flag = sizes.derived(sizes.tied_anywhere, at_root=True)

    names = ("embed_tokens", "layers", "layer_norm")
    inner_norm: ClassVar[bool] = True  # of what the heads return
    activation = sizes.setting("activation_function", default="gelu")
    norm_eps = sizes.setting("layer_norm_eps", default=1e-5)
    rope = None
    embedding_scale = sizes.setting(default=lambda js, c: sqrt(c.d_model) if js.get("scale_embedding", True) else 1.0)
    first_position = sizes.setting(default=lambda js, c: js.get("pad_token_id", 1) + 1)
    norm = parts.use_layer_norm

    def to_first_layer(c, x: Data, *segments: Data) -> Data:
        x = ops.scale_by(x, c.embedding_scale, "times √d_model")
        return x + ops.sinusoids(x, slowest="base", offset=c.first_position)

    def layer(c: Any, x: Data) -> Data:
        x = x + c.attention(c.norm(x, "self_attn_layer_norm"))
        h = ops.activate(
            ops.linear(c.norm(x, "final_layer_norm"), "ffn.fc1", "mlp.up", c.d_ff, bias=True), c.activation
        )
        return x + ops.linear(c.norm(h, "ffn.ffn_layernorm"), "ffn.fc2", "mlp.down", c.d_model, bias=True)

    def attention(c: Any, x: Data) -> Data:
        q = ops.linear(x, "self_attn.q_proj", "qkv.q", (c.n_heads, c.d_head), bias=True)  # [n, n_heads, d_head]
        k = ops.linear(x, "self_attn.k_proj", "qkv.k", (c.n_heads, c.d_head), bias=True)  # [n, n_heads, d_head]
        v = ops.linear(x, "self_attn.v_proj", "qkv.v", (c.n_heads, c.d_head), bias=True)  # [n, n_heads, d_head]
        a = ops.attend_causally(q, k, v)  # [n, n_heads, d_head]
        a = ops.layer_norm(a, "self_attn.inner_attn_ln", c.norm_eps, wide=True) if c.inner_norm else a
        return ops.linear(a, "self_attn.out_proj", "output_projection", c.d_model, bias=True)

    def check(c) -> None:
        sizes.check_heads_fill(c)
        sizes.check_sinusoids(c)


class Kosmos2Text(KosmosText):
    """Its cross-attention, if config.json asks for it, has nothing to attend to."""

    config_class = "Kosmos2TextConfig"

    cross_attention: sizes.Flag = sizes.hf("add_cross_attention")


class Kosmos25Text(KosmosText):
    """Another embedding says which tokens belong to the image."""

    config_class = "Kosmos2_5TextConfig"

    tie_word_embeddings: sizes.Flag = sizes.hf()

    inner_norm = False

    def to_first_layer(c, x: Data, *segments: Data) -> Data:
        x = super().to_first_layer(x)
        (places,) = segments
        return x + ops.lookup(places, "model.segment_emb.weight", "other_embedding", 2, c.d_model)


class Kosmos2Vision(GitVision):
    """CLIP's, all of whose vectors are normed."""

    config_class = "Kosmos2VisionConfig"

    prefix: ClassVar[str] = "vision_model.model."

    def read(c) -> Data:
        return ops.block(c.image(), c.prefix, c.forward, part="vision")


class Kosmos25Vision(PatchEncoder):
    """Pix2Struct's encoder."""

    config_class = "Kosmos2_5VisionConfig"

    prefix = "vision_model."
    scale = None

    d_model: sizes.Positive = sizes.hf()
    n_layers: sizes.Natural = sizes.hf()
    n_heads: sizes.Positive = sizes.hf()
    d_head: sizes.Positive = sizes.hf("head_dim")
    d_ff: sizes.Natural = sizes.hf("intermediate_size")
    n_positions: sizes.Positive = sizes.hf("max_num_patches")


class Kosmos2(parts.Headed):
    """Source: arXiv:2306.14824, section 2; the layer of the decoder: arXiv:2210.06423, section 2.3."""

    is_causal: ClassVar[Any] = True  # its attention has a mask of its own

    reference = "Kosmos2ForConditionalGeneration"
    model_types = ("kosmos-2",)

    vision: Kosmos2Vision
    text: Kosmos2Text
    n_queries: sizes.Positive = sizes.hf("latent_query_num")

    def forward(c, tokens: Data, head: bool = True) -> Data:
        places = ops.given("image places", "tokens", default=0)  # 1 for tokens that stand for the image

        def read(tokens: Data, image: Data, places: Data, *segments: Data) -> Data:
            x = ops.insert(c.text.embed(tokens), places, image, 1)
            out = c.text.decode(c.text.to_first_layer(x, *segments))
            return out if head else sizes.before_lm_head(out)

        reads = (c.see(), places, *c.segments())
        return ops.as_model(ops.block(tokens, "text_model.", read, reads=reads))

    def segments(c) -> tuple[Data, ...]:
        """What tells the tokens of the image from the others."""
        return ()

    def see(c) -> Data:
        """An image to n_queries vectors of the decoder's size."""
        return ops.block(c.vision.read(), "image_to_text_projection.", c.project, part="projector")

    def project(c, image: Data) -> Data:
        """The queries attend to the image and to one another."""
        image = ops.linear(ops.plain_norm(image, "l2", 1e-24), "dense", "projector", c.text.d_model, bias=True)
        queries = ops.learned_rows("latent_query", "other", c.n_queries, c.text.d_model)
        both = ops.stack_rows(image, queries, length="image and queries")
        return parts.multi_head(c.text, queries, "x_attn.", memory=both, mix=ops.attend)

    def unreachable(c, tokens: Data) -> tuple[ops.Unreachable, ...]:
        if not getattr(c.text, "cross_attention", False):
            return ()
        x = parts.source_states(c.text.d_model)
        name, kinds = "text_model.model.layers.{layer}.", [("layer", c.text.n_layers)]
        idle = ops.layers(x, name, kinds, lambda kind, x: c.look(x))
        return (ops.Unreachable(idle, "no encoder's output is given to the decoder"),)

    def look(c, x: Data) -> Data:
        return parts.multi_head(c.text, c.text.norm(x, "encoder_attn_layer_norm"), "encoder_attn.")


class Kosmos25(Kosmos2):
    """Source: arXiv:2309.11419, section 2.1."""

    reference = "Kosmos2_5ForConditionalGeneration"
    model_types = ("kosmos-2.5",)

    vision: Kosmos25Vision  # type: ignore[assignment]
    text: Kosmos25Text  # type: ignore[assignment]
    n_queries: sizes.Positive = sizes.hf("latent_query_num")

    def segments(c) -> tuple[Data, ...]:
        return (ops.given("segments", "tokens", default=0),)
