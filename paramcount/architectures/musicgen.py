"""MusicGen: a decoder that reads a token of each of several codebooks at a time and writes the next ones.

Source: arXiv:2306.05284, section 2.
"""

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any, ClassVar

from paramcount.architectures.t5 import T5
from paramcount.errors import FieldName, ParamcountError, describe_value
from paramcount.flow import Data, Unreachable, block, bundle, given, join, linear, lookup, put_in_front, sinusoids
from paramcount.flow.operations.shapes import text_alone
from paramcount.parts.classic import Stack, multi_head, source_states
from paramcount.parts.encodec import Encodec
from paramcount.parts.feed_forward import plain_mlp
from paramcount.parts.seq2seq import DECODER, Stacks, pre_norm_layer
from paramcount.sizes import (
    ConfigJson,
    FieldValues,
    Flag,
    Indices,
    NamedPart,
    Natural,
    Positive,
    Sizes,
    d_model_per_head,
    derived,
    hf,
)
from paramcount.sizes.conditions import make_key_error, positions_from
from paramcount.sizes.layer_types import check_no_types
from paramcount.sizes.rules import check_heads_fill, check_sinusoids


def mono_or_stereo(js: ConfigJson, c: FieldValues) -> None:
    if js.get("audio_channels", 1) not in (1, 2):
        raise make_key_error(js, "audio_channels", 1, "1 or 2")


class MusicGenMelody(Stacks):
    """Its text and melody, if there are any, stand in front of the tokens as vectors. The reference reads no
    scale_embedding. Source: modeling_musicgen_melody.py of the reference.
    """

    reference = "MusicgenMelodyForCausalLM"
    model_types = ("musicgen_melody_decoder",)
    linear_heads = (".weight",)
    conditions = (mono_or_stereo, positions_from(1))

    vocab_size: Positive = hf()
    d_model: Positive = hf()
    n_layers: Natural = hf()
    n_heads: Positive = hf()
    d_head: Positive = derived(d_model_per_head)
    d_ff: Natural = hf("ffn_dim")
    codebooks: Indices = derived(lambda js, c: tuple(range(check_no_types(js, "num_codebooks", 4))))

    layer = pre_norm_layer
    last_norm = "layer_norm"

    def forward(c, tokens: Data) -> Data:
        return c.read(tokens, c.list_inputs(tokens), c.memory())

    def list_inputs(c, tokens: Data) -> list[Data]:
        """The tokens are those of the first codebook; what else is looked up."""
        return [given(f"tokens of codebook {i + 1}", "tokens") for i in c.codebooks[1:]]

    def read(c, tokens: Data, others: Sequence[Data], memory: Sequence[Data], in_front: Sequence[Data] = ()) -> Data:
        """Tokens of all codebooks and an encoder's output to logits of all codebooks, side by side. `in_front`: vectors
        in front of the tokens.
        """
        tables = [f"{DECODER}embed_tokens.{i}.weight" for i in c.codebooks]
        found = [
            lookup(x, name, "embedding", c.vocab_size + 1, c.d_model) for x, name in zip((tokens, *others), tables)
        ]
        x = reduce(Data.__add__, found)
        for rows in in_front:
            x = put_in_front(rows, x, once=True)
        x = x + sinusoids(x, "cosines first", slowest="base", counts_front=bool(in_front))
        x = c.stack(Stack(c.n_layers, c.n_heads, c.d_head, c.d_ff), x, DECODER, *memory)
        if in_front:
            x = text_alone(x)
        return reduce(join, [linear(x, f"lm_heads.{i}", "lm_head", c.vocab_size) for i in c.codebooks])

    def memory(c) -> tuple[Data, ...]:
        """The encoder's output."""
        return ()

    def self_attention(c, s: Stack, x: Data, *, cached: bool) -> Data:
        return multi_head(s, x, "self_attn.", bias=False, front_in_order=True)

    def cross_attention(c, s: Stack, x: Data, memory: Data) -> Data:
        return multi_head(s, x, "encoder_attn.", memory=memory, bias=False)

    def feed_forward(c, s: Stack, x: Data) -> Data:
        return plain_mlp(x, ("fc1", "fc2"), "mlp", s.d_ff, activation=c.activation)

    def check(c) -> None:
        if not c.codebooks:
            raise ParamcountError("= 0", where=FieldName("codebooks"), expected="at least one")
        check_heads_fill(c)
        check_sinusoids(c)


class MusicGen(MusicGenMelody):
    """Every layer looks at the text's encoding. Source: modeling_musicgen.py of the reference."""

    reference = "MusicgenForCausalLM"
    model_types = ("musicgen_decoder",)

    def memory(c) -> tuple[Data, ...]:
        return (source_states(c.d_model),)


OTHER_PARTS = ("/audio_encoder", "/text_encoder")


class MusicGenOf(MusicGen):
    """The decoder of a config that has a text encoder and a codec too."""

    model_types = ("musicgen.MusicgenForCausalLM",)

    section = "decoder"
    unused_keys = OTHER_PARTS


class MusicGenMelodyOf(MusicGenMelody):
    """The decoder of a config that has a text encoder and a codec too."""

    model_types = ("musicgen_melody.MusicgenMelodyForCausalLM",)

    section = "decoder"
    unused_keys = (*OTHER_PARTS, "/num_chroma", "/chroma_length")


