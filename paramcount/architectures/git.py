"""GIT: a BERT-like decoder that reads an image's patches in front of the text.

For a video, a learned vector per frame is added.
"""

from typing import ClassVar

from paramcount.errors import ParamcountError, describe_value
from paramcount.flow import (
    Data,
    Join,
    add_vector,
    block,
    layer_norm,
    layers,
    linear,
    put_in_front,
    text_alone,
)
from paramcount.parts.classic import biased_head
from paramcount.parts.clip import ClipVision
from paramcount.parts.decoders import use_layer_norm
from paramcount.parts.encoders import embed_tokens, post_norm_layer
from paramcount.parts.vision import States
from paramcount.sizes import MOST_NAMED, Flag, Indices, Natural, Positive, d_model_per_head, setting
from paramcount.sizes.conditions import padding_inside
from paramcount.sizes.fields import ConfigJson, FieldValues, Sizes, derived, hf
from paramcount.sizes.rules import check_heads_fill


def patches(js: ConfigJson, c: FieldValues) -> int:
    size = js.get("image_size", 224)
    if type(size) is not int:  # a pair is not refused, but cannot be divided later
        raise ParamcountError(f"= {describe_value(size)}", where="vision_config.image_size", expected="an integer")
    n: int = (size // c["patch_size"]) ** 2
    return n


def frames_apart(js: ConfigJson, c: FieldValues) -> tuple[int, ...]:
    n = js.get("num_image_with_embedding")
    if n is not None and (type(n) is not int or n > MOST_NAMED):
        raise ParamcountError(
            f"= {describe_value(n)}",
            where="num_image_with_embedding",
            expected=f"null or an integer of at most {MOST_NAMED:,}",
        )
    return tuple(range(n or 0))


class GitVision(ClipVision):
    """CLIP's, all of whose vectors are normed."""

    config_class = "GitVisionConfig"

    unused_keys = ()

    n_patches: Natural = derived(patches)

    def forward(c, pixels: Data, states: States | None = None) -> Data:
        return c.norm(c.encode(c.embed(pixels)), "post_layernorm")


class Git(Sizes):
    """Source: arXiv:2205.14100, section 3."""

    reference = "GitForCausalLM"
    conditions = (padding_inside(0),)

    vocab_size: Positive = hf()
    d_model: Positive = hf()
    n_layers: Natural = hf()
    n_heads: Positive = hf()
    d_head: Positive = derived(d_model_per_head)
    d_ff: Natural = hf()
    n_positions: Positive = hf("max_position_embeddings")
    frames: Indices = derived(frames_apart)
    tie_word_embeddings: Flag = hf()
    vision: GitVision

    prefix: ClassVar[str] = "git."
    activation = setting("hidden_act", default="gelu")
    norm_eps = setting("layer_norm_eps", default=1e-12)
    first_position: ClassVar = 0
    norm = use_layer_norm
    check = check_heads_fill

    def forward(c, tokens: Data, head: bool = True) -> Data:
        """Patches stand in front of the text and see each other. A model of videos sees the image in every frame."""
        image = block(c.vision.image(), "git.image_encoder.vision_model.", c.vision.forward, part="vision")
        if c.frames:
            image = block(image, "git.", c.show_in_frames, part="vision")
        image = block(image, "git.visual_projection.visual_projection.", c.project, part="projector")
        x = c.norm(embed_tokens(c, tokens, None, c.d_model), "git.embeddings.LayerNorm")
        name, kinds = "git.encoder.layer.{layer}.", [("layer", c.n_layers)]
        x = layers(put_in_front(image, x, once=True), name, kinds, lambda kind, x: post_norm_layer(c, x))
        x = text_alone(x)
        table = "git.embeddings.word_embeddings.weight" if c.tie_word_embeddings else None
        return biased_head(x, c.vocab_size, "output", "output.bias", table) if head else x

    def show_in_frames(c, image: Data) -> Data:
        """The image with the vector of each frame."""
        names = [f"img_temporal_embedding.{i}" for i in c.frames]
        frames = tuple(add_vector(image, name, "position", 1, 1, c.vision.d_model) for name in names)
        return Data(Join(0), frames, image.shape)

    def project(c, image: Data) -> Data:
        return layer_norm(linear(image, "0", "projector", c.d_model, bias=True), "1", c.vision.norm_eps)

    def body(c, tokens: Data) -> Data:
        return c.forward(tokens, head=False)
