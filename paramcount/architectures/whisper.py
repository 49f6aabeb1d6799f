"""Whisper: an encoder that hears log-mel frames through two convolutions, a decoder that writes. No bias on keys."""

from typing import Any

from paramcount.declare import Data, ops, parts, sizes

ASKED = (sizes.padding_inside(50256), sizes.not_null("encoder_attention_heads"))


def audio_encoder(c: Any, tokens: Data) -> Data:
    return listen(c, "encoder.")


def encoder_heads(js: sizes.ConfigJson, c: sizes.FieldValues) -> Any:
    """Of two more names for them the last one in the file counts."""
    heads = js.get("encoder_attention_heads", 6)
    for key in js:
        if key in ("num_attention_heads", "num_key_value_heads"):
            heads = js[key]
    return heads


class Whisper(parts.WhisperStacks):
    """Source: arXiv:2212.04356, section 2.2."""

    reference = "WhisperForConditionalGeneration"
    task_heads = {
        "ForAudioClassification": parts.TaskHead(
            parts.task_heads.classify_heard,
            parts.LABELS
            | {
                "d_projected": (sizes.Positive, sizes.hf("classifier_proj_size", absent=256)),
                "weighted_layers": (sizes.Flag, sizes.hf("use_weighted_layer_sum", absent=False)),
            },
            body=audio_encoder,
        )
    }
    conditions = ASKED
    unused_keys = ("classifier_proj_size", "median_filter_width")

    vocab_size: sizes.Positive = sizes.hf()
    d_model: sizes.Positive = sizes.hf("hidden_size", "d_model")
    n_encoder_layers: sizes.Natural = sizes.hf("num_hidden_layers", "encoder_layers")
    n_decoder_layers: sizes.Natural = sizes.hf()
    n_encoder_heads: sizes.Positive = sizes.derived(encoder_heads)
    n_decoder_heads: sizes.Positive = sizes.hf()
    d_encoder_head: sizes.Positive = sizes.derived(sizes.d_model_per("n_encoder_heads"))
    d_decoder_head: sizes.Positive = sizes.derived(sizes.d_model_per("n_decoder_heads"))
    d_encoder_ff: sizes.Natural = sizes.hf()
    d_decoder_ff: sizes.Natural = sizes.hf()
    n_mels: sizes.Positive = sizes.hf("num_mel_bins")
    n_frames: sizes.Positive = sizes.hf("max_source_positions")
    n_positions: sizes.Positive = sizes.hf("max_target_positions")
    tie_word_embeddings: sizes.Flag = sizes.hf()

    check = sizes.check_stack_heads

    def forward(c, tokens: Data) -> Data:
        memory = listen(c, "model.encoder.")
        table = parts.DECODER + "embed_tokens.weight"
        x = c.embed(ops.lookup(tokens, table, "embedding", c.vocab_size, c.d_model), tokens, parts.DECODER)
        x = c.stack(parts.decoder_stack(c), x, parts.DECODER, memory)
        return ops.linear(x, "proj_out", "lm_head", c.vocab_size, tied_to=table if c.tie_word_embeddings else None)


class WhisperDecoder(parts.WhisperStacks, parts.TiedDecoder):
    """The decoder alone, which drafts for a larger one. Source: arXiv:2212.04356, section 2.2."""

    reference = "WhisperForCausalLM"
    model_types = ("whisper.WhisperForCausalLM",)
    conditions = ASKED

    head_name = "proj_out"
    takes_states = False  # but those of Whisper's encoder

    n_positions: sizes.Positive = sizes.hf("max_target_positions")


def listen(c: Any, prefix: str) -> Data:
    """The encoder's states."""
    frames = ops.given("log-mel frames", "frames", c.n_mels)
    return ops.block(
        frames, prefix, lambda frames: parts.encode_audio(c, parts.encoder_stack(c), frames), part="encoder"
    )
