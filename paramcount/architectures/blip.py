"""BLIP: BERT as a decoder that attends to an image in every layer."""

from typing import ClassVar

from paramcount.errors import ParamcountError, describe_value
from paramcount.flow import Data, Unreachable, block, layers
from paramcount.parts.blip_vision import BlipVision, count_patches
from paramcount.parts.classic import second_bias
from paramcount.parts.decoders import use_layer_norm
from paramcount.parts.encoders import BERT_HEAD, embed_tokens, masked_head, post_norm_layer
from paramcount.sizes import (
    ConfigJson,
    FieldValues,
    Flag,
    Natural,
    Positive,
    Sizes,
    d_model_per_head,
    derived,
    hf,
    setting,
    tied_anywhere,
)
from paramcount.sizes.conditions import padding_inside
from paramcount.sizes.rules import check_heads_fill


def reads_image(js: ConfigJson, c: FieldValues) -> None:
    """Without cross-attention the reference cannot run."""
    if js.get("is_decoder", True) is not True:
        raise ParamcountError(f"= {describe_value(js['is_decoder'])}", where="is_decoder", expected="true")


class BlipImage(BlipVision):
    """The sizes of the encoder."""

    config_class = "BlipVisionConfig"

    unused_keys = ("projection_dim",)

    n_patches: Natural = derived(count_patches(384))


class BlipText(Sizes):
    """The text decoder: BERT's layers, of which each also attends to the image."""

    config_class = "BlipTextConfig"

    section = "text_config"
    conditions = (padding_inside(0), reads_image)
    unused_keys = ("encoder_hidden_size", "projection_dim")

    vocab_size: Positive = hf()
    d_model: Positive = hf()
    n_layers: Natural = hf()
    n_heads: Positive = hf()
    d_head: Positive = derived(d_model_per_head)
    d_ff: Natural = hf()
    n_positions: Positive = hf("max_position_embeddings")
    tie_word_embeddings: Flag = derived(tied_anywhere, at_root=True)

    prefix: ClassVar[str] = "bert."
    first_position: ClassVar[int] = 0
    activation = setting("hidden_act", default="gelu")
    norm_eps = setting("layer_norm_eps", default=1e-12)
    norm = use_layer_norm
    check = check_heads_fill

    def decode(c, tokens: Data, image: Data) -> Data:
        x = c.norm(embed_tokens(c, tokens, None, c.d_model), "bert.embeddings.LayerNorm")
        name, kinds = "bert.encoder.layer.{layer}.", [("layer", c.n_layers)]
        return layers(x, name, kinds, lambda kind, *x: post_norm_layer(c, *x), reads=(image,))

    def head(c, x: Data) -> Data:
        return masked_head(c, x, BERT_HEAD, c.d_model, c.activation)


class Blip(Sizes):
    """Source: arXiv:2201.12086, section 3.1."""

    reference = "BlipForConditionalGeneration"
    linear_heads = (".predictions.decoder.weight",)
    base_model = ""  # BlipModel compares an image with a text: another text encoder and two projections
    unused_keys = ("projection_dim", "image_text_hidden_size")

    vision: BlipImage
    text: BlipText

    def forward(c, tokens: Data, head: bool = True) -> Data:
        image = block(c.vision.image(), "vision_model.", c.vision.forward, part="vision")

        def write(tokens: Data, image: Data) -> Data:
            x = c.text.decode(tokens, image)
            return c.text.head(x) if head else x

        return block(tokens, "text_decoder.", write, reads=(image,), root=True)

    def body(c, tokens: Data) -> Data:
        return c.forward(tokens, head=False)

    def unreachable(c, tokens: Data) -> tuple[Unreachable, ...]:
        return second_bias(c.text, tokens, "text_decoder.cls.predictions.bias")
