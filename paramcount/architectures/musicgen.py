"""MusicGen: a decoder that reads a token of each of several codebooks at a time and writes the next ones.

Source: arXiv:2306.05284, section 2.
"""

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any, ClassVar

from paramcount.architectures.t5 import T5
from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import FieldName, ParamcountError


def mono_or_stereo(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    if js.get("audio_channels", 1) not in (1, 2):
        raise sizes.make_key_error(js, "audio_channels", 1, "1 or 2")


class MusicGenMelody(parts.Stacks):
    """Its text and melody, if there are any, stand in front of the tokens as vectors. The reference reads no
    scale_embedding. Source: modeling_musicgen_melody.py of the reference.
    """

    reference = "MusicgenMelodyForCausalLM"
    model_types = ("musicgen_melody_decoder",)
    linear_heads = (".weight",)
    conditions = (mono_or_stereo, sizes.positions_from(1))

    vocab_size: sizes.Positive = sizes.hf()
    d_model: sizes.Positive = sizes.hf()
    n_layers: sizes.Natural = sizes.hf()
    n_heads: sizes.Positive = sizes.hf()
    d_head: sizes.Positive = sizes.derived(sizes.d_model_per_head)
    d_ff: sizes.Natural = sizes.hf("ffn_dim")
    codebooks: sizes.Indices = sizes.derived(lambda js, c: tuple(range(sizes.check_no_types(js, "num_codebooks", 4))))

    layer = parts.seq2seq.pre_norm_layer
    last_norm = "layer_norm"

    def forward(c, tokens: Data) -> Data:
        return c.read(tokens, c.list_inputs(tokens), c.memory())

    def list_inputs(c, tokens: Data) -> list[Data]:
        """The tokens are those of the first codebook; what else is looked up."""
        return [ops.given(f"tokens of codebook {i + 1}", "tokens") for i in c.codebooks[1:]]

    def read(c, tokens: Data, others: Sequence[Data], memory: Sequence[Data], in_front: Sequence[Data] = ()) -> Data:
        """Tokens of all codebooks and an encoder's output to logits of all codebooks, side by side. `in_front`: vectors
        in front of the tokens.
        """
        tables = [f"{parts.DECODER}embed_tokens.{i}.weight" for i in c.codebooks]
        found = [
            ops.lookup(x, name, "embedding", c.vocab_size + 1, c.d_model) for x, name in zip((tokens, *others), tables)
        ]
        x = reduce(Data.__add__, found)
        for rows in in_front:
            x = ops.put_in_front(rows, x, once=True)
        x = x + ops.sinusoids_from_front(x, "cosines first", "base")
        x = c.stack(parts.Stack(c.n_layers, c.n_heads, c.d_head, c.d_ff), x, parts.DECODER, *memory)
        if in_front:
            x = ops.text_alone(x)
        return reduce(ops.join, [ops.linear(x, f"lm_heads.{i}", "lm_head", c.vocab_size) for i in c.codebooks])

    def memory(c) -> tuple[Data, ...]:
        """The encoder's output."""
        return ()

    def self_attention(c, s: parts.Stack, x: Data, *, cached: bool) -> Data:
        """What stands in front of the text is seen by later rows alone."""

        def mix(q: Data, k: Data, v: Data) -> Data:
            return ops.attend(q, ops.cache(k), ops.cache(v), mask=ops.Causal(hides_front=True))  # [n, n_heads, d_head]

        return parts.multi_head(s, x, "self_attn.", bias=False, mix=mix)

    def cross_attention(c, s: parts.Stack, x: Data, memory: Data) -> Data:
        return parts.multi_head(s, x, "encoder_attn.", memory=memory, bias=False)

    def feed_forward(c, s: parts.Stack, x: Data) -> Data:
        return parts.plain_mlp(x, ("fc1", "fc2"), "mlp", s.d_ff, activation=c.activation)

    def check(c) -> None:
        if not c.codebooks:
            raise ParamcountError("= 0", where=FieldName("codebooks"), expected="at least one")
        sizes.check_heads_fill(c)
        sizes.check_sinusoids(c)


class MusicGen(MusicGenMelody):
    """Every layer looks at the text's encoding. Source: modeling_musicgen.py of the reference."""

    reference = "MusicgenForCausalLM"
    model_types = ("musicgen_decoder",)

    def memory(c) -> tuple[Data, ...]:
        return (parts.source_states(c.d_model),)


OTHER_PARTS = ("/audio_encoder", "/text_encoder")


MusicGenOf = sizes.in_section(MusicGen, "musicgen.MusicgenForCausalLM", "decoder", unused_keys=OTHER_PARTS)
MusicGenMelodyOf = sizes.in_section(
    MusicGenMelody,
    "musicgen_melody.MusicgenMelodyForCausalLM",
    "decoder",
    unused_keys=(*OTHER_PARTS, "/num_chroma", "/chroma_length"),
)


class MusicGenDecoder(MusicGen):
    config_class = "MusicgenDecoderConfig"
    section = "decoder"


class MusicGenMelodyDecoder(MusicGenMelody):
    config_class = "MusicgenMelodyDecoderConfig"
    section = "decoder"


def is_text_encoder(part: type[sizes.Sizes]) -> bool:
    return issubclass(part, T5) and part.reference.endswith("EncoderModel")


def is_projected(js: sizes.ConfigJson, c: sizes.FieldValues) -> bool:
    """Whether a matrix brings the text's encoding to the decoder's size."""
    return bool(c["text_encoder"].d_model != c["decoder"]["d_model"])


def memory_is_projected(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """The reference builds no matrix for a decoder that expects another size than its own, and cannot run it."""
    key, expected = "cross_attention_hidden_size", c["text_encoder"].d_model
    width = (js.get("decoder") or {}).get(key)
    if width is not None and (width != expected or c["projected"]):
        wanted = "null" if c["projected"] else f"{expected}, as in text_encoder, or null"
        raise sizes.make_value_error(width, f"decoder.{key}", wanted)


class WithTextAndCodec(sizes.Sizes):
    """A text, encoded, conditions a decoder; a codec makes codes of a sound, and a sound of codes."""

    is_causal: ClassVar[Any] = True  # the decoder reads its own section

    base_model = ""
    named_parts: ClassVar[Mapping[str, sizes.NamedPart]] = {
        "text_encoder": sizes.NamedPart({"model_type": "t5"}, is_text_encoder, "EncoderModel")
    }

    text_encoder: sizes.Sizes
    codec: parts.Encodec

    def encode_text(c: Any) -> Data:
        """The text in vectors of the decoder's size."""
        text = ops.given("source tokens", "source")
        x = ops.as_model(ops.block(text, "text_encoder.", c.text_encoder.forward))
        return ops.block(x, "", c.project, part="encoder") if c.projected else x

    def project(c: Any, x: Data) -> Data:
        return ops.linear(x, "enc_to_dec_proj", "other", c.decoder.d_model, bias=True)

    def list_samples(c) -> Data:
        return ops.given("samples", "samples", c.codec.n_channels)

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
    projected: sizes.Flag = sizes.derived(is_projected)

    def forward(c, tokens: Data) -> Data:
        def write(tokens: Data, memory: Data, *others: Data) -> Data:
            return c.decoder.read(tokens, others, (memory,))

        memory = ops.bundle(c.encode_text(), c.speak())
        return ops.as_model(ops.block(tokens, "decoder.", write, reads=(memory, *c.decoder.list_inputs(tokens))))

    def speak(c) -> Data:
        """A sound to codes, and codes to a sound."""
        return ops.block(c.list_samples(), c.codec.place, c.codec.reconstruct, part="audio")


class ConditionedMusicGenMelody(WithTextAndCodec):
    """The text's encoding stands in front of the tokens, and in front of it the chroma of a melody. No sound is
    encoded. Source: modeling_musicgen_melody.py of the reference.
    """

    reference = "MusicgenMelodyForConditionalGeneration"
    model_types = ("musicgen_melody",)

    decoder: MusicGenMelodyDecoder
    projected: sizes.Flag = sizes.derived(is_projected)
    n_chroma: sizes.Positive = sizes.hf("num_chroma")
    n_chroma_frames: sizes.Positive = sizes.hf("chroma_length")
    melody_projected: sizes.Flag = sizes.derived(lambda js, c: c["n_chroma"] != c["decoder"]["d_model"])

    def forward(c, tokens: Data) -> Data:
        def write(tokens: Data, text: Data, melody: Data, *others: Data) -> Data:
            return c.decoder.read(tokens, others, (), (text, melody))

        melody = ops.given("chroma", c.n_chroma_frames, c.n_chroma)
        if c.melody_projected:
            melody = ops.block(melody, "", c.project_melody, part="encoder")
        inputs = (c.encode_text(), ops.bundle(melody, c.speak()), *c.decoder.list_inputs(tokens))
        return ops.as_model(ops.block(tokens, "decoder.", write, reads=inputs))

    def speak(c) -> Data:
        """Codes to a sound."""
        first, *others = [ops.given(f"codes of codebook {i + 1}", "frames") for i in c.codec.codebooks]
        return ops.block(first, c.codec.place, c.codec.decode, reads=others, part="audio")

    def project_melody(c, x: Data) -> Data:
        return ops.linear(x, "audio_enc_to_dec_proj", "other", c.decoder.d_model, bias=True)

    def unreachable(c, tokens: Data) -> tuple[ops.Unreachable, ...]:
        prefix = c.codec.place + "encoder."
        encoded = ops.block(c.list_samples(), prefix, c.codec.shrink, part="audio")
        return (ops.Unreachable(encoded, "no forward pass encodes audio to codes"),)

    def check(c) -> None:
        super().check()
        check_projection(c, "melody_projected", c.n_chroma)
