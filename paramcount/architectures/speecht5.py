"""SpeechT5: one transformer for text and sounds, with other parts before and behind it for each task."""

from typing import ClassVar

from paramcount.declare import Data, ops, parts, sizes

TABLE = "speecht5.decoder.prenet.embed_tokens.weight"
OF_SOUNDS = (
    "conv_dim", "conv_kernel", "conv_stride", "max_speech_positions", "max_text_positions", "num_conv_pos_embeddings",
    "num_conv_pos_embedding_groups", "num_feat_extract_layers", "guided_attention_loss_num_heads",
)  # fmt: skip
OF_MELS = (
    "num_mel_bins", "reduction_factor", "speaker_embedding_dim", "speech_decoder_postnet_kernel",
    "speech_decoder_postnet_layers", "speech_decoder_postnet_units", "speech_decoder_prenet_layers",
    "speech_decoder_prenet_units",
)  # fmt: skip


class SpeechT5(parts.HearsSound):
    """Speech to text. Source: arXiv:2110.07205, section 2.2; SpeechT5ForSpeechToText of the reference."""

    reference = "SpeechT5ForSpeechToText"
    base_model = ""
    unused_keys = (*OF_SOUNDS, *OF_MELS)
    linear_heads: ClassVar[tuple[str, ...]] = ()
    linear_routers: ClassVar[tuple[str, ...]] = ()
    conditions = (*parts.HearsSound.conditions, sizes.padding_inside(1))

    tie_word_embeddings: sizes.Flag = sizes.hf()

    embedding_scale: ClassVar = sizes.setting(default=parts.scale_tokens)
    first_position = parts.first_after_padding(1)

    def forward(c, tokens: Data, head: bool = True) -> Data:
        def write(tokens: Data, memory: Data) -> Data:
            x = ops.lookup(tokens, "/" + TABLE, "embedding", c.vocab_size, c.d_model)
            x = ops.scale_by(x, c.embedding_scale, "times √d_model")
            x = x + ops.sinusoids(x, slowest="base", offset=c.first_position)
            return ops.block(x, "wrapped_decoder.", c.decode_states, reads=(memory,))

        samples, *masked = c.list_sources()
        memory = ops.block(samples, "speecht5.encoder.", lambda *x: c.read(tokens, *x), reads=masked, part="encoder")
        x = ops.block(tokens, "speecht5.decoder.", write, reads=(memory,), part="decoder")
        tied_to = TABLE if c.tie_word_embeddings else None
        return ops.linear(x, "text_decoder_postnet.lm_head", "lm_head", c.vocab_size, tied_to=tied_to) if head else x


class SpeechT5TextToSpeech(parts.SpeaksMels, parts.ReadsText):
    """Source: arXiv:2110.07205, section 2.2; SpeechT5ForTextToSpeech of the reference."""

    reference = "SpeechT5ForTextToSpeech"
    model_types = ("speecht5.SpeechT5ForTextToSpeech",)
    unused_keys = OF_SOUNDS


class SpeechT5SpeechToSpeech(parts.SpeaksMels, parts.HearsSound):
    """Source: arXiv:2110.07205, section 2.2; SpeechT5ForSpeechToSpeech of the reference."""

    reference = "SpeechT5ForSpeechToSpeech"
    model_types = ("speecht5.SpeechT5ForSpeechToSpeech",)
    unused_keys = (*OF_SOUNDS, "vocab_size")
    linear_heads: ClassVar[tuple[str, ...]] = ()
    linear_routers: ClassVar[tuple[str, ...]] = ()

    vocab_size = sizes.constant(None)
