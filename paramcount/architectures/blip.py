"""BLIP: BERT as a decoder that attends to an image in every layer."""

from typing import ClassVar

from paramcount.declare import Data, ops, parts, sizes


def reads_image(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """Without cross-attention the reference cannot run."""
    if js.get("is_decoder", True) is not True:
        raise sizes.make_value_error(js["is_decoder"], "is_decoder", "true")


class BlipImage(parts.BlipVision):
    """The sizes of the encoder."""

    config_class = "BlipVisionConfig"

    unused_keys = ("projection_dim",)

    n_patches: sizes.Natural = sizes.derived(parts.blip_vision.count_patches(384))


class BlipText(sizes.Sizes):
    """The text decoder: BERT's layers, of which each also attends to the image."""

    config_class = "BlipTextConfig"

    section = "text_config"
    conditions = (sizes.padding_inside(0), reads_image)
    unused_keys = ("encoder_hidden_size", "projection_dim")

    vocab_size: sizes.Positive = sizes.hf()
    d_model: sizes.Positive = sizes.hf()
    n_layers: sizes.Natural = sizes.hf()
    n_heads: sizes.Positive = sizes.hf()
    d_head: sizes.Positive = sizes.derived(sizes.d_model_per_head)
    d_ff: sizes.Natural = sizes.hf()
    n_positions: sizes.Positive = sizes.hf("max_position_embeddings")
    tie_word_embeddings: sizes.Flag = sizes.derived(sizes.tied_anywhere, at_root=True)

    prefix: ClassVar[str] = "bert."
    first_position: ClassVar[int] = 0
    activation = sizes.setting("hidden_act")
    norm_eps = sizes.setting("layer_norm_eps")
    norm = parts.use_layer_norm
    check = sizes.check_heads_fill

    def decode(c, tokens: Data, image: Data) -> Data:
        x = c.norm(parts.embed_tokens(c, tokens, None, c.d_model), "bert.embeddings.LayerNorm")
        name, kinds = "bert.encoder.layer.{layer}.", [("layer", c.n_layers)]
        return ops.layers(x, name, kinds, lambda kind, *x: parts.encoders.post_norm_layer(c, *x), reads=(image,))

    def head(c, x: Data) -> Data:
        return parts.masked_head(c, x, parts.BERT_HEAD, c.d_model, c.activation)


class Blip(parts.Headed):
    """Source: arXiv:2201.12086, section 3.1."""

    reference = "BlipForConditionalGeneration"
    linear_heads = (".predictions.decoder.weight",)
    base_model = ""  # BlipModel compares an image with a text: another text encoder and two projections
    unused_keys = ("projection_dim", "image_text_hidden_size")

    vision: BlipImage
    text: BlipText

    def forward(c, tokens: Data, head: bool = True) -> Data:
        image = ops.block(c.vision.image(), "vision_model.", c.vision.forward, part="vision")

        def write(tokens: Data, image: Data) -> Data:
            x = c.text.decode(tokens, image)
            return c.text.head(x) if head else x

        return ops.as_model(ops.block(tokens, "text_decoder.", write, reads=(image,)))

    def unreachable(c, tokens: Data) -> tuple[ops.Unreachable, ...]:
        return parts.second_bias(c.text, tokens, "text_decoder.cls.predictions.bias")
