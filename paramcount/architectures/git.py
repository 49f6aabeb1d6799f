"""GIT: a BERT-like decoder that reads an image's patches in front of the text.

For a video, a learned vector per frame is added.
"""

from typing import ClassVar

from paramcount.declare import Data, ops, parts, sizes


def patches(js: sizes.ConfigJson, c: sizes.FieldValues) -> int:
    size = js.get("image_size", 224)
    if type(size) is not int:  # a pair is not refused, but cannot be divided later
        raise sizes.make_value_error(size, "vision_config.image_size", "an integer")
    return (size // c["patch_size"]) ** 2


def frames_apart(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[int, ...]:
    n = js.get("num_image_with_embedding")
    if n is not None and (type(n) is not int or n > sizes.MOST_NAMED):
        raise sizes.make_value_error(
            n, "num_image_with_embedding", f"null or an integer of at most {sizes.MOST_NAMED:,}"
        )
    return tuple(range(n or 0))


class GitVision(parts.ClipVision):
    """CLIP's, all of whose vectors are normed."""

    config_class = "GitVisionConfig"

    unused_keys = ()

    n_patches: sizes.Natural = sizes.derived(patches)

    def forward(c, pixels: Data, states: parts.States | None = None) -> Data:
        return c.norm(c.encode(c.embed(pixels)), "post_layernorm")


class Git(parts.Headed):
    """Source: arXiv:2205.14100, section 3."""

    reference = "GitForCausalLM"
    conditions = (sizes.padding_inside(0),)

    vocab_size: sizes.Positive = sizes.hf()
    d_model: sizes.Positive = sizes.hf()
    n_layers: sizes.Natural = sizes.hf()
    n_heads: sizes.Positive = sizes.hf()
    d_head: sizes.Positive = sizes.derived(sizes.d_model_per_head)
    d_ff: sizes.Natural = sizes.hf()
    n_positions: sizes.Positive = sizes.hf("max_position_embeddings")
    frames: sizes.Indices = sizes.derived(frames_apart)
    tie_word_embeddings: sizes.Flag = sizes.hf()
    vision: GitVision

    prefix: ClassVar[str] = "git."
    activation = sizes.setting("hidden_act")
    norm_eps = sizes.setting("layer_norm_eps")
    first_position: ClassVar = 0
    norm = parts.use_layer_norm
    check = sizes.check_heads_fill

    def forward(c, tokens: Data, head: bool = True) -> Data:
        """Patches stand in front of the text and see each other. A model of videos sees the image in every frame."""
        image = ops.block(c.vision.image(), "git.image_encoder.vision_model.", c.vision.forward, part="vision")
        if c.frames:
            image = ops.block(image, "git.", c.show_in_frames, part="vision")
        image = ops.block(image, "git.visual_projection.visual_projection.", c.project, part="projector")
        x = c.norm(parts.embed_tokens(c, tokens, None, c.d_model), "git.embeddings.LayerNorm")
        name, kinds = "git.encoder.layer.{layer}.", [("layer", c.n_layers)]
        x = ops.layers(
            ops.put_in_front(image, x, once=True), name, kinds, lambda kind, x: parts.encoders.post_norm_layer(c, x)
        )
        x = ops.text_alone(x)
        table = "git.embeddings.word_embeddings.weight" if c.tie_word_embeddings else None
        return parts.biased_head(x, c.vocab_size, "output", "output.bias", table) if head else x

    def show_in_frames(c, image: Data) -> Data:
        """The image with the vector of each frame."""
        names = [f"img_temporal_embedding.{i}" for i in c.frames]
        frames = tuple(ops.add_vector(image, name, "position", 1, 1, c.vision.d_model) for name in names)
        return ops.stack_rows(*frames, length=image.shape[0])

    def project(c, image: Data) -> Data:
        return ops.layer_norm(ops.linear(image, "0", "projector", c.d_model, bias=True), "1", c.vision.norm_eps)
