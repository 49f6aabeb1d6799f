"""Models around a language model of any architecture, which config.json itself names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, TypeAlias

from paramcount import flow as ops
from paramcount import parts, sizes
from paramcount.flow import Data

Inputs: TypeAlias = Sequence[tuple[Data, "int | ops.Unknown"]]
# `Sizes.reference_names` of models that had the language model with its LM head inside when they were released.
FORMER_PREFIXES = {
    "language_model.model.": "model.language_model.",
    "language_model.lm_head.": "lm_head.",
    "": "model.",
}


class Composite(parts.Headed):
    """A language model, among whose tokens an encoder's vectors stand. A subclass adds `language` and `list_inputs`."""

    projector_prefix: ClassVar[str] = "model.multi_modal_projector."
    moved: ClassVar[tuple[str, str] | None] = ("model.", "model.language_model.")  # (prefix in the model, in the file)
    language_prefix: ClassVar[str] = "language_model."  # before all names, if none are `moved`
    renamed: ClassVar[tuple[tuple[str, str], ...]] = ()  # parts of the names of layers: (in the model, in the file)
    has_bare_head: ClassVar[bool] = True  # whether the LM head scales and caps nothing
    projector: ClassVar[tuple[str, str]] = ("linear_1", "linear_2")  # its matrices
    activation: ClassVar[Any] = "gelu"  # between them

    def list_inputs(c) -> Inputs:
        """Vectors of an image or a sound, and the id of the tokens whose embeddings they replace."""
        raise NotImplementedError

    def forward(c: Any, tokens: Data, head: bool = True) -> Data:
        return c.read_with(tokens, c.list_inputs(), head=head)

    def read_with(c: Any, tokens: Data, inputs: Inputs, *, head: bool) -> Data:
        """Token ids to the output of the language model."""
        language, (image, token) = c.language, inputs[0]
        if getattr(language, "n_decoder_layers", None) is not None:
            return read_seq2seq(c, tokens, image, token)

        def read(tokens: Data, *rows: Data) -> Data:
            if not (isinstance(language, parts.Decoder) and language.__class__.forward is parts.Decoder.forward):
                found = Data("insert", (tokens, *rows), tokens.shape)
                return language.forward(found) if head else language.body(found)
            x = language.embed(tokens)
            for new, (_, id) in zip(rows, inputs):
                x = ops.insert(x, tokens, new, id)
            out = language.decode(language.to_first_layer(x, tokens))
            if not head:
                return sizes.before_lm_head(out)
            return (c.has_bare_head and sizes.find_lm_head(out)) or out

        prefix = "" if c.moved else c.language_prefix
        found = ops.as_model(ops.block(tokens, prefix, read, reads=[rows for rows, _ in inputs]))
        return ops.rename_weights(found, moved=c.moved)

    def embed_text(c: Any, tokens: Data) -> Data:
        return ops.rename_weights(ops.block(tokens, "", c.language.embed), moved=c.moved)

    def read_text(c: Any, x: Data, *reads: Data, head: bool) -> Data:
        """Embedded tokens to logits, or without `head` to hidden states. `reads`: what `transform` reads besides."""
        x = ops.block(x, "", c.transform, reads=reads)
        x = ops.rename_weights(x, moved=c.moved, replaced=c.renamed)
        return ops.rename_weights(ops.block(x, "", c.language.head), moved=c.moved) if head else x

    def transform(c: Any, x: Data, *reads: Data) -> Data:
        """Embedded tokens to hidden states."""
        return c.language.transform(x, *reads)

    def widen(c: Any, x: Data, d_hidden: ops.Size | None = None) -> Data:
        """Two matrices, to vectors of the language model's size."""
        d, bias = c.language.d_model, getattr(c, "projector_bias", True)
        d_hidden = getattr(c, "d_projector", d) if d_hidden is None else d_hidden
        h = ops.activate(ops.linear(x, c.projector[0], "projector", d_hidden, bias=bias), c.activation)
        return ops.linear(h, c.projector[1], "projector", d, bias=bias)


def read_seq2seq(c: Any, tokens: Data, image: Data, token: int | ops.Unknown) -> Data:
    """The same with a language model that has an encoder, among whose tokens the image stands."""

    def read(tokens: Data, source: Data, image: Data) -> Data:
        memory = c.language.encode(source, lambda x, ids, image: ops.insert(x, ids, image, token), image)
        return c.language.decode(tokens, memory)

    reads = (ops.given("source tokens", "source"), image)
    return ops.as_model(ops.block(tokens, c.language_prefix, read, reads=reads))


class Multimodal(Composite):
    """A vision encoder, a projector and a language model. A subclass adds `vision`, and `project` if the projector is
    no two matrices.
    """

    encoder_prefix: ClassVar[str] = "model.vision_tower."
    views: ClassVar[Any] = None  # a setting: the layers of the encoder that are looked at

    language: sizes.Sizes

    image_token: ClassVar[Any] = sizes.setting("image_token_id")

    def list_inputs(c) -> Inputs:
        return (c.see(), c.image_token), *c.see_more()

    def see(c: Any) -> Data:
        """An image to vectors of the language model's size."""
        pixels = c.vision.image()
        image = ops.block(pixels, c.encoder_prefix, c.encode, part="vision")
        return ops.block(image, c.projector_prefix, c.project, reads=c.places(pixels), part="projector")

    def see_more(c) -> Inputs:
        """What else takes the place of tokens, and their ids."""
        return ()

    def places(c, pixels: Data) -> tuple[Data, ...]:
        """What the projector reads besides vectors: the rows and columns of patches, if it merges squares of them."""
        return ()

    def project(c, x: Data, *places: Data) -> Data:
        return c.widen(x)

    def encode(c: Any, pixels: Data) -> Data:
        return c.vision.forward(pixels) if c.views is None else c.vision.forward(pixels, (c.views, 1))


class FormerMultimodal(Multimodal):
    """With the names of released files, from before the reference took the LM head out of the language model."""

    reference_names = FORMER_PREFIXES
    encoder_prefix = "vision_tower."
    projector_prefix = "multi_modal_projector."
    moved: ClassVar[tuple[str, str] | None] = None

    image_token = sizes.setting("image_token_index", "image_token_id")


class SeeingDecoder(sizes.Sizes):
    """A decoder whose sizes stand beside those of its vision encoder. A subclass adds `vision` and `project`, or
    `see`.
    """

    section: ClassVar[str | None] = "text_config"
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


class AudioLanguageModel(Composite):
    """An audio encoder, a projector and a language model. A subclass adds `audio`, and `project` if the projector is
    no two matrices.
    """

    encoder_prefix: ClassVar[str] = "model.audio_tower."

    language: sizes.Sizes

    audio_token: ClassVar[Any] = sizes.setting("audio_token_id")

    def list_inputs(c) -> Inputs:
        return ((c.hear(), c.audio_token),)

    def hear(c: Any) -> Data:
        """Log-mel frames to vectors of the language model's size."""
        frames = ops.given("log-mel frames", "frames", c.audio.n_mels)
        sound = ops.block(frames, c.encoder_prefix, c.audio.forward, part="audio")
        return ops.block(sound, c.projector_prefix, c.project, part="projector")

    def project(c, x: Data) -> Data:
        return c.widen(x)


class FormerAudioLanguageModel(AudioLanguageModel):
    """With the names of released files, as in `FormerMultimodal`."""

    reference_names = FORMER_PREFIXES
    encoder_prefix = "audio_tower."
    projector_prefix = "multi_modal_projector."
    moved = None