class MusicGenDecoder(MusicGen):
    config_class = "MusicgenDecoderConfig"
    section = "decoder"


class MusicGenMelodyDecoder(MusicGenMelody):
    config_class = "MusicgenMelodyDecoderConfig"
    section = "decoder"


def is_text_encoder(part: type[Sizes]) -> bool:
    return issubclass(part, T5) and part.reference.endswith("EncoderModel")


def is_projected(js: ConfigJson, c: FieldValues) -> bool:
    """Whether a matrix brings the text's encoding to the decoder's size."""
    return bool(c["text_encoder"].d_model != c["decoder"]["d_model"])


def memory_is_projected(js: ConfigJson, c: FieldValues) -> None:
    """The reference builds no matrix for a decoder that expects another size than its own, and cannot run it."""
    key, expected = "cross_attention_hidden_size", c["text_encoder"].d_model
    width = (js.get("decoder") or {}).get(key)
    if width is not None and (width != expected or c["projected"]):
        wanted = "null" if c["projected"] else f"{expected}, as in text_encoder, or null"
        raise ParamcountError(f"= {describe_value(width)}", where=f"decoder.{key}", expected=wanted)


class WithTextAndCodec(Sizes):
    """A text, encoded, conditions a decoder; a codec makes codes of a sound, and a sound of codes."""

    is_causal: ClassVar[Any] = True  # the decoder reads its own section

    base_model = ""
    named_parts: ClassVar[Mapping[str, NamedPart]] = {
        "text_encoder": NamedPart({"model_type": "t5"}, is_text_encoder, "EncoderModel")
    }

    text_encoder: Sizes
    codec: Encodec

    def encode_text(c: Any) -> Data:
        """The text in vectors of the decoder's size."""
        text = given("source tokens", "source")
        x = block(text, "text_encoder.", c.text_encoder.forward, root=True)
        return block(x, "", c.project, part="encoder") if c.projected else x

    def project(c: Any, x: Data) -> Data:
        return linear(x, "enc_to_dec_proj", "other", c.decoder.d_model, bias=True)

    def list_samples(c) -> Data:
        return given("samples", "samples", c.codec.n_channels)

    def check(c: Any) -> None:
        check_projection(c, "projected", c.text_encoder.d_model)


def check_projection(c: Any, flag: str, width: int) -> None:
    """A matrix brings vectors of this width to the decoder's size if it is another one."""
    expected = width != c.decoder.d_model
    if getattr(c, flag) != expected:
        found = str(getattr(c, flag)).lower()
        raise ParamcountError(f"= {found}", where=flag, expected=str(expected).lower())


class ConditionedMusicGen(WithTextAndCodec):
    """Source: arXiv:2306.05284, section 2; modeling_musicgen.py of the reference."""

    reference = "MusicgenForConditionalGeneration"
    conditions = (memory_is_projected,)

    decoder: MusicGenDecoder
    projected: Flag = derived(is_projected)

    def forward(c, tokens: Data) -> Data:
        def write(tokens: Data, memory: Data, *others: Data) -> Data:
            return c.decoder.read(tokens, others, (memory,))

        memory = bundle(c.encode_text(), c.speak())
        return block(tokens, "decoder.", write, reads=(memory, *c.decoder.list_inputs(tokens)), root=True)

    def speak(c) -> Data:
        """A sound to codes, and codes to a sound."""
        return block(c.list_samples(), c.codec.place, c.codec.reconstruct, part="audio")


class ConditionedMusicGenMelody(WithTextAndCodec):
    """The text's encoding stands in front of the tokens, and in front of it the chroma of a melody. No sound is
    encoded. Source: modeling_musicgen_melody.py of the reference.
    """

    reference = "MusicgenMelodyForConditionalGeneration"
    model_types = ("musicgen_melody",)

    decoder: MusicGenMelodyDecoder
    projected: Flag = derived(is_projected)
    n_chroma: Positive = hf("num_chroma")
    n_chroma_frames: Positive = hf("chroma_length")
    melody_projected: Flag = derived(lambda js, c: c["n_chroma"] != c["decoder"]["d_model"])

    def forward(c, tokens: Data) -> Data:
        def write(tokens: Data, text: Data, melody: Data, *others: Data) -> Data:
            return c.decoder.read(tokens, others, (), (text, melody))

        melody = given("chroma", c.n_chroma_frames, c.n_chroma)
        if c.melody_projected:
            melody = block(melody, "", c.project_melody, part="encoder")
        inputs = (c.encode_text(), bundle(melody, c.speak()), *c.decoder.list_inputs(tokens))
        return block(tokens, "decoder.", write, reads=inputs, root=True)

    def speak(c) -> Data:
        """Codes to a sound."""
        first, *others = [given(f"codes of codebook {i + 1}", "frames") for i in c.codec.codebooks]
        return block(first, c.codec.place, c.codec.decode, reads=others, part="audio")

    def project_melody(c, x: Data) -> Data:
        return linear(x, "audio_enc_to_dec_proj", "other", c.decoder.d_model, bias=True)

    def unreachable(c, tokens: Data) -> tuple[Unreachable, ...]:
        prefix = c.codec.place + "encoder."
        encoded = block(c.list_samples(), prefix, c.codec.shrink, part="audio")
        return (Unreachable(encoded, "no forward pass encodes audio to codes"),)

    def check(c) -> None:
        super().check()
        check_projection(c, "melody_projected", c.n_chroma)
