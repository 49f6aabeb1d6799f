"""Pairs of an encoder of the BERT kind, of images or of sounds, and a decoder that attends to its output."""

from collections.abc import Mapping
from typing import Any, ClassVar

from paramcount.architectures.gpt2 import GPT2
from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import ParamcountError

DECODERS = ("ForCausalLM", "LMHeadModel", "Decoder")  # endings of classes that the reference takes for a decoder


def is_projected(js: sizes.ConfigJson, c: sizes.FieldValues) -> bool:
    """Whether a matrix brings the encoder's output to the decoder's size."""
    width = (js.get("decoder") or {}).get("cross_attention_hidden_size")
    return width is None and c["encoder"].d_model != c["decoder"].d_model


def is_heard_projected(js: sizes.ConfigJson, c: sizes.FieldValues) -> bool:
    """The same of sounds, by the size that an adapter would give, whether there is one or not."""
    width, encoder = (js.get("decoder") or {}).get("cross_attention_hidden_size"), c["encoder"]
    stated = (js.get("encoder") or {}).get("output_hidden_size", encoder.d_model)  # of any type, if it is there
    return bool(width is None and getattr(encoder, "d_adapted", stated) != c["decoder"].d_model)


def width_is_encoders(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """The reference rejects a decoder that expects another size than the encoder's."""
    width, expected = (js.get("decoder") or {}).get("cross_attention_hidden_size"), c["encoder"].d_model
    if width not in (None, expected):
        raise sizes.make_value_error(width, "decoder.cross_attention_hidden_size", f"{expected}")


def is_encoder(part: type[sizes.Sizes]) -> bool:
    """Whether the part is an encoder of the BERT kind that reads tokens alone."""
    return issubclass(part, parts.EncoderFlow) and part.reads_source and part.forward is parts.EncoderFlow.forward


def is_decoder(part: type[sizes.Sizes]) -> bool:
    """Whether the part can attend to another encoder's output and generates text."""
    if issubclass(part, parts.UntiedDecoder):
        return part.takes_states and part.reference.endswith(DECODERS)
    if issubclass(part, GPT2):
        return True
    names = (part.reference, *part.equivalent_classes)
    return is_encoder(part) and issubclass(part, parts.Encoder) and any(name.endswith(DECODERS) for name in names)


def is_image_encoder(part: type[sizes.Sizes]) -> bool:
    """Whether the part is a vision encoder whose keys need no section around them."""
    return issubclass(part, (parts.ViT, parts.Swin))


def is_sound_encoder(part: type[sizes.Sizes]) -> bool:
    """Whether the part is an encoder of samples that can do without a decoder."""
    return issubclass(part, parts.WaveEncoder) and part.reference.endswith("ForCTC")


DECODER = sizes.NamedPart(
    {"model_type": "bert", "is_decoder": True, "add_cross_attention": True}, is_decoder, "ForCausalLM"
)


class EncoderDecoder(parts.Headed):
    """Source: arXiv:1907.12461, section 2; modeling_encoder_decoder.py of the reference."""

    is_causal: ClassVar[Any] = True  # the decoder reads its own section

    reference = "EncoderDecoderModel"
    model_types = ("encoder-decoder",)
    base_model = ""
    named_parts: ClassVar[Mapping[str, sizes.NamedPart]] = {
        "encoder": sizes.NamedPart({"model_type": "bert", "architectures": ["BertModel"]}, is_encoder),
        "decoder": DECODER,
    }
    conditions = (width_is_encoders,)

    encoder: sizes.Sizes
    decoder: sizes.Sizes
    projected: sizes.Flag = sizes.derived(is_projected)

    def forward(c: Any, tokens: Data, head: bool = True) -> Data:
        def write(tokens: Data, source: Data, *inputs: Data) -> Data:
            return c.decoder.read(tokens, inputs, (source,), head=head)

        return ops.as_model(ops.block(tokens, "decoder.", write, reads=(c.source(), *c.decoder.list_inputs(tokens))))

    def source(c: Any) -> Data:
        """The encoder's output in vectors of the decoder's size."""
        encoder, tokens = c.encoder, ops.given("source tokens", "source")

        def encode(tokens: Data, *inputs: Data) -> Data:
            return encoder.read(tokens, inputs, (), head=False)

        inputs = encoder.list_inputs(tokens, "source ")
        x = ops.rename_weights(
            ops.as_model(ops.block(tokens, "", encode, reads=inputs)), moved=(encoder.prefix, "encoder.")
        )
        return ops.block(x, "", c.project, part="encoder") if c.projected else x

    def project(c: Any, x: Data) -> Data:
        return ops.linear(x, "enc_to_dec_proj", "other", c.decoder.d_model, bias=True)

    def width(c: Any) -> int:
        """Of what the encoder gives."""
        n: int = c.encoder.d_model
        return n

    def unreachable(c: Any, tokens: Data) -> tuple[ops.Unreachable, ...]:
        moved = (getattr(c.encoder, "prefix", ""), "encoder.")

        def wrap(part: Any, i: int) -> Data:
            def find(tokens: Data) -> Data:
                return part.unreachable(tokens)[i].flow

            if part is c.decoder:
                return ops.as_model(ops.block(tokens, "decoder.", find))
            return ops.rename_weights(ops.as_model(ops.block(tokens, "", find, part="encoder")), moved=moved)

        found = [
            unread._replace(flow=wrap(part, i))
            for part in (c.encoder, c.decoder)
            for i, unread in enumerate(part.unreachable(tokens))
            if part is c.decoder or not unread.of_lm_head  # the encoder has no LM head
        ]
        return tuple(found)

    def legacy_buffers(c: Any) -> sizes.Buffers:
        decoder = c.decoder
        return tuple((f"decoder.{decoder.prefix}{name}", *rest) for name, *rest in decoder.legacy_buffers())

    def check(c: Any) -> None:
        encoder, decoder = c.encoder, c.decoder
        for name, part in {"encoder": encoder, "decoder": decoder}.items():
            named = c.named_parts[name]
            if not named.is_supported(part.__class__):
                expected = f"a type such as {named.default['model_type']}"
                raise ParamcountError("is not supported", where=f"{name}.architecture", expected=expected)
        if getattr(encoder, "is_decoder", False):
            raise ParamcountError("= true is not supported", where="encoder.is_decoder", expected="false")
        for key, field in {"is_decoder": "is_decoder", "add_cross_attention": "cross_attention"}.items():
            if not getattr(decoder, field, True):
                raise ParamcountError("= false is not supported", where=f"decoder.{key}", expected="true")
        if not c.projected and c.width() != getattr(decoder, "d_memory", decoder.d_model):
            raise ParamcountError(
                "is set, but the sizes of encoder and decoder differ",
                where="decoder.cross_attention_hidden_size",
                expected="no such key",
            )


class VisionEncoderDecoder(EncoderDecoder):
    """Source: arXiv:2109.10282, section 2; modeling_vision_encoder_decoder.py of the reference."""

    reference = "VisionEncoderDecoderModel"
    model_types = ("vision-encoder-decoder",)
    named_parts: ClassVar[Mapping[str, sizes.NamedPart]] = {
        "encoder": sizes.NamedPart({"model_type": "vit"}, is_image_encoder),
        "decoder": DECODER,
    }

    encoder: sizes.Tower

    def source(c: Any) -> Data:
        """The image in vectors of the decoder's size."""
        has_masks = getattr(c.encoder, "mask_token", False)
        masks = (ops.given("masked patches", c.encoder.n_patches, default=0),) if has_masks else ()

        def see(pixels: Data, *masks: Data) -> Data:
            return c.encoder.forward(pixels, None, *masks)

        image = ops.block(c.encoder.image(), "encoder.", see, reads=masks, part="vision")
        return ops.block(image, "", c.project, part="projector") if c.projected else image


class SpeechEncoderDecoder(EncoderDecoder):
    """Source: arXiv:2104.06678, section 3; modeling_speech_encoder_decoder.py of the reference."""

    reference = "SpeechEncoderDecoderModel"
    model_types = ("speech-encoder-decoder",)
    named_parts: ClassVar[Mapping[str, sizes.NamedPart]] = {
        "encoder": sizes.NamedPart({"model_type": "wav2vec2", "architectures": ["Wav2Vec2Model"]}, is_sound_encoder),
        "decoder": DECODER,
    }

    projected: sizes.Flag = sizes.derived(is_heard_projected)

    def source(c: Any) -> Data:
        """The sound in vectors of the decoder's size."""
        samples = ops.given("samples", "frames", 1)
        x = ops.block(samples, "encoder.", c.encoder.encode, reads=c.encoder.list_masks(), part="encoder")
        return ops.block(x, "", c.project, part="encoder") if c.projected else x

    def width(c: Any) -> int:
        encoder = c.encoder
        n: int = encoder.d_adapted if getattr(encoder, "has_adapter", False) else encoder.d_model
        return n

    def check(c: Any) -> None:
        super().check()
        if c.projected and c.width() != c.encoder.d_model:
            found, expected = f"= {c.width()}", f"{c.encoder.d_model}, which the projection reads"
            raise ParamcountError(found, where="encoder.output_hidden_size", expected=expected)
