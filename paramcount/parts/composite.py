"""Models around a language model of any architecture, which config.json itself names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from paramcount import flow as ops
from paramcount import parts, sizes
from paramcount.flow import Data

# `Sizes.reference_names` of models that had the language model with its LM head inside when they were released.
FORMER_PREFIXES = {
    "language_model.model.": "model.language_model.",
    "language_model.lm_head.": "lm_head.",
    "": "model.",
}


def with_language(
    c: Any,
    tokens: Data,
    inputs: Sequence[tuple[Data, int | ops.Unknown]],
    *,
    head: bool,
    moved: tuple[str, str] | None = None,
    prefix: str = "language_model.",
    bare: bool = True,
) -> Data:
    """Token ids to the output of the `language` model of c.

    `inputs`: vectors of an image or a sound, and the id of the tokens whose embeddings they replace. `head`: to logits,
    by an LM head that scales and caps nothing if it is `bare`. `moved`: (prefix in the model, prefix in the file),
    instead of `prefix` before all names.
    """
    language, ids = c.language, [id for _, id in inputs]
    if getattr(language, "n_decoder_layers", None) is not None:
        image, token = inputs[0]
        return with_seq2seq(c, tokens, image, token=token, prefix=prefix)

    def read(tokens: Data, *rows: Data) -> Data:
        reads_embeddings_alone = (
            isinstance(language, parts.Decoder) and language.__class__.forward is parts.Decoder.forward
        )
        if not reads_embeddings_alone:
            found = Data("insert", (tokens, *rows), tokens.shape)
            return language.forward(found) if head else language.body(found)
        x = language.embed(tokens)
        for id, new in zip(ids, rows):
            x = ops.insert(x, tokens, new, id)
        out = language.decode(language.to_first_layer(x, tokens))
        if not head:
            return sizes.before_lm_head(out)
        return (bare and sizes.find_lm_head(out)) or out

    found = ops.as_model(ops.block(tokens, "" if moved else prefix, read, reads=[rows for rows, _ in inputs]))
    return ops.rename_weights(found, moved=moved)


def with_seq2seq(c: Any, tokens: Data, image: Data, *, token: int | ops.Unknown, prefix: str) -> Data:
    """The same with a language model that has an encoder, among whose tokens the image stands."""

    def read(tokens: Data, source: Data, image: Data) -> Data:
        memory = c.language.encode(source, lambda x, ids, image: ops.insert(x, ids, image, token), image)
        return c.language.decode(tokens, memory)

    return ops.as_model(ops.block(tokens, prefix, read, reads=(ops.given("source tokens", "source"), image)))


class Multimodal(sizes.Sizes):
    """A vision encoder, a projector and a language model. A subclass adds `vision` and `project`."""

    encoder_prefix: ClassVar[str] = "vision_tower."
    projector_prefix: ClassVar[str] = "multi_modal_projector."
    language_prefix: ClassVar[str] = "language_model."
    moved: ClassVar[tuple[str, str] | None] = None  # see `with_language`
    has_bare_head: ClassVar[bool] = True  # whether the LM head scales and caps nothing
    image_token: ClassVar[Any]  # a setting: the id of the tokens that stand for an image

    language: sizes.Sizes

    def forward(c, tokens: Data, head: bool = True) -> Data:
        inputs = [(c.see(), c.image_token), *c.see_more()]
        return with_language(
            c, tokens, inputs, head=head, moved=c.moved, prefix=c.language_prefix, bare=c.has_bare_head
        )

    def body(c, tokens: Data) -> Data:
        return c.forward(tokens, head=False)

    def see(c: Any) -> Data:
        """An image to vectors of the language model's size."""
        pixels: Data = c.vision.image()
        image = ops.block(pixels, c.encoder_prefix, c.encode, part="vision")
        return ops.block(image, c.projector_prefix, c.project, reads=c.places(pixels), part="projector")

    def see_more(c) -> Sequence[tuple[Data, int | ops.Unknown]]:
        """What else takes the place of tokens, and their ids."""
        return ()

    def places(c, pixels: Data) -> tuple[Data, ...]:
        """What the projector reads besides vectors: the rows and columns of patches, if it merges squares of them."""
        return ()

    def encode(c: Any, pixels: Data) -> Data:
        return c.vision.forward(pixels)

    def project(c, x: Data, *places: Data) -> Data:
        raise NotImplementedError


class SeeingDecoder(sizes.Sizes):
    """A decoder whose sizes stand beside those of its vision encoder. A subclass adds `vision` and `project`, or
    `see`.
    """

    encoder_prefix: ClassVar[str] = "vision_tower."
    projector_prefix: ClassVar[str] = "multi_modal_projector."
    image_token: ClassVar[Any]  # a setting: the id of the tokens that stand for an image

    def forward(c: Any, tokens: Data) -> Data:
        return c.decode(ops.insert(c.embed(tokens), tokens, c.see(), c.image_token))

    def see(c: Any) -> Data:
        """An image to vectors of the language model's size."""
        image = ops.block(c.vision.image(), c.encoder_prefix, c.vision.forward, part="vision")
        return ops.block(image, c.projector_prefix, c.project, part="projector")

    def project(c, x: Data) -> Data:
        raise NotImplementedError


class AudioLanguageModel(sizes.Sizes):
    """An audio encoder, a projector and a language model. A subclass adds `audio` and `project`."""

    encoder_prefix: ClassVar[str] = "audio_tower."
    projector_prefix: ClassVar[str] = "multi_modal_projector."
    moved: ClassVar[tuple[str, str] | None] = None  # see `with_language`
    audio_token: ClassVar[Any]  # a setting: the id of the tokens that stand for sound

    language: sizes.Sizes

    def forward(c, tokens: Data, head: bool = True) -> Data:
        return with_language(c, tokens, [(c.hear(), c.audio_token)], head=head, moved=c.moved)

    def body(c, tokens: Data) -> Data:
        return c.forward(tokens, head=False)

    def hear(c: Any) -> Data:
        """Log-mel frames to vectors of the language model's size."""
        frames = ops.given("log-mel frames", "frames", c.audio.n_mels)
        sound = ops.block(frames, c.encoder_prefix, c.audio.forward, part="audio")
        return ops.block(sound, c.projector_prefix, c.project, part="projector")

    def project(c, x: Data) -> Data:
        raise NotImplementedError
