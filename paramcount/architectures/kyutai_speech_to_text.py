"""Kyutai's speech to text: Moshi's layers read the codes that Mimi makes of a sound, one frame for each token."""

from typing import Any, ClassVar

from paramcount.architectures.moshi import Moshi, half_of
from paramcount.declare import Data, ops, parts, sizes

PADDING = 69569


def codebooks_are_the_codecs(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    n, expected = js.get("num_codebooks", 32), len(c["codec"]["semantic"]) + len(c["codec"]["acoustic"])
    if n != expected:
        raise sizes.make_value_error(n, "num_codebooks", f"{expected}, as in codec_config")


def padding_is_a_row(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    id, key = js.get("audio_pad_token_id", PADDING), "audio_pad_token_id"
    n_rows = c["vocab_size"] + js.get("num_codebooks", 32) * c["n_codes"] + 1
    if type(id) is not int or not -n_rows <= id < n_rows:
        raise sizes.make_value_error(id, key, f"0 to {n_rows - 1}")


def first_code_is_a_row(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """Behind the codes of the last codebook there is a row for padding."""
    id, key = js.get("audio_bos_token_id", 2048), "audio_bos_token_id"
    is_padding = id == js.get("audio_pad_token_id", PADDING)
    if type(id) is not int or not (is_padding or -c["vocab_size"] <= id <= c["n_codes"]):
        raise sizes.make_value_error(id, key, f"0 to {c['n_codes']}")


def first_code(js: sizes.ConfigJson, c: Any) -> int:
    """The reference takes a code with the number of the padding token for that token."""
    id: int = js.get("audio_bos_token_id", 2048)
    if 0 <= js.get("audio_pad_token_id", PADDING) < c.n_codes:
        raise ValueError("codes with the number of the padding token")
    return id


class KyutaiSpeechToText(Moshi):
    """A token is embedded with the codes of the frame before it, in a table with rows for both. Mimi makes codes of the
    sound; no code becomes a sound again.

    Source: arXiv:2509.08753, section 3; modeling_kyutai_speech_to_text.py of the reference.
    """

    reference = "KyutaiSpeechToTextForConditionalGeneration"
    reference_names = {
        "codec_model.encoder_transformer.": "codec_model.encoder.encoder_transformer.",
        "codec_model.decoder_transformer.": "codec_model.decoder.decoder_transformer.",
    }
    base_model = ""
    unused_keys = ("frame_size",)
    larger: ClassVar[tuple[str, ...]] = ()
    conditions = (codebooks_are_the_codecs, padding_is_a_row, first_code_is_a_row)
    defaults = {"vocab_size": 4001, "d_model": 2048, "n_layers": 48}
    float32 = ("codec_model",)
    names = ("embed_tokens.embed_tokens", "layers", "norm")

    d_ff: sizes.Natural = sizes.derived(half_of(11264))
    window: sizes.Positive = sizes.hf()
    n_codes: sizes.Positive = sizes.hf("codebook_vocab_size")
    tie_word_embeddings: sizes.Flag = sizes.hf()
    codec: parts.Mimi

    rope = sizes.rotary(positions=750)
    first_code = sizes.setting(default=first_code)

    def forward(c, tokens: Data) -> Data:
        codes = ops.rows_of_tokens(tokens, c.hear(), c.first_code)
        table, rows = f"{c.prefix}{c.names[0]}.weight", c.n_rows()
        sound = ops.lookup_codes(codes, table, rows, c.d_model, first=c.vocab_size, rows=c.n_codes)
        return c.decode(c.embed(tokens) + ops.sum_of_streams(sound))

    def hear(c) -> Data:
        """A sound to codes, [frames, codebooks]."""
        return ops.block(
            ops.given("samples", "samples", c.codec.n_channels), c.codec.place, c.codec.encode, part="audio"
        )

    def n_rows(c) -> ops.Size:
        """Those of the text, of the codes of each codebook, and of padding."""
        n_codebooks = len(c.codec.semantic) + len(c.codec.acoustic)
        return c.vocab_size + n_codebooks * c.n_codes + 1

    def embed(c, tokens: Data) -> Data:
        return ops.lookup(tokens, f"{c.prefix}{c.names[0]}.weight", "embedding", c.n_rows(), c.d_model)

    def head(c, x: Data) -> Data:
        """A tied LM head has a score for each row of the table."""
        if not c.tie_word_embeddings:
            return ops.linear(x, "lm_head", "lm_head", c.vocab_size)
        return ops.linear(x, "lm_head", "lm_head", c.n_rows(), tied_to=f"{c.prefix}{c.names[0]}.weight")

    def unreachable(c, tokens: Data) -> tuple[ops.Unreachable, ...]:
        codec, width = c.codec, c.codec.d_code
        if not (codec.projected or codec.has_decoder):
            return ()
        semantic, acoustic = (ops.given(f"{kind} codes", "frames", width) for kind in ("semantic", "acoustic"))
        sound = ops.block(semantic, codec.place, codec.decode, reads=(acoustic,), part="audio")
        return (ops.Unreachable(sound, "the forward pass does not decode codes to audio"),)
